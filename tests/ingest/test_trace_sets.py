"""The real trace set and the hostile one against what they must come to; skipped where they are not at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.ingest import IngestReport
from tests.trace_set import Warehouse

REPOSITORY = "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace"
REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"

Published = tuple[Warehouse, IngestReport]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def published(trace_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    warehouse = Warehouse(tmp_path_factory.mktemp("published"))
    return warehouse, warehouse.ingest(trace_set / "flashinfer-trace", repository=REPOSITORY, revision=REVISION)


@pytest.fixture
def expected(trace_set: Path) -> Path:
    return trace_set / "flashinfer-trace-expected"


def test_accounting(published: Published) -> None:
    _, report = published
    assert (report.records, report.added, report.quarantined, report.duplicates) == (1550, 1536, 14, 0)
    assert (report.operations_added, report.implementations_added, report.files_quarantined) == (58, 64, 0)
    assert report.complete


def test_runs(published: Published, expected: Path) -> None:
    names = (
        "source_file", "source_line", "run_digest", "implementation_digest", "operation_digest", "workload_digest",
        "protocol_digest", "environment_digest", "comparison_key", "status", "latency_ns", "observed_at",
    )  # fmt: skip
    wanted = [tuple(row.get(name) for name in names) for row in read_lines(expected / "runs.jsonl")]
    moment = "strftime(observed_at, '%Y-%m-%dT%H:%M:%S.%g') || 'Z'"
    columns = ", ".join(
        moment if name == "observed_at" else f"observation.{name}" if "source" in name else f"run.{name}"
        for name in names
    )
    rows = published[0].rows(f"SELECT {columns} FROM observations AS observation JOIN runs AS run USING (run_digest)")
    assert sorted(rows, key=repr) == sorted(wanted, key=repr)


def test_quarantine(published: Published, expected: Path) -> None:
    wanted = [
        (row["source_file"], row["source_line"], row["reason"]) for row in read_lines(expected / "quarantine.jsonl")
    ]
    assert published[0].held() == sorted(wanted)


def test_ranks(published: Published, expected: Path) -> None:
    wanted = {
        (r["comparison_key"], r["run_digest"], r["rank"], r["latency_ns"])
        for r in read_lines(expected / "leaderboard.jsonl")
    }
    rows = published[0].rows(
        "SELECT comparison_key, run_digest, rank, leaderboard.latency_ns FROM leaderboard JOIN runs USING (run_digest) "
        "WHERE profile = 'source_native'"
    )
    assert len(rows) == len(set(rows))
    assert set(rows) == wanted


def test_record_events(published: Published, expected: Path) -> None:
    wanted = {
        (r["comparison_key"], r["run_digest"], r["previous_run_digest"], r["at"])
        for r in read_lines(expected / "record_events.jsonl")
    }
    rows = published[0].rows(
        "SELECT comparison_key, run_digest, previous_run_digest, "
        "strftime(record_history.at, '%Y-%m-%dT%H:%M:%S.%g') || 'Z' "
        "FROM record_history JOIN runs USING (run_digest) WHERE profile = 'source_native'"
    )
    assert len(rows) == len(set(rows))
    assert set(rows) == wanted


def test_floors(published: Published, expected: Path) -> None:
    names = ("workload_digest", "hardware", "bytes_moved", "dram_ns", "compute_ns", "floor_ns")
    wanted = {
        tuple(row[name] for name in names[:2]): [row[name] for name in names[2:]]
        for row in read_lines(expected / "floors_v1.jsonl")
    }
    rows = published[0].rows(f"SELECT {', '.join(names)} FROM floor_estimates WHERE model = 'headroom-v1'")
    found = {row[:2]: list(row[2:]) for row in rows}
    for key, numbers in wanted.items():
        assert found[key] == [number if number is None else pytest.approx(number, rel=1e-12) for number in numbers], key


def test_published_manifests_are_ours(published: Published, expected: Path) -> None:
    """Of the published documents those that do not depend on code bodies come out of our tables, digest for digest."""
    ours = {
        digest
        for table in ("operations", "workloads", "environments", "protocols")
        for (digest,) in published[0].rows(f"SELECT {table[:-1]}_digest FROM {table}")
    }
    kinds = {"OperationSpec", "WorkloadCase", "ExecutionEnvironment", "BenchmarkProtocol"}
    theirs = {
        row["digest"] for row in read_lines(expected / "published_manifests.jsonl") if row["manifest"]["kind"] in kinds
    }
    assert theirs
    assert theirs - ours == set()


def test_the_real_set_again_and_rebuilt(published: Published, trace_set: Path) -> None:
    warehouse, first = published
    before = warehouse.contents()
    again = warehouse.ingest(trace_set / "flashinfer-trace", repository=REPOSITORY, revision=REVISION)
    assert (again.added, again.already_known, again.quarantined, again.published) == (0, first.added, 14, False)
    rebuilt = warehouse.ingest(trace_set / "flashinfer-trace", repository=REPOSITORY, revision=REVISION, rebuild=True)
    assert (rebuilt.added, rebuilt.quarantined) == (first.added, 14)
    assert warehouse.contents() == before


def test_the_hostile_set(warehouse_at: Warehouse, trace_set: Path) -> None:
    report = warehouse_at.ingest(trace_set / "hostile" / "set")
    wanted = read_lines(trace_set / "hostile" / "expected.jsonl")
    good = {
        (file, line): digest
        for file, line, digest in warehouse_at.rows("SELECT source_file, source_line, run_digest FROM observations")
    }
    held = {(file, line): reason for file, line, reason in warehouse_at.held()}
    for row in wanted:
        place = (row["source_file"], row["source_line"])
        match row["outcome"]:
            case "accepted":
                assert place in good, row
                assert row["run_digest"] in (None, good[place]), row
            case "blank" | "duplicate":
                assert place not in good, row
                assert place not in held, row
            case reason:
                assert held.get(place) == reason, row
    outcomes = [row["outcome"] for row in wanted if row["source_line"] is not None]
    assert len(good) == report.added == outcomes.count("accepted")
    assert report.duplicates == outcomes.count("duplicate")
    assert report.records == len(outcomes) - outcomes.count("blank")
    assert len(held) == sum(row["outcome"] not in ("accepted", "blank", "duplicate") for row in wanted)


# Flags that follow from what is kept of a record.
NOTED = {
    "TZ_ASSUMED": "timezone_assumed",
    "ERROR_NOT_FINITE": "error_not_finite",
    "LEGACY_FORMAT": "len(legacy_forms) > 0",
}


@pytest.mark.parametrize(("flag", "column"), NOTED.items())
def test_what_the_hostile_records_are_marked_with(
    warehouse_at: Warehouse, trace_set: Path, flag: str, column: str
) -> None:
    warehouse_at.ingest(trace_set / "hostile" / "set")
    marked = {
        place[:2]: place[2]
        for place in warehouse_at.rows(f"SELECT source_file, source_line, {column} FROM observations")
    }
    wanted = {
        (row["source_file"], row["source_line"]): flag in row["flags"]
        for row in read_lines(trace_set / "hostile" / "expected.jsonl")
        if row["outcome"] == "accepted" and row["flags"] is not None
    }
    assert {place: marked[place] for place in wanted} == wanted
