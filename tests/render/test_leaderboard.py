from __future__ import annotations

import pytest
from duckdb import DuckDBPyConnection

from pipeline.query.leaderboard import leaderboard
from pipeline.render.leaderboard import render
from pipeline.render.screen import Screen
from tests.query.warehouse_fixture import GEMM, GROUPED, UNMEASURED

GROUPS = "comparison groups shown, those with the most results; --all for all, or narrow with --axes / --gpu"
RESULTS = "Only the first results of a comparison group are shown; --limit N for more, --all alone for all"


@pytest.mark.parametrize(
    ("name", "limits", "said"),
    [
        (GEMM, {}, []),
        (GEMM, {"cohort_limit": 4}, []),
        (GEMM, {"cohort_limit": 3}, [f"3 of 4 {GROUPS}"]),
        (GEMM, {"cohort_limit": 1, "limit": 1}, [f"1 of 4 {GROUPS}"]),
        (GEMM, {"cohort_limit": 1, "gpu": "H100"}, []),
        (GROUPED, {"cohort_limit": 1, "limit": 1}, [RESULTS]),
        (GROUPED, {"cohort_limit": 1, "limit": 2}, []),
        (UNMEASURED, {"cohort_limit": 1, "limit": 1}, []),
    ],
)
def test_what_is_left_out_is_said(
    connection: DuckDBPyConnection, name: str, limits: dict[str, object], said: list[str]
) -> None:
    screen = Screen()
    render(screen, leaderboard(connection, name, **limits))  # type: ignore[arg-type]
    assert [line for line in screen.lines if GROUPS in line or RESULTS in line] == said


def test_what_is_left_out_is_said_on_a_narrow_terminal(connection: DuckDBPyConnection) -> None:
    screen = Screen(width=40)
    render(screen, leaderboard(connection, GEMM, cohort_limit=1))
    start = screen.lines.index("1 of 4 comparison groups shown, those")
    assert screen.lines[start : start + 4] == [
        "1 of 4 comparison groups shown, those",
        "with the most results; --all for all, or",
        "narrow with --axes / --gpu",
        "",
    ]
