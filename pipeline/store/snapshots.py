"""Snapshot records: one pull each, content-addressed without its place in time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline.errors import DataDirectoryError
from pipeline.manifests import canonical_text, sha256_of
from pipeline.sources.listing import Failure, Kind, ListedFile, Pull
from pipeline.store.files import read_plain, remove_temporaries, write_whole
from pipeline.store.layout import DataDirectory

_MADE_OF = re.compile(r"(\d{6,})-([0-9a-f]{12})\.(?:json|parquet)")
"""Name of what is made of a snapshot: its parts and its commit, below ``tables/``."""


@dataclass(frozen=True)
class Snapshot:
    """A pull with its id and its place in the warehouse's sequence."""

    snapshot_id: str
    sequence: int
    fetched_at: datetime
    """When it was pulled: UTC, without zone, in whole milliseconds."""
    pull: Pull

    @property
    def scope(self) -> str:
        """What its documents belong to: its repository, else its source."""
        return self.pull.repository or self.pull.source

    @property
    def short_id(self) -> str:
        """Enough of the id to tell files apart."""
        return self.snapshot_id.removeprefix("sha256:")[:12]


def read_snapshots(data: DataDirectory) -> list[Snapshot]:
    """Return all snapshots of a data directory in their sequence.

    Raises:
        DataDirectoryError: a record is damaged, its name does not fit its content, two share a place, or one is
            missing: there is a later one, or something that was made of it.
    """
    snapshots = [_read(_content(path), path.name) for path in data.snapshots.glob("[0-9a-f]*.json")]
    snapshots.sort(key=lambda snapshot: snapshot.sequence)
    for expected, snapshot in enumerate(snapshots, 1):
        if snapshot.sequence != expected:
            raise missing_record(data, expected)
    known = {(snapshot.sequence, snapshot.short_id) for snapshot in snapshots}
    made = (_MADE_OF.fullmatch(path.name) for path in data.tables.glob("*/*"))
    if lost := {int(name[1]) for name in made if name and (int(name[1]), name[2]) not in known}:
        raise missing_record(data, min(lost))
    return snapshots


def _content(path: Path) -> bytes:
    try:
        return read_plain(path)
    except OSError as error:
        raise DataDirectoryError(f"{path} cannot be read ({error.strerror}): restore it from a backup") from error


def missing_record(data: DataDirectory, sequence: int) -> DataDirectoryError:
    """Return what to say where the record of a pull is gone: without it nothing that it brought can be kept."""
    return DataDirectoryError(f"{data.snapshots} lacks the record of pull {sequence}: restore it from a backup")


def record_snapshot(data: DataDirectory, pull: Pull, known: Iterable[Snapshot], now: datetime) -> Snapshot:
    """Record a pull and return its snapshot; the same pull again is the snapshot that is there already."""
    snapshot_id = identify(pull)
    last = 0
    for snapshot in known:
        if snapshot.snapshot_id == snapshot_id:
            return snapshot
        last = max(last, snapshot.sequence)
    fetched_at = now.replace(tzinfo=None, microsecond=now.microsecond // 1000 * 1000)
    snapshot = Snapshot(snapshot_id, last + 1, fetched_at, pull)
    document = _identity(pull) | {
        "sequence": snapshot.sequence,
        "fetched_at": fetched_at.isoformat(timespec="milliseconds") + "Z",
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True)
    write_whole(data.snapshots / f"{snapshot_id.removeprefix('sha256:')}.json", text.encode() + b"\n")
    return snapshot


def identify(pull: Pull) -> str:
    """Return the digest of a pull: everything but when it was made."""
    return sha256_of(canonical_text(_identity(pull)))


def remove_leftovers(data: DataDirectory) -> None:
    """Remove what a killed process left unfinished."""
    remove_temporaries(data.snapshots)


def _identity(pull: Pull) -> dict[str, Any]:
    return {
        "source": pull.source,
        "adapter": pull.adapter,
        "repository": pull.repository,
        "revision": pull.revision,
        "authors": list(pull.authors),
        "complete": pull.complete,
        "files": [_file_record(file) for file in pull.files],
    }


def _file_record(file: ListedFile) -> dict[str, Any]:
    record: dict[str, Any] = {
        "path": file.path,
        "kind": file.kind.value,
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "fetched": file.fetched,
    }
    if file.locator is not None:
        record["locator"] = file.locator
    if file.oid is not None:
        record["oid"] = file.oid
    if file.failure is not None:
        record["failure"] = {"reason": file.failure.reason, "detail": file.failure.detail}
    return record


@lru_cache(maxsize=1024)  # an ingest asks several times, and a record never changes
def _read(text: bytes, name: str) -> Snapshot:
    try:
        document = json.loads(text)
        pull = Pull(
            source=document["source"],
            adapter=document["adapter"],
            repository=document["repository"],
            revision=document["revision"],
            authors=tuple(document["authors"]),
            files=tuple(_listed_file(record) for record in document["files"]),
        )
        if document["complete"] != pull.complete:
            raise ValueError("complete does not fit its files")
        sequence = int(document["sequence"])
        fetched_at = datetime.fromisoformat(document["fetched_at"]).replace(tzinfo=None)
    except (ValueError, KeyError, TypeError) as error:
        raise DataDirectoryError(f"snapshots/{name} is damaged ({error}): restore it from a backup") from error
    snapshot_id = identify(pull)
    if name != f"{snapshot_id.removeprefix('sha256:')}.json":
        raise DataDirectoryError(f"snapshots/{name} does not hold what its name says: restore it from a backup")
    return Snapshot(snapshot_id, sequence, fetched_at, pull)


def _listed_file(record: dict[str, Any]) -> ListedFile:
    failure = record.get("failure")
    return ListedFile(
        path=record["path"],
        kind=Kind(record["kind"]),
        size_bytes=record["size_bytes"],
        sha256=record["sha256"],
        fetched=record["fetched"],
        locator=record.get("locator"),
        failure=Failure(failure["reason"], failure["detail"]) if failure else None,
        oid=record.get("oid"),
    )
