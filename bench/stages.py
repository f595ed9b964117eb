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


def differences(data: str, other: str) -> int:
    """Return how many rows of the parts of two data directories are not in both, accounting included."""
    connection = duckdb.connect()
    found = 0
    for table in EVIDENCE:
        sides = [sorted((DataDirectory(Path(side)).tables / table.name).glob("*.parquet")) for side in (data, other)]
        if [bool(side) for side in sides] == [False, False]:
            continue
        if not all(sides):
            found += 1
            continue
        ours, theirs = (f"SELECT * FROM read_parquet({[str(path) for path in side]})" for side in sides)
        query = f"SELECT count(*) FROM (({ours} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {ours}))"
        (count,) = connection.execute(query).fetchone() or (0,)
        found += count
    return found


def _quiet(stage: str, done: int, total: int | None) -> None:
    """Report no progress."""


STAGES = {"fetch": fetch, "rows": rows, "rows one by one": rows_one_by_one, "publish": publish}

if __name__ == "__main__":
    STAGES[sys.argv[1]](*sys.argv[2:])
