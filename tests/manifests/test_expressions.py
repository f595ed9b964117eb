from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.manifests.expressions import ExpressionError, UnboundAxisError, evaluate, parse_expression

AXES = {"m": 7, "n": 3, "zero": 0, "head_dim": 128, "x2": 5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("m", 7),
        ("head_dim//2", 64),
        ("x2", 5),
        ("1 + 2 * 3", 7),
        ("2 * 3 + 1", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("100 // 7 // 2", 7),
        ("100 // (7 // 2)", 33),
        ("17 % 5 * 2", 4),
        ("2 * 17 % 5", 4),
        ("8 * 3 // 5", 4),
        ("m // n", 2),
        ("(n - m) // n", -2),  # floor, not towards zero
        ("(n - m) % n", 2),
        ("m % (0 - n)", -2),
        ("m // (0 - n)", -3),
        ("((((m))))", 7),
        ("\tm\t+ n ", 10),
        ("9007199254740991", 2**53 - 1),
    ],
)
def test_value(text: str, value: int) -> None:
    assert evaluate(parse_expression(text), AXES) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "m +", "+ m", "-m", "m - -1", "m n", "2 m", "2m", "(m", "m)", "()", "m ** 2", "m / 2", "m // // 2",
        "1.5", "1e3", "0x10", "1_000", "'m'", '"m"', "m.bit_length", "m.real", "len(m)", "f(1)", "m[0]", "[m]", "{m}",
        "m if n else 1", "lambda: m", "m and n", "not m", "m == n", "m < n", "m & n", "m | n", "m ^ n", "~m", "m << 1",
        "m; n", "m, n", "m := 1", "m = 1", "m\nn", "m\n+ n", "M", "é", "m # n", "__import__('os')", "m\x00", "٣",
        "m @ n",
        "9007199254740992", "9" * 5000, "(" * 10_000 + "m" + ")" * 10_000, "m" * 100_000, "m+" * 50_000 + "m",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="is no axis expression: "):
        parse_expression(text)


@pytest.mark.parametrize("text", ["k", "m + k", "_", "m // zero", "m % zero", "1 // (m - m)"])
def test_without_a_value(text: str) -> None:
    with pytest.raises(UnboundAxisError):
        evaluate(parse_expression(text), AXES)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["m", "n", "x2"]) | st.integers(0, 1000).map(str))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    inner = f"{left} {draw(st.sampled_from(['+', '-', '*', '//', '%']))} {right}"
    return f"({inner})" if draw(st.booleans()) else inner


@given(expressions())
def test_means_what_python_means(text: str) -> None:
    try:
        expected = eval(text, {"__builtins__": {}}, dict(AXES))  # noqa: S307 - made above of numbers and names alone
    except ZeroDivisionError:
        with pytest.raises(UnboundAxisError):
            evaluate(parse_expression(text), AXES)
    else:
        assert evaluate(parse_expression(text), AXES) == expected


@given(st.text(max_size=50) | st.text(alphabet="mn01()+-*/% ", max_size=50))
def test_any_text_has_a_value_or_a_reason(text: str) -> None:
    with suppress(ExpressionError, UnboundAxisError):
        assert isinstance(evaluate(parse_expression(text), AXES), int)


def test_a_long_sum_within_the_limit_is_no_problem() -> None:
    assert evaluate(parse_expression("+".join(["1"] * 500)), {}) == 500
