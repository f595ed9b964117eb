"""The trace records of one snapshot: from files to rows, in large batches.

Batches reach over the ends of files. While one is read (in Python), those before it are worked out, taken, sorted and
written in other threads, a step each, mostly by code that leaves Python's lock alone. Batches go through every step one
after the other, in order, so the same files always make the same parts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest import rows, run_tables
from pipeline.ingest.catalog import Catalog
from pipeline.ingest.collector import Collector, await_oldest
from pipeline.ingest.memory import collecting_by_hand, keeping_freed, switching_often
from pipeline.ingest.run_tables import PLACE, Placed, TraceFile
from pipeline.manifests import BenchmarkProtocol, ExecutionEnvironment
from pipeline.normalize.adapter import Adapter, Held, ReadRun, RunBatch, RunReader
from pipeline.normalize.workload import NormalizedWorkload
from pipeline.store.ledger import Ledger
from pipeline.store.snapshots import Snapshot
from pipeline.upstream.framing import Record

BATCH_RECORDS = 16_384
BATCH_BYTES = 32 * 2**20

_MOST_WAITING = 3
"""Batches that may be worked out and taken while the next one is read."""

_BATCHES_A_COLLECTION = 16
"""After so many, what reference cycles there are is looked for."""


class Book(Protocol):
    """Told what becomes of records, in their order."""

    def hold_record(self, held: Held, path: str, blob: str) -> None:
        """Keep a record that cannot be taken."""
        ...

    def release_runs(self, records: Iterable[str]) -> None:
        """Let go of those records, by their SHA-256, that were held back."""
        ...

    def add_workload(self, benchmark: str, workload: NormalizedWorkload) -> None:
        """Add the workload of a run."""
        ...

    def add_surroundings(self, environment: ExecutionEnvironment, protocol: BenchmarkProtocol) -> None:
        """Add where and how a run was measured."""
        ...


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records that are new to the warehouse, as far as they are read."""

    placed: list[Placed]
    columns: RunBatch
    others: list[tuple[int, ReadRun | Held]]
    """Those that do not fit columns, with their places."""
    observed: dict[str, set[str]]
    """Implementations with which their records were observed by other trace sets."""


class RunIntake:
    """Takes the trace records of one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        adapter: Adapter,
        catalog: Catalog,
        ledger: Ledger,
        collector: Collector,
        book: Book,
    ) -> None:
        self._snapshot = snapshot
        self._adapter = adapter
        self._catalog = catalog
        self._ledger = ledger
        self._collector = collector
        self._book = book
        self._seen_records: set[bytes] = set()
        self._seen_runs: set[bytes] = set()
        self._seen_workloads: set[int] = set()
        self._seen_environments: set[str] = set()
        self._freed: set[str] = set()
        self._known = 0
        self._counts: Counter[str] = Counter()

    def free(self, record_sha256: str) -> None:
        """Know a record from now on: it was let in before any file was read."""
        self._freed.add(record_sha256)

    def is_new_run(self, run_digest: str) -> bool:
        """Tell, once, that a run is in no part yet."""
        (new,) = self._new_runs([run_digest])
        return new

    def read(self, files: Iterable[tuple[TraceFile, Iterable[Record]]]) -> Counter[str]:
        """Take the records of files; return how many were added, already known, duplicates and quarantined."""
        reader = self._adapter.columns(self._catalog)
        with (
            keeping_freed(),
            switching_often(),
            collecting_by_hand() as collect,
            ThreadPoolExecutor(max_workers=1) as works_out,
            ThreadPoolExecutor(max_workers=1) as takes,
        ):
            taking: deque[Future[None]] = deque()
            for number, waiting in enumerate(self._batches(files), 1):
                batch = self._read_batch(waiting, reader)
                taking.append(takes.submit(self._take, batch, works_out.submit(batch.columns.runs)))
                await_oldest(taking, most=_MOST_WAITING)
                if number % _BATCHES_A_COLLECTION == 0:
                    collect()
            await_oldest(taking, most=0)
        return self._counts + Counter(already_known=self._known)

    def _batches(self, files: Iterable[tuple[TraceFile, Iterable[Record]]]) -> Iterator[list[Placed]]:
        waiting: list[Placed] = []
        size = 0
        for file, records in files:
            for record in records:
                waiting.append(Placed(record, file))
                size += record.size
                if len(waiting) >= BATCH_RECORDS or size >= BATCH_BYTES:
                    yield waiting
                    waiting, size = [], 0
        if waiting:
            yield waiting

    def _read_batch(self, waiting: list[Placed], reader: RunReader) -> _Batch:
        """Leave out what is known or repeated and read the rest: all of it that takes Python's lock."""
        observed = self._ledger.implementations([one.record.sha256 for one in waiting])
        seen, ever, freed = self._seen_records, self._catalog.ever, self._freed
        placed = []
        for one in waiting:
            record, file = one
            file.records += 1
            key = _key(record.sha256)
            if key in seen:
                file.duplicates += 1
                continue
            seen.add(key)
            if (freed or observed) and (record.sha256 in freed or not ever.isdisjoint(observed.get(record.sha256, ()))):
                self._known += 1
            else:
                placed.append(one)
        columns = reader.read([one.record for one in placed])
        others = self._adapter.read_runs([placed[place].record for place in columns.rest], self._catalog)
        return _Batch(placed, columns, list(zip(columns.rest, others, strict=True)), observed)

    def _take(self, batch: _Batch, working_out: Future[pa.Table]) -> None:
        """Add the rows of a batch."""
        columns, placed, observed = batch.columns, batch.placed, batch.observed
        runs = working_out.result()
        if observed:
            # Another trace set may have brought the same record and the same code: the observation is there already.
            pairs = zip(runs[PLACE].to_pylist(), runs["implementation_digest"].to_pylist(), strict=True)
            new = [digest not in observed.get(placed[place].record.sha256, ()) for place, digest in pairs]
            runs = runs.filter(pa.array(new, pa.bool_()))
        held = set()
        others: list[tuple[int, ReadRun]] = []
        for place, outcome in batch.others:
            record, file = placed[place]
            if isinstance(outcome, Held):
                held.add(place)
                file.held.add(record.sha256)
                self._book.hold_record(outcome, file.path, file.blob_sha256)
            elif outcome.implementation_digest not in observed.get(record.sha256, ()):
                others.append((place, outcome))
                self._collector.note_drift(file.path, outcome.drift)
        self._book.release_runs(one.record.sha256 for place, one in enumerate(placed) if place not in held)
        added = runs.num_rows + len(others)
        self._counts.update(quarantined=len(held), added=added, already_known=len(placed) - len(held) - added)
        self._add_shared(runs, columns, others)
        self._add_rows(runs, [placed[place] for place in runs[PLACE].to_pylist()], batch, others)

    def _add_shared(self, runs: pa.Table, columns: RunBatch, others: list[tuple[int, ReadRun]]) -> None:
        """Add what runs share, in the order of the first record with it, of which it has its name."""
        workloads = [(place, read.benchmark, read.workload) for place, read in others]
        surroundings = [(place, read.environment, read.protocol) for place, read in others]
        for place, number in _firsts(runs, "workload"):
            shared = columns.workloads[number]
            if shared.number not in self._seen_workloads:
                self._seen_workloads.add(shared.number)
                workloads.append((place, shared.benchmark, shared.workload))
        for place, number in _firsts(runs, "environment"):
            environment = columns.environments[number]
            if columns.protocol is not None and environment.digest not in self._seen_environments:
                self._seen_environments.add(environment.digest)
                surroundings.append((place, environment, columns.protocol))
        for _, benchmark, workload in sorted(workloads, key=_place):
            self._book.add_workload(benchmark, workload)
        for _, environment, protocol in sorted(surroundings, key=_place):
            self._book.add_surroundings(environment, protocol)

    def _add_rows(self, runs: pa.Table, placed: list[Placed], batch: _Batch, others: list[tuple[int, ReadRun]]) -> None:
        snapshot, license_name, collector = self._snapshot, self._adapter.license, self._collector
        observed = [
            (place, rows.observation_row(read, *_origin(batch.placed[place]), snapshot.snapshot_id))
            for place, read in others
        ]
        made = [(place, rows.run_row(read, snapshot)) for place, read in others]
        measured = [(place, row) for place, read in others for row in rows.measurement_rows(read)]
        logged = [
            (place, row)
            for place, read in others
            if (row := rows.log_artifact_row(read, batch.placed[place].file.blob_sha256, license_name, snapshot))
        ]
        collector.add_table(
            "observations", _together("observations", run_tables.observations(runs, placed, snapshot), observed)
        )
        logs = _together("artifacts", run_tables.log_artifacts(runs, placed, license_name, snapshot), logged)
        collector.add_table("artifacts", logs.sort_by(PLACE))  # a log is where the first record with it lies
        table = _together("runs", run_tables.run_rows(runs, snapshot), made)
        measurements = _together("measurements", run_tables.measurements(runs), measured)
        order = pc.sort_indices(table[PLACE])  # of records of one run, the first names it
        new = pa.array(self._new_runs(table["run_digest"].take(order).to_pylist()), pa.bool_())
        if not pc.all(new).as_py():
            table = table.filter(new.take(pc.sort_indices(order)))
            measurements = measurements.filter(pc.is_in(measurements[PLACE], table[PLACE]))
        kept = set(table["run_digest"].to_pylist()) if any(read.rerun for _, read in others) else set()
        for place, read in others:
            if read.rerun is not None:
                blob = batch.placed[place].file.blob_sha256
                if samples := rows.samples_artifact_row(read, read.rerun, blob, license_name, snapshot):
                    collector.add("artifacts", samples)
                if read.run.digest in kept:
                    collector.add("reruns", rows.rerun_row(read, read.rerun, snapshot))
        collector.add_table("runs", table)
        collector.add_table("measurements", measurements)

    def _new_runs(self, digests: Sequence[str]) -> list[bool]:
        """Tell, once, of each run whether it is in no part yet."""
        seen = self._seen_runs
        seen.update(map(_key, self._ledger.known_runs(digests)))
        new = []
        for digest in digests:
            before = len(seen)
            seen.add(_key(digest))
            new.append(len(seen) > before)
        return new


def _key(digest: str) -> bytes:
    """Return a digest in the form that takes the least memory."""
    return bytes.fromhex(digest.removeprefix("sha256:"))


def _firsts(runs: pa.Table, column: str) -> Iterator[tuple[int, int]]:
    """Yield each value of a column after the first place that has it."""
    first = runs.select([PLACE, column]).group_by(column).aggregate([(PLACE, "min")])
    yield from zip(first[f"{PLACE}_min"].to_pylist(), first[column].to_pylist(), strict=True)


def _place(placed: tuple[int, object, object]) -> int:
    return placed[0]


def _origin(placed: Placed) -> tuple[str, str]:
    return placed.file.path, placed.file.blob_sha256


def _together(name: str, columns: pa.Table, others: list[tuple[int, rows.Row]]) -> pa.Table:
    """Return rows from columns and, after them, rows made one by one."""
    if not others:
        return columns
    rest = run_tables.from_rows(name, others)
    return pa.concat_tables([columns.cast(rest.schema), rest])
