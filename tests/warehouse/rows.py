"""Parts, warehouses and single policies from a few rows: written for real, built for real."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.store.arrow import arrow_schema
from pipeline.store.database import declaration, policy_views, warehouse_folder
from pipeline.store.tables import TABLES, Type, table

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]

_FILLER: dict[Type, Any] = {
    Type.TEXT: "-",
    Type.BIGINT: 1,
    Type.DOUBLE: 1.0,
    Type.BOOLEAN: False,
    Type.TIMESTAMP: dt.datetime(2026, 1, 1),  # noqa: DTZ001 - the tables hold UTC without a zone
    Type.TEXTS: [],
    Type.BIGINTS: [],
}

_JSON = ("axes", "manifest")

# What a run refers to: table, key there, columns that the run knows.
_REFERENCES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("observations", "run_digest", ()),
    ("implementations", "implementation_digest", ()),
    ("operations", "operation_digest", ()),
    ("workloads", "workload_digest", ("operation_digest",)),
    ("protocols", "protocol_digest", ()),
    ("environments", "environment_digest", ("hardware",)),
)


def arrow(name: str, rows: Sequence[Row], *, part: bool) -> pa.Table:
    """Return rows as Arrow; a column that a row leaves out is null, or a filler where it may not be."""
    declared = table(name)
    columns = declared.part_columns if part else declared.columns
    assert {key for row in rows for key in row} <= {column.name for column in columns}
    fillers = {
        column.name: None if column.nullable else "{}" if column.name in _JSON else _FILLER[column.type]
        for column in columns
    }
    values = [fillers | dict(row) for row in rows]
    return pa.Table.from_pylist(values, schema=arrow_schema(declared, part=part))


def write_part(folder: Path, name: str, rows: Sequence[Row]) -> Path:
    """Write rows of an evidence table as one Parquet part."""
    path = folder / f"{name}.parquet"
    pq.write_table(arrow(name, rows, part=True), path)
    return path


def completed(rows: Rows) -> dict[str, list[Row]]:
    """Add what the runs refer to where the rows do not hold it."""
    tables: dict[str, list[Row]] = {name: list(given) for name, given in rows.items()}
    tables.setdefault("snapshots", [{}])
    for name, key, columns in _REFERENCES:
        present = tables.setdefault(name, [])
        known = {row.get(key) for row in present}
        wanted = {
            run.get(key, "-"): {column: run[column] for column in (key, *columns) if column in run}
            for run in tables.get("runs", ())
        }
        present += [row for digest, row in wanted.items() if digest not in known]
    return tables


class Bench:
    """One policy at a time: its answer to given rows of the tables that it reads, in memory."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET VARIABLE warehouse = '{warehouse_folder()}'")
        for declared in TABLES:
            for statement in declaration(declared):
                self._connection.execute(statement)
            columns = ", ".join(f'"{column.name}"' for column in declared.part_columns)
            self._connection.execute(f"CREATE VIEW parts_{declared.name} AS SELECT {columns} FROM {declared.name}")
        for name, path in policy_views().items():
            self._connection.execute(f"CREATE VIEW {name} AS {path.read_text(encoding='utf-8')}")

    def answer(self, name: str, rows: Rows) -> list[dict[str, Any]]:
        """Return the rows that ``warehouse/NN_<name>.sql`` makes of these."""
        self._connection.execute("BEGIN")
        try:
            for each, given in rows.items():
                self._connection.register("given", arrow(each, given, part=False))
                self._connection.execute(f"INSERT INTO {each} BY NAME FROM given")
            return self._policy(name).to_arrow_table().to_pylist()
        finally:
            self._connection.execute("ROLLBACK")

    def columns(self, name: str) -> list[str]:
        """Return the columns that ``warehouse/NN_<name>.sql`` makes."""
        return self._policy(name).columns

    def _policy(self, name: str) -> duckdb.DuckDBPyRelation:
        (policy,) = warehouse_folder().glob(f"[0-9][0-9]_{name}.sql")
        return self._connection.sql(policy.read_text(encoding="utf-8"))

    def close(self) -> None:
        self._connection.close()
