"""The blobs that a replay reads: a damaged one is refused before a byte of it is taken for evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.errors import DataDirectoryError
from pipeline.sources.listing import Progress
from pipeline.store.blobs import BlobStore
from pipeline.store.snapshots import Snapshot
from pipeline.store.tombstones import Tombstone
from pipeline.upstream.framing import Record


class IntactBlobs:
    """What :class:`BlobStore` reads, each blob hashed when it is read first.

    Every method raises DataDirectoryError where the blob is missing or damaged, naming a file that it came from.

    Args:
        store: the blob store.
        snapshots: the pulls that the blobs may have come with, in sequence.
    """

    def __init__(self, store: BlobStore, snapshots: Sequence[Snapshot]) -> None:
        self._store = store
        self._snapshots = snapshots

    def path(self, sha256: str) -> Path:
        """Return where a blob lies."""
        self._check(sha256)
        return self._store.path(sha256)

    def read(self, sha256: str, offset: int = 0, size: int = -1) -> bytes:
        """Return the bytes of a blob, or a part of them."""
        self._check(sha256)
        return self._store.read(sha256, offset, size)

    def tombstone(self, sha256: str) -> Tombstone | None:
        """Return what was taken out of a blob, where something was."""
        return self._store.tombstone(sha256)

    def restored(self, sha256: str, records: Iterable[Record]) -> Iterable[Record]:
        """Return the records of a blob under the identity that they had when they were fetched."""
        return self._store.restored(sha256, records)

    def check_all(self, progress: Progress) -> None:
        """Check the blobs of all snapshots."""
        fetched = [
            file.sha256
            for snapshot in self._snapshots
            for file in snapshot.pull.files
            if file.fetched and file.sha256 is not None
        ]
        for done, sha256 in enumerate(fetched):
            progress("check", done, len(fetched))
            self._check(sha256)
        progress("check", len(fetched), len(fetched))

    def _check(self, sha256: str) -> None:
        if not self._store.is_intact(sha256):
            raise self._refusal(sha256)

    def _refusal(self, sha256: str) -> DataDirectoryError:
        origins = (
            f" ({file.path} of pull {snapshot.sequence}, {snapshot.scope})"
            for snapshot in self._snapshots
            for file in snapshot.pull.files
            if file.sha256 == sha256
        )
        what = "is damaged" if self._store.has(sha256) else "is missing"
        # A pull does not bring back what a takedown took out.
        again = "" if self._store.tombstone(sha256) else "ingest that source again, or "
        return DataDirectoryError(f"blob {sha256}{next(origins, '')} {what}: {again}restore it from a backup")
