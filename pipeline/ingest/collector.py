"""Rows gathered while a snapshot is ingested, and the parts made of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from pipeline.ingest.rows import Row
from pipeline.store.arrow import arrow_schema
from pipeline.store.layout import DataDirectory
from pipeline.store.ledger import DigestIndex
from pipeline.store.parts import Part, PartWriter
from pipeline.store.snapshots import Snapshot
from pipeline.store.tables import EVIDENCE, Table

_FLUSH_ROWS = 10_000

_MOST_WAITING = 4
"""Tables of rows that may wait for the thread that writes them."""


class Collector:
    """Rows by table, written to parts as they come; those of a table with known keys are kept once.

    A thread sorts, compresses and writes them in the order in which they are added, mostly outside of Python's lock.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        keys: dict[str, set[tuple[Any, ...]]],
        indexes: Mapping[str, DigestIndex],
        data: DataDirectory | None,
    ) -> None:
        """Gather the rows of a snapshot.

        Args:
            snapshot: what is ingested.
            keys: the keys that the parts of a table have already; they grow as rows are added.
            indexes: the same for tables of many rows whose key is one digest.
            data: where the parts are written; None: nowhere, rows are only counted.
        """
        self._snapshot = snapshot
        self._keys = keys | {name: set() for name in indexes}
        self._indexes = indexes
        self._data = data
        self._tables: dict[str, Table] = {table.name: table for table in EVIDENCE}
        self._rows: dict[str, list[Row]] = {name: [] for name in self._tables}
        self._writers: dict[str, PartWriter] = {}
        self._writing = ThreadPoolExecutor(max_workers=1)
        self._waiting: deque[Future[None]] = deque()
        self.added: Counter[str] = Counter()
        self.drift: Counter[tuple[str, str]] = Counter()

    def add(self, table: str, row: Row) -> bool:
        """Add a row; tell whether it is new."""
        if table in self._keys:
            key = tuple(row[name] for name in self._key(table))
            self._look_up(table, key[:1])
            if not self._is_new(table, key):
                return False
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

    def add_table(self, table: str, rows: pa.Table) -> None:
        """Add rows in columns, of which the first of a key counts; other columns are left out."""
        if table in self._keys and rows.num_rows:
            columns = [rows.column(name).to_pylist() for name in self._key(table)]
            self._look_up(table, columns[0])
            rows = rows.filter(pa.array([self._is_new(table, key) for key in zip(*columns, strict=True)], pa.bool_()))
        if rows.num_rows:
            self._flush(table)
            self.added[table] += rows.num_rows
            self._write(table, rows.select(arrow_schema(self._tables[table]).names))

    def note_drift(self, path: str, counts: Counter[str]) -> None:
        """Count unknown fields and legacy forms of a file."""
        for place, count in counts.items():
            self.drift[path, place] += count

    def close(self) -> tuple[Part, ...]:
        """Finish one part for each table that has rows."""
        self.extend(
            "drift",
            (
                {"source_file": path, "path": place, "occurrences": count}
                for (path, place), count in sorted(self.drift.items())
            ),
        )
        try:
            for name in self._tables:
                self._flush(name)
            await_oldest(self._waiting, most=0)
            self._writing.shutdown()
            return tuple(self._writers[name].close() for name in self._tables if name in self._writers)
        except BaseException as error:
            self.abandon(error)
            raise

    def abandon(self, error: BaseException) -> None:
        """Remove what is written so far."""
        self._writing.shutdown(cancel_futures=True)
        for writer in self._writers.values():
            writer.abandon(error)

    def _key(self, table: str) -> tuple[str, ...]:
        declared = self._tables[table]
        return declared.part_key or declared.key

    def _look_up(self, table: str, digests: Sequence[str]) -> None:
        """Learn which of some digests the parts of an indexed table have."""
        if table in self._indexes:
            self._keys[table].update((digest,) for digest in self._indexes[table].known(digests))

    def _is_new(self, table: str, key: tuple[Any, ...]) -> bool:
        known = self._keys[table]
        if key in known:
            return False
        known.add(key)
        return True

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if rows:
            self._write(table, pa.Table.from_pylist(rows, schema=arrow_schema(self._tables[table])))
            rows.clear()

    def _write(self, table: str, rows: pa.Table) -> None:
        if self._data is not None:
            if table not in self._writers:
                self._writers[table] = PartWriter(self._data, self._tables[table], self._snapshot)
            self._waiting.append(self._writing.submit(self._writers[table].add, rows))
            await_oldest(self._waiting, most=_MOST_WAITING)


def await_oldest(waiting: deque[Future[None]], *, most: int) -> None:
    """Wait until no more than so many calls wait; raise what went wrong with one that is done."""
    while len(waiting) > most:
        waiting.popleft().result()
