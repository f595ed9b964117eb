"""The same again: nothing added, nothing changed, and everything brought back from the evidence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import DataDirectoryError, KernelhouseError, UsageError
from pipeline.ingest import IngestRequest, ingest
from tests.trace_set import (
    REPOSITORY,
    REVISIONS,
    SOLUTION,
    TRACES,
    Warehouse,
    check_report,
    definition,
    encode,
    lines,
    small_set,
    solution,
    trace,
    tree,
    write_files,
)

HELD = "traces/baseline/elementwise/held.jsonl"


def later_set() -> dict[str, bytes]:
    """The small set at a later revision: one solution edited, a line appended, some records held back."""
    return small_set() | {
        SOLUTION: encode(solution(code="def run(x, scale): return x * scale\n")),
        TRACES: small_set()[TRACES] + lines(trace(24, 0.4)),
        HELD: lines(trace(by="nobody"), b"{", trace(of="nobody")),
    }


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Three pulls: documents that free records, an edit, a second trace set. Read it, never change it."""
    warehouse = Warehouse(tmp_path_factory.mktemp("pulled") / "warehouse")
    warehouse.take({TRACES: small_set()[TRACES]}, repository=REPOSITORY)
    warehouse.take(small_set(), repository=REPOSITORY, revision=REVISIONS[0])
    warehouse.take(later_set(), repository=REPOSITORY, revision=REVISIONS[1])
    warehouse.ingest(small_set())
    return warehouse


@pytest.fixture
def grown(pulled: Warehouse, warehouse_at: Warehouse) -> Warehouse:
    """A copy of the three pulls that a test may change."""
    shutil.copytree(pulled.root, warehouse_at.root)
    return warehouse_at


def evidence(warehouse: Warehouse) -> dict[str, str | None]:
    return {path: sha256 for path, sha256 in tree(warehouse.data.root).items() if path != "warehouse.duckdb"}


def test_a_second_ingest_adds_nothing(warehouse_at: Warehouse) -> None:
    first = warehouse_at.ingest(later_set())
    before, database = evidence(warehouse_at), warehouse_at.data.database.stat()
    again = warehouse_at.ingest(later_set())
    assert (again.added, again.runs_added, again.freed, again.new_snapshot, again.published) == (0, 0, 0, False, False)
    assert again.already_known == first.added
    assert (again.quarantined, again.duplicates) == (first.quarantined, first.duplicates)
    assert again.quarantine_reasons == first.quarantine_reasons
    assert (again.snapshot_id, again.sequence) == (first.snapshot_id, 1)
    assert evidence(warehouse_at) == before
    assert warehouse_at.data.database.stat() == database


def test_an_earlier_pull_again_adds_nothing(grown: Warehouse) -> None:
    before = grown.contents()
    again = grown.ingest(small_set(), repository=REPOSITORY, revision=REVISIONS[0])
    assert (again.added, again.new_snapshot, again.sequence) == (0, False, 2)
    assert grown.contents() == before


def test_only_a_new_revision_adds_only_a_snapshot(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(later_set(), repository=REPOSITORY, revision=REVISIONS[0])
    before = warehouse_at.contents()
    report = warehouse_at.ingest(later_set(), repository=REPOSITORY, revision=REVISIONS[1])
    assert (report.added, report.new_snapshot, report.files_unchanged) == (0, True, report.files)
    after = warehouse_at.contents()
    changed = {name for name, rows in after.items() if rows != before[name]}
    assert changed == {"snapshots", "source_files", "ingests"}


def test_parts_never_change(grown: Warehouse) -> None:
    before = evidence(grown)
    grown.ingest(small_set() | {HELD: lines(trace(48))}, repository=REPOSITORY, revision=REVISIONS[2])
    after = evidence(grown)
    assert {path: after.get(path) for path in before} == before
    assert after.keys() > before.keys()


def test_a_rebuild_brings_everything_back(grown: Warehouse) -> None:
    before, rows = evidence(grown), grown.contents()
    report = grown.ingest(small_set(), rebuild=True)
    check_report(report)
    assert evidence(grown) == before
    assert grown.contents() == rows


@pytest.mark.parametrize("lost", ["tables", "warehouse.duckdb", "both"])
def test_what_is_derived_may_be_lost(grown: Warehouse, lost: str) -> None:
    before, rows = evidence(grown), grown.contents()
    if lost != "warehouse.duckdb":
        shutil.rmtree(grown.data.tables)
    if lost != "tables":
        grown.data.database.unlink()
    grown.ingest(small_set())
    assert evidence(grown) == before
    assert grown.contents() == rows


def test_a_damaged_warehouse_is_built_again(grown: Warehouse) -> None:
    rows = grown.contents()
    grown.data.database.write_bytes(b"no database")
    assert grown.ingest(small_set()).published
    assert grown.contents() == rows


def test_a_dry_run_leaves_no_trace_in_a_new_place(warehouse_at: Warehouse) -> None:
    report = warehouse_at.ingest(small_set(), dry_run=True)
    assert not warehouse_at.data.root.exists()
    assert (report.dry_run, report.published, report.added) == (True, False, 5)


@pytest.mark.parametrize("request_", [{}, {"repository": REPOSITORY, "revision": REVISIONS[2]}], ids=str)
@pytest.mark.parametrize("name", ["known", "new"])
def test_a_dry_run_tells_what_an_ingest_would_do(grown: Warehouse, request_: dict[str, str], name: str) -> None:
    files = small_set() if name == "known" else later_set() | {TRACES: lines(trace(72), trace(8, 0.011))}
    before = tree(grown.data.root)
    dry = grown.ingest(files, dry_run=True, **request_)
    assert tree(grown.data.root) == before
    real = grown.ingest(files, **request_)
    for field in (
        "snapshot_id", "sequence", "new_snapshot", "files", "files_read", "files_unchanged", "files_quarantined",
        "records", "added", "already_known", "duplicates", "quarantined", "freed", "runs_added", "quarantine_reasons",
    ):  # fmt: skip
        assert (field, getattr(dry, field)) == (field, getattr(real, field))


def test_a_dry_run_of_a_rebuild_forgets_nothing(grown: Warehouse) -> None:
    before = tree(grown.data.root)
    grown.ingest(later_set(), dry_run=True, rebuild=True)
    assert tree(grown.data.root) == before


def test_a_reader_keeps_its_answers_during_and_after_an_ingest(grown: Warehouse) -> None:
    root = write_files(grown.root / "more", small_set() | {HELD: lines(trace(96))})
    stages = []
    with grown.open() as reader:
        count = reader.execute("SELECT count(*) FROM leaderboard").fetchall()

        def read(stage: str, done: int, total: int | None) -> None:
            stages.append(stage)
            assert reader.execute("SELECT count(*) FROM leaderboard").fetchall() == count

        assert ingest(grown.data, IngestRequest(source=str(root)), read).added == 1
        assert reader.execute("SELECT count(*) FROM leaderboard").fetchall() == count
    assert {"fetch", "read", "publish"} <= set(stages)
    assert grown.rows("SELECT count(*) FROM leaderboard") > count


def test_a_reader_of_another_process_does_not_block_an_ingest(grown: Warehouse) -> None:
    script = (
        "import sys, pathlib; from pipeline.store.database import connect\n"
        "reader = connect(pathlib.Path(sys.argv[1]))\n"
        "print(*reader.sql('SELECT count(*) FROM runs').fetchall()[0], flush=True)\n"
        "sys.stdin.readline(); print(*reader.sql('SELECT count(*) FROM runs').fetchall()[0])\n"
    )
    command = [sys.executable, "-c", script, str(grown.data.database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as reader:
        assert reader.stdout is not None
        before = reader.stdout.readline()
        assert grown.ingest(small_set() | {HELD: lines(trace(96))}).added == 1
        after, _ = reader.communicate("\n")
    assert reader.returncode == 0
    assert after == before
    assert grown.value("SELECT count(*) FROM runs") == int(before) + 1


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that any user may read; the tests of a superuser become nobody meanwhile, who may not write."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    superuser = os.geteuid() == 0
    yield place
    if superuser:
        os.seteuid(0)
    for path in place.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(place)


def _become_nobody(place: Path) -> None:
    for path in (*place.rglob("*"), place):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:
        os.seteuid(65534)


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(open_place: Path, rebuild: bool) -> None:
    warehouse = Warehouse(open_place / "warehouse")
    warehouse.ingest(small_set())
    root = write_files(open_place / "more", later_set())
    before = tree(warehouse.data.root)
    _become_nobody(open_place)
    with pytest.raises(DataDirectoryError) as caught:
        ingest(warehouse.data, IngestRequest(source=str(root), rebuild=rebuild))
    assert "\n" not in str(caught.value)
    assert str(warehouse.data.root) in str(caught.value)
    assert tree(warehouse.data.root) == before


def test_a_place_that_cannot_be_made_is_told_in_a_sentence(open_place: Path) -> None:
    root = write_files(open_place / "set", small_set())
    _become_nobody(open_place)
    with pytest.raises(DataDirectoryError, match=r"^\S+/warehouse cannot be used \(Permission denied\): change"):
        ingest(Warehouse(open_place / "warehouse").data, IngestRequest(source=str(root)))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_newer_format_and_a_foreign_folder_are_refused(warehouse_at: Warehouse, dry_run: bool) -> None:
    root = write_files(warehouse_at.root / "set", {**small_set(), "definitions/x/y.json": encode(definition("y"))})
    request = IngestRequest(source=str(root), dry_run=dry_run)
    warehouse_at.data.prepare()
    for path, content in (("format.json", b'{"format": 99}'), ("notes.txt", b"mine")):
        shutil.rmtree(warehouse_at.data.root)
        write_files(warehouse_at.data.root, {path: content})
        before = tree(warehouse_at.data.root)
        with pytest.raises(KernelhouseError):
            ingest(warehouse_at.data, request)
        assert tree(warehouse_at.data.root) == before


def test_a_rebuild_without_a_source_fetches_nothing(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set())
    before = {name: content for name, content in tree(warehouse_at.data.root).items() if "duckdb" not in name}
    report = ingest(warehouse_at.data, IngestRequest(rebuild=True))
    assert (report.sequence, report.published, report.runs_added) == (1, True, 5)
    after = {name: content for name, content in tree(warehouse_at.data.root).items() if "duckdb" not in name}
    assert after == before


def test_a_rebuild_of_nothing_is_refused(warehouse_at: Warehouse) -> None:
    with pytest.raises(UsageError, match="no snapshot"):
        ingest(warehouse_at.data, IngestRequest(rebuild=True))
