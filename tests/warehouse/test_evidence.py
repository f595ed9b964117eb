"""What several parts say of one thing becomes one row: operations, implementations, quarantine, drift, runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from tests.warehouse.rows import Bench, Row, Rows

Warehouse = Callable[[Rows], duckdb.DuckDBPyConnection]

SNAPSHOTS: list[Row] = [{"snapshot_id": f"s{number}", "sequence": number} for number in (2, 1, 3)]


def test_an_operation_is_as_its_latest_definition_says(warehouse: Warehouse) -> None:
    parts = [("s1", "a", "old"), ("s2", "c", "new"), ("s2", "b", "chosen")]
    rows = [{"snapshot_id": snapshot, "name": name, "description": text} for snapshot, name, text in parts]
    with warehouse({"snapshots": SNAPSHOTS, "operations": rows}) as connection:
        assert connection.execute("SELECT name, description FROM operations").fetchall() == [("b", "chosen")]


def test_generated_code_never_reads_as_a_baseline(warehouse: Warehouse) -> None:
    parts = [
        ("s1", "baseline", "a", "1", "first"),
        ("s2", "llm-generated", "c", "2", "later"),
        ("s3", "llm-generated", "b", "4", "later"),
        ("s3", "llm-generated", "b", "3", "later"),
    ]
    columns = ("snapshot_id", "role", "name", "source_path", "first_revision")
    rows = [dict(zip(columns, part, strict=True)) for part in parts]
    with warehouse({"snapshots": SNAPSHOTS, "implementations": rows}) as connection:
        query = "SELECT role, name, source_path, first_revision FROM implementations"
        assert connection.execute(query).fetchall() == [("llm-generated", "b", "3", "first")]


HELD = ("scope", "kind", "source_file", "source_line", "raw_sha256")
LINE = ("set", "trace", "file", 1, "sha")
WHOLE = ("set", "solution", "file", None, "sha")


def _row(held: tuple[Any, ...], sequence: int) -> dict[str, Any]:
    return dict(zip(HELD, held, strict=True)) | {"sequence": sequence}


@pytest.mark.parametrize(
    ("held", "released", "now"),
    [
        ([(LINE, 1, "OLD"), (LINE, 2, "NEW")], [], ["NEW"]),
        ([(LINE, 1, "OLD")], [(LINE, 1)], []),
        ([(LINE, 1, "OLD")], [(LINE, 2), (LINE, 1)], []),
        ([(LINE, 1, "OLD"), (LINE, 3, "AGAIN")], [(LINE, 2)], ["AGAIN"]),
        # A record is known by its bytes, wherever it lies ...
        ([(LINE, 1, "OLD"), (("set", "trace", "moved", 2, "sha"), 2, "NEW")], [], ["NEW"]),
        ([(LINE, 1, "OLD")], [(("set", "trace", "moved", 2, "sha"), 2)], []),
        ([(LINE, 1, "HELD")], [(("set", "trace", "file", 1, "other"), 2)], ["HELD"]),
        # ... a file by its path, whatever it holds by now.
        ([(WHOLE, 1, "OLD"), (("set", "solution", "file", None, None), 2, "NEW")], [], ["NEW"]),
        ([(WHOLE, 1, "OLD")], [(("set", "solution", "file", None, "other"), 2)], []),
        ([(WHOLE, 1, "HELD")], [(("set", "solution", "other", None, "sha"), 2)], ["HELD"]),
        # Nothing is said of another trace set, nor of a file by its lines.
        ([(LINE, 1, "HELD")], [(("other", *LINE[1:]), 2)], ["HELD"]),
        ([(LINE, 1, "HERE"), (("other", *LINE[1:]), 2, "THERE")], [], ["HERE", "THERE"]),
        ([(LINE, 1, "LINE"), (WHOLE, 2, "WHOLE")], [(WHOLE, 3)], ["LINE"]),
    ],
)
def test_quarantine_is_what_is_held_back_now(
    warehouse: Warehouse, held: list[Any], released: list[Any], now: list[str]
) -> None:
    rows: Rows = {
        "quarantine": [_row(place, sequence) | {"reason": reason} for place, sequence, reason in held],
        "releases": [_row(*each) for each in released],
    }
    with warehouse(rows) as connection:
        reasons = connection.execute("SELECT reason FROM quarantine ORDER BY reason").fetchall()
    assert reasons == [(reason,) for reason in now]


def test_drift_adds_up(warehouse: Warehouse) -> None:
    columns = ("source_file", "path", "occurrences")
    parts = [("a", "x", 2), ("a", "x", 3), ("a", "y", 1), ("b", "x", 1)]
    with warehouse({"drift": [dict(zip(columns, part, strict=True)) for part in parts]}) as connection:
        rows = connection.execute("FROM drift ORDER BY ALL").fetchall()
    assert rows == [("a", "x", 5), ("a", "y", 1), ("b", "x", 1)]


def test_a_run_shows_its_first_observation_and_what_all_say(warehouse: Warehouse) -> None:
    columns = ("snapshot_id", "source_file", "source_line", "workload_uuid", "inputs_sha256")
    columns += ("timezone_assumed", "error_not_finite", "legacy_forms")
    observations = [
        ("s2", "a", 1, "u1", "i2", True, False, ["device"]),
        ("s1", "b", 10, "u3", "i1", True, True, ["format", "device"]),
        ("s1", "b", 9, "u2", "i3", False, False, []),
        ("s1", "c", 1, "u4", "i4", True, False, ["type"]),
    ]
    rows: Rows = {
        "snapshots": SNAPSHOTS,
        "runs": [{"run_digest": "r"}],
        "observations": [{"run_digest": "r"} | dict(zip(columns, each, strict=True)) for each in observations],
    }
    with warehouse(rows) as connection:
        answer = connection.execute(f"SELECT {', '.join(columns[1:])}, flags FROM runs").fetchall()
    assert answer == [
        ("b", 9, "u1", "i1", False, True, ["device", "format", "type"], ["ERROR_NOT_FINITE", "LEGACY_FORMAT"])
    ]


PASSED: Row = {"run_digest": "r", "status": "passed", "latency_ns": 5, "log_digest": "log"}
FULL: Rows = {
    "runs": [PASSED],
    "implementations": [{"source_available": True, "first_revision": "commit"}],
    "artifacts": [{"digest": "log", "kind": "log"}],
}


@pytest.mark.parametrize(
    ("run", "eligible", "reasons"),
    [
        ({}, True, []),
        ({"latency_ns": None}, False, ["MISSING_PRIMARY_METRIC"]),
        ({"status": "timeout"}, False, ["STATUS_TIMEOUT"]),
        (
            {"status": "suspected_reward_hack", "latency_ns": None},
            False,
            ["MISSING_PRIMARY_METRIC", "STATUS_SUSPECTED_REWARD_HACK"],
        ),
    ],
)
def test_eligibility(warehouse: Warehouse, run: Row, eligible: bool, reasons: list[str]) -> None:
    with warehouse({"runs": [PASSED | run]}) as connection:
        assert connection.execute("SELECT eligible, reasons FROM runs").fetchall() == [(eligible, reasons)]
        assert connection.execute("SELECT DISTINCT run_digest FROM leaderboard").fetchall() == [("r",)] * eligible


@pytest.mark.parametrize(
    ("rows", "level"),
    [
        ({}, "reproducible"),
        ({"runs": [PASSED | {"status": "timeout", "latency_ns": None}]}, "reproducible"),
        ({"implementations": [{"source_available": False, "first_revision": "commit"}]}, "reported"),
        ({"implementations": [{"source_available": True}]}, "reported"),
        ({"runs": [PASSED | {"log_digest": None}]}, "reported"),
        ({"artifacts": []}, "reported"),
        ({"artifacts": [{"digest": "log", "kind": "source"}]}, "reported"),
    ],
)
def test_evidence_level(warehouse: Warehouse, rows: Rows, level: str) -> None:
    with warehouse({**FULL, **rows}) as connection:
        assert connection.execute("SELECT evidence_level FROM runs").fetchall() == [(level,)]


@pytest.mark.parametrize("lost", ["implementations", "operations", "workloads", "protocols", "environments"])
def test_evidence_is_only_reported_where_a_digest_does_not_resolve(bench: Bench, lost: str) -> None:
    resolved: Rows = {**FULL, "operations": [{}], "workloads": [{}], "protocols": [{}], "environments": [{}]}
    (whole,) = bench.answer("runs", resolved)
    (torn,) = bench.answer("runs", {**resolved, lost: []})
    assert (whole["evidence_level"], torn["evidence_level"]) == ("reproducible", "reported")
