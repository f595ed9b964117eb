"""Evidence that is gone or damaged: refused in one sentence before anything is built on it, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.errors import DataDirectoryError, UsageError
from pipeline.ingest import IngestRequest, ingest
from pipeline.store.blobs import BlobStore
from pipeline.store.layout import DataDirectory
from tests.fake_hub.pulls import pull
from tests.fake_hub.server import FakeHub
from tests.ingest.test_killed import die
from tests.trace_set import (
    DEFINITION,
    SOLUTION,
    TRACES,
    WORKLOADS,
    Warehouse,
    lines,
    small_set,
    trace,
    tree,
    write_files,
)

MORE = small_set() | {TRACES: lines(trace(8, 0.5))}


@pytest.fixture
def two_pulls(warehouse_at: Warehouse) -> Warehouse:
    warehouse_at.ingest(small_set())
    warehouse_at.ingest(MORE)
    return warehouse_at


def records(data: DataDirectory) -> list[Path]:
    """Return the snapshot records in their sequence."""
    by_id = {path.name[:12]: path for path in data.snapshots.iterdir()}
    return [by_id[commit.stem.partition("-")[2]] for commit in sorted(data.commits.iterdir())]


def only_parts(data: DataDirectory) -> None:
    data.database.unlink()
    shutil.rmtree(data.commits)


def only_database(data: DataDirectory) -> None:
    shutil.rmtree(data.tables)


def everything(data: DataDirectory) -> None:
    pass


REQUESTS = [
    IngestRequest(source="sample"),
    IngestRequest(source="sample", dry_run=True),
    IngestRequest(rebuild=True),
    IngestRequest(source="sample", rebuild=True),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=["ingest", "dry run", "rebuild", "ingest and rebuild"])
@pytest.mark.parametrize("left", [everything, only_parts, only_database])
@pytest.mark.parametrize(("gone", "first"), [((0,), 1), ((1,), 2), ((0, 1), 1)], ids=["oldest", "newest", "all"])
def test_a_missing_record_of_a_pull_is_refused_whatever_still_names_it(
    two_pulls: Warehouse,
    gone: tuple[int, ...],
    first: int,
    left: Callable[[DataDirectory], None],
    request_: IngestRequest,
) -> None:
    data = two_pulls.data
    kept = records(data)
    for place in gone:
        kept[place].unlink()
    left(data)
    before = tree(data.root)
    with pytest.raises(DataDirectoryError, match=f"lacks the record of pull {first}: restore it from a backup"):
        ingest(data, request_)
    after = tree(data.root)
    made = {"tables", "writer.lock"} - set(before)  # what any ingest makes
    assert {path: after[path] for path in after if path not in made} == before


def test_a_damaged_commit_is_told_and_a_rebuild_makes_it_again(two_pulls: Warehouse) -> None:
    before, rows = tree(two_pulls.data.tables), two_pulls.contents()
    for commit in two_pulls.data.commits.iterdir():
        commit.write_bytes(b"{")
    with pytest.raises(DataDirectoryError, match=r"commits/000001\S+ is damaged .*: run kernelhouse ingest --rebuild"):
        ingest(two_pulls.data, IngestRequest(source="sample"))
    report = ingest(two_pulls.data, IngestRequest(rebuild=True))
    assert report.recovered == ()
    assert (tree(two_pulls.data.tables), two_pulls.contents()) == (before, rows)


def test_a_rebuild_of_nothing_removes_nothing(warehouse_at: Warehouse) -> None:
    warehouse_at.data.prepare()
    stray = warehouse_at.data.tables / "runs" / "mine.txt"
    stray.parent.mkdir()
    stray.write_bytes(b"")
    with pytest.raises(UsageError, match="holds no snapshot"):
        ingest(warehouse_at.data, IngestRequest(rebuild=True))
    assert stray.exists()


def blob_of(warehouse: Warehouse, path: str) -> Path:
    query = f"SELECT sha256 FROM source_files JOIN snapshots USING (snapshot_id) WHERE path = '{path}' AND sequence = 1"
    return BlobStore(warehouse.data.blobs).path(warehouse.value(query))


def truncated(blob: Path) -> None:
    blob.write_bytes(blob.read_bytes()[:-40])


def overwritten(blob: Path) -> None:
    blob.write_bytes(b" " * blob.stat().st_size)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "is missing": Path.unlink,
    "is damaged: ": truncated,
    "is damaged": overwritten,
}


@pytest.mark.parametrize("path", [DEFINITION, SOLUTION, WORKLOADS, TRACES])
@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_blob_stops_a_rebuild_and_a_pull_brings_it_back(two_pulls: Warehouse, path: str, what: str) -> None:
    data = two_pulls.data
    sound, contents = tree(data.root), two_pulls.contents()
    blob = blob_of(two_pulls, path)
    DAMAGES[what](blob)
    damaged = tree(data.root)
    for dry_run in (True, False):
        with pytest.raises(DataDirectoryError) as caught:
            ingest(data, IngestRequest(rebuild=True, dry_run=dry_run))
        assert f"blob sha256:{blob.name} ({path} of pull 1, directory) {what}" in str(caught.value)
        assert "ingest that source again, or restore it from a backup" in str(caught.value)
        assert tree(data.root) == damaged
    two_pulls.ingest(small_set(), dry_run=True)
    assert tree(data.root) == damaged
    two_pulls.ingest(small_set())
    assert tree(data.root) == sound
    ingest(data, IngestRequest(rebuild=True))
    assert two_pulls.contents() == contents


@pytest.mark.parametrize("what", DAMAGES)
def test_a_blob_that_was_damaged_before_it_was_read_is_no_evidence(warehouse_at: Warehouse, what: str) -> None:
    """A killed pull left its snapshot; the next ingest would read its blobs."""
    warehouse_at.ingest(small_set())
    source = write_files(warehouse_at.root / "more", MORE)
    die(source, warehouse_at.data.root, "snapshots/*.json", "after")
    before = warehouse_at.contents()
    (blob,) = [path for path in warehouse_at.data.blobs.glob("*/*") if path.read_bytes() == MORE[TRACES]]
    DAMAGES[what](blob)
    for _ in range(2):
        with pytest.raises(DataDirectoryError, match=rf"{TRACES} of pull 2, directory\) {what}"):
            ingest(warehouse_at.data, IngestRequest(source="sample"))
        assert warehouse_at.contents() == before
    warehouse_at.ingest(source)
    assert warehouse_at.value("SELECT count(*) FROM snapshots") == 3


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_hub_is_asked_again_for_a_damaged_blob(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    data = DataDirectory(tmp_path / "data")
    with FakeHub() as hub:
        hub.commit(small_set())
        pull(data, hub)
        sound = tree(data.root)
        for blob in sorted(data.blobs.glob("*/*")):
            damage(blob)
        assert not pull(data, hub).new_snapshot
    assert tree(data.root) == sound
