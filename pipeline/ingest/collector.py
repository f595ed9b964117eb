"""Rows gathered while a snapshot is ingested, and the parts made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pipeline.ingest.rows import Row
from pipeline.store.arrow import arrow_schema
from pipeline.store.layout import DataDirectory
from pipeline.store.parts import Part, write_part
from pipeline.store.snapshots import Snapshot
from pipeline.store.tables import EVIDENCE, Table

_FLUSH_ROWS = 10_000


class Collector:
    """Rows by table; those of a table with known keys are kept once."""

    def __init__(self, keys: dict[str, set[tuple[Any, ...]]]) -> None:
        """Take over the keys that the parts have already; they grow as rows are added."""
        self._keys = keys
        self._tables: dict[str, Table] = {table.name: table for table in EVIDENCE}
        self._rows: dict[str, list[Row]] = {name: [] for name in self._tables}
        self._batches: dict[str, list[pa.Table]] = {name: [] for name in self._tables}
        self.added: Counter[str] = Counter()
        self.drift: Counter[tuple[str, str]] = Counter()

    def add(self, table: str, row: Row) -> bool:
        """Add a row; tell whether it is new."""
        known = self._keys.get(table)
        if known is not None:
            declared = self._tables[table]
            key = tuple(row[name] for name in declared.part_key or declared.key)
            if key in known:
                return False
            known.add(key)
        rows = self._rows[table]
        rows.append(row)
        self.added[table] += 1
        if len(rows) >= _FLUSH_ROWS:
            self._flush(table)
        return True

    def extend(self, table: str, rows: Iterable[Row]) -> None:
        """Add several rows."""
        for row in rows:
            self.add(table, row)

    def note_drift(self, path: str, counts: Counter[str]) -> None:
        """Count unknown fields and legacy forms of a file."""
        for place, count in counts.items():
            self.drift[path, place] += count

    def write(self, data: DataDirectory, snapshot: Snapshot) -> tuple[Part, ...]:
        """Write one part for each table that has rows."""
        self.extend(
            "drift",
            (
                {"source_file": path, "path": place, "occurrences": count}
                for (path, place), count in sorted(self.drift.items())
            ),
        )
        parts = []
        for name, table in self._tables.items():
            self._flush(name)
            if self._batches[name]:
                parts.append(write_part(data, table, pa.concat_tables(self._batches.pop(name)), snapshot))
        return tuple(parts)

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if rows:
            self._batches[table].append(pa.Table.from_pylist(rows, schema=arrow_schema(self._tables[table])))
            rows.clear()
