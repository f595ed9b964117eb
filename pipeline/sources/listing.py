"""What a source hands over: a listing of files, with the content of those that matter in the blob store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pipeline.errors import UsageError


class Kind(StrEnum):
    """What a file of a trace set is."""

    DEFINITION = "definition"
    SOLUTION = "solution"
    WORKLOAD = "workload"
    TRACE = "trace"
    TENSOR = "tensor"
    OTHER = "other"

    @property
    def is_fetched(self) -> bool:
        """Documents and records are fetched; tensors and anything else are only listed."""
        return self not in (Kind.TENSOR, Kind.OTHER)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a file that belongs to a pull could not be had: a quarantine reason and a sentence."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of a pull."""

    path: str
    """Path inside the trace set, with forward slashes."""
    kind: Kind
    size_bytes: int
    sha256: str | None = None
    """``sha256:`` and hex digits of its content, where known."""
    fetched: bool = False
    """Its content is in the blob store."""
    locator: str | None = None
    """Where it can be had again, where the source has such a place."""
    failure: Failure | None = None
    oid: str | None = None
    """Git blob SHA-1 of its content, where the source names content so."""


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull of a source, before it has a place in the warehouse's sequence."""

    source: str
    adapter: str
    repository: str | None
    revision: str | None
    authors: tuple[str, ...]
    files: tuple[ListedFile, ...]

    @property
    def complete(self) -> bool:
        """Every file that belongs to the pull was fetched."""
        return all(file.fetched for file in self.files if file.kind.is_fetched)


class Blobs(Protocol):
    """The part of the blob store that a source needs."""

    def add_file(self, path: Path) -> tuple[str, int]:
        """Keep a copy of a file; return its SHA-256 and its size in bytes."""
        ...

    def add_stream(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep what the chunks make up; return its SHA-256 and its size in bytes. Where they raise, nothing is kept."""
        ...

    def is_intact(self, sha256: str) -> bool:
        """Tell whether a blob is kept and not damaged."""
        ...

    def of_sizes(self, sizes: Collection[int]) -> Iterator[Path]:
        """Yield the blobs that have one of these sizes in bytes."""
        ...


class Listing(Protocol):
    """How the documents of a source are laid out: the part of an adapter that a source needs."""

    name: str

    def kind_of(self, path: str) -> Kind:
        """Tell what a file is by its path."""
        ...

    def author_of(self, path: str) -> str | None:
        """Return the author folder of a solution or trace file, where it lies in one."""
        ...


Progress = Callable[[str, int, int | None], None]
"""Called with the stage, how much of it is done, and how much there is in all, where known."""


class Source(Protocol):
    """Somewhere that traces can be pulled from."""

    def pull(self, blobs: Blobs, listing: Listing, progress: Progress, earlier: Sequence[Pull] = ()) -> Pull:
        """List the source and bring the files that matter into the blob store.

        ``earlier`` are the pulls that the warehouse has, in sequence: what they brought need not be fetched again.

        Raises:
            SourceError: the source cannot be read at all.
        """
        ...


def is_wanted(path: str, authors: Sequence[str], listing: Listing) -> bool:
    """Tell whether a file belongs to a pull: author folders limit solutions and traces alone."""
    if not authors or listing.kind_of(path) not in (Kind.SOLUTION, Kind.TRACE):
        return True
    return listing.author_of(path) in authors


def check_authors(paths: Iterable[str], authors: Sequence[str], listing: Listing, place: str) -> None:
    """Refuse an author that has no folder.

    Raises:
        UsageError: naming the authors that there are.
    """
    if not authors:
        return
    known = {author for path in paths if (author := listing.author_of(path)) is not None}
    for author in authors:
        if author not in known:
            raise UsageError(f"no author folder {author!r} in {place}: there are {', '.join(sorted(known))}")
