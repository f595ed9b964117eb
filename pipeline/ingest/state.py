"""What the warehouse holds before a snapshot is ingested, restored from its parts and snapshot records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline.sources.listing import Kind
from pipeline.store.layout import DataDirectory
from pipeline.store.ledger import DigestIndex, Ledger
from pipeline.store.parts import BlobRecords, Commit, part_files
from pipeline.store.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A row of quarantine that is in force."""

    scope: str
    kind: str
    source_file: str
    source_line: int | None
    byte_offset: int | None
    size_bytes: int
    raw_sha256: str | None
    blob_sha256: str | None
    from_document: bool
    reason: str
    detail: str
    snapshot_id: str

    @property
    def identity(self) -> tuple[str, str | None]:
        """What is held: a record by its kind and bytes, a file by its path."""
        return ("file", self.source_file) if self.source_line is None else (self.kind, self.raw_sha256)

    @property
    def is_missing_file(self) -> bool:
        """It is a file that could not be had."""
        return self.source_line is None and self.blob_sha256 is None

    @property
    def content(self) -> tuple[str | None, str, str]:
        """What a new row must differ in to be worth adding."""
        return self.raw_sha256, self.reason, self.detail

    def as_row(self) -> dict[str, Any]:
        """Return it as columns of ``quarantine``."""
        return asdict(self)


class State:
    """Everything that the ingest of one snapshot needs to know of the earlier ones."""

    def __init__(self, data: DataDirectory, earlier: Sequence[tuple[Snapshot, Commit]]) -> None:
        self.snapshots = [snapshot for snapshot, _ in earlier]
        commits = [commit for _, commit in earlier]
        files = part_files(data, commits)
        self.ledger = Ledger(files["observations"])
        self.definitions: dict[str, str] = {}
        """Name of a definition, by the SHA-256 of its file."""
        self.solutions: dict[str, tuple[str, str]] = {}
        """Name of a solution and its implementation, by the SHA-256 of its file."""
        self.keys: dict[str, set[tuple[Any, ...]]] = {}
        """Keys of the rows that a table has in its parts; tables of few rows alone."""
        self.indexes = {"artifacts": DigestIndex(files["artifacts"], "digest")}
        """The same, to be looked up, for tables of many rows."""
        for table, columns in _KEYED.items():
            self.keys[table] = set(_rows(files[table], columns))
        for blob, name in _rows(files["operations"], ("blob_sha256", "name")):
            self.definitions[blob] = name
        for blob, name, digest in _rows(files["implementations"], ("solution_sha256", "name", "implementation_digest")):
            self.solutions.setdefault(blob, (name, digest))
        self._earlier = earlier
        self._presence: dict[tuple[str, str], str] = {}
        for _, scope, record, event in sorted(
            _rows(files["presence"], ("sequence", "scope", "observation_sha256", "event"))
        ):
            self._presence[scope, record] = event
        self._held = _held_rows(files["quarantine"], files["releases"])

    def held(self, scope: str) -> dict[tuple[str, str | None], HeldRow]:
        """Return what is held back of a trace set now, by identity."""
        return {row.identity: row for row in self._held.values() if row.scope == scope}

    def withdrawn(self, scope: str) -> set[str]:
        """Return the records of a trace set that are withdrawn now."""
        return {record for (of, record), event in self._presence.items() if of == scope and event == "withdrawn"}

    def records(self, scope: str) -> dict[tuple[str, str], BlobRecords]:
        """Return what each trace or workload blob read with the documents of a trace set holds, by kind and SHA-256."""
        read: dict[tuple[str, str], BlobRecords] = {}
        for snapshot, commit in self._earlier:
            if snapshot.scope == scope:
                read.update(commit.records)
        return read

    def sequence(self, snapshot_id: str) -> int:
        """Return the place of an earlier snapshot; 0 where it is none of them."""
        return next((s.sequence for s in self.snapshots if s.snapshot_id == snapshot_id), 0)

    def first_seen(self, snapshot: Snapshot, kind: Kind) -> dict[str, Snapshot]:
        """Return the snapshot that first listed each blob of a kind, up to and with the given one."""
        first: dict[str, Snapshot] = {}
        for candidate in (*self.snapshots, snapshot):
            for file in candidate.pull.files:
                if file.kind is kind and file.sha256 is not None:
                    first.setdefault(file.sha256, candidate)
        return first


_KEYED: dict[str, tuple[str, ...]] = {
    "operations": ("operation_digest", "definition_sha256", "blob_sha256"),
    "workloads": ("workload_digest",),
    "workload_inputs": ("benchmark", "workload_uuid", "workload_digest", "inputs_sha256"),
    "implementations": ("implementation_digest", "solution_sha256", "source_path"),
    "environments": ("environment_digest",),
    "protocols": ("protocol_digest",),
}


def _held_rows(quarantine: Iterable[Path], releases: Iterable[Path]) -> dict[tuple[Any, ...], HeldRow]:
    """Replay quarantine and releases by sequence: the last word on each held thing counts."""
    columns = tuple(HeldRow.__dataclass_fields__)
    events: list[tuple[int, int, HeldRow]] = []
    for sequence, *values in _rows(quarantine, ("sequence", *columns)):
        events.append((sequence, 1, HeldRow(*values)))
    for sequence, scope, kind, source_file, source_line, raw in _rows(
        releases, ("sequence", "scope", "kind", "source_file", "source_line", "raw_sha256")
    ):
        freed = HeldRow(scope, kind, source_file, source_line, None, 0, raw, None, False, "", "", "")
        events.append((sequence, 0, freed))
    held: dict[tuple[Any, ...], HeldRow] = {}
    for _, holds, row in sorted(events, key=lambda event: event[:2]):
        key = (row.scope, *row.identity)
        if holds:
            held[key] = row
        else:
            held.pop(key, None)
    return held


def _rows(files: Iterable[Path], columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for path in files:
        table = pq.read_table(path, columns=list(columns))
        yield from zip(*(table.column(name).to_pylist() for name in columns), strict=True)
