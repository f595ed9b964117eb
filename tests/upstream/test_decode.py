from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.upstream.decode import decode
from pipeline.upstream.held import HeldBackError, Reason


def outcome(raw: bytes) -> str:
    try:
        decode(raw)
    except HeldBackError as error:
        return error.reason
    return "decoded"


@pytest.mark.parametrize(
    ("raw", "value", "bare"),
    [
        (b'{"a": 1, "a": 2}', {"a": 2}, False),  # the last wins, as JSON readers do
        (b'{"a": {"b": 1}, "a": {"c": 2}}', {"a": {"c": 2}}, False),
        (b"[NaN, Infinity, -Infinity]", [math.nan, math.inf, -math.inf], True),
        (b'["NaN"]', ["NaN"], False),
        (b"[1e999, -1e999]", [math.inf, -math.inf], False),
        (b"[9007199254740991, -9007199254740991]", [2**53 - 1, -(2**53) + 1], False),
        (b"[9007199254740993]", [2.0**53], False),
        (b"1.0", 1.0, False),
        (b' {"a": "\xc3\xa9\xe6\xbc\xa2"}\r', {"a": "é漢"}, False),
        (b'"\\ud83d\\ude00"', "\U0001f600", False),
        (b"[" + b"9" * 5000 + b"]", [math.inf], False),
    ],
)
def test_value(raw: bytes, value: Any, bare: bool) -> None:
    decoded = decode(raw)
    assert repr(decoded.value) == repr(value)
    assert decoded.bare_constants is bare


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\xff\xfe{}", Reason.INVALID_UTF8),
        (b'{"a": "\xc3"}', Reason.INVALID_UTF8),
        (b'{"a": "\xed\xa0\x80"}', Reason.INVALID_UTF8),  # half of a surrogate pair as bytes
        (b"{not json \xff", Reason.INVALID_UTF8),
        (b"", Reason.INVALID_JSON),
        (b"{", Reason.INVALID_JSON),
        (b"{} {}", Reason.INVALID_JSON),
        (b"{'a': 1}", Reason.INVALID_JSON),
        (b'{"a": 1,}', Reason.INVALID_JSON),
        (b"nan", Reason.INVALID_JSON),
        (b"+1", Reason.INVALID_JSON),
        (b"01", Reason.INVALID_JSON),
        (b'"a\tb"', Reason.INVALID_JSON),
        (b"\xef\xbb\xbf{}", Reason.INVALID_JSON),
        (b"[" * 100_000 + b"]" * 100_000, Reason.INVALID_JSON),
        (b'{"a": "\\ud800"}', Reason.SCHEMA_VIOLATION),
        (b'{"\\udfff": 1}', Reason.SCHEMA_VIOLATION),
    ],
)
def test_held_back(raw: bytes, reason: Reason) -> None:
    with pytest.raises(HeldBackError) as caught:
        decode(raw)
    assert caught.value.reason == reason
    assert caught.value.detail


@pytest.mark.parametrize("depth", [300, 500, 900, 980])
def test_deep_nesting_is_decoded_or_held_back(depth: int) -> None:
    raw = b"[" * depth + b'"\\u0041"' + b"]" * depth
    assert outcome(raw) in ("decoded", Reason.INVALID_JSON)


@given(st.recursive(st.none() | st.booleans() | st.integers(-999, 999) | st.text(), st.lists, max_leaves=5))
def test_what_json_writes_is_read(value: Any) -> None:
    assert decode(json.dumps(value).encode()).value == value


@given(st.binary(max_size=30))
def test_any_bytes_are_decoded_or_held_back(raw: bytes) -> None:
    assert outcome(raw) in ("decoded", Reason.INVALID_UTF8, Reason.INVALID_JSON, Reason.SCHEMA_VIOLATION)
