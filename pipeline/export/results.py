"""Results of SQL as CSV, JSON and Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import UsageError
from pipeline.export.files import exporting
from pipeline.query.exact import for_arrow, projection
from pipeline.query.plain import document, plain
from pipeline.query.sql import Result, bind, execute, interruptible, unique

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

_BATCH = 65_536
_TO_QUOTE = re.compile(r'[",\r\n]')


class Stream(Protocol):
    """What text is written to."""

    def write(self, text: str, /) -> int:
        """Write text."""


def write_csv(result: Result, stream: Stream) -> int:
    """Write a header and the rows as CSV, return the number of rows.

    Null is nothing between the commas and the empty text ``""``, as DuckDB and Postgres read and write it; lists and
    structs are JSON text.
    """
    stream.write(_line(column.name for column in result.columns))
    rows = 0
    for row in result.rows:
        stream.write(_line(row))
        rows += 1
    return rows


def write_json(result: Result, stream: Stream) -> int:
    """Write ``{schema_version, columns, rows}`` with one object a row; return the number of rows."""
    names = [column.name for column in result.columns]
    # The rows come last, so the last null of the document stands for them.
    head, _, tail = document(columns=result.columns, rows=[None]).rpartition("null")
    rows = 0
    for row in result.rows:
        text = json.dumps(plain(dict(zip(names, row, strict=True))), indent=2, allow_nan=False)
        stream.write((",\n    " if rows else head) + text.replace("\n", "\n    "))
        rows += 1
    stream.write((tail if rows else document(columns=result.columns, rows=[])) + "\n")
    return rows


FORMATS: dict[str, Callable[[Result, Stream], int]] = {"csv": write_csv, "json": write_json}


def save(connection: DuckDBPyConnection, statement: Statement, format_name: str, target: Path) -> tuple[int, int]:
    """Run a statement, write its result to ``target`` and return rows and bytes.

    The connection is cut off from files, so the rows leave it as Python values or Arrow batches.
    UsageError where the statement fails or the folder does not exist.
    """
    with exporting(target) as aside:
        if format_name == "parquet":
            rows = interruptible(connection, lambda: _write_parquet(connection, statement, aside))
        else:
            with aside.open("w", encoding="utf-8", newline="") as stream:
                rows = FORMATS[format_name](execute(connection, statement), stream)
        return rows, aside.stat().st_size


def _write_parquet(connection: DuckDBPyConnection, statement: Statement, path: Path) -> int:
    rows = 0
    relation = bind(connection, statement)
    casts = projection(relation.types, [for_arrow(kind) for kind in relation.types])
    with relation.project(casts).to_arrow_reader(_BATCH) as reader:
        named = zip(reader.schema, unique(relation.columns), strict=True)
        schema = pa.schema([field.with_name(name) for field, name in named])
        try:
            with pq.ParquetWriter(path, schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                    rows += batch.num_rows
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise UsageError(f"Parquet cannot hold this result: {error}; cast the column in the query") from error
    return rows


def _line(values: Iterable[object]) -> str:
    return ",".join(map(_field, values)) + "\n"


def _field(value: object) -> str:
    # The csv module writes null and the empty text alike before Python 3.12.
    if value is None:
        return ""
    simple = plain(value)
    text = simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
    if text and not _TO_QUOTE.search(text):
        return text
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
