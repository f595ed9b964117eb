"""JSON as upstream writes it: bare ``NaN`` and ``Infinity``, duplicate keys (the last wins)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pipeline.manifests.scalars import SAFE_INTEGER
from pipeline.upstream.held import HeldBackError, Reason

_EXACT_DIGITS = 15
"""An integer of up to this many digits is within +-(2^53-1)."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded document, and whether it holds bare ``NaN`` or ``Infinity`` tokens."""

    value: Any
    bare_constants: bool


def decode(raw: bytes) -> Decoded:
    """Decode one JSON document.

    Integers beyond +-(2^53-1) become the double that every JSON reader makes of them.

    Raises:
        HeldBackError: INVALID_UTF8, INVALID_JSON, or SCHEMA_VIOLATION for text that UTF-8 cannot encode.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HeldBackError(
            Reason.INVALID_UTF8, f"byte {error.start} is not UTF-8 text; encode the record as UTF-8"
        ) from None
    constants: list[str] = []

    def constant(token: str) -> float:
        constants.append(token)
        return float(token)

    try:
        value = json.loads(text, parse_constant=constant, parse_int=_integer)
    except ValueError as error:
        raise HeldBackError(Reason.INVALID_JSON, f"not JSON: {error}") from None
    except RecursionError:
        raise HeldBackError(Reason.INVALID_JSON, "not JSON that can be read: it is nested too deeply") from None
    if "\\u" in text:
        _check_encodable(value)
    return Decoded(value, bool(constants))


def _integer(digits: str) -> int | float:
    if len(digits) <= _EXACT_DIGITS:
        return int(digits)
    value = float(digits)
    return int(digits) if abs(value) <= SAFE_INTEGER else value


def _check_encodable(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise HeldBackError(
            Reason.SCHEMA_VIOLATION, "a string holds half of a surrogate pair, which UTF-8 cannot encode"
        ) from None
