"""What a warehouse holds: pulls, counts, what is held back, disk use, versions."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import __version__
from pipeline.query.rows import fetch
from pipeline.store.tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipeline.store.layout import DataDirectory

_LIBRARIES = ("duckdb", "polars", "pyarrow", "pydantic")


@dataclass(frozen=True)
class Pull:
    """A snapshot with its accounting: records = added + already_known + duplicates + quarantined."""

    sequence: int
    snapshot_id: str
    source: str
    repository: str | None
    revision: str | None
    authors: list[str]
    fetched_at: datetime
    complete: bool
    files: int
    bytes: int
    records: int
    added: int
    already_known: int
    duplicates: int
    quarantined: int
    freed: int


@dataclass(frozen=True)
class HeldBack:
    """What is in quarantine now for one reason."""

    reason: str
    files: int
    records: int


@dataclass(frozen=True)
class Status:
    """The answer; ``disk_bytes`` by room of the data directory, ``meta`` as the build wrote it."""

    data_directory: str
    pulls: list[Pull]
    rows: dict[str, int]
    run_statuses: dict[str, int]
    eligible_runs: int
    hardware: dict[str, int]
    observed_from: datetime | None
    observed_to: datetime | None
    quarantine: list[HeldBack]
    drift: int
    disk_bytes: dict[str, int]
    versions: dict[str, str]
    meta: dict[str, str]


def status(connection: DuckDBPyConnection, data: DataDirectory) -> Status:
    """Return what the warehouse of ``data`` holds; ``connection`` is one to its database."""
    rows = {table.name: _single(connection, f"SELECT count(*) FROM {table.name}") for table in TABLES}
    first, last, eligible = connection.execute(
        "SELECT min(observed_at), max(observed_at), count(*) FILTER (eligible) FROM runs"
    ).fetchall()[0]
    return Status(
        data_directory=str(data.root),
        pulls=fetch(connection, Pull, _PULLS),
        rows=rows,
        run_statuses=_counts(connection, "SELECT status, count(*) FROM runs GROUP BY status ORDER BY 2 DESC, 1"),
        eligible_runs=eligible,
        hardware=_counts(connection, "SELECT hardware, count(*) FROM runs GROUP BY hardware ORDER BY 2 DESC, 1"),
        observed_from=first,
        observed_to=last,
        quarantine=fetch(connection, HeldBack, _QUARANTINE),
        drift=_single(connection, "SELECT coalesce(sum(occurrences), 0)::BIGINT FROM drift"),
        disk_bytes={
            "blobs": _disk(data.blobs),
            "snapshots": _disk(data.snapshots),
            "tables": _disk(data.tables),
            "database": _disk(data.database),
        },
        versions={
            "kernelhouse": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
        meta=dict(connection.execute("SELECT key, value FROM meta ORDER BY key").fetchall()),
    )


def _counts(connection: DuckDBPyConnection, sql: str) -> dict[str, int]:
    return dict(connection.execute(sql).fetchall())


def _single(connection: DuckDBPyConnection, sql: str) -> int:
    return int(connection.execute(sql).fetchall()[0][0])


def _disk(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; files that vanish meanwhile count as none."""
    return sum(_sizes(path))


def _sizes(path: Path) -> Iterator[int]:
    for file in [path, *path.rglob("*")]:
        try:
            if file.is_file():
                yield file.stat().st_size
        except FileNotFoundError:
            continue


_PULLS = """
SELECT sequence, snapshot_id, source, repository, revision, authors, fetched_at, complete, snapshots.files,
       bytes, records, added, already_known, duplicates, quarantined, freed
FROM snapshots
LEFT JOIN ingests USING (sequence, snapshot_id)
ORDER BY sequence
"""

_QUARANTINE = """
SELECT reason, count(*) FILTER (source_line IS NULL) AS files, count(*) FILTER (source_line IS NOT NULL) AS records
FROM quarantine
GROUP BY reason ORDER BY count(*) DESC, reason
"""
