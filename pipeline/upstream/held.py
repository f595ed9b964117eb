"""Why something is held back: the reason codes of quarantine, in the order in which they are tried."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A quarantine reason: of a record, in the order in which they apply, then of a file."""

    LINE_TOO_LONG = "LINE_TOO_LONG"
    INVALID_UTF8 = "INVALID_UTF8"
    INVALID_JSON = "INVALID_JSON"
    SCHEMA_VIOLATION = "SCHEMA_VIOLATION"
    NO_EVALUATION = "NO_EVALUATION"
    UNKNOWN_STATUS = "UNKNOWN_STATUS"
    INVALID_TIMESTAMP = "INVALID_TIMESTAMP"
    MISSING_PERFORMANCE = "MISSING_PERFORMANCE"
    NON_POSITIVE_LATENCY = "NON_POSITIVE_LATENCY"
    UNKNOWN_DEFINITION = "UNKNOWN_DEFINITION"
    UNKNOWN_SOLUTION = "UNKNOWN_SOLUTION"
    AXIS_OUT_OF_RANGE = "AXIS_OUT_OF_RANGE"
    UNBOUND_AXIS = "UNBOUND_AXIS"

    INVALID_DEFINITION = "INVALID_DEFINITION"
    INVALID_SOLUTION = "INVALID_SOLUTION"
    DUPLICATE_DEFINITION = "DUPLICATE_DEFINITION"
    DUPLICATE_SOLUTION = "DUPLICATE_SOLUTION"
    UNSAFE_SOURCE_PATH = "UNSAFE_SOURCE_PATH"
    LFS_POINTER = "LFS_POINTER"
    FETCH_FAILED = "FETCH_FAILED"
    DIGEST_MISMATCH = "DIGEST_MISMATCH"


class HeldBackError(Exception):
    """A document or record cannot be normalized: a reason code and a sentence."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
