"""A trace set in a directory, in the upstream layout; the bundled sample is one."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pipeline.errors import SourceError
from pipeline.sources.listing import (
    Blobs,
    Failure,
    Kind,
    ListedFile,
    Listing,
    Progress,
    Pull,
    check_authors,
    is_wanted,
)

FOLDERS = ("definitions", "solutions", "workloads", "traces", "blob")
"""Folders of the upstream layout; nothing beside them belongs to a trace set."""

_COPYING = 2
"""Files that are copied at a time: one is read and hashed while another is written."""

_OWN_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Faults of the disk that blobs are written to, not of the file that is read; they name no file while writing."""


@dataclass(frozen=True)
class DirectorySource:
    """A folder on this machine. The path itself is not recorded: it says nothing to anyone else."""

    root: Path
    name: str = "directory"
    repository: str | None = None
    revision: str | None = None
    authors: tuple[str, ...] = ()

    def pull(self, blobs: Blobs, listing: Listing, progress: Progress, earlier: Sequence[Pull] = ()) -> Pull:
        """List the folder and copy its documents and records into the blob store.

        A file that cannot be read is listed as FETCH_FAILED and leaves the pull incomplete.

        Raises:
            SourceError: no such folder, nothing of the upstream layout in it, or a folder in it that cannot be listed.
            UsageError: an author that has no folder here.
        """
        places = self._places()
        every = sorted(places)
        check_authors(every, self.authors, listing, str(self.root))
        paths = [path for path in every if is_wanted(path, self.authors, listing)]
        listed = []
        with ThreadPoolExecutor(max_workers=_COPYING) as pool:
            taken = pool.map(lambda path: self._take(places[path], path, listing.kind_of(path), blobs), paths)
            for done, file in enumerate(taken):
                progress("fetch", done, len(paths))
                listed.append(file)
        progress("fetch", len(paths), len(paths))
        return Pull(
            source=self.name,
            adapter=listing.name,
            repository=self.repository,
            revision=self.revision,
            authors=tuple(sorted(self.authors)),
            files=tuple(listed),
        )

    def _take(self, place: Path, path: str, kind: Kind, blobs: Blobs) -> ListedFile:
        try:
            if fault := self._refusal(place):
                return ListedFile(path, kind, 0, failure=Failure("FETCH_FAILED", f"{path} {fault}"))
            if kind.is_fetched:
                sha256, size = blobs.add_file(place)
                return ListedFile(path, kind, size, sha256, fetched=True)
            with place.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return ListedFile(path, kind, place.stat().st_size, "sha256:" + digest)
        except OSError as error:
            if error.errno in _OWN_FAULTS or error.filename not in (None, str(place)):
                raise
            detail = f"{path} could not be read: {error.strerror}"
            return ListedFile(path, kind, 0, failure=Failure("FETCH_FAILED", detail))

    def _refusal(self, place: Path) -> str | None:
        """Say why a file is not read: it is no plain file, or a link out of the trace set (but for a hub cache)."""
        if not stat.S_ISREG(place.stat().st_mode):
            return "is no plain file; put a file in its place"
        root = self.root.resolve()
        allowed = [root, *(parent / "blobs" for parent in root.parents[1:2])]
        if not any(place.resolve().is_relative_to(folder) for folder in allowed):
            return "is a link out of the trace set; put a copy in its place"
        return None

    def _places(self) -> dict[str, Path]:
        """Return the files of the trace set by the path that they are listed under."""
        if not self.root.is_dir():
            raise SourceError(f"{self.root} is no folder: give 'sample' or the folder of a trace set")
        found = dict(place for folder in FOLDERS for place in _files_below(self.root, folder))
        if not found:
            raise SourceError(
                f"{self.root} holds no trace set: expected at least one of {', '.join(f + '/' for f in FOLDERS)} in it"
            )
        return found


def sample_source() -> DirectorySource:
    """Return the trace set that comes with the package."""
    return DirectorySource(Path(str(files("pipeline") / "sample" / "trace-set")), name="sample")


def _files_below(root: Path, folder: str) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder, each with its path inside the trace set as UTF-8 text.

    Links to files count (hub caches are made of them). A link to a folder may lead out of the trace set or in circles.

    Raises:
        SourceError: a folder that cannot be listed, or a link to one: what it holds would be missing from the pull.
    """
    top = root / folder
    if not os.path.lexists(top):
        return
    _refuse_link(top)
    for place, folders, names in os.walk(top, onerror=_refuse_unlisted):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            _refuse_link(Path(place) / name)
        for name in names:
            if not name.startswith("."):
                path = Path(place) / name
                relative = path.relative_to(root).as_posix()
                yield relative.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"), path


def _refuse_link(folder: Path) -> None:
    if os.path.islink(folder):  # noqa: PTH114 - a path too long to look at is told when it is listed
        raise SourceError(f"{folder} is a link where a folder belongs: put a copy of the folder in its place")


def _refuse_unlisted(error: OSError) -> None:
    """Stop a walk that would go on without the folder."""
    raise SourceError(
        f"{error.filename} cannot be listed ({error.strerror}): make it a readable folder or take it away"
    ) from error
