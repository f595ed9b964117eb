from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ManifestError
from pipeline.manifests import canonical_text, digest_of, sha256_of
from pipeline.manifests.scalars import SAFE_INTEGER

NUMBERS = [
    tuple(line.split())
    for line in (Path(__file__).parent / "rfc8785_numbers.txt").read_text("ascii").splitlines()
    if not line.startswith("#")
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE_INTEGER, SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def shuffled(value: Any, draw: st.DrawFn) -> Any:
    if isinstance(value, dict):
        return {name: shuffled(value[name], draw) for name in draw(st.permutations(list(value)))}
    if isinstance(value, list):
        return [shuffled(inner, draw) for inner in value]
    return value


@st.composite
def two_orders(draw: st.DrawFn) -> tuple[Any, Any]:
    value = draw(json_values)
    return value, shuffled(value, draw)


@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_numbers_of_the_rfc(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    if text == "refused":
        with pytest.raises(ManifestError):
            canonical_text(number)
    else:
        assert canonical_text(number) == text.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (137343.0, "137343"),
        (-0.0, "0"),
        (SAFE_INTEGER, "9007199254740991"),
        (-SAFE_INTEGER, "-9007199254740991"),
        (True, "true"),
        (None, "null"),
        ('\u20ac$\u000f\nA\'B"\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\"/"'),  # RFC 8785, 3.2.2.2
        ("\x7f\u2028", '"\x7f\u2028"'),
        ({"b": 1, "a": [2, {"d": 3, "c": 4}]}, '{"a":[2,{"c":4,"d":3}],"b":1}'),
        # RFC 8785, 3.2.3: by UTF-16 code units, so an astral character comes before U+FB33.
        (
            {"\u20ac": 0, "\r": 0, "\ufb33": 0, "1": 0, "\U0001f600": 0, "\u0080": 0, "\u00f6": 0},
            '{"\\r":0,"1":0,"\u0080":0,"ö":0,"€":0,"\U0001f600":0,"\ufb33":0}',
        ),
        # Equal to the eye is not equal: no normalization of Unicode.
        ({"e\u0301": 1, "\u00e9": 2}, '{"e\u0301":1,"\u00e9":2}'),
    ],
)
def test_text(value: Any, text: str) -> None:
    assert canonical_text(value) == text.encode()


@pytest.mark.parametrize(
    "value", [SAFE_INTEGER + 1, -SAFE_INTEGER - 1, float("nan"), float("-inf"), "\ud800", {"\udfff": 1}]
)
def test_what_has_no_text(value: Any) -> None:
    with pytest.raises(ManifestError, match=r"^\w.*: .*"):
        canonical_text({"inner": [value]})


@given(two_orders())
def test_key_order_never_matters_and_the_text_means_the_same(values: tuple[Any, Any]) -> None:
    first, second = values
    assert canonical_text(first) == canonical_text(second)
    # A double is exact in its text, but that text may look like an integer that no double holds.
    assert json.loads(canonical_text(first), parse_int=float) == first


@given(json_values, json_values, json_values)
def test_the_digest_covers_api_version_kind_and_spec_alone(spec: Any, one: Any, other: Any) -> None:
    head = {"apiVersion": "kernelindex.dev/v1alpha1", "kind": "OperationSpec", "spec": spec}
    digest = sha256_of(canonical_text(head))
    assert digest_of({"metadata": one, **head}) == digest_of({**head, "metadata": other}) == digest
