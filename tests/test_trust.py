"""The public trace set: floors, flags, profiles, and histories that do not depend on how the rows came."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from duckdb import DuckDBPyConnection

from pipeline.ingest import IngestRequest, ingest
from pipeline.query.floors import Floors, floors
from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory
from tests.warehouse.test_readme import cited, told_flags, told_floors

TRACE_SET = os.environ.get("KERNELHOUSE_TRACE_SET")
REPOSITORY = "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace"
REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"

pytestmark = pytest.mark.skipif(TRACE_SET is None, reason="KERNELHOUSE_TRACE_SET names no folder")


def _open(data: DataDirectory, source: Path, **request: Any) -> DuckDBPyConnection:
    ingest(data, IngestRequest(source=str(source), **request))
    return connect(data.database)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBPyConnection]:
    data = DataDirectory(tmp_path_factory.mktemp("public") / "data")
    source = Path(str(TRACE_SET)) / "flashinfer-trace"
    with closing(_open(data, source, repository=REPOSITORY, revision=REVISION)) as connection:
        yield connection


@pytest.fixture(scope="module")
def fits(public: DuckDBPyConnection) -> Floors:
    return floors(public)


def test_the_published_model_is_beaten_and_the_bound_is_not(fits: Floors) -> None:
    below = [(run.model, run.operation, run.role) for run in fits.runs_below]
    paged = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps1"
    assert below.count(("headroom-v1", paged, "baseline")) == 30
    assert below.count(("headroom-v1", "gqa_paged_decode_h32_kv8_d128_ps1", "baseline")) == 1
    assert len(below) == 31
    assert {
        family.model: sum(f.below for f in fits.families if f.model == family.model) for family in fits.families
    } == {
        "headroom-v1": 31,
        "headroom-v2": 0,
    }


def test_nearly_every_measured_workload_has_a_bound(public: DuckDBPyConnection) -> None:
    query = "SELECT count(floor_ns) / count(*) FROM floor_estimates WHERE model = 'headroom-v2'"
    ((share,),) = public.execute(query).fetchall()
    assert share >= 0.95


def test_where_all_inputs_are_read_the_bound_is_as_high_as_the_published_memory_term(
    public: DuckDBPyConnection,
) -> None:
    query = """
        SELECT count(*), count(*) FILTER (bound.floor_ns >= published.dram_ns)
        FROM floor_estimates AS bound
        JOIN floor_estimates AS published USING (workload_digest, hardware)
        JOIN floor_facts USING (workload_digest)
        WHERE bound.model = 'headroom-v2' AND published.model = 'headroom-v1'
        AND formula IN ('gemm', 'ragged_attention', 'rmsnorm')
    """
    ((whole, as_high),) = public.execute(query).fetchall()
    assert whole == as_high > 500


def test_flags_of_the_public_set(public: DuckDBPyConnection) -> None:
    query = "SELECT flag, count(*) FROM flags GROUP BY flag"
    assert dict(public.execute(query).fetchall()) == {
        "AXES_INCONSISTENT": 13,
        "ERROR_LARGE": 164,
        "ERROR_NOT_FINITE": 28,
        "REFERENCE_DRIFT": 41,
        "REFERENCE_NOT_MEASURED": 20,
        "SOLUTION_MISMATCH": 43,
        "TZ_ASSUMED": 1536,
    }


def test_the_strict_profile_separates_inputs_and_eras(public: DuckDBPyConnection) -> None:
    query = "SELECT profile, count(*), sum(results)::BIGINT FROM cohorts GROUP BY profile ORDER BY profile"
    assert public.execute(query).fetchall() == [("source_native", 1209, 1290), ("strict_exact", 1266, 1290)]
    mixed = """
        SELECT cohort_key FROM cohort_runs JOIN runs USING (run_digest)
        JOIN workload_inputs USING (benchmark, inputs_sha256)
        WHERE profile = 'strict_exact' AND tensor_files
        GROUP BY cohort_key
        HAVING count(DISTINCT runs.workload_uuid) > 1
            OR count(DISTINCT runs.observed_at >= TIMESTAMP '2026-02-24') > 1
    """
    assert public.execute(mixed).fetchall() == []


def test_the_examples_of_the_documentation_are_rows(public: DuckDBPyConnection) -> None:
    for digits in cited():
        query = "SELECT count(*) FROM runs WHERE starts_with(run_digest, ?)"
        assert public.execute(query, [f"sha256:{digits}"]).fetchall() == [(1,)], digits
    for flag, digits, detail in told_flags():
        query = "SELECT detail FROM flags WHERE flag = ? AND starts_with(run_digest, ?)"
        assert public.execute(query, [flag, f"sha256:{digits}"]).fetchall() == [(detail,)]
    for formula, operation, *figures in told_floors():
        query = """
            SELECT bytes_moved, operations, round(floor_ns, 3), bound_by
            FROM floor_estimates JOIN floor_facts USING (workload_digest) JOIN workloads USING (workload_digest)
            JOIN operations USING (operation_digest)
            WHERE model = 'headroom-v2' AND formula = ? AND name = ?
        """
        rows = [
            [_number(moved), _number(operations), _number(floor), bound]
            for moved, operations, floor, bound in public.execute(query, [formula, operation]).fetchall()
        ]
        assert figures in rows, formula


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:,.3f}".rstrip("0").rstrip(".")


def test_every_flag_of_the_hostile_set(tmp_path: Path) -> None:
    folder = Path(str(TRACE_SET)) / "hostile"
    expected = [json.loads(line) for line in (folder / "expected.jsonl").read_text(encoding="utf-8").splitlines()]
    stated = {
        (each["source_file"], each["source_line"]): each["flags"]
        for each in expected
        if each["outcome"] == "accepted" and each["flags"] is not None
    }
    with closing(_open(DataDirectory(tmp_path / "data"), folder / "set")) as connection:
        query = "SELECT source_file, source_line, flags FROM runs"
        found = {(file, line): flags for file, line, flags in connection.execute(query).fetchall()}
    assert {place: found[place] for place in stated} == stated
    assert len(stated) == 14


ANSWERS = (
    "FROM cohorts",
    "FROM leaderboard",
    "FROM record_history",
    "FROM current_records",
    "FROM flags",
)


def _answers(connection: DuckDBPyConnection) -> list[list[tuple[Any, ...]]]:
    return [sorted(connection.execute(query).fetchall(), key=repr) for query in ANSWERS]


@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_pieces_in_any_order_give_the_same_boards_and_histories(
    public: DuckDBPyConnection, tmp_path: Path, order: str
) -> None:
    """Four pulls: incomplete pieces of the traces, one of them of reversed lines, then all of it."""
    source = Path(str(TRACE_SET)) / "flashinfer-trace"
    traces = sorted(path.relative_to(source) for path in source.glob("traces/**/*.jsonl"))
    pieces = [traces[start::3] for start in range(3)]
    data = DataDirectory(tmp_path / "data")
    for number, piece in enumerate(pieces if order == "forwards" else reversed(pieces)):
        folder = tmp_path / str(number)
        for name in ("definitions", "solutions", "workloads"):
            shutil.copytree(source / name, folder / name)
        for path in piece:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            lines = (source / path).read_bytes().splitlines(keepends=True)
            (folder / path).write_bytes(b"".join(reversed(lines) if order == "backwards" else lines))
        ingest(data, IngestRequest(source=str(folder), repository=REPOSITORY, revision=REVISION))
    with closing(connect(data.database)) as connection:
        assert _answers(connection) == _answers(public)
