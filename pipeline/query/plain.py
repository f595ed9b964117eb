"""Answers as JSON: one document with its ``schema_version``.

Timestamps become ISO 8601 text with ``Z``, decimals numbers, or the text of their digits where a float would lose
some, numbers that are not finite the texts ``NaN``, ``Infinity`` and ``-Infinity`` (JSON has no such numbers), bytes
hex text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

SCHEMA_VERSION = 1


def document(**answer: object) -> str:
    """Return the JSON document of an answer: pure ASCII, indented, without a line end."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **plain(answer)}, indent=2, allow_nan=False)


def plain(value: object) -> Any:
    """Return ``value`` as what JSON knows: dataclasses as objects, timestamps as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return _decimal(value)
        case datetime():
            return instant(value)
        case date():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def instant(at: datetime) -> str:
    """Return a timestamp (UTC where it names no zone) as ISO 8601 with ``Z``, in milliseconds or finer."""
    utc = at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds" if utc.microsecond % 1000 else "milliseconds") + "Z"


def _decimal(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return _not_finite(float(value))
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else f"{value:f}"


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
