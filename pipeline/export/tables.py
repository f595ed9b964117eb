"""Tables of the warehouse as Parquet files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import __version__
from pipeline.errors import UsageError
from pipeline.export.files import exporting
from pipeline.query.find import near
from pipeline.query.rows import values
from pipeline.store.arrow import arrow_schema
from pipeline.store.tables import TABLES, table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BATCH = 65_536


@dataclass(frozen=True)
class Export:
    """What was written: rows and bytes of a table, and the file."""

    table: str
    file: str
    rows: int
    bytes: int


def export_table(connection: DuckDBPyConnection, name: str, target: Path) -> Export:
    """Write a table as Parquet (zstd), sorted by its key, column comments as field metadata.

    The metadata of the file names the version of kernelhouse, the snapshots behind it and everything that the
    build noted about itself (build key, policy). UsageError for an unknown table or a folder that does not exist.
    """
    names = [declared.name for declared in TABLES]
    if name not in names:
        close = near(name, names)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"
        raise UsageError(f'there is no table "{name}": {hint}')
    declared = table(name)
    schema = arrow_schema(declared, part=False)
    schema = schema.with_metadata({**(schema.metadata or {}), **_provenance(connection)})
    columns = ", ".join(f'"{column.name}"' for column in declared.columns)
    key = ", ".join(f'"{column}"' for column in declared.key)
    with exporting(target) as aside:
        rows = 0
        with (
            connection.sql(f"SELECT {columns} FROM {name} ORDER BY {key}").to_arrow_reader(_BATCH) as reader,
            pq.ParquetWriter(aside, schema, compression="zstd") as writer,
        ):
            for batch in reader:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
                rows += batch.num_rows
        size = aside.stat().st_size
    return Export(name, str(target), rows, size)


def _provenance(connection: DuckDBPyConnection) -> dict[str, str]:
    snapshots = values(connection, "SELECT snapshot_id FROM snapshots ORDER BY sequence")
    meta: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta ORDER BY key").fetchall())
    return {**meta, "kernelhouse_version": __version__, "snapshot_ids": " ".join(snapshots)}
