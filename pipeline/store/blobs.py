"""The blob store: raw files by the SHA-256 of their content. Only a takedown ever changes one.

Texts that a takedown removes are blanked, and a tombstone says what they were (see :mod:`pipeline.store.tombstones`).
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.errors import DataDirectoryError
from pipeline.store.files import TEMPORARY, appearing, remove_temporaries, write_whole
from pipeline.store.tombstones import Removal, Tombstone, read_tombstone, tombstone_text
from pipeline.upstream.framing import Record

_CHUNK = 2**20


class BlobStore:
    """Blobs under a folder; with a scratch folder new ones go there instead, so that a dry run leaves no trace."""

    def __init__(self, root: Path, *, scratch: Path | None = None) -> None:
        self._root = root
        self._scratch = scratch
        self._intact: set[str] = set()

    def path(self, sha256: str) -> Path:
        """Return where a blob lies, or would lie."""
        digits = sha256.removeprefix("sha256:")
        kept = self._root / digits[:2] / digits
        if self._scratch is None:
            return kept
        aside = self._scratch / digits[:2] / digits
        return kept if kept.exists() and not aside.exists() else aside

    def has(self, sha256: str) -> bool:
        """Tell whether the blob is kept."""
        return self.path(sha256).is_file()

    def is_intact(self, sha256: str) -> bool:
        """Tell whether the blob is kept and holds what its name promises, or what a takedown left of that.

        It is read and hashed once; what was found intact, or was written by this store, is not looked at again.
        """
        if sha256 not in self._intact and self.has(sha256):
            with self.path(sha256).open("rb") as stream:
                found = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
            if found == sha256 or ((removed := self.tombstone(sha256)) and removed.kept_sha256 == found):
                self._intact.add(sha256)
        return sha256 in self._intact

    def read(self, sha256: str, offset: int = 0, size: int = -1) -> bytes:
        """Return the bytes of a blob, or a part of them.

        Raises:
            DataDirectoryError: the blob is missing.
        """
        try:
            with self.path(sha256).open("rb") as stream:
                stream.seek(offset)
                return stream.read(size)
        except FileNotFoundError:
            raise DataDirectoryError(f"blob {sha256} is missing from {self._root}: restore it from a backup") from None

    def tombstone(self, sha256: str) -> Tombstone | None:
        """Return what was taken out of a blob, where something was."""
        return read_tombstone(self._tombstone_file(sha256))

    def restored(self, sha256: str, records: Iterable[Record]) -> Iterable[Record]:
        """Return the records of a blob under the identity that they had when they were fetched."""
        tombstone = self.tombstone(sha256)
        return records if tombstone is None else tombstone.restore(records)

    def redact(self, sha256: str, changed: Mapping[int, bytes], removals: Sequence[Removal]) -> None:
        """Put changed bytes at their offsets of a blob, with a tombstone of what is gone, which is written first.

        A killed process may leave a tombstone beside a blob that still holds the texts: the next takedown finds them
        again and writes the same.

        Raises:
            DataDirectoryError: the blob is damaged, and its tombstone would say that it is not.
        """
        before = self.tombstone(sha256)
        if before is None and not self.is_intact(sha256):
            raise DataDirectoryError(f"blob {sha256} in {self._root} is damaged: restore it from a backup")
        kept = set(removals) | set(before.removals if before else ())
        with appearing(self.path(sha256)) as copy:
            content = bytearray(self.read(sha256))
            for offset, data in changed.items():
                content[offset : offset + len(data)] = data
            copy.write_bytes(content)
            tombstone = Tombstone(
                blob_sha256=sha256,
                kept_sha256="sha256:" + hashlib.sha256(content).hexdigest(),
                removals=tuple(sorted(kept, key=lambda each: (each.record_offset, each.pointer))),
            )
            write_whole(self._tombstone_file(sha256), tombstone_text(tombstone))

    def _tombstone_file(self, sha256: str) -> Path:
        return self._root.parent / "tombstones" / f"{sha256.removeprefix('sha256:')}.json"

    def add_file(self, path: Path) -> tuple[str, int]:
        """Keep a copy of a file; return its SHA-256 and its size in bytes.

        What is kept is named by the bytes that were copied, so a file that changes meanwhile cannot be misnamed.
        A blob that is there already is hashed as well, and replaced where it is damaged.
        """
        with path.open("rb") as stream:
            sha256 = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
            size = stream.tell()
            if self.is_intact(sha256):
                return sha256, size
            stream.seek(0)
            return self.add_stream(iter(lambda: stream.read(_CHUNK), b""))

    def add_stream(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep what the chunks make up; return its SHA-256 and its size in bytes.

        Whatever the chunks raise ends it, and nothing is kept: so a source checks what it hands over.
        """
        folder = self._scratch or self._root
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        hasher, size = hashlib.sha256(), 0
        try:
            with temporary.open("xb") as copy:
                for chunk in chunks:
                    hasher.update(chunk)
                    size += copy.write(chunk)
            sha256 = "sha256:" + hasher.hexdigest()
            if self.has(sha256) and self.tombstone(sha256) is not None:  # what was taken out must not come back
                temporary.unlink()
                return sha256, size
            digits = sha256.removeprefix("sha256:")
            target = folder / digits[:2] / digits
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(target)
            self._intact.add(sha256)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return sha256, size

    def of_sizes(self, sizes: Collection[int]) -> Iterator[Path]:
        """Yield the blobs that have one of these sizes in bytes."""
        for folder in sorted(self._root.glob("[0-9a-f][0-9a-f]")):
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not entry.name.startswith(TEMPORARY) and entry.stat().st_size in sizes:
                        yield Path(entry.path)

    def sync(self) -> None:
        """Make every blob survive a crash of the machine: one call for all, since one each is slow."""
        os.sync()

    def remove_temporaries(self) -> None:
        """Remove what a killed process left unfinished."""
        for folder in (self._root, *self._root.glob("[0-9a-f][0-9a-f]")):
            remove_temporaries(folder)
