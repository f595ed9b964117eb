"""What a name or a digest prefix stands for; near names where it stands for nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import UsageError
from pipeline.query.rows import fetch, values

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{1,64})", re.IGNORECASE)
_SHORTEST = 8

_NAMED = {
    "operation": ("operations", "operation_digest"),
    "implementation": ("implementations", "implementation_digest"),
}
_DIGESTED = {
    "run": ("runs", "run_digest", "benchmark"),
    "operation": ("operations", "operation_digest", "name"),
    "implementation": ("implementations", "implementation_digest", "name"),
    "workload": ("workloads", "workload_digest", "shape_summary"),
    "environment": ("environments", "environment_digest", "name"),
    "protocol": ("protocols", "protocol_digest", "name"),
    "artifact": ("artifacts", "digest", "kind"),
}


@dataclass(frozen=True)
class Found:
    """An object of the warehouse: its kind, digest and name (what it is called among its kind)."""

    kind: str
    digest: str
    name: str | None


def find(connection: DuckDBPyConnection, text: str) -> Found:
    """Return what an exact name, or a unique digest prefix of 8 or more hex digits, stands for.

    Raises UsageError where that is nothing or several; its sentence names the candidates or near names.
    """
    found = _by_name(connection, text, _NAMED) or _by_prefix(connection, text, _DIGESTED)
    if not found:
        known = [name for kind in _NAMED for name in _names(connection, kind)]
        if _looks_like_a_digest(text):
            what = f'no run, operation, implementation, workload or other document has a digest "{text}..."'
            raise UsageError(f"{what}; kernelhouse sql 'SELECT run_digest FROM runs' lists those of runs")
        raise UsageError(f'nothing is called "{text}"{_hint(text, known)}')
    if len(found) > 1:
        raise UsageError(f'"{text}" is ambiguous, give more of one of these digests: {_listed(found)}')
    return found[0]


def find_operations(connection: DuckDBPyConnection, text: str) -> list[Found]:
    """Return the operations of that exact name (several where it was redefined), or the one of a digest prefix.

    Raises UsageError where there is none, or where a prefix fits several.
    """
    named = _by_name(connection, text, {"operation": _NAMED["operation"]})
    if named:
        return named
    found = _by_prefix(connection, text, {"operation": _DIGESTED["operation"]})
    if not found:
        raise UsageError(f'no operation is called "{text}"{_hint(text, _names(connection, "operation"))}')
    if len(found) > 1:
        raise UsageError(f'"{text}" is ambiguous, give more of one of these digests: {_listed(found)}')
    return found


def check_profile(connection: DuckDBPyConnection, profile: str) -> None:
    """Raise UsageError where the warehouse does not rank by ``profile``; its sentence lists those that it has."""
    known = values(connection, "SELECT profile FROM profiles ORDER BY profile")
    if profile not in known:
        raise UsageError(f'this warehouse has no profile "{profile}"; it has {", ".join(known) or "none"}')


def near(text: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names like ``text``, the nearest first; names that contain it count as near."""
    pool = sorted(set(known))
    close = difflib.get_close_matches(text, pool, 3, 0.6)
    return [*close, *(name for name in pool if text and text.lower() in name.lower() and name not in close)][:3]


def _by_name(connection: DuckDBPyConnection, text: str, kinds: dict[str, tuple[str, str]]) -> list[Found]:
    found: list[Found] = []
    for kind, (table, key) in kinds.items():
        sql = f"SELECT '{kind}' AS kind, {key} AS digest, name FROM {table} WHERE name = ? ORDER BY digest"
        found += fetch(connection, Found, sql, [text])
    return found


def _by_prefix(connection: DuckDBPyConnection, text: str, kinds: dict[str, tuple[str, str, str]]) -> list[Found]:
    match = _PREFIX.fullmatch(text)
    if match is None:
        return []
    digits = match[1].lower()
    if len(digits) < _SHORTEST:
        if text.lower().startswith("sha256:") or any(map(str.isdigit, digits)):
            raise UsageError(f'the digest prefix "{text}" is too short: give {_SHORTEST} hex digits or more')
        return []
    found: list[Found] = []
    for kind, (table, key, name) in kinds.items():
        sql = (
            f"SELECT '{kind}' AS kind, {key} AS digest, {name} AS name FROM {table}"
            f" WHERE starts_with({key}, ?) ORDER BY digest LIMIT 9"
        )
        found += fetch(connection, Found, sql, [f"sha256:{digits}"])
    return found


def _looks_like_a_digest(text: str) -> bool:
    digits = text.lower().removeprefix("sha256:")
    return text.lower().startswith("sha256:") or (
        len(digits) >= _SHORTEST and not set(digits) - set("0123456789abcdef")
    )


def _names(connection: DuckDBPyConnection, kind: str) -> list[str]:
    return values(connection, f"SELECT DISTINCT name FROM {_NAMED[kind][0]}")


def _hint(text: str, known: Sequence[str]) -> str:
    if names := near(text, known):
        return f"; did you mean {' or '.join(names)}?"
    return "; kernelhouse sql 'SELECT name FROM operations' lists what there is"


def _listed(found: Sequence[Found]) -> str:
    shown = ", ".join(f"{each.kind} {each.digest[:23]} ({each.name})" for each in found[:8])
    return shown + (", ..." if len(found) > 8 else "")
