from __future__ import annotations

import json
import math
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pipeline.query.plain import document, plain


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    at: datetime


@pytest.mark.parametrize(
    ("value", "json_value"),
    [
        (None, None),
        (True, True),
        (2**70, 2**70),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Decimal("3.00"), 3),
        (Decimal("1.25"), 1.25),
        (Decimal("NaN"), "NaN"),
        (Decimal("0.1"), 0.1),
        (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (Decimal("-0.00000000000000000012345678901234567890"), "-0.00000000000000000012345678901234567890"),
        (datetime.fromisoformat("2026-06-06T21:33:43.574"), "2026-06-06T21:33:43.574Z"),
        (datetime.fromisoformat("2026-06-06T21:33:43.574001"), "2026-06-06T21:33:43.574001Z"),
        (datetime(2026, 6, 6, 23, 0, tzinfo=timezone(timedelta(hours=2))), "2026-06-06T21:00:00.000Z"),
        (datetime(2026, 6, 6, tzinfo=UTC), "2026-06-06T00:00:00.000Z"),
        (date(2026, 6, 6), "2026-06-06"),
        (b"\x00\xff", "00ff"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: [math.nan, {"a": (1, 2)}]}, {"1": ["NaN", {"a": [1, 2]}]}),
        ([Point(1.0, datetime.fromisoformat("2026-01-01"))], [{"x": 1.0, "at": "2026-01-01T00:00:00.000Z"}]),
    ],
)
def test_plain(value: object, json_value: Any) -> None:
    assert plain(value) == json_value


def test_a_document_is_ascii_and_carries_its_version() -> None:
    text = document(name="\x1b\u202eµ")
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {"schema_version": 1, "name": "\x1b\u202eµ"}
