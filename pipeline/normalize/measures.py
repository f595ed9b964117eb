"""Times: instants of observation, and milliseconds to nanoseconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:([Zz])|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))?"
)


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment in UTC to the millisecond."""

    text: str
    """ISO 8601 with three decimals and ``Z``."""
    moment: datetime
    """The same, as a datetime without zone."""
    zone_assumed: bool
    """The source named no zone: UTC is assumed."""


def instant(text: str) -> Instant | None:
    """Read an ISO 8601 date and time; digits beyond the millisecond are cut off, not rounded.

    Returns None where the text is no such moment.
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        return None
    *fields, fraction, zulu, sign, hours, minutes = match.groups()
    milliseconds = int(((fraction or "") + "000")[:3])
    try:
        moment = datetime(*map(int, fields), milliseconds * 1000, tzinfo=UTC)  # type: ignore[misc,arg-type]
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            zone = timezone(offset if sign == "+" else -offset)
            moment = moment.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    naive = moment.replace(tzinfo=None)
    return Instant(naive.isoformat(timespec="milliseconds") + "Z", naive, not (zulu or sign))


def nanoseconds(latency_ms: float) -> int:
    """Return milliseconds as whole nanoseconds, halves up, in double precision.

    ``round`` will not do: it takes halves to the even neighbour.
    """
    return math.floor(latency_ms * 1e6 + 0.5)
