"""The derived half against what the public catalog published for its trace set: floors, ranks, record events."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.store.database import build, connect
from tests.warehouse.rows import completed, write_part

TRACE_SET = os.environ.get("KERNELHOUSE_TRACE_SET")

pytestmark = pytest.mark.skipif(TRACE_SET is None, reason="KERNELHOUSE_TRACE_SET names no folder")


def _lines(name: str) -> list[dict[str, Any]]:
    path = Path(str(TRACE_SET)) / "flashinfer-trace-expected" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _rows() -> dict[str, list[dict[str, Any]]]:
    """Return the published runs and manifests as rows of the evidence tables."""
    tables: dict[str, list[dict[str, Any]]] = {"operations": [], "workloads": [], "workload_tensors": []}
    products = {}
    for line in _lines("published_manifests"):
        digest, spec = line["digest"], line["manifest"]["spec"]
        match line["manifest"]["kind"]:
            case "OperationSpec":
                tables["operations"].append({"operation_digest": digest, "family": spec["family"]})
            case "WorkloadCase":
                tables["workloads"].append(
                    {
                        "workload_digest": digest,
                        "operation_digest": spec["operationSpecDigest"],
                        "axes": json.dumps(spec["axes"]),
                    }
                )
                tables["workload_tensors"] += [
                    {"workload_digest": digest, "role": "input", "position": position, "name": name}
                    | {"dtype": tensor["dtype"], "shape": tensor["shape"]}
                    for position, (name, tensor) in enumerate(spec["tensors"].items())
                ]
            case "ExecutionEnvironment":
                products[digest] = spec["hardware"]["product"]
    tables["runs"] = [
        {
            **{key: value for key, value in run.items() if key not in ("source_file", "source_line")},
            "observed_at": datetime.fromisoformat(run["observed_at"]).replace(tzinfo=None),
            "hardware": products.get(run["environment_digest"], "a GPU whose environment is not published"),
            "primary_statistic": "mean" if run["latency_ns"] is not None else None,
        }
        for run in _lines("runs")
    ]
    return tables


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("published")
    parts = {name: [write_part(folder, name, rows)] for name, rows in completed(_rows()).items()}
    build(parts, folder / "warehouse.duckdb", meta={})
    with connect(folder / "warehouse.duckdb") as connection:
        yield connection


def _same(connection: duckdb.DuckDBPyConnection, query: str, expected: list[tuple[Any, ...]]) -> None:
    """Check that the answer is exactly the expected rows, doubles to the last bit, in any order."""
    rows = connection.execute(query).fetchall()
    assert len(rows) == len(expected)
    assert set(rows) == set(expected)


def test_every_published_floor(published: duckdb.DuckDBPyConnection) -> None:
    columns = ("workload_digest", "hardware", "bytes_moved", "dram_ns", "compute_ns", "floor_ns")
    expected = [tuple(floor[column] for column in columns) for floor in _lines("floors_v1")]
    assert len(expected) == 938
    _same(published, f"SELECT {', '.join(columns)} FROM floor_estimates WHERE model = 'headroom-v1'", expected)


def test_every_published_rank(published: duckdb.DuckDBPyConnection) -> None:
    expected = [
        (row["comparison_key"], row["run_digest"], row["rank"], row["latency_ns"]) for row in _lines("leaderboard")
    ]
    query = "SELECT cohort_key, run_digest, rank, latency_ns FROM leaderboard WHERE profile = 'source_native'"
    _same(published, query, expected)


def test_every_published_record_event(published: duckdb.DuckDBPyConnection) -> None:
    expected = [
        (event["comparison_key"], event["run_digest"], event["previous_run_digest"], event["at"])
        for event in _lines("record_events")
    ]
    query = """
        SELECT cohort_key, run_digest, previous_run_digest, strftime("at", '%Y-%m-%dT%H:%M:%S.%gZ')
        FROM record_history
        WHERE profile = 'source_native' AND cause = 'new_run'
    """
    _same(published, query, expected)


def test_invariants_hold(published: duckdb.DuckDBPyConnection) -> None:
    """Every eligible run is ranked once, every cohort with a ranked run has one holder that is its fastest."""
    eligible = "SELECT run_digest FROM runs WHERE eligible"
    _same(
        published,
        "SELECT run_digest FROM leaderboard WHERE profile = 'source_native'",
        published.execute(eligible).fetchall(),
    )
    fastest = """
        SELECT cohort_key, best_latency_ns, best_latency_ns FROM cohorts
        WHERE results > 0 AND profile = 'source_native'
    """
    query = """
        SELECT cohort_key, latency_ns, fastest_latency_ns FROM current_records WHERE profile = 'source_native'
    """
    _same(published, query, published.execute(fastest).fetchall())
