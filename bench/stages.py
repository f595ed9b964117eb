"""The stages that are measured, each as a process of its own: ``python -m bench.stages STAGE FOLDER...``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from bench.one_by_one import OneByOne
from pipeline.ingest import pull
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.sources.directory import DirectorySource
from pipeline.store.blobs import BlobStore
from pipeline.store.layout import DataDirectory
from pipeline.store.snapshots import record_snapshot
from pipeline.store.tables import EVIDENCE


def fetch(source: str, data: str) -> None:
    """Bring a trace set into the blob store of a new data directory and record the snapshot."""
    directory = DataDirectory(Path(data))
    directory.prepare()
    blobs = BlobStore(directory.blobs)
    pulled = DirectorySource(Path(source)).pull(blobs, FlashInferBench(), _quiet)
    blobs.sync()
    record_snapshot(directory, pulled, [], datetime(2026, 1, 1, tzinfo=UTC))


def rows(data: str) -> None:
    """Make the parts, with trace records read in columns."""
    directory = DataDirectory(Path(data))
    pull.replay_missing(directory, BlobStore(directory.blobs), FlashInferBench(), _quiet)


def rows_one_by_one(data: str) -> None:
    """Make the parts, with trace records read one by one."""
    directory = DataDirectory(Path(data))
    pull.replay_missing(directory, BlobStore(directory.blobs), OneByOne(), _quiet)


def publish(data: str) -> None:
    """Build the database."""
    pull.publish(DataDirectory(Path(data)))


def compare(data: str, other: str) -> None:
    """Compare the parts of two data directories, their accounting included, row for row."""
    connection = duckdb.connect(config={"memory_limit": "1500MB"})
    for table in EVIDENCE:
        sides = [sorted((DataDirectory(Path(side)).tables / table.name).glob("*.parquet")) for side in (data, other)]
        if not any(sides):
            continue
        if not all(sides):
            raise SystemExit(f"only one of the two paths has rows of {table.name}")
        ours, theirs = (f"SELECT * FROM read_parquet({[str(path) for path in side]})" for side in sides)
        query = f"SELECT count(*) FROM (({ours} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {ours}))"
        if (found := connection.execute(query).fetchone()) != (0,):
            raise SystemExit(f"{found} rows of {table.name} differ between the two paths")


def names(data: str) -> None:
    """Print an operation and a run of the database."""
    with duckdb.connect(str(DataDirectory(Path(data)).database), read_only=True) as connection:
        row = connection.execute("SELECT operation, run_digest FROM leaderboard ORDER BY ALL LIMIT 1").fetchone()
    if row is None:
        raise SystemExit("the synthetic set has no ranked run: give more records")
    sys.stdout.write("\n".join(row))


def _quiet(stage: str, done: int, total: int | None) -> None:
    """Report no progress."""


STAGES = {
    "fetch": fetch,
    "rows": rows,
    "rows one by one": rows_one_by_one,
    "publish": publish,
    "compare": compare,
    "names": names,
}

if __name__ == "__main__":
    STAGES[sys.argv[1]](*sys.argv[2:])
