"""A blocking check that fails stops what depends on it, and says which file or row and which check."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.defs.checks import INTACT
from pipeline.store.layout import DataDirectory
from tests.defs.conftest import Finished, Platform

REPOSITORY = "https://example.org/trace-set"


def outcomes(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {
        f"{check.asset_key.to_user_string()}:{check.check_name}": check.passed
        for check in result.get_asset_check_evaluations()
    }


def failure(result: dg.ExecuteInProcessResult) -> tuple[str, str]:
    """The step that failed, and its sentence."""
    [event] = [event for event in result.all_events if event.is_step_failure]
    return str(event.step_key), str(event.step_failure_data.user_failure_data.description)


def part(data: DataDirectory, table: str) -> Path:
    [file] = (data.tables / table).glob("*.parquet")
    return file


def flip_a_byte(data: DataDirectory) -> None:
    file = part(data, "runs")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def remove_a_part(data: DataDirectory) -> None:
    part(data, "runs").unlink()


def rewrite(data: DataDirectory, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a part as a faulty program would: its commit agrees with it."""
    file = part(data, table)
    rows = change(pq.read_table(file))
    pq.write_table(rows, file)
    [commit] = data.commits.glob("*.json")
    document = json.loads(commit.read_bytes())
    [entry] = [entry for entry in document["parts"] if entry["table"] == table]
    entry |= {"rows": rows.num_rows, "sha256": "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()}
    commit.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("damage", "said"), [(flip_a_byte, "its SHA-256 is not sha256:"), (remove_a_part, "it is missing")]
)
def test_a_damaged_part_stops_everything(
    damage: Callable[[DataDirectory], None], said: str, filled: Platform, trace_set: Path
) -> None:
    file = part(filled.data, "runs").relative_to(filled.data.root).as_posix()
    damage(filled.data)
    published, commits = filled.data.database.read_bytes(), list(filled.data.commits.iterdir())

    result = filled.ingest("b" * 40, source=str(trace_set), repository=REPOSITORY)

    step, sentence = failure(result)
    assert step == "evidence"
    assert sentence.startswith(f"check {INTACT} of evidence/runs failed: {file}: {said}")
    assert [check for check, passed in outcomes(result).items() if not passed] == [f"evidence/runs:{INTACT}"]
    assert {event.step_key for event in result.all_events if event.is_step_start} == {"snapshot", "evidence"}
    assert filled.data.database.read_bytes() == published
    assert list(filled.data.commits.iterdir()) == commits


def test_a_rebuild_mends_a_damaged_part(filled: Platform, sample: DataDirectory) -> None:
    flip_a_byte(filled.data)
    assert filled.run("rebuild").success
    assert part(filled.data, "runs").read_bytes() == part(sample, "runs").read_bytes()


BROKEN = [
    ("workloads", lambda rows: rows.slice(1), "evidence/workload_tensors", "references", "there is no such row"),
    ("observations", lambda rows: pa.concat_tables([rows, rows]), "evidence/observations", "key", "2 rows share"),
    (
        "measurements",
        lambda rows: rows.drop_columns("unit"),
        "evidence/measurements",
        "schema",
        "cannot be built",
    ),
    (
        "environments",
        lambda rows: rows.cast(rows.schema.set(0, rows.schema.field(0).with_nullable(True))),
        "evidence/environments",
        "schema",
        "its columns are not the declared ones",
    ),
    (
        "ingests",
        lambda rows: rows.set_column(
            rows.schema.get_field_index("added"), rows.schema.field("added"), pa.array([3], pa.int64())
        ),
        "evidence/ingests",
        "accounting",
        "49 records are not 3 added",
    ),
    (
        "runs",
        lambda rows: rows.set_column(
            rows.schema.get_field_index("comparison_key"),
            rows.schema.field("comparison_key"),
            pa.array(["sha256:" + "0" * 64] * rows.num_rows),
        ),
        "evidence/runs",
        "comparison_keys",
        "its comparison key",
    ),
]


@pytest.mark.parametrize(
    ("table", "change", "asset", "check", "said"), BROKEN, ids=[f"{case[0]}-{case[3]}" for case in BROKEN]
)
def test_unsound_evidence_is_not_published(
    table: str, change: Callable[[pa.Table], pa.Table], asset: str, check: str, said: str, filled: Platform
) -> None:
    rewrite(filled.data, table, change)
    published = filled.data.database.read_bytes()

    result = filled.ingest()

    step, sentence = failure(result)
    assert said in sentence
    if step == "evidence_checks":
        assert f"check {check} of {asset} failed: " in sentence
        assert outcomes(result)[f"{asset}:{check}"] is False
    started = {event.step_key for event in result.all_events if event.is_step_start}
    assert not started & {"warehouse", "warehouse_checks", "exports__leaderboard"}
    assert filled.data.database.read_bytes() == published


def test_what_is_only_watched_stops_nothing(platform: Platform, trace_set: Path) -> None:
    for solution in (trace_set / "solutions").rglob("*.json"):
        solution.unlink()
    result = platform.ingest("b" * 40, source=str(trace_set), repository=REPOSITORY)
    assert result.success
    [rate] = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert (rate.asset_key.to_user_string(), rate.check_name) == ("evidence/quarantine", "rate")
    assert rate.severity is dg.AssetCheckSeverity.WARN
    assert rate.metadata["problems"].value == ["held back: 49 of 49 are over the bound of 2%"]


def test_every_check_passes_on_the_sample(finished: Finished) -> None:
    found = outcomes(finished.result)
    assert all(found.values())
    assert len(found) == len(finished.platform.defs.resolve_asset_graph().asset_check_keys)


def test_checks_run_alone(filled: Platform) -> None:
    key = dg.AssetCheckKey(dg.AssetKey(["warehouse", "leaderboard"]), "invariants")
    job = filled.defs.resolve_implicit_global_asset_job_def().get_subset(
        asset_check_selection={key}, asset_selection=[]
    )
    result = job.execute_in_process(instance=filled.instance)
    assert list(outcomes(result)) == ["warehouse/leaderboard:invariants"]
