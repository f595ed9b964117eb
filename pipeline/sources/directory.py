"""A trace set in a directory, in the upstream layout; the bundled sample is one."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pipeline.errors import SourceError, UsageError
from pipeline.sources.listing import Blobs, Failure, Kind, ListedFile, Listing, Progress, Pull

FOLDERS = ("definitions", "solutions", "workloads", "traces", "blob")
"""Folders of the upstream layout; nothing beside them belongs to a trace set."""

_OWN_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Faults of the disk that blobs are written to, not of the file that is read."""


@dataclass(frozen=True)
class DirectorySource:
    """A folder on this machine. The path itself is not recorded: it says nothing to anyone else."""

    root: Path
    name: str = "directory"
    repository: str | None = None
    revision: str | None = None
    authors: tuple[str, ...] = ()

    def pull(self, blobs: Blobs, listing: Listing, progress: Progress) -> Pull:
        """List the folder and copy its documents and records into the blob store.

        A file that cannot be read is listed as FETCH_FAILED and leaves the pull incomplete.

        Raises:
            SourceError: no such folder, or nothing of the upstream layout in it.
            UsageError: an author that has no folder here.
        """
        paths = [path for path in self._paths() if self._wanted(path, listing)]
        self._check_authors(listing)
        listed = []
        for done, path in enumerate(paths):
            progress("fetch", done, len(paths))
            listed.append(self._take(path, listing.kind_of(path), blobs))
        progress("fetch", len(paths), len(paths))
        return Pull(
            source=self.name,
            adapter=listing.name,
            repository=self.repository,
            revision=self.revision,
            authors=tuple(sorted(self.authors)),
            files=tuple(listed),
        )

    def _take(self, path: str, kind: Kind, blobs: Blobs) -> ListedFile:
        place = self.root / path
        try:
            if kind.is_fetched:
                sha256, size = blobs.add_file(place)
                return ListedFile(path, kind, size, sha256, fetched=True)
            with place.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return ListedFile(path, kind, place.stat().st_size, "sha256:" + digest)
        except OSError as error:
            if error.errno in _OWN_FAULTS:
                raise
            detail = f"{path} could not be read: {error.strerror}"
            return ListedFile(path, kind, 0, failure=Failure("FETCH_FAILED", detail))

    def _paths(self) -> list[str]:
        if not self.root.is_dir():
            raise SourceError(f"{self.root} is no folder: give 'sample' or the folder of a trace set")
        found = [path for folder in FOLDERS for path in _files_below(self.root, folder)]
        if not found:
            raise SourceError(
                f"{self.root} holds no trace set: expected at least one of {', '.join(f + '/' for f in FOLDERS)} in it"
            )
        return sorted(found)

    def _wanted(self, path: str, listing: Listing) -> bool:
        if not self.authors or listing.kind_of(path) not in (Kind.SOLUTION, Kind.TRACE):
            return True
        return listing.author_of(path) in self.authors

    def _check_authors(self, listing: Listing) -> None:
        if not self.authors:
            return
        known = {author for path in self._paths() if (author := listing.author_of(path)) is not None}
        for author in self.authors:
            if author not in known:
                raise UsageError(f"no author folder {author!r} in {self.root}: there are {', '.join(sorted(known))}")


def sample_source() -> DirectorySource:
    """Return the trace set that comes with the package."""
    return DirectorySource(Path(str(files("pipeline") / "sample" / "trace-set")), name="sample")


def _files_below(root: Path, folder: str) -> Iterator[str]:
    """Yield the files below a folder; links to files count (hub caches are made of them), links to folders do not."""
    for place, folders, names in os.walk(root / folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if not name.startswith("."):
                relative = (Path(place) / name).relative_to(root).as_posix()
                yield relative.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
