"""Rows of a query as dataclasses: the columns of the query are the fields of the class."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from duckdb import DuckDBPyConnection

    Row = TypeVar("Row", bound=DataclassInstance)
else:
    Row = TypeVar("Row")

JSON_COLUMNS = frozenset({"axes", "manifest", "environment_manifest", "protocol_manifest", "isolation"})
"""Columns that hold JSON text: their fields hold the value."""


def fetch(
    connection: DuckDBPyConnection, shape: type[Row], sql: str, parameters: Sequence[object] = (), **more: Any
) -> list[Row]:
    """Return one ``shape`` a row of ``sql``; ``more`` gives the fields that are no column."""
    connection.execute(sql, list(parameters))
    names = [column[0] for column in connection.description or ()]
    known = {field.name for field in fields(shape)}
    if unknown := set(names) - known:
        raise AssertionError(f"{shape.__name__} lacks the columns {sorted(unknown)} of its query")
    return [shape(**_values(names, row), **more) for row in connection.fetchall()]


def values(connection: DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
    """Return the first column of ``sql``."""
    return [row[0] for row in connection.execute(sql, list(parameters)).fetchall()]


def _values(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in JSON_COLUMNS and value is not None else value
        for name, value in zip(names, row, strict=True)
    }


def rows_at_most(limit: int | None) -> int:
    """Return what stands for a limit in SQL, where None means every row, as does one beyond 64 bits."""
    return 2**62 if limit is None else min(limit, 2**62)
