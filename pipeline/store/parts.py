"""Immutable Parquet parts, at most one a table and snapshot, and the commits that name them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import DataDirectoryError
from pipeline.manifests import canonical_text, sha256_of
from pipeline.store.arrow import arrow_schema
from pipeline.store.files import appearing, read_plain, remove_temporaries, write_whole
from pipeline.store.layout import DataDirectory
from pipeline.store.snapshots import Snapshot
from pipeline.store.tables import EVIDENCE, Table

ROW_GROUP_ROWS = 100_000
ROW_GROUP_BYTES = 32 * 2**20
"""A row group holds no more than this, and what was added last."""


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


class PartWriter:
    """Writes the part of one table and snapshot, row group by row group: each is sorted by key.

    Groups are bounded in rows and bytes, so that a part of any size is written in little memory. Which rows share a
    group follows from the order in which they are added alone.
    """

    def __init__(self, data: DataDirectory, table: Table, snapshot: Snapshot) -> None:
        self._table = table
        self._schema = arrow_schema(table)
        self._key = [(name, "ascending") for name in table.part_key or table.key]
        self._name = f"{table.name}/{snapshot.sequence:06d}-{snapshot.short_id}.parquet"
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = self._rows = 0
        # Dictionaries are of no use where every value is another.
        repeated = [c.name for c in table.part_columns if c.name not in (*table.key, "run_digest", "manifest")]
        with ExitStack() as opened:
            self._path = opened.enter_context(appearing(data.tables / self._name))
            sink = opened.enter_context(pa.OSFile(str(self._path), "wb"))
            self._writer = pq.ParquetWriter(sink, self._schema, compression="zstd", use_dictionary=repeated)
            self._open = opened.pop_all()

    def _together(self) -> pa.Table:
        first = self._waiting[0].schema
        if not all(rows.schema.equals(first) for rows in self._waiting):
            self._waiting = [rows.cast(self._schema) for rows in self._waiting]
        return pa.concat_tables(self._waiting)

    def add(self, rows: pa.Table) -> None:
        """Add rows in the declared columns; texts may be dictionaries, which are cheaper to sort."""
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def close(self) -> Part:
        """Finish the part and let it appear."""
        try:
            self._write_group()
            self._writer.close()
            with self._path.open("rb") as stream:
                sha256 = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
        except BaseException as error:
            self.abandon(error)
            raise
        self._open.close()
        return Part(self._table.name, self._name, self._rows, sha256)

    def abandon(self, error: BaseException) -> None:
        """Remove what is written so far."""
        try:
            with suppress(OSError):  # on a full disk its footer has no room either
                self._writer.close()
        finally:
            self._open.__exit__(type(error), error, error.__traceback__)

    def _write_group(self) -> None:
        if self._waiting_rows:
            rows = self._together().unify_dictionaries()
            key = pa.table({name: rows[name].cast(self._schema.field(name).type) for name, _ in self._key})
            order = pc.sort_indices(key, sort_keys=self._key)
            # Each column in one piece, and by itself: taking from pieces, or from whole tables, is many times slower.
            sorted_columns = [column.combine_chunks().take(order) for column in rows.columns]
            rows = pa.table(sorted_columns, names=rows.column_names).cast(self._schema)
            self._writer.write_table(rows, row_group_size=rows.num_rows)
            self._rows += rows.num_rows
        self._waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0


def write_part(data: DataDirectory, table: Table, rows: pa.Table, snapshot: Snapshot) -> Part:
    """Write a part of rows that are there already."""
    writer = PartWriter(data, table, snapshot)
    writer.add(rows)
    return writer.close()


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


def is_committed(data: DataDirectory, snapshot: Snapshot) -> bool:
    """Tell whether a snapshot is ingested, without a look into its commit."""
    return _commit_file(data, snapshot).is_file()


def read_commit(data: DataDirectory, snapshot: Snapshot) -> Commit | None:
    """Return the commit of a snapshot, or None where it is not ingested yet.

    Raises:
        DataDirectoryError: the record is damaged.
    """
    path = _commit_file(data, snapshot)
    try:
        document: dict[str, Any] = json.loads(read_plain(path))
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
    except (OSError, ValueError, KeyError, TypeError) as error:
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
