from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.normalize.measures import instant, nanoseconds


@pytest.mark.parametrize(
    ("text", "expected", "assumed"),
    [
        ("2026-03-02T10:00:01.123456", "2026-03-02T10:00:01.123Z", True),
        ("2026-03-02T10:00:01", "2026-03-02T10:00:01.000Z", True),
        ("2026-03-02 10:00:01.5", "2026-03-02T10:00:01.500Z", True),
        ("2026-03-02T10:00:01Z", "2026-03-02T10:00:01.000Z", False),
        ("2026-03-02T10:00:01.9999999Z", "2026-03-02T10:00:01.999Z", False),  # cut off, not rounded
        ("2026-03-05T12:00:00+02:00", "2026-03-05T10:00:00.000Z", False),
        ("2026-03-05T12:00:00-0530", "2026-03-05T17:30:00.000Z", False),
        ("2026-01-01T00:30:00.0019+01:00", "2025-12-31T23:30:00.001Z", False),
        ("2024-02-29T23:59:59.999-00:01", "2024-03-01T00:00:59.999Z", False),
        ("1969-12-31T23:59:59.9995Z", "1969-12-31T23:59:59.999Z", False),
        ("2026-03-02T10:00:01+00:00", "2026-03-02T10:00:01.000Z", False),
    ],
)
def test_instant(text: str, expected: str, assumed: bool) -> None:
    read = instant(text)
    assert read is not None
    assert (read.text, read.zone_assumed) == (expected, assumed)
    assert read.moment == datetime.fromisoformat(expected).replace(tzinfo=None)


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "1780000000", "2026-02-29T00:00:00", "2026-13-01T00:00:00", "2026-03-02T25:00:00",
        "2026-03-02T10:60:00", "2026-03-02T10:00:61", "2026-03-02T10:00:01 UTC", "2026-03-02T10:00:01+02:75",
        "2026-03-02T10:00:01+25:00", "02.03.2026 10:00:01", "2026-03-02T10:00:01Zjunk", "٢٠٢٦-03-02T10:00:01",
        "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-03-02T10:00:01.Z", "NaN",
    ],
)  # fmt: skip
def test_no_instant(text: str) -> None:
    assert instant(text) is None


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001
    st.integers(-23 * 60, 23 * 60) | st.none(),
)
def test_any_moment(moment: datetime, minutes: int | None) -> None:
    zone = None if minutes is None else timezone(timedelta(minutes=minutes))
    read = instant(moment.replace(tzinfo=zone).isoformat())
    assert read is not None
    exact = moment - timedelta(minutes=minutes or 0)
    assert read.moment == exact.replace(microsecond=exact.microsecond // 1000 * 1000)
    assert read.zone_assumed is (minutes is None)
    assert len(read.text) == len("2026-03-02T10:00:01.123Z")


@pytest.mark.parametrize(
    ("latency_ms", "expected"),
    [
        (0.13734333333333335, 137343),
        (5e-7, 1),  # half a nanosecond rounds up
        (4.9e-7, 0),
        (1.5e-6, 2),
        (2.5e-6, 3),  # half up, not to the even neighbour
        (4.5e-6, 5),
        (1e-6, 1),
        (1, 1_000_000),
        (0.0000014999, 1),
        (0.049509000000000004, 49509),
        (1234567.8901235, 1234567890124),
    ],
)
def test_nanoseconds(latency_ms: float, expected: int) -> None:
    assert nanoseconds(latency_ms) == expected


@given(st.integers(1, 2**51 // 1_000_000))
def test_whole_and_half_nanoseconds(count: int) -> None:
    assert nanoseconds(count / 1e6) == count
