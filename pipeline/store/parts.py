"""Immutable Parquet parts, at most one a table and snapshot, and the commits that name them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import DataDirectoryError
from pipeline.manifests import canonical_text, sha256_of
from pipeline.store.arrow import arrow_schema
from pipeline.store.files import appearing, remove_temporaries, write_whole
from pipeline.store.layout import DataDirectory
from pipeline.store.snapshots import Snapshot
from pipeline.store.tables import EVIDENCE, Table

ROW_GROUP_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Part:
    """A Parquet part: its table, its file below ``tables/``, its rows and its SHA-256."""

    table: str
    file: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BlobRecords:
    """What was found in a trace or workload blob, so that it need not be read again to account for it."""

    records: int
    duplicates: int
    """Records repeated byte for byte inside the snapshot that read it."""
    held: tuple[str, ...]
    """SHA-256 of the records that were held back, sorted."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The record that a snapshot is ingested: written last, it makes its parts count."""

    snapshot_id: str
    sequence: int
    accounting: Mapping[str, int]
    """The row of ``ingests``, by column."""
    records: Mapping[tuple[str, str], BlobRecords]
    """What each trace or workload blob of the snapshot holds, by kind and SHA-256."""
    parts: tuple[Part, ...]


def write_part(data: DataDirectory, table: Table, rows: pa.Table, snapshot: Snapshot) -> Part:
    """Write the rows that a snapshot adds to a table, sorted by key."""
    schema = arrow_schema(table)
    key = table.part_key or table.key
    ordered = rows.cast(schema).sort_by([(name, "ascending") for name in key])
    name = f"{table.name}/{snapshot.sequence:06d}-{snapshot.short_id}.parquet"
    target = data.tables / name
    with appearing(target) as temporary:
        pq.write_table(ordered, temporary, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        with temporary.open("rb") as stream:
            sha256 = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    return Part(table.name, name, ordered.num_rows, sha256)


def write_commit(data: DataDirectory, commit: Commit, snapshot: Snapshot) -> None:
    """Record that a snapshot is ingested."""
    document = {
        "snapshot_id": commit.snapshot_id,
        "sequence": commit.sequence,
        "accounting": dict(commit.accounting),
        "records": [
            {"kind": kind, "blob_sha256": sha256} | asdict(counted)
            for (kind, sha256), counted in sorted(commit.records.items())
        ],
        "parts": [asdict(part) for part in commit.parts],
    }
    write_whole(_commit_file(data, snapshot), json.dumps(document, indent=1).encode() + b"\n")


def read_commit(data: DataDirectory, snapshot: Snapshot) -> Commit | None:
    """Return the commit of a snapshot, or None where it is not ingested yet.

    Raises:
        DataDirectoryError: the record is damaged.
    """
    path = _commit_file(data, snapshot)
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        return Commit(
            snapshot_id=document["snapshot_id"],
            sequence=document["sequence"],
            accounting=document["accounting"],
            records={
                (counted["kind"], counted["blob_sha256"]): BlobRecords(
                    counted["records"], counted["duplicates"], tuple(counted["held"])
                )
                for counted in document["records"]
            },
            parts=tuple(Part(p["table"], p["file"], p["rows"], p["sha256"]) for p in document["parts"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DataDirectoryError(f"{path} is damaged ({error}): run kernelhouse ingest --rebuild") from error


def part_files(data: DataDirectory, commits: Iterable[Commit]) -> dict[str, list[Path]]:
    """Return the files of the parts that commits name, by table, in sequence.

    Raises:
        DataDirectoryError: a part is missing.
    """
    files: dict[str, list[Path]] = {table.name: [] for table in EVIDENCE}
    for commit in commits:
        for part in commit.parts:
            path = data.tables / part.file
            if not path.is_file():
                raise DataDirectoryError(f"{path} is missing: run kernelhouse ingest --rebuild")
            files[part.table].append(path)
    return files


def parts_digest(commits: Iterable[Commit], table: Table) -> str:
    """Return the digest of the content of a table's parts, by their SHA-256 in sequence."""
    return sha256_of(canonical_text([p.sha256 for commit in commits for p in commit.parts if p.table == table.name]))


def remove_uncommitted(data: DataDirectory, commits: Iterable[Commit]) -> None:
    """Remove the parts that no commit names: a killed process left them."""
    named = {data.tables / part.file for commit in commits for part in commit.parts}
    for folder in data.tables.glob("*/"):
        remove_temporaries(folder)
        for part in folder.glob("*.parquet"):
            if part not in named:
                part.unlink()


def _commit_file(data: DataDirectory, snapshot: Snapshot) -> Path:
    return data.commits / f"{snapshot.sequence:06d}-{snapshot.short_id}.json"
