"""Declared tables as Arrow schemas: the contract of the Parquet parts."""

from __future__ import annotations

import pyarrow as pa

from pipeline.store.tables import Table, Type

_ARROW: dict[Type, pa.DataType] = {
    Type.TEXT: pa.string(),
    Type.BIGINT: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us"),
    Type.TEXTS: pa.list_(pa.string()),
    Type.BIGINTS: pa.list_(pa.int64()),
}


def arrow_schema(table: Table, *, part: bool = True) -> pa.Schema:
    """Return the Arrow schema of a table: of its parts, or with its derived columns of the database."""
    columns = table.part_columns if part else table.columns
    return pa.schema(
        [pa.field(c.name, _ARROW[c.type], nullable=c.nullable, metadata={"comment": c.comment}) for c in columns],
        metadata={"table": table.name, "comment": table.comment},
    )
