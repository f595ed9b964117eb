"""What a run leaves behind is what the command line leaves behind, and running again changes nothing."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from pipeline.store.layout import DataDirectory
from pipeline.store.tables import TABLES
from tests.defs.conftest import Finished, Platform

REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"
REPOSITORY = "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace"


def command_line(data: DataDirectory, *arguments: str) -> None:
    command = [sys.executable, "-m", "pipeline", "ingest", *arguments, "--data", str(data.root)]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2])


def same_pulls(one: DataDirectory, other: DataDirectory) -> None:
    """Let the other directory know the pulls of the first, so that the same pull has the same time in both."""
    other.prepare()
    shutil.copytree(one.snapshots, other.snapshots, dirs_exist_ok=True)


def assert_same_tables(one: DataDirectory, other: DataDirectory) -> None:
    with duckdb.connect() as connection:
        for name, data in (("one", one), ("other", other)):
            connection.execute(f"ATTACH '{data.database}' AS {name} (READ_ONLY)")
        for table in TABLES:
            for a, b in (("one", "other"), ("other", "one")):
                only = connection.execute(f"FROM {a}.{table.name} EXCEPT ALL FROM {b}.{table.name}").fetchall()
                assert only == [], f"{table.name}: only in {a}"


def contents(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_the_sample_as_by_the_command_line(platform: Platform, tmp_path: Path) -> None:
    by_hand = DataDirectory(tmp_path / "by-hand")
    command_line(by_hand, "sample")
    same_pulls(by_hand, platform.data)
    assert platform.ingest().success
    assert_same_tables(by_hand, platform.data)
    assert contents(by_hand.tables) == contents(platform.data.tables)
    assert contents(by_hand.snapshots) == contents(platform.data.snapshots)
    assert (platform.data.exports / "leaderboard.parquet").is_file()


@pytest.mark.slow
@pytest.mark.skipif("KERNELHOUSE_TRACE_SET" not in os.environ, reason="needs KERNELHOUSE_TRACE_SET")
def test_a_trace_set_as_by_the_command_line(platform: Platform, tmp_path: Path) -> None:
    by_hand = DataDirectory(tmp_path / "by-hand")
    source = str(Path(os.environ["KERNELHOUSE_TRACE_SET"]) / "flashinfer-trace")
    command_line(by_hand, "sample")
    same_pulls(by_hand, platform.data)
    assert platform.ingest().success
    command_line(by_hand, source, "--repository", REPOSITORY, "--revision", REVISION)
    same_pulls(by_hand, platform.data)
    assert platform.ingest(REVISION, source=source, repository=REPOSITORY).success
    assert_same_tables(by_hand, platform.data)
    assert contents(by_hand.tables) == contents(platform.data.tables)


def test_an_old_revision_again_changes_nothing(platform: Platform, trace_set: Path) -> None:
    assert platform.ingest().success
    newer = platform.ingest("b" * 40, source=str(trace_set), repository=REPOSITORY)
    before = contents(platform.data.root)
    again = platform.ingest()
    assert newer.success
    assert again.success
    assert contents(platform.data.root) == before
    del (ours := platform.versions(newer))["snapshot"], (theirs := platform.versions(again))["snapshot"]
    assert ours == theirs


def test_a_rebuild_brings_the_same_back(filled: Platform, sample: DataDirectory) -> None:
    shutil.rmtree(filled.data.tables)
    filled.data.database.unlink()
    assert filled.run("rebuild").success
    assert contents(filled.data.tables) == contents(sample.tables)
    assert_same_tables(filled.data, sample)


@pytest.mark.parametrize(
    ("job", "sentence"),
    [("rebuild", "holds no snapshot: ingest a source first"), ("export", "run kernelhouse ingest first")],
)
def test_there_must_be_something_to_work_on(job: str, sentence: str, platform: Platform) -> None:
    result = platform.run(job)
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert sentence in failure.step_failure_data.user_failure_data.description


def test_the_export_alone(filled: Platform, finished: Finished) -> None:
    assert filled.run("export").success
    [ours, theirs] = [p.data.exports / "leaderboard.parquet" for p in (filled, finished.platform)]
    assert pq.read_table(ours).equals(pq.read_table(theirs))


def test_a_materialization_says_what_is_there(finished: Finished) -> None:
    said = {
        event.asset_key.to_user_string(): event.step_materialization_data.materialization.metadata
        for event in finished.result.get_asset_materialization_events()
    }
    assert said["snapshot"]["source"].value == "sample"
    assert said["evidence/runs"]["dagster/row_count"].value == 49
    report = said["evidence/runs"]["report"].value
    assert (report["records"], report["added"], report["new_snapshot"]) == (49, 49, True)
    board = said["warehouse/leaderboard"]
    assert board["dagster/row_count"].value == 98  # in two profiles
    assert board["digest"].value.startswith("sha256:")
    assert [row.data["rank"] for row in board["preview"].records] == [1, 2, 1, 2, 1]  # the first five
    assert board["published"].value is True


@pytest.mark.parametrize(
    ("partition", "source", "sentence"),
    [
        ("a" * 40, {}, "the bundled sample takes no --revision, --repository or --author"),
        ("unversioned", {"source": "no/such/folder"}, "no folder no/such/folder: give 'sample', the folder"),
        ("sample", {"source": "no/such/folder"}, "the run is for sample, its source belongs to unversioned"),
    ],
)
def test_a_failure_says_what_the_command_line_says(
    platform: Platform, partition: str, source: dict[str, str], sentence: str
) -> None:
    result = platform.ingest(partition, **source)
    assert not result.success
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert sentence in failure.step_failure_data.user_failure_data.description
    assert sentence in platform.instance.get_run_by_id(result.run_id).tags["kernelhouse/failure"]
