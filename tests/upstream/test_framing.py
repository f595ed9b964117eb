from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.upstream.framing import MAX_RECORD_BYTES, Record, frame, is_lfs_pointer


def records(folder: Path, content: bytes, *, document: bool = False) -> list[Record]:
    """Frame some bytes; every record must point at exactly its bytes."""
    path = folder / "records"
    path.write_bytes(content)
    framed = list(frame(path, document=document))
    end = 0
    for record in framed:
        body = content[record.offset : record.offset + record.size]
        assert record.sha256 == "sha256:" + hashlib.sha256(body).hexdigest()
        assert len(body) == record.size
        assert record.raw == (body if record.size <= MAX_RECORD_BYTES else None)
        assert record.offset >= end
        end = record.offset + record.size
    return framed


def summary(framed: list[Record]) -> list[tuple[int, bytes | None, bool]]:
    return [(record.line, record.raw, record.from_document) for record in framed]


# fmt: off
FRAMED = [
    ("empty", b"", []),
    ("blank", b"\n \r\n\t\n", []),
    ("one line", b'{"a":1}\n', [(1, b'{"a":1}', False)]),
    ("no final newline", b'{"a":1}\n{"b":2}', [(1, b'{"a":1}', False), (2, b'{"b":2}', False)]),
    ("CRLF", b'{"a":1}\r\n{"b":2}\r\n', [(1, b'{"a":1}', False), (2, b'{"b":2}', False)]),
    ("blank lines count as lines", b'\n{"a":1}\n\r\n  \n{"b":2}\n\n', [(2, b'{"a":1}', False), (5, b'{"b":2}', False)]),
    ("space around a record stays", b' {"a":1} \n', [(1, b' {"a":1} ', False)]),
    ("CR inside a line is no line end", b'{"a":\r1}\n', [(1, b'{"a":\r1}', False)]),
    ("one CR belongs to the line end", b'{"a":1}\r\r\n', [(1, b'{"a":1}\r', False)]),
    ("bad lines are records", b'{"a":1}\nnot json\n[1]\n7\n', [
        (1, b'{"a":1}', False), (2, b"not json", False), (3, b"[1]", False), (4, b"7", False)]),
    ("array on the first of several lines", b'[1]\n{"a":1}\n', [(1, b"[1]", False), (2, b'{"a":1}', False)]),
    ("not UTF-8", b'{"a":1}\n\xff\xfe{"b":2}\n', [(1, b'{"a":1}', False), (2, b'\xff\xfe{"b":2}', False)]),
    ("first line not UTF-8", b'\xff{"a":1}\n{"b":2}\n', [(1, b'\xff{"a":1}', False), (2, b'{"b":2}', False)]),
    ("byte-order mark", b'\xef\xbb\xbf{"a":1}\n{"b":2}\n', [
        (1, b'\xef\xbb\xbf{"a":1}', False), (2, b'{"b":2}', False)]),
    ("lone array on a line", b'[{"a":1}, {"b":2}]\n', [(1, b'{"a":1}', True), (2, b'{"b":2}', True)]),
    ("array over lines", b'[\n {"a":1},\r\n {"b":\n2}\n]\n', [(1, b'{"a":1}', True), (2, b'{"b":\n2}', True)]),
    ("array with bad elements", b'[7, null, "x", [1, [2]], {}]', [
        (1, b"7", True), (2, b"null", True), (3, b'"x"', True), (4, b"[1, [2]]", True), (5, b"{}", True)]),
    ("empty array", b"[ ]\n", []),
    ("array with wide characters", '["é漢", "\U0001f600", "e\u0301"]\n'.encode(), [
        (1, '"é漢"'.encode(), True), (2, '"\U0001f600"'.encode(), True), (3, '"e\u0301"'.encode(), True)]),
    ("array with bare constants", b'[{"a": NaN}, {"a": -Infinity}]', [
        (1, b'{"a": NaN}', True), (2, b'{"a": -Infinity}', True)]),
    ("brackets in text", b'[{"a": "]},{["}, {"b": "\\"]"}]', [
        (1, b'{"a": "]},{["}', True), (2, b'{"b": "\\"]"}', True)]),
    ("pretty object", b'{\n  "a": 1\n}\n', [(1, b'{\n  "a": 1\n}', True)]),
    ("pretty object with CRLF", b'\r\n{\r\n  "a": 1\r\n}\r\n\r\n', [(1, b'{\r\n  "a": 1\r\n}', True)]),
]
# fmt: on


@pytest.mark.parametrize(("content", "expected"), [case[1:] for case in FRAMED], ids=[case[0] for case in FRAMED])
@pytest.mark.parametrize("document", [False, True])
def test_records(tmp_path: Path, content: bytes, expected: list[tuple[int, bytes, bool]], document: bool) -> None:
    assert summary(records(tmp_path, content, document=document)) == expected


@pytest.mark.parametrize("first", [b"{not json", b'{"a":1}{"b":2}', b"[1] 2", b"[1,"])
def test_a_bad_first_line_is_one_record_of_a_file_of_lines(tmp_path: Path, first: bytes) -> None:
    assert summary(records(tmp_path, first + b'\n{"c":3}\n')) == [(1, first, False), (2, b'{"c":3}', False)]


@pytest.mark.parametrize(
    "content",
    [
        b'[\n {"a":1},\n {"b":2}\n] trailing\n',
        b'[\n {"a":1},\n]\n',
        b'[\n {"a":1}\n {"b":2}\n]\n',
        b'[\n {"a":1},\n {"b":2}\n',
        b'{\n  "a": 1\n}\n{\n  "b": 2\n}\n',
        b'{\n  "a": 1\n',
        b'{\n  "a": "\xff"\n}\n',
        b"[" * 100_000,
    ],
)
def test_a_broken_document_is_one_bad_record_or_bad_lines(tmp_path: Path, content: bytes) -> None:
    (record,) = records(tmp_path, content, document=True)
    assert (record.line, record.offset) == (1, 0)
    assert record.raw == content.rstrip(b"\n")
    by_lines = records(tmp_path, content)
    assert [(r.line, r.raw) for r in by_lines] == list(enumerate(content.splitlines(), 1))


BIG = MAX_RECORD_BYTES


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""], ids=["LF", "CRLF", "none"])
@pytest.mark.parametrize("excess", [-1, 0, 1, 2])
def test_around_the_longest_record(tmp_path: Path, excess: int, end: bytes) -> None:
    size = BIG + excess
    body = b'{"a":"' + b"x" * (size - 8) + b'"}'
    (first, long, *last) = records(tmp_path, b'{"b":1}\n' + body + end + (b'{"c":2}\n' if end else b""))
    assert (first.line, first.raw) == (1, b'{"b":1}')
    assert (long.line, long.offset, long.size) == (2, 8, size)
    assert (long.raw is None) == (excess > 0)
    assert [(record.line, record.raw) for record in last] == ([(3, b'{"c":2}')] if end else [])


@pytest.mark.parametrize(
    "body",
    [
        b"x" * BIG + b"\r" + b"y" * 10,
        b"x" * (BIG + 1) + b"\r" + b"y" * (BIG - 1) + b"\r" + b"z",
        b"x" * (BIG + 1) + b"\r",
        b"x" * (2 * BIG + 1) + b"\r\r",
        b"\r" * (2 * BIG + 5),
    ],
    ids=["first", "second", "end", "two at the end", "only"],
)
@pytest.mark.parametrize("end", [b"\r\n", b"\n"], ids=["CRLF", "LF"])
def test_carriage_returns_at_the_edge_of_what_is_read_at_once(tmp_path: Path, body: bytes, end: bytes) -> None:
    if body.endswith(b"\r") and end == b"\n":
        body, end = body[:-1], b"\r\n"
    *_, long, last = records(tmp_path, b"{}\n" + body + end + b'{"c":2}\n')
    assert long.size == len(body)
    assert long.raw is None
    assert last.raw == b'{"c":2}'


def test_a_long_element_and_a_long_object_are_too_long(tmp_path: Path) -> None:
    element = b'{"a":"' + b"x" * BIG + b'"}'
    assert [r.raw for r in records(tmp_path, b'[\n{"b":1},\n' + element + b"]")] == [b'{"b":1}', None]
    assert [r.raw for r in records(tmp_path, b"\n" + element + b"\n")] == [None]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
line_ends = st.sampled_from([b"\n", b"\r\n"])


@given(
    st.lists(st.tuples(st.binary(max_size=12) | values.map(lambda v: json.dumps(v).encode()), line_ends), max_size=8)
)
def test_places_in_any_bytes(tmp_path: Path, parts: list[tuple[bytes, bytes]]) -> None:
    records(tmp_path, b"".join(body + end for body, end in parts))
    records(tmp_path, b"".join(body + end for body, end in parts), document=True)


@given(st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), min_size=1, max_size=5), st.data())
def test_objects_come_back_whatever_the_layout(tmp_path: Path, objects: list[object], data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(["lines", "CRLF", "array", "pretty array", "no final newline"]))
    texts = [json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass") for item in objects]
    content = {
        "lines": b"".join(text + b"\n" for text in texts),
        "CRLF": b"".join(text + b"\r\n" for text in texts),
        "no final newline": b"\n".join(texts),
        "array": b"[" + b",".join(texts) + b"]",
        "pretty array": b"[\n " + b" ,\n ".join(texts) + b"\n]\n",
    }[layout]
    framed = records(tmp_path, content, document="array" in layout)
    assert [record.raw for record in framed] == texts
    assert [record.line for record in framed] == list(range(1, len(texts) + 1))
    assert [record.from_document for record in framed] == ["array" in layout] * len(texts)


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1\n", True),
        (b"version https://git-lfs.github.com/spec/v", False),
        (b'{"version": "https://git-lfs.github.com/spec/v1"}', False),
        (b"", False),
    ],
)
def test_git_lfs_pointers(tmp_path: Path, content: bytes, pointer: bool) -> None:
    (tmp_path / "file").write_bytes(content)
    assert is_lfs_pointer(tmp_path / "file") is pointer
