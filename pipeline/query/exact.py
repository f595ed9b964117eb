"""Values of DuckDB as Python and Arrow can hold them: DuckDB itself casts the others before they leave it.

A ``datetime`` knows neither infinity nor nanoseconds nor the years before 1 and after 9999, a ``timedelta`` no
months, and a ``dict`` no list as its key. Arrow has no whole numbers beyond 64 bits and no time of day with a zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

_TEXT = "VARCHAR"
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00)?")


def _same(value: Any) -> Any:
    return value


def _iso(text: str) -> str:
    """Return a timestamp as ISO 8601 with ``Z``, in milliseconds or finer; infinity and far years as they are."""
    parts = _INSTANT.fullmatch(text)
    if parts is None:
        return text
    day, time, fraction = parts.groups(default="")
    places = next(places for places in (3, 6, 9) if len(fraction) <= places)
    return f"{day}T{time}.{fraction:0<{places}}Z"


@dataclass(frozen=True)
class Exact:
    """The type that DuckDB is to cast a value to, and what makes of the value that comes the one to show."""

    type: str
    shown: Callable[[Any], Any] = _same

    def __call__(self, value: Any) -> Any:
        """Return the value to show, null as null."""
        return None if value is None else self.shown(value)


_Leaves: TypeAlias = Mapping[str, Exact]

_TIMESTAMPS = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone", "timestamptz_ns")
_KEY = "key of a map"
_PYTHON: _Leaves = {
    **dict.fromkeys(_TIMESTAMPS, Exact(_TEXT, _iso)),
    **dict.fromkeys(("date", "interval", "time_ns", _KEY), Exact(_TEXT)),
    "variant": Exact("JSON"),
}
_ARROW: _Leaves = {
    **dict.fromkeys(("hugeint", "uhugeint"), Exact("DECIMAL(38,0)")),
    **dict.fromkeys(("time with time zone", "bit", "bignum"), Exact(_TEXT)),
}


def for_python(kind: DuckDBPyType) -> Exact:
    """Return how values of a type come to Python.

    Timestamps become ISO 8601 text, dates and intervals DuckDB's own, keys of maps text, as JSON has them. A union
    gives the value of its member.
    """
    return _exact(kind, _PYTHON)


def for_arrow(kind: DuckDBPyType) -> Exact:
    """Return how values of a type come to Arrow; whole numbers of over 38 digits are an error of the query."""
    return _exact(kind, _ARROW)


def projection(kinds: Sequence[DuckDBPyType], read: Sequence[Exact]) -> str:
    """Return the list of a SELECT that casts the columns of a result, by their places."""
    return ", ".join(
        f"#{place}" if of.type == str(kind) else f"CAST(#{place} AS {of.type})"
        for place, (kind, of) in enumerate(zip(kinds, read, strict=True), 1)
    )


def _exact(kind: DuckDBPyType, leaves: _Leaves) -> Exact:
    name = str(kind.id)
    if name in leaves:
        return leaves[name]
    match name:
        case "list" | "array":
            [(_, child)] = _inner(kind)
            item, size = _exact(child, leaves), dict(kind.children).get("size", "")
            return Exact(f"{item.type}[{size}]", lambda values: [item(each) for each in values])
        case "map":
            key, value = (_exact(child, leaves) for _, child in _inner(kind))
            key = leaves.get(_KEY, key)
            return Exact(
                f"MAP({key.type}, {value.type})", lambda entries: {each: value(of) for each, of in entries.items()}
            )
        case "struct":
            fields = {field: _exact(child, leaves) for field, child in _inner(kind)}
            return Exact(
                f"STRUCT({_named(fields)})",
                lambda values: {field: fields[field](each) for field, each in values.items()},
            )
        case "tuple":
            members = [_exact(child, leaves) for _, child in _inner(kind)]
            return Exact(
                f"TUPLE({', '.join(member.type for member in members)})",
                lambda values: [member(each) for member, each in zip(members, values, strict=True)],
            )
        case "union":
            # The first child is the tag. Python does not get it, so nothing tells the members apart there.
            return Exact(f"UNION({_named({member: _exact(child, leaves) for member, child in _inner(kind)[1:]})})")
    return Exact(str(kind))


def _inner(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    """Return the types inside of a type with their names; the size of an array is none."""
    return [(name, child) for name, child in kind.children if not isinstance(child, int | list)]


def _named(fields: Mapping[str, Exact]) -> str:
    return ", ".join('"{}" {}'.format(field.replace('"', '""'), of.type) for field, of in fields.items())
