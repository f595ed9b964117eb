"""What is said of a cohort, its record and the coverage of an operation, from runs to answers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from tests.warehouse.rows import Row, Rows

Warehouse = Callable[[Rows], duckdb.DuckDBPyConnection]

NATIVE = "profile = 'source_native'"

IMPLEMENTATIONS: list[Row] = [
    {"implementation_digest": role, "name": role, "author": role, "role": role}
    for role in ("baseline", "llm-generated")
]


def at(minute: int) -> dt.datetime:
    return dt.datetime(2026, 1, 1, 0, minute)  # noqa: DTZ001 - the tables hold UTC without a zone


def run(digest: str, latency: int | None, role: str = "llm-generated", minute: int = 0, **more: Any) -> Row:
    return {
        "run_digest": digest,
        "latency_ns": latency,
        "status": "passed" if latency else "timeout",
        "primary_statistic": "mean" if latency else None,
        "implementation_digest": role,
        "comparison_key": "cohort",
        "observed_at": at(minute),
        "hardware": "NVIDIA B200",
        **more,
    }


@pytest.mark.parametrize(
    ("runs", "state", "best", "baseline"),
    [
        ([run("a", 100, "baseline"), run("b", 120)], "unbeaten", "a", 100),
        ([run("a", 100, "baseline"), run("b", 90)], "beaten", "b", 100),
        ([run("a", 100, "baseline"), run("b", 100, minute=5)], "unbeaten", "b", 100),
        ([run("a", 100, "baseline"), run("b", 80, "baseline"), run("c", 90)], "unbeaten", "b", 80),
        ([run("b", 90)], "none", "b", None),
        ([run("a", None, "baseline"), run("b", 90)], "none", "b", None),
    ],
)
def test_baseline(warehouse: Warehouse, runs: list[Row], state: str, best: str, baseline: int | None) -> None:
    with warehouse({"runs": runs, "implementations": IMPLEMENTATIONS}) as connection:
        query = f"SELECT baseline_state, best_run_digest, baseline_latency_ns FROM cohorts WHERE {NATIVE}"
        assert connection.execute(query).fetchall() == [(state, best, baseline)]


def test_a_cohort_counts_all_runs_and_ranks_the_eligible(warehouse: Warehouse) -> None:
    runs = [run("a", 100, minute=3), run("b", None, minute=1), run("c", 100, minute=7)]
    with warehouse({"runs": runs}) as connection:
        query = f"""
            SELECT profile, cohort_key, hardware, metric, runs, results, best_latency_ns, first_observed_at,
                last_observed_at
            FROM cohorts
            WHERE {NATIVE}
        """
        expected = ("source_native", "cohort", "NVIDIA B200", "latency:mean:ns", 3, 2, 100, at(1), at(7))
        assert connection.execute(query).fetchall() == [expected]


def test_a_cohort_without_a_ranked_run_has_no_board_and_no_record(warehouse: Warehouse) -> None:
    with warehouse({"runs": [run("a", None)]}) as connection:
        query = f"SELECT metric, results, runs, best_run_digest, baseline_state FROM cohorts WHERE {NATIVE}"
        assert connection.execute(query).fetchall() == [("none", 0, 1, None, "none")]
        for name in ("leaderboard", "record_history", "current_records"):
            assert connection.execute(f"SELECT count(*) FROM {name}").fetchall() == [(0,)]


def test_the_board_and_the_record_show_the_floor_of_the_profile(warehouse: Warehouse) -> None:
    rows: Rows = {
        "runs": [run("a", 300, minute=1), run("b", 200, minute=2)],
        "workload_tensors": [{"role": "input", "dtype": "fp32", "shape": [200_000]}],
    }
    with warehouse(rows) as connection:
        board = connection.execute(
            f"SELECT run_digest, rank, floor_ns, vs_floor FROM leaderboard WHERE {NATIVE} ORDER BY rank"
        )
        assert board.fetchall() == [("b", 1, 100.0, 2.0), ("a", 2, 100.0, 3.0)]
        (record,) = connection.execute(f"FROM current_records WHERE {NATIVE}").fetchall()
    assert record == ("source_native", "cohort", "b", 200, "b", 200, at(2), 100.0, 2.0)


def test_a_floor_of_nothing_gives_no_ratio(warehouse: Warehouse) -> None:
    rows: Rows = {
        "runs": [run("a", 300)],
        "workload_tensors": [{"role": "input", "dtype": "fp32", "shape": [0, 8]}],
    }
    with warehouse(rows) as connection:
        assert connection.execute(f"SELECT floor_ns, vs_floor FROM leaderboard WHERE {NATIVE}").fetchall() == [
            (0.0, None)
        ]


def test_coverage_names_also_what_is_not_measured(warehouse: Warehouse) -> None:
    workloads = [{"workload_digest": str(number), "operation_digest": "op"} for number in range(3)]
    runs = [
        run("a", 300, operation_digest="op", workload_digest="0", environment_digest="b200", minute=4),
        run("b", None, operation_digest="op", workload_digest="1", environment_digest="b200", minute=2),
        run("c", 200, operation_digest="op", workload_digest="0", environment_digest="b200", minute=1),
        run("d", 200, operation_digest="other", workload_digest="x", environment_digest="l4", hardware="NVIDIA L4"),
    ]
    operations = [{"operation_digest": digest, "name": digest} for digest in ("op", "other")]
    with warehouse({"runs": runs, "workloads": workloads, "operations": operations}) as connection:
        columns = "operation, hardware, workloads, measured, passing, last_observed_at"
        answer = connection.execute(f"SELECT {columns} FROM coverage ORDER BY 1, 2").fetchall()
    assert answer == [
        ("op", "NVIDIA B200", 3, 2, 1, at(4)),
        ("op", "NVIDIA L4", 3, 0, 0, None),
        ("other", "NVIDIA B200", 1, 0, 0, None),
        ("other", "NVIDIA L4", 1, 1, 1, at(0)),
    ]
