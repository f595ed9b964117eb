"""From runs read in columns to rows of the declared tables, column by column what ``rows`` makes one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.rows import LATENCY, LOG_ARTIFACT, Row
from pipeline.store.arrow import arrow_schema
from pipeline.store.parts import BlobRecords
from pipeline.store.snapshots import Snapshot
from pipeline.store.tables import table
from pipeline.upstream.framing import Record

PLACE = "place"
"""Column, in front of those that are declared: the place in the batch of the record that a row comes from."""


@dataclass(slots=True)
class TraceFile:
    """A file of trace records, and what it turns out to hold."""

    path: str
    blob_sha256: str
    records: int = 0
    duplicates: int = 0
    held: set[str] = field(default_factory=set)
    """SHA-256 of the records that are held back."""

    def counted(self) -> BlobRecords:
        """Return what a commit keeps of it."""
        return BlobRecords(self.records, self.duplicates, tuple(sorted(self.held)))


class Placed(NamedTuple):
    """A record and the file that it lies in."""

    record: Record
    file: TraceFile


def observations(runs: pa.Table, placed: Sequence[Placed], snapshot: Snapshot) -> pa.Table:
    """Return the rows of ``observations``."""
    records = [one.record for one in placed]
    return _rows(
        "observations",
        runs,
        observation_sha256=[record.sha256 for record in records],
        snapshot_id=snapshot.snapshot_id,
        blob_sha256=[one.file.blob_sha256 for one in placed],
        source_file=[one.file.path for one in placed],
        source_line=[record.line for record in records],
        byte_offset=[record.offset for record in records],
        size_bytes=[record.size for record in records],
        legacy_forms=[[]] * len(records),
    )


def run_rows(runs: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Return the rows of ``runs``."""
    return _rows("runs", runs, ingested_at=snapshot.fetched_at, snapshot_id=snapshot.snapshot_id)


def measurements(runs: pa.Table) -> pa.Table:
    """Return the rows of ``measurements``: the primary latency of each run that has one."""
    timed = runs.filter(pc.is_valid(runs["latency_ns"]))
    return _rows(
        "measurements",
        timed,
        **LATENCY,
        statistic=timed["primary_statistic"],
        value=timed["latency_ns"],
        sample_count=None,
    )


def log_artifacts(runs: pa.Table, placed: Sequence[Placed], license_name: str, snapshot: Snapshot) -> pa.Table:
    """Return the rows of ``artifacts`` for the logs of the runs that have one."""
    logged = pc.is_valid(runs["log_digest"])
    of_logged = [one for one, has_log in zip(placed, logged.to_pylist(), strict=True) if has_log]
    runs = runs.filter(logged)
    return _rows(
        "artifacts",
        runs,
        **LOG_ARTIFACT,
        digest=runs["log_digest"],
        size_bytes=runs["log_size_bytes"],
        license=license_name,
        blob_sha256=[one.file.blob_sha256 for one in of_logged],
        byte_offset=[one.record.offset for one in of_logged],
        snapshot_id=snapshot.snapshot_id,
    )


def from_rows(name: str, rows: Sequence[tuple[int, Row]]) -> pa.Table:
    """Return rows that were made one by one, each with its place, in the same form."""
    return pa.Table.from_pylist([{PLACE: place} | row for place, row in rows], schema=_schema(name))


def _rows(name: str, runs: pa.Table, **given: Any) -> pa.Table:
    """Return the rows of a table: columns from what is given (a value for all rows, or one each), else of the runs.

    Columns with few values stay dictionaries until they are written.
    """
    columns: list[Any] = [runs[PLACE]]
    schema = arrow_schema(table(name))
    for declared in schema:
        value = given[declared.name] if declared.name in given else runs[declared.name]
        if isinstance(value, pa.ChunkedArray):
            columns.append(value if pa.types.is_dictionary(value.type) else value.cast(declared.type))
        elif isinstance(value, list):
            columns.append(pa.array(value, declared.type))
        else:
            columns.append(pa.repeat(pa.scalar(value, declared.type), runs.num_rows))
    return pa.table(columns, names=[PLACE, *schema.names])


@cache
def _schema(name: str) -> pa.Schema:
    return pa.schema([pa.field(PLACE, pa.int32(), nullable=False), *arrow_schema(table(name))])
