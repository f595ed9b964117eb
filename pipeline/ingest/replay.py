"""The ingest of one snapshot: from its blobs to parts and a commit, by nothing but evidence.

Documents come first, then what earlier snapshots left held back for want of a document, then records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

from pipeline.errors import KernelhouseError
from pipeline.ingest import rows
from pipeline.ingest.catalog import Catalog
from pipeline.ingest.collector import Collector
from pipeline.ingest.intact import IntactBlobs
from pipeline.ingest.presence import Presence
from pipeline.ingest.run_intake import RunIntake
from pipeline.ingest.run_tables import TraceFile
from pipeline.ingest.state import HeldRow, State
from pipeline.manifests import BenchmarkProtocol, ExecutionEnvironment
from pipeline.normalize.adapter import Adapter, Document, Held, NormalizedDefinition, ReadRun, ReadWorkload
from pipeline.normalize.implementation import NormalizedSolution
from pipeline.normalize.operation import Project
from pipeline.normalize.workload import NormalizedWorkload, Operation
from pipeline.sources.hub import is_complete_view
from pipeline.sources.listing import Kind, ListedFile, Progress
from pipeline.store.layout import DataDirectory
from pipeline.store.parts import BlobRecords, Commit
from pipeline.store.snapshots import Snapshot
from pipeline.upstream.framing import Record, is_lfs_pointer
from pipeline.upstream.held import HeldBackError, Reason

BATCH_RECORDS = 2_000

RETRIED = (Reason.UNKNOWN_DEFINITION, Reason.UNKNOWN_SOLUTION, Reason.UNBOUND_AXIS, Reason.AXIS_OUT_OF_RANGE)
"""Reasons of records that another definition or solution can cure."""


class AccountingError(KernelhouseError):
    """Records or files went missing between reading and writing: a fault of this program."""


class Replay:
    """Ingests one snapshot on top of the state that the earlier ones left."""

    def __init__(
        self,
        snapshot: Snapshot,
        state: State,
        blobs: IntactBlobs,
        adapter: Adapter,
        data: DataDirectory | None = None,
    ) -> None:
        """Take over the state; without a data directory rows are counted and written nowhere."""
        self.snapshot = snapshot
        self.state = state
        self.blobs = blobs
        self.adapter = adapter
        self.collector = Collector(snapshot, state.keys, state.indexes, data)
        self.counts: Counter[str] = Counter()
        self.held = state.held(snapshot.scope)
        """What is held back of this trace set, kept up to date."""
        self.presence: Counter[str] = Counter()
        """Records withdrawn and reinstated, by event."""
        self.operations_changed: list[str] = []
        """Names of definitions that mean another operation than before."""
        self._presence = Presence(snapshot, state.snapshots, state.withdrawn(snapshot.scope), blobs, adapter)
        self._first_seen = state.first_seen(snapshot, Kind.SOLUTION)
        self._catalog = Catalog(self._load_operation)
        for earlier in state.snapshots:
            if earlier.scope == snapshot.scope:
                self._catalog.apply(earlier, state)
        self._catalog_changed = False
        self._intake = RunIntake(snapshot, adapter, self._catalog, state.ledger, self.collector, self)
        self._blob_records: dict[tuple[str, str], BlobRecords] = {}

    def run(self, progress: Progress) -> None:
        """Read everything that the snapshot brings.

        Raises:
            AccountingError: the counts do not add up.
        """
        try:
            self._run(progress)
        except BaseException as error:
            self.collector.abandon(error)
            raise

    def _run(self, progress: Progress) -> None:
        by_kind: dict[Kind, list[ListedFile]] = {kind: [] for kind in Kind}
        self._release_vanished()
        for file in self.snapshot.pull.files:
            if file.failure is not None:
                self._hold_file(file, Reason(file.failure.reason), file.failure.detail)
            elif not file.kind.is_fetched:
                self.counts["files_not_fetched"] += 1
                self._release_file(file.path)
            else:
                by_kind[file.kind].append(file)
        self._doubt(Kind.DEFINITION, self._read_definitions(by_kind[Kind.DEFINITION]))
        self._doubt(Kind.SOLUTION, self._read_solutions(by_kind[Kind.SOLUTION]))
        self._retry_solutions({file.path for file in self.snapshot.pull.files})
        self._retry_records()
        self._read_records([*by_kind[Kind.WORKLOAD], *by_kind[Kind.TRACE]], progress)
        changes = self._presence.rows()
        self.presence.update(row["event"] for row in changes)
        self.collector.extend("presence", changes)
        self.collector.add("snapshots", rows.snapshot_row(self.snapshot))
        self.collector.extend("source_files", rows.source_file_rows(self.snapshot))
        self._check()
        self.collector.add("ingests", self.accounting())

    def commit(self) -> Commit:
        """Finish the parts and return the commit that names them."""
        return Commit(
            snapshot_id=self.snapshot.snapshot_id,
            sequence=self.snapshot.sequence,
            accounting={name: value for name, value in self.accounting().items() if isinstance(value, int)},
            records=self._blob_records,
            parts=self.collector.close(),
        )

    def accounting(self) -> rows.Row:
        """Return the row of ``ingests``."""
        counted = (
            "files_read", "files_unchanged", "files_quarantined", "files_not_fetched", "records", "added",
            "already_known", "duplicates", "quarantined", "workload_records", "freed",
        )  # fmt: skip
        return {
            "sequence": self.snapshot.sequence,
            "snapshot_id": self.snapshot.snapshot_id,
            "files": len(self.snapshot.pull.files),
            **{name: self.counts[name] for name in counted},
        }

    # Documents

    def _read_definitions(self, files: Sequence[ListedFile]) -> dict[str, str]:
        """Take the definitions of the snapshot; return the file of each by name."""
        names: dict[str, str] = {}
        for file in files:
            blob = _sha256(file)
            name = self.state.definitions.get(blob)
            operation = None
            try:
                if name is None:
                    document = self._parse_definition(blob)
                    operation = document.value.operation
                    name = operation.name
                _refuse_second(Reason.DUPLICATE_DEFINITION, name, names)
            except HeldBackError as error:
                self._hold_file(file, error.reason, error.detail)
                continue
            if operation is not None:
                self.collector.add("operations", rows.operation_row(document.value, file.path, blob, self.snapshot))
                self.collector.note_drift(file.path, document.drift)
            names[name] = file.path
            self.counts["files_unchanged" if operation is None else "files_read"] += 1
            self.state.definitions[blob] = name
            self._bind_definition(name, blob, operation)
            self._release_file(file.path)
        return names

    def _bind_definition(self, name: str, blob: str, operation: Operation | None) -> None:
        before = self._catalog.operation(name) if self._catalog.definition(name) not in (None, blob) else None
        self._catalog_changed |= self._catalog.bind_definition(name, blob, operation)
        now = self._catalog.operation(name)
        if before is not None and now is not None and before.digest != now.digest:
            self.operations_changed.append(name)

    def _doubt(self, kind: Kind, names: Collection[str]) -> None:
        """While a document of the trace set is missing, go by those of this snapshot alone.

        The missing one may give an old name a new meaning; records that need it wait until it comes.
        """
        if any(row.kind == kind and row.is_missing_file for row in self.held.values()):
            self._catalog.trust_only(kind, names)

    def _parse_definition(self, blob: str) -> Document[NormalizedDefinition]:
        self._refuse_pointer(blob)
        return self.adapter.read_definition(self.blobs.read(blob), self._project(self.snapshot))

    def _load_operation(self, blob: str) -> Operation:
        return self._parse_definition(blob).value.operation

    def _read_solutions(self, files: Sequence[ListedFile]) -> dict[str, str]:
        """Take the solutions of the snapshot; return the file of each by name."""
        names: dict[str, str] = {}
        for file in files:
            blob = _sha256(file)
            known = self.state.solutions.get(blob)
            try:
                document = None if known else self._parse_solution(file.path, blob)
                name = known[0] if known else document.value.name if document else ""
                _refuse_second(Reason.DUPLICATE_SOLUTION, name, names)
            except HeldBackError as error:
                self._hold_file(file, error.reason, error.detail)
                continue
            names[name] = file.path
            self.counts["files_unchanged" if known else "files_read"] += 1
            self._take_solution(file.path, blob, document, self.snapshot.sequence)
        return names

    def _parse_solution(self, path: str, blob: str) -> Document[NormalizedSolution]:
        """Normalize a solution; it belongs to the revision at which this warehouse first saw its bytes."""
        self._refuse_pointer(blob)
        first = self._first_seen.get(blob, self.snapshot)
        tombstone = self.blobs.tombstone(blob)
        removed = tombstone.texts if tombstone else ()
        return self.adapter.read_solution(self.blobs.read(blob), path, self._project(first), self._catalog, removed)

    def _take_solution(
        self, path: str, blob: str, document: Document[NormalizedSolution] | None, sequence: int
    ) -> None:
        """Let the name of a solution mean its implementation, unless a later file of that name is known.

        Without a document the blob is known already.
        """
        if document is not None:
            solution, license_name = document.value, self.adapter.license
            row = rows.implementation_row(solution, path, blob, license_name, self.snapshot)
            self.collector.add("implementations", row)
            self.collector.extend("artifacts", rows.source_artifact_rows(solution, blob, license_name, self.snapshot))
            self.collector.note_drift(path, document.drift)
            self.state.solutions[blob] = (solution.name, solution.manifest.digest)
        self._catalog_changed |= self._catalog.bind_solution(*self.state.solutions[blob], sequence)
        self._release_file(path)

    def _retry_solutions(self, listed: set[str]) -> None:
        """Try the solutions of earlier snapshots again that wait for their definition."""
        for row in [row for row in self.held.values() if row.reason == Reason.INVALID_SOLUTION]:
            if row.source_line is not None or row.blob_sha256 is None or row.source_file in listed:
                continue
            try:
                document = self._parse_solution(row.source_file, row.blob_sha256)
            except HeldBackError:
                continue
            self._take_solution(row.source_file, row.blob_sha256, document, self.state.sequence(row.snapshot_id))

    def _refuse_pointer(self, blob: str) -> None:
        if is_lfs_pointer(self.blobs.path(blob)):
            raise HeldBackError(
                Reason.LFS_POINTER, "it is a Git LFS pointer, not the content; fetch the content (git lfs pull)"
            )

    # Records

    def _read_records(self, files: Sequence[ListedFile], progress: Progress) -> None:
        """Read the files of workloads, then those of traces; account for those that need not be read."""
        read_before = self.state.records(self.snapshot.scope)
        unread: dict[tuple[str, str], ListedFile] = {}
        repeated: list[ListedFile] = []
        for file in files:
            key = file.kind, _sha256(file)
            if key in unread or key in self._blob_records:
                repeated.append(file)
                self.counts["files_read"] += 1
            elif (before := read_before.get(key)) is not None:
                self._count_unchanged(file, key[1], before)
            elif is_lfs_pointer(self.blobs.path(key[1])):
                self._hold_file(file, Reason.LFS_POINTER, "it is a Git LFS pointer; fetch the content (git lfs pull)")
                continue
            else:
                unread[key] = file
                self.counts["files_read"] += 1
            self._release_file(file.path)
        traces = [file for file in unread.values() if file.kind is Kind.TRACE]
        workloads = [file for file in unread.values() if file.kind is not Kind.TRACE]
        for done, file in enumerate(workloads):
            progress("read", done, len(unread))
            self._read_workload_file(file)
        self._read_trace_files(traces, lambda done: progress("read", len(workloads) + done, len(unread)))
        for file in repeated:
            self._count_duplicates(file, self._blob_records[file.kind, _sha256(file)].records)

    def _read_trace_files(self, files: Sequence[ListedFile], progress: Callable[[int], None]) -> None:
        traces = [TraceFile(file.path, _sha256(file)) for file in files]

        def framed() -> Iterator[tuple[TraceFile, Iterable[Record]]]:
            for done, file in enumerate(traces):
                progress(done)
                yield file, self._frame(file.blob_sha256, file.path)
            progress(len(traces))

        self.counts += self._intake.read(framed())
        for file in traces:
            self.counts["records"] += file.records
            self.counts["duplicates"] += file.duplicates
            self._blob_records[Kind.TRACE, file.blob_sha256] = file.counted()

    def _frame(self, blob: str, path: str) -> Iterable[Record]:
        return self.blobs.restored(blob, self.adapter.frame(self.blobs.path(blob), path))

    def _read_workload_file(self, file: ListedFile) -> None:
        blob = _sha256(file)
        counted = TraceFile(file.path, blob)
        for batch in _batches(self._frame(blob, file.path)):
            counted.records += len(batch)
            for outcome in self.adapter.read_workloads(batch, self._catalog):
                if isinstance(outcome, Held):
                    counted.held.add(outcome.record.sha256)
                    self.hold_record(outcome, file.path, blob)
                else:
                    self._take_workload(outcome, file.path)
        self.counts["workload_records"] += counted.records
        self._blob_records[file.kind, blob] = counted.counted()

    def _count_duplicates(self, file: ListedFile, records: int) -> None:
        if file.kind is Kind.TRACE:
            self.counts["records"] += records
            self.counts["duplicates"] += records
        else:
            self.counts["workload_records"] += records

    def _count_unchanged(self, file: ListedFile, blob: str, counted: BlobRecords) -> None:
        """Account for a file read in an earlier ingest, without reading it again."""
        self._blob_records[file.kind, blob] = counted
        self.counts["files_unchanged"] += 1
        if file.kind is not Kind.TRACE:
            self.counts["workload_records"] += counted.records
            return
        held = sum((Kind.TRACE, sha256) in self.held for sha256 in counted.held)
        self.counts["records"] += counted.records
        self.counts["duplicates"] += counted.duplicates
        self.counts["quarantined"] += held
        self.counts["already_known"] += counted.records - counted.duplicates - held

    def add_surroundings(self, environment: ExecutionEnvironment, protocol: BenchmarkProtocol) -> None:
        """Add where and how a run was measured."""
        self.collector.add("environments", rows.environment_row(environment, self.snapshot))
        self.collector.add("protocols", rows.protocol_row(protocol, self.snapshot))

    def _add_run(self, read: ReadRun, path: str, blob: str, snapshot_id: str) -> None:
        """Add a single run; ``snapshot_id`` is where its record was first read."""
        add, snapshot = self.collector.add, self.snapshot
        self.add_workload(read.benchmark, read.workload)
        self.add_surroundings(read.environment, read.protocol)
        add("observations", rows.observation_row(read, path, blob, snapshot_id))
        if (log := rows.log_artifact_row(read, blob, self.adapter.license, snapshot)) is not None:
            add("artifacts", log)
        if read.rerun is not None:
            samples = rows.samples_artifact_row(read, read.rerun, blob, self.adapter.license, snapshot)
            if samples is not None:
                add("artifacts", samples)
        if self._intake.is_new_run(read.run.digest):
            add("runs", rows.run_row(read, snapshot))
            self.collector.extend("measurements", rows.measurement_rows(read))
            if read.rerun is not None:
                add("reruns", rows.rerun_row(read, read.rerun, snapshot))
        self.collector.note_drift(path, read.drift)

    def _take_workload(self, read: ReadWorkload, path: str) -> None:
        self._release((Kind.WORKLOAD, read.record.sha256))
        self.add_workload(read.benchmark, read.workload)
        self.collector.note_drift(path, read.drift)

    def add_workload(self, benchmark: str, workload: NormalizedWorkload) -> None:
        """Add a workload, with its tensors and what its inputs are."""
        if self.collector.add("workloads", rows.workload_row(workload, self.snapshot)):
            self.collector.extend("workload_tensors", rows.workload_tensor_rows(workload))
        self.collector.add("workload_inputs", rows.workload_inputs_row(benchmark, workload, self.snapshot))

    def _retry_records(self) -> None:
        """Try the records of earlier ingests again that another definition or solution may cure."""
        if not self._catalog_changed:
            return
        waiting = [row for row in self.held.values() if row.source_line is not None and row.reason in RETRIED]
        for row in waiting:
            record = Record(
                line=row.source_line or 0,
                offset=row.byte_offset or 0,
                size=row.size_bytes,
                sha256=row.raw_sha256 or "",
                raw=self.blobs.read(row.blob_sha256 or "", row.byte_offset or 0, row.size_bytes),
                from_document=row.from_document,
            )
            (restored,) = self.blobs.restored(row.blob_sha256 or "", [record])
            self._retry_record(row, restored)

    def _retry_record(self, row: HeldRow, record: Record) -> None:
        blob = row.blob_sha256 or ""
        outcome: ReadRun | ReadWorkload | Held
        if self.adapter.kind_of(row.source_file) is Kind.TRACE:
            (outcome,) = self.adapter.read_runs([record], self._catalog)
        else:
            (outcome,) = self.adapter.read_workloads([record], self._catalog)
        if isinstance(outcome, Held):
            self.hold_record(outcome, row.source_file, blob)
            return
        self.counts["freed"] += 1
        if isinstance(outcome, ReadWorkload):
            self._take_workload(outcome, row.source_file)
            return
        self._intake.free(record.sha256)
        self.release_runs([record.sha256])
        observed = self.state.ledger.implementations([record.sha256])
        if outcome.implementation_digest not in observed.get(record.sha256, ()):
            self._add_run(outcome, row.source_file, blob, row.snapshot_id)

    # Quarantine

    def hold_record(self, held: Held, path: str, blob: str) -> None:
        """Keep a record that cannot be taken."""
        record = held.record
        self._hold(
            HeldRow(
                scope=self.snapshot.scope,
                kind=self.adapter.kind_of(path),
                source_file=path,
                source_line=record.line,
                byte_offset=record.offset,
                size_bytes=record.size,
                raw_sha256=record.sha256,
                blob_sha256=blob,
                from_document=record.from_document,
                reason=held.reason,
                detail=held.detail,
                snapshot_id=self.snapshot.snapshot_id,
            )
        )

    def _hold_file(self, file: ListedFile, reason: Reason, detail: str) -> None:
        self.counts["files_quarantined"] += 1
        self._hold(
            HeldRow(
                scope=self.snapshot.scope,
                kind=file.kind,
                source_file=file.path,
                source_line=None,
                byte_offset=None,
                size_bytes=file.size_bytes,
                raw_sha256=file.sha256,
                blob_sha256=file.sha256 if file.fetched else None,
                from_document=False,
                reason=reason,
                detail=detail,
                snapshot_id=self.snapshot.snapshot_id,
            )
        )

    def _hold(self, row: HeldRow) -> None:
        known = self.held.get(row.identity)
        if known is None or known.content != row.content:
            self.held[row.identity] = row
            self.collector.add("quarantine", row.as_row() | {"sequence": self.snapshot.sequence})

    def release_runs(self, records: Iterable[str]) -> None:
        """Let go of those trace records, by their SHA-256, that were held back."""
        for sha256 in records:
            if (Kind.TRACE, sha256) in self.held:
                self._release((Kind.TRACE, sha256))

    def _release_file(self, path: str) -> None:
        self._release(("file", path))

    def _release_vanished(self) -> None:
        """Let go of files that never came where a complete view lists them no more."""
        if is_complete_view(self.snapshot.pull):
            listed = {file.path for file in self.snapshot.pull.files}
            for row in list(self.held.values()):
                if row.is_missing_file and row.source_file not in listed:
                    self._release(row.identity)

    def _release(self, identity: tuple[str, str | None]) -> None:
        row = self.held.pop(identity, None)
        if row is not None:
            self._catalog_changed |= row.is_missing_file
            self.collector.add(
                "releases",
                {
                    "scope": row.scope,
                    "kind": row.kind,
                    "source_file": row.source_file,
                    "source_line": row.source_line,
                    "raw_sha256": row.raw_sha256,
                    "snapshot_id": self.snapshot.snapshot_id,
                    "sequence": self.snapshot.sequence,
                },
            )

    # Accounting

    def _check(self) -> None:
        counts = self.counts
        outcomes = ("added", "already_known", "duplicates", "quarantined")
        if counts["records"] != sum(counts[name] for name in outcomes):
            raise AccountingError(
                f"records do not add up in pull {self.snapshot.sequence}: {dict(counts)}; report this"
            )
        files = ("files_read", "files_unchanged", "files_quarantined", "files_not_fetched")
        if len(self.snapshot.pull.files) != sum(counts[name] for name in files):
            raise AccountingError(f"files do not add up in pull {self.snapshot.sequence}: {dict(counts)}; report this")

    @staticmethod
    def _project(snapshot: Snapshot) -> Project:
        return Project(snapshot.pull.repository, snapshot.pull.revision)


def _sha256(file: ListedFile) -> str:
    if file.sha256 is None:
        raise AccountingError(f"{file.path} is listed as fetched but has no SHA-256; report this")
    return file.sha256


def _refuse_second(reason: Reason, name: str, names: dict[str, str]) -> None:
    if name in names:
        raise HeldBackError(reason, f"{name!r} is also defined by {names[name]}; that file counts")


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    iterator = iter(records)
    while batch := list(islice(iterator, BATCH_RECORDS)):
        yield batch
