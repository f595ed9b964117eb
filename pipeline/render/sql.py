"""A result of SQL as a table."""

from __future__ import annotations

import json

from pipeline.query.plain import plain
from pipeline.query.sql import Result
from pipeline.render.screen import Screen


def render(screen: Screen, result: Result) -> int:
    """Write the result as a table, numbers flush right, and return its number of rows."""
    rows = [[_cell(value) for value in row] for row in result.rows]
    numeric = [column.name for column in result.columns if column.type.startswith(_NUMERIC)]
    screen.table([column.name for column in result.columns], rows, right=numeric, indent="", whole=True)
    return len(rows)


_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")


def _cell(value: object) -> str:
    simple = plain(value)
    if simple is None:
        return "NULL"
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
