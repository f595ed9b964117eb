"""A result of SQL as a table."""

from __future__ import annotations

import json

from pipeline.errors import UsageError
from pipeline.query.plain import plain
from pipeline.query.sql import Result
from pipeline.render.screen import Screen

MOST_CHARACTERS = 100_000_000
"""In the cells of a table: beyond, its text would take gigabytes of memory."""


def render(screen: Screen, result: Result) -> int:
    """Write the result as a table, numbers flush right, and return its number of rows.

    Its columns are as wide as their widest value, so all of it is kept until then: UsageError where it is too long.
    """
    if [column.name for column in result.columns] == _PLAN:
        plans = [str(plan) for _, plan in result.rows]
        screen.verbatim("\n".join(plans).removesuffix("\n"))
        return len(plans)
    rows, characters = [], 0
    for row in result.rows:
        cells = [_cell(value) for value in row]
        characters += sum(map(len, cells))
        if characters > MOST_CHARACTERS:
            raise UsageError("the result is too long for a table: add a LIMIT, or --format csv")
        rows.append(cells)
    numeric = [column.name for column in result.columns if column.type.startswith(_NUMERIC)]
    screen.table([column.name for column in result.columns], rows, right=numeric, indent="", whole=True)
    return len(rows)


_PLAN = ["explain_key", "explain_value"]
"""The columns of EXPLAIN, whose value is a drawing."""

_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")


def _cell(value: object) -> str:
    simple = plain(value)
    if simple is None:
        return "NULL"
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
