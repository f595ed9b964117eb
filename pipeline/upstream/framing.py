"""From the bytes of a file to its records, each with its place.

A record is a line, an element of a JSON array, or the one object of a file that is not laid out by
lines. Framing decides only where records begin and end, never whether they are good.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

MAX_RECORD_BYTES = 16 * 2**20
"""A longer record is held back as LINE_TOO_LONG."""

MAX_DOCUMENT_BYTES = 256 * 2**20
"""A larger file is taken by lines, whatever it looks like."""

_BUFFER_BYTES = 2**20

_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"


class RemovedText(NamedTuple):
    """A text that was taken out of a document after a takedown: where it stood, and what it was."""

    pointer: str
    """JSON pointer (RFC 6901) from the document to it."""
    digest: str
    """``sha256:`` and the hex digits over its UTF-8 bytes."""
    size_bytes: int


class Record(NamedTuple):
    """The bytes of one record, without its line end, and where they lie."""

    line: int
    """Line of the file, or place in its array, from 1."""
    offset: int
    """Where the record starts in the file, in bytes."""
    size: int
    """Size in bytes."""
    sha256: str
    """``sha256:`` and the hex digits over its bytes."""
    raw: bytes | None
    """The bytes; None where they are over MAX_RECORD_BYTES."""
    from_document: bool = False
    """It was an array element or a whole-file object: an accepted legacy form."""
    removed: tuple[RemovedText, ...] = ()
    """Texts that blanks stand for; ``sha256`` is then that of the record as it was fetched."""


def is_lfs_pointer(path: Path) -> bool:
    """Tell whether a file is a Git LFS pointer in place of its content."""
    with path.open("rb") as stream:
        return stream.read(len(_LFS_POINTER)) == _LFS_POINTER


def frame(path: Path, *, document: bool = False) -> Iterator[Record]:
    """Yield the records of a file in their order; blank lines are no records.

    Args:
        path: the file.
        document: the file is named as one JSON document, so where it is neither lines nor a good
            document it is one bad record rather than many.
    """
    if _laid_out_by_lines(path):
        yield from _lines(path)
        return
    raw = path.read_bytes()
    records = _elements(raw)
    if records is not None:
        yield from records
    elif document:
        if raw.strip():
            yield _record(1, 0, raw.rstrip(b"\r\n"), from_document=True)
    else:
        yield from _lines(path)


def _laid_out_by_lines(path: Path) -> bool:
    """Decide by the first line that is not blank: complete JSON means lines, unless it is a lone array."""
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        return True
    with path.open("rb") as stream:
        first = b""
        while not first.strip():
            first = stream.readline(MAX_RECORD_BYTES + 1)
            if not first:
                return True
        opening = first.lstrip()[:1]
        if opening not in (b"{", b"["):
            return True
        try:
            json.loads(first)
        except (ValueError, RecursionError):
            return False
        return opening == b"{" or any(line.strip() for line in stream)


def _lines(path: Path) -> Iterator[Record]:
    digest = hashlib.sha256
    with path.open("rb", buffering=_BUFFER_BYTES) as stream:
        offset, number = 0, 0
        while line := stream.readline(MAX_RECORD_BYTES + 2):
            number += 1
            body = line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line
            if len(body) > MAX_RECORD_BYTES:
                sha256, size, read = _skim(stream, line)
                yield Record(number, offset, size, sha256, None)
                offset += read
                continue
            if body.strip():
                yield Record(number, offset, len(body), "sha256:" + digest(body).hexdigest(), body)
            offset += len(line)


def _skim(stream: BinaryIO, start: bytes) -> tuple[str, int, int]:
    """Read a line that is too long to its end: return its digest, its size, and the bytes read with the line end."""
    hasher = hashlib.sha256()
    read, size, chunk, held = 0, 0, start, b""
    while True:
        read += len(chunk)
        ended = chunk.endswith(b"\n")
        # A carriage return counts as part of the line end only if the line feed follows it.
        body = held + (chunk[:-1] if ended else chunk)
        held = b""
        if ended:
            body = body.removesuffix(b"\r")
        elif body.endswith(b"\r"):
            body, held = body[:-1], b"\r"
        hasher.update(body)
        size += len(body)
        if ended or not (chunk := stream.readline(MAX_RECORD_BYTES)):
            hasher.update(held)
            return "sha256:" + hasher.hexdigest(), size + len(held), read


def _elements(raw: bytes) -> list[Record] | None:
    """Return the records of a file that is one JSON array or object, or None where it is not one."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    decoder = json.JSONDecoder()
    place = _skip_space(text, 0)
    spans: list[tuple[int, int]] = []
    try:
        if text[place] == "{":
            _, end = decoder.raw_decode(text, place)
            spans.append((place, end))
        else:
            end = place = _skip_space(text, place + 1)
            while text[place] != "]":
                _, end = decoder.raw_decode(text, place)
                spans.append((place, end))
                place = _skip_space(text, end)
                if text[place] == ",":
                    place = _skip_space(text, place + 1)
                    if text[place] == "]":
                        return None
                elif text[place] != "]":
                    return None
            end = place + 1
    except (ValueError, IndexError, RecursionError):
        return None
    if text[end:].strip():
        return None
    return _located(text, spans)


def _located(text: str, spans: list[tuple[int, int]]) -> list[Record]:
    """Turn spans of characters into records with byte offsets."""
    records, offset, last = [], 0, 0
    for number, (start, end) in enumerate(spans, 1):
        offset += len(text[last:start].encode())
        body = text[start:end].encode()
        records.append(_record(number, offset, body, from_document=True))
        offset, last = offset + len(body), end
    return records


def _skip_space(text: str, place: int) -> int:
    while text[place] in " \t\r\n":
        place += 1
    return place


def _record(line: int, offset: int, body: bytes, *, from_document: bool = False) -> Record:
    sha256 = "sha256:" + hashlib.sha256(body).hexdigest()
    raw = body if len(body) <= MAX_RECORD_BYTES else None
    return Record(line, offset, len(body), sha256, raw, from_document)
