"""A process killed at any rename: the next ingest cleans up and ends where an undisturbed one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli import main
from tests.trace_set import TRACES, Warehouse, lines, small_set, trace, tree, write_files

pytestmark = pytest.mark.slow

# Every file appears by a rename, so dying before or after the n-th one is dying anywhere that matters.
SCRIPT = """
import os, sys
from pathlib import Path
from pipeline.ingest import IngestRequest, ingest
from pipeline.store.layout import DataDirectory

source, data, pattern, when = sys.argv[1:]
rename = Path.replace

def dying(path, target):
    hit = Path(target).match(pattern)
    if not (hit and when == "before"):
        rename(path, target)
    if hit:
        os._exit(9)

Path.replace = dying
ingest(DataDirectory(Path(data)), IngestRequest(source=source))
"""

KILLS = [
    ("format.json", "before"),
    ("blobs/sha256/*/*", "before"),
    ("snapshots/*.json", "before"),
    ("snapshots/*.json", "after"),
    ("tables/observations/*.parquet", "before"),
    ("tables/ingests/*.parquet", "after"),
    ("tables/commits/*.json", "before"),
    ("tables/commits/*.json", "after"),
    ("warehouse.duckdb", "before"),
]


def die(source: Path, data: Path, pattern: str, when: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(source), str(data), pattern, when]
    assert subprocess.run(command, check=False).returncode == 9


def by_content(warehouse: Warehouse) -> dict[str, object]:
    """Rows without the times at which pulls were made."""
    hidden = "lambda name: name NOT IN ('fetched_at', 'ingested_at')"
    names = ("snapshots", "source_files", "runs", "observations", "leaderboard", "quarantine", "releases", "ingests")
    return {name: warehouse.rows(f"SELECT COLUMNS({hidden}) FROM {name} ORDER BY ALL") for name in names}


def leftovers(warehouse: Warehouse) -> list[str]:
    return [path for path in tree(warehouse.data.root) if "tmp-" in path or "building" in path or path.endswith(".wal")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    warehouse = Warehouse(tmp_path_factory.mktemp("undisturbed"))
    warehouse.ingest(small_set())
    return by_content(warehouse)


@pytest.mark.parametrize(("pattern", "when"), KILLS)
def test_killed_in_the_first_ingest(
    warehouse_at: Warehouse, undisturbed: dict[str, object], pattern: str, when: str
) -> None:
    root = write_files(warehouse_at.root / "set", small_set())
    die(root, warehouse_at.data.root, pattern, when)
    warehouse_at.ingest(root)
    assert by_content(warehouse_at) == undisturbed
    assert leftovers(warehouse_at) == []


@pytest.mark.parametrize(("pattern", "when"), [("snapshots/*.json", "after"), ("tables/ingests/*.parquet", "after")])
def test_killed_in_a_later_ingest_and_then_another_set_comes(warehouse_at: Warehouse, pattern: str, when: str) -> None:
    """What the killed pull had recorded is ingested first, in its place."""
    more = small_set() | {TRACES: lines(trace(8, 0.5), trace(by="nobody"))}
    last = small_set() | {TRACES: lines(trace(16, 0.5))}
    calm = Warehouse(warehouse_at.root / "calm")
    for files in (small_set(), more, last):
        calm.take(files)
    calm.publish()
    warehouse_at.ingest(small_set())
    before = warehouse_at.rows("SELECT count(*) FROM runs")
    die(write_files(warehouse_at.root / "more", more), warehouse_at.data.root, pattern, when)
    assert warehouse_at.rows("SELECT count(*) FROM runs") == before
    report = warehouse_at.ingest(last)
    assert (report.sequence, report.added, report.recovered) == (3, 1, (2,))
    assert warehouse_at.ingest(last).recovered == ()
    assert by_content(warehouse_at) == by_content(calm)
    assert leftovers(warehouse_at) == []


def test_a_dry_run_after_a_kill_tells_what_the_ingest_will_do(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set())
    more = small_set() | {TRACES: lines(trace(8, 0.5))}
    die(write_files(warehouse_at.root / "more", more), warehouse_at.data.root, "tables/runs/*.parquet", "after")
    before = tree(warehouse_at.data.root)
    last = more | {TRACES: lines(trace(8, 0.5), trace(16, 0.5))}
    dry = warehouse_at.ingest(last, dry_run=True)
    assert tree(warehouse_at.data.root) == before
    real = warehouse_at.ingest(last)
    assert (dry.sequence, dry.added, dry.already_known) == (real.sequence, real.added, real.already_known)
    assert dry.recovered == real.recovered == (2,)


def test_a_report_names_the_pull_that_was_recovered(warehouse_at: Warehouse) -> None:
    root = write_files(warehouse_at.root / "set", small_set())
    die(root, warehouse_at.data.root, "snapshots/*.json", "after")
    arguments = ["--data", str(warehouse_at.data.root), "ingest", str(root)]
    first, again = (CliRunner().invoke(main, arguments).stdout for _ in range(2))
    assert "  recovered  #1, recorded by an earlier ingest and finished by this one\n" in first
    assert "recovered" not in again
