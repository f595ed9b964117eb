"""What is in a table: how many rows, a digest of them that no order changes, and the first ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pipeline.manifests import canonical_text, sha256_of
from pipeline.query.plain import plain

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Shown: TypeAlias = str | int | float | bool | None
"""A value in a preview."""

PREVIEW = 5
"""Rows shown of a table."""

_SHOWN = 32
"""Characters shown of a text."""


def rows(connection: DuckDBPyConnection, name: str) -> int:
    """Return how many rows a table has."""
    [(amount,)] = connection.execute(f"SELECT count(*) FROM {name}").fetchall()
    return int(amount)


def digest(connection: DuckDBPyConnection, name: str) -> str:
    """Return a digest of a table: equal for equal rows in whatever order, columns count with their names.

    It is over the number of rows and the exclusive or of their MD5: the rows of a table differ in their key, so no two
    cancel out. It tells a change; against forgery there are the digests of the manifests.
    """
    cursor = connection.execute(f"SELECT count(*), bit_xor(md5_number(to_json(t)::VARCHAR))::VARCHAR FROM {name} AS t")
    [(amount, mixed)] = cursor.fetchall()
    columns = [column[0] for column in connection.execute(f"FROM {name} LIMIT 0").description or ()]
    return sha256_of(canonical_text({"columns": columns, "rows": amount, "mixed": mixed or ""}))


def preview(connection: DuckDBPyConnection, name: str, key: tuple[str, ...]) -> list[dict[str, Shown]]:
    """Return the first rows of a table by key: texts cut, lists and timestamps as text."""
    order = ", ".join(f'"{column}"' for column in key)
    cursor = connection.execute(f"SELECT * FROM {name} ORDER BY {order} LIMIT {PREVIEW}")
    columns = [column[0] for column in cursor.description or ()]
    return [dict(zip(columns, map(_short, row), strict=True)) for row in cursor.fetchall()]


def _short(value: object) -> Shown:
    simple = plain(value)
    if simple is None or isinstance(simple, bool | int | float):
        return simple
    text = simple if isinstance(simple, str) else canonical_text(simple).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
