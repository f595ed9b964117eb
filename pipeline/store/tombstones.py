"""What stays of a text that was taken out of a blob: where it stood, and its digest.

The blob keeps its name, its size and the place of everything else: blanks stand for the text, between its quotes.
So nothing that points into the blob moves. The tombstone beside it says what the record was before (its SHA-256) and
what the text was (its SHA-256 and size), which is all that the replay of a snapshot needs of either, so that
``ingest --rebuild`` makes the same rows and digests without the text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DataDirectoryError
from pipeline.store.files import read_plain
from pipeline.upstream.framing import Record, RemovedText

_STRING = re.compile(rb'("(?:[^"\\]|\\.)*")(\s*:)?', re.DOTALL)
"""A string of a JSON document, and the colon after it where it is a member's name."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A text that was taken out of a record or document of a blob."""

    record_offset: int
    """Where the record starts in the blob; 0 for a whole document."""
    record_sha256: str
    """SHA-256 of the record as it was fetched."""
    pointer: str
    """JSON pointer from the record to the text."""
    digest: str
    """SHA-256 of the text."""
    size_bytes: int
    """Size of the text in UTF-8."""

    @property
    def text(self) -> RemovedText:
        """What stood there."""
        return RemovedText(self.pointer, self.digest, self.size_bytes)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was taken out of a blob, and the SHA-256 of what is kept of it."""

    blob_sha256: str
    kept_sha256: str
    removals: tuple[Removal, ...]

    def restore(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records of the blob under the identity that they had when they were fetched."""
        by_record: dict[int, list[Removal]] = {}
        for removal in self.removals:
            by_record.setdefault(removal.record_offset, []).append(removal)
        for record in records:
            removals = by_record.get(record.offset)
            yield (
                record
                if removals is None
                else Record(
                    line=record.line,
                    offset=record.offset,
                    size=record.size,
                    sha256=removals[0].record_sha256,
                    raw=record.raw,
                    from_document=record.from_document,
                    removed=tuple(removal.text for removal in removals),
                )
            )

    @property
    def texts(self) -> tuple[RemovedText, ...]:
        """The texts that were taken out of a blob that is one document."""
        return tuple(removal.text for removal in self.removals)


def read_tombstone(path: Path) -> Tombstone | None:
    """Return a tombstone, or None where there is none.

    Raises:
        DataDirectoryError: it is damaged.
    """
    try:
        document: dict[str, Any] = json.loads(read_plain(path))
        return Tombstone(
            document["blob_sha256"], document["kept_sha256"], tuple(Removal(**each) for each in document["removals"])
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataDirectoryError(f"{path} is damaged ({error}): restore it from a backup") from error


def tombstone_text(tombstone: Tombstone) -> bytes:
    """Return a tombstone as it is kept."""
    return json.dumps(asdict(tombstone), indent=1).encode() + b"\n"


def remove_texts(raw: bytes, wanted: Mapping[str, int]) -> tuple[bytes, list[RemovedText]]:
    """Take texts out of a JSON document, leaving blanks between their quotes; return it with what was taken out.

    Args:
        raw: the document.
        wanted: size in bytes of the texts to take out, by their digests.
    """
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return raw, []
    removed = [RemovedText(pointer, digest, wanted[digest]) for pointer, digest in _places(document, "", wanted)]
    if not removed:
        return raw, []
    kept = bytearray(raw)
    shortest = min(wanted.values())
    for match in _STRING.finditer(raw):
        start, end = match.span(1)
        if match.group(2) or end - start - 2 < shortest:
            continue
        if _digest(json.loads(match.group(1), strict=False), wanted) is not None:
            kept[start + 1 : end - 1] = b" " * (end - start - 2)
    return bytes(kept), removed


def _places(value: Any, pointer: str, wanted: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield pointer and digest of every string of a document that is wanted."""
    match value:
        case str():
            if (digest := _digest(value, wanted)) is not None:
                yield pointer, digest
        case list():
            for position, element in enumerate(value):
                yield from _places(element, f"{pointer}/{position}", wanted)
        case dict():
            for name, member in value.items():
                yield from _places(member, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", wanted)


def _digest(text: str, wanted: Mapping[str, int]) -> str | None:
    """Return the digest of a text that is wanted."""
    content = text.encode("utf-8", "surrogatepass")
    if len(content) not in wanted.values():
        return None
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return digest if digest in wanted else None
