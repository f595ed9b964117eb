from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from pipeline.query.verify import Check, verify
from pipeline.store.database import connect
from tests.conftest import House


def checks(house: House) -> dict[str, Check]:
    with connect(house.data.database) as connection:
        return {check.name: check for check in verify(connection, house.data, lambda stage, done, total: None)}


def failed(house: House) -> dict[str, str]:
    return {
        check.name: f"{check.problems[0].where}: {check.problems[0].what}"
        for check in checks(house).values()
        if not check.ok
    }


def test_a_sound_warehouse_passes_every_check(house: House) -> None:
    outcome = checks(house)
    assert [name for name, check in outcome.items() if not check.ok] == []
    assert outcome["records"].detail == "8 trace records are observed or held back"
    assert outcome["manifest digests"].detail.startswith("19 ")


def test_progress_is_reported(house: House) -> None:
    stages: set[str] = set()
    with connect(house.data.database) as connection:
        list(verify(connection, house.data, lambda stage, done, total: stages.add(stage)))
    assert {"blobs", "records", "manifests of runs"} <= stages


RUN = "(SELECT min(run_digest) FROM runs WHERE eligible)"


@pytest.mark.parametrize(
    ("sql", "check", "what"),
    [
        (
            f"UPDATE runs SET manifest = replace(manifest, '\"passed\"', '\"timeout\"') WHERE run_digest = {RUN}",
            "manifest digests",
            "its manifest has the digest sha256:",
        ),
        (
            f"UPDATE runs SET manifest = manifest || ' ' WHERE run_digest = {RUN}",
            "manifest digests",
            "not in canonical form",
        ),
        (f"UPDATE runs SET manifest = '[' WHERE run_digest = {RUN}", "manifest digests", "cannot be read"),
        (
            f"UPDATE runs SET manifest = '{{}}' WHERE run_digest = {RUN}",
            "manifest digests",
            "cannot be read",
        ),
        (f"UPDATE runs SET latency_ns = 1 WHERE run_digest = {RUN}", "manifest columns", "latency_ns is 1"),
        (
            f"UPDATE runs SET observed_at = TIMESTAMP '2020-01-01' WHERE run_digest = {RUN}",
            "manifest columns",
            "observed_at is '2020-01-01T00:00:00.000Z'",
        ),
        (
            "UPDATE workloads SET axes = '{\"m\":63}' WHERE axes = '{\"m\": 64}'",
            "manifest columns",
            "axes is {'m': 63}",
        ),
        ("UPDATE workloads SET axes = '{'", "manifest columns", "axes is '{'"),
        ("UPDATE environments SET hardware = 'NVIDIA B300'", "manifest columns", "hardware is 'NVIDIA B300'"),
        (
            f"UPDATE runs SET comparison_key = 'sha256:0' WHERE run_digest = {RUN}",
            "comparison keys",
            "is sha256:0, not sha256:",
        ),
        ("DELETE FROM protocols", "references", "there is no such row in protocols"),
        ("DELETE FROM observations", "references", "there is no such row in observations"),
        ("DELETE FROM artifacts", "references", "there is no such row in artifacts"),
        ("INSERT INTO drift SELECT * FROM drift", "keys", "2 rows share this key"),
        ("UPDATE ingests SET records = records + 1", "accounting", "9 records are not 7 added"),
        ("UPDATE ingests SET files = files + 1", "accounting", "3 files are not 1 read"),
        ("DELETE FROM quarantine", "records", "nothing accounts for it"),
        ("UPDATE leaderboard SET rank = rank + 1", "ranks and records", "ranks are not dense from 1"),
        ("DELETE FROM leaderboard WHERE rank = 2", "ranks and records", "ranked runs and results of the cohort differ"),
        ("UPDATE cohorts SET best_latency_ns = 1", "ranks and records", "not the fastest ranked one"),
        (
            "UPDATE leaderboard SET latency_ns = 1 WHERE rank = 2",
            "ranks and records",
            "ranks do not rise with latency",
        ),
        ("UPDATE leaderboard SET position = 2", "ranks and records", "positions are not 1, 2, 3"),
        ("UPDATE runs SET eligible = false", "ranks and records", "not eligible is ranked"),
        (
            "UPDATE record_history SET previous_latency_ns = 1 WHERE previous_latency_ns IS NOT NULL",
            "ranks and records",
            "not faster than the one before",
        ),
        (
            "DELETE FROM record_history WHERE previous_run_digest IS NULL",
            "ranks and records",
            "does not name the holder before it",
        ),
        (
            "DELETE FROM record_history WHERE previous_run_digest IS NOT NULL",
            "ranks and records",
            "not the last of its history",
        ),
        ("UPDATE leaderboard SET evidence_level = 'verified'", "recomputation", "its recomputation has not"),
        ("DELETE FROM workload_tensors", "recomputation", "the database lacks this row"),
        ("UPDATE meta SET value = 'sha256:0' WHERE key = 'build_key'", "recomputation", "built from other parts"),
        (
            "UPDATE floor_estimates SET floor_ns = 1e9 WHERE model = 'headroom-v2' AND floor_ns IS NOT NULL",
            "floors",
            "not flagged BELOW_FLOOR",
        ),
        (
            f"INSERT INTO corrections VALUES ({RUN}, 'supersede', {RUN}, [], 'x', 'y', TIMESTAMP '2026-01-01')",
            "supersession",
            "in a circle",
        ),
        ("UPDATE record_history SET position = position + 1", "ranks and records", "leaves out a position"),
        ("DELETE FROM current_records", "ranks and records", "ranked runs and no record"),
        ("UPDATE source_files SET size_bytes = 1 WHERE fetched", "fetched files", "bytes, not 1"),
        ("DELETE FROM snapshots", "snapshots", "the database does not know it"),
    ],
)
def test_a_changed_database_is_noticed(own_house: House, sql: str, check: str, what: str) -> None:
    with duckdb.connect(str(own_house.data.database)) as writer:
        writer.execute(sql)
    with connect(own_house.data.database) as connection:
        outcomes = verify(connection, own_house.data, lambda stage, done, total: None)
        outcome = next(outcome for outcome in outcomes if outcome.name == check)
    problems = [problem.what for problem in outcome.problems]
    assert any(what in problem for problem in problems), problems


def _blob(house: House) -> Path:
    [blob] = [path for path in house.data.blobs.rglob("*") if path.is_file()]
    return blob


def _part(house: House) -> Path:
    [part] = (house.data.tables / "runs").glob("*.parquet")
    return part


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n{}\n")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda house: _append(_blob(house)), {"blobs", "fetched files", "records"}),
        (lambda house: _blob(house).unlink(), {"fetched files"}),
        (lambda house: _append(_part(house)), {"parts", "recomputation"}),
        (lambda house: _part(house).unlink(), {"parts", "recomputation"}),
        (lambda house: next(house.data.commits.iterdir()).write_text("{}"), {"parts", "records", "recomputation"}),
        (lambda house: next(house.data.commits.iterdir()).unlink(), {"parts", "records", "recomputation"}),
        (lambda house: _append(next(house.data.snapshots.iterdir())), {"snapshots", "records", "recomputation"}),
        (lambda house: next(house.data.snapshots.iterdir()).unlink(), {"snapshots", "records", "recomputation"}),
    ],
)
def test_a_changed_file_is_noticed_and_named(
    own_house: House, damage: Callable[[House], object], expected: set[str]
) -> None:
    damage(own_house)
    assert set(failed(own_house)) == expected


def test_a_damaged_file_is_named_by_its_place_in_the_data_directory(own_house: House) -> None:
    blob, part = _blob(own_house), _part(own_house)
    _append(blob)
    part.unlink()
    found = failed(own_house)
    assert found["blobs"].startswith(blob.relative_to(own_house.data.root).as_posix())
    assert found["parts"].startswith(part.relative_to(own_house.data.root).as_posix())


def test_only_the_first_problems_are_listed_and_all_are_counted(own_house: House) -> None:
    with duckdb.connect(str(own_house.data.database)) as writer:
        writer.execute("UPDATE runs SET manifest = '['")
        writer.execute("UPDATE workloads SET manifest = '{}'")
        writer.execute("UPDATE implementations SET manifest = '['")
    outcome = checks(own_house)
    assert (outcome["manifest digests"].failures, len(outcome["manifest digests"].problems)) == (13, 10)
    assert not outcome["comparison keys"].ok


def test_a_damaged_database_is_a_failed_check_that_names_it(own_house: House) -> None:
    damaged = bytearray(own_house.data.database.read_bytes())
    with connect(own_house.data.database) as connection:
        [(block,)] = connection.execute(
            "SELECT max(block_id) FROM pragma_storage_info('runs') WHERE column_name = 'manifest'"
        ).fetchall()
    size, header = 2**18, 3 * 2**12
    start = header + block * size
    damaged[start + 4096 : start + 8192] = bytes(byte ^ 1 for byte in damaged[start + 4096 : start + 8192])
    own_house.data.database.write_bytes(damaged)
    wrong = failed(own_house)
    assert list(wrong) == ["database"]
    assert wrong["database"].startswith("warehouse.duckdb: ")
    assert "is damaged (Corrupt database file" in wrong["database"]
    assert wrong["database"].endswith("run kernelhouse ingest --rebuild")
