"""FlashInfer-Bench trace sets: the adapter that reads them record by record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pipeline.errors import ManifestError
from pipeline.manifests import ExecutionEnvironment, canonical_text, sha256_of
from pipeline.manifests.documents import explain
from pipeline.manifests.keys import comparison_key, metric_key
from pipeline.normalize.adapter import Catalog, Document, Held, NormalizedDefinition, ReadRun, ReadWorkload
from pipeline.normalize.environment import normalize_environment
from pipeline.normalize.implementation import LICENSE, NormalizedSolution, normalize_implementation
from pipeline.normalize.operation import Project, normalize_operation
from pipeline.normalize.protocol import FLASHINFER_BENCH_PROTOCOL
from pipeline.normalize.run import SOURCE, finite, normalize_run, read_outcome
from pipeline.normalize.run_columns import ColumnReader
from pipeline.normalize.workload import NormalizedWorkload, Operation, check_axes
from pipeline.sources.listing import Kind
from pipeline.upstream import documents as upstream
from pipeline.upstream.decode import Decoded, decode
from pipeline.upstream.framing import Record, RemovedText, frame
from pipeline.upstream.held import HeldBackError, Reason

LOG_POINTER = "/evaluation/log"
"""Where a trace keeps its log."""

_KINDS = {
    "definitions": (Kind.DEFINITION, (".json",)),
    "solutions": (Kind.SOLUTION, (".json",)),
    "workloads": (Kind.WORKLOAD, (".jsonl", ".json")),
    "traces": (Kind.TRACE, (".jsonl", ".json")),
}
_SOLUTION_DEPTH = 5
_TRACE_DEPTH = 4
_CACHE_SIZE = 20_000

T = TypeVar("T")


class FlashInferBench:
    """Reads the layout and the documents of FlashInfer-Bench."""

    name = SOURCE
    license = LICENSE

    def __init__(self) -> None:
        self._environments: dict[tuple[Any, ...], ExecutionEnvironment] = {}
        self._workloads: dict[tuple[Operation, str], NormalizedWorkload] = {}

    def kind_of(self, path: str) -> Kind:
        """Tell what a file is: by its top folder and its extension."""
        top, _, rest = path.partition("/")
        if top == "blob":
            return Kind.TENSOR
        kind, extensions = _KINDS.get(top, (Kind.OTHER, ()))
        return kind if rest and path.endswith(extensions) else Kind.OTHER

    def author_of(self, path: str) -> str | None:
        """Return the author folder of a solution or trace file; older layouts have none.

        Upstream: ``solutions/<author>/<op_type>/<definition>/<name>.json``,
        ``traces/<author>/<op_type>/<definition>.jsonl``.
        """
        parts = path.split("/")
        if (parts[0], len(parts)) in (("solutions", _SOLUTION_DEPTH), ("traces", _TRACE_DEPTH)):
            return parts[1]
        return None

    def frame(self, blob: Path, path: str) -> Iterable[Record]:
        """Return the records of a trace or workload file."""
        return frame(blob, document=path.endswith(".json"))

    def read_definition(self, raw: bytes, project: Project) -> Document[NormalizedDefinition]:
        """Normalize a definition file.

        Raises:
            HeldBackError: INVALID_DEFINITION.
        """
        decoded = _decode_document(raw, Reason.INVALID_DEFINITION)
        parsed = upstream.Parsed(decoded)
        definition = upstream.read_definition(decoded.value, parsed)
        try:
            definition_sha256 = sha256_of(canonical_text(decoded.value))
        except ManifestError as error:
            raise HeldBackError(Reason.INVALID_DEFINITION, str(error)) from None
        return Document(
            NormalizedDefinition(
                operation=Operation(definition, normalize_operation(definition, project)),
                op_type=definition.op_type,
                tags=tuple(definition.tags or ()),
                description=definition.description,
                definition_sha256=definition_sha256,
            ),
            _with_legacy(parsed),
        )

    def read_solution(
        self, raw: bytes, path: str, project: Project, catalog: Catalog, removed: Sequence[RemovedText] = ()
    ) -> Document[NormalizedSolution]:
        """Normalize a solution file with its own definition.

        Raises:
            HeldBackError: INVALID_SOLUTION, also while its definition is unknown; UNSAFE_SOURCE_PATH.
        """
        decoded = _decode_document(raw, Reason.INVALID_SOLUTION)
        parsed = upstream.Parsed(decoded)
        solution = upstream.read_solution(decoded.value, parsed)
        operation = catalog.operation(solution.definition)
        if operation is None:
            raise HeldBackError(
                Reason.INVALID_SOLUTION, f"its definition {solution.definition!r} is unknown; it is tried again later"
            )
        normalized = normalize_implementation(
            solution, operation, project, folder=self.author_of(path), path=path, removed=removed
        )
        return Document(normalized, _with_legacy(parsed))

    def read_runs(self, records: Sequence[Record], catalog: Catalog) -> list[ReadRun | Held]:
        """Normalize trace records one by one: the reference for every faster path."""
        return [_guarded(record, lambda record: self._run(record, catalog)) for record in records]

    def columns(self, catalog: Catalog) -> ColumnReader:
        """Return a reader of trace records in columns."""
        return ColumnReader(
            catalog,
            read_workload=lambda record: _guarded(record, lambda record: self._workload(record, catalog)),
            read_environment=lambda record: _guarded(record, self._read_environment),
        )

    def read_workloads(self, records: Sequence[Record], catalog: Catalog) -> list[ReadWorkload | Held]:
        """Normalize workload records one by one."""
        return [_guarded(record, lambda record: self._workload(record, catalog)) for record in records]

    def _run(self, record: Record, catalog: Catalog) -> ReadRun:
        trace, parsed, raw = _read_trace(record)
        outcome = read_outcome(trace.evaluation)
        evaluation = trace.evaluation
        assert evaluation is not None  # noqa: S101 - read_outcome holds back a record without one
        operation = _operation(trace, catalog)
        implementation = catalog.implementation(trace.solution) if trace.solution is not None else None
        if implementation is None:
            unknown = f"solution {trace.solution!r} is unknown" if trace.solution else "the record names no solution"
            raise HeldBackError(Reason.UNKNOWN_SOLUTION, f"{unknown}; it is tried again")
        workload = self._normalized(operation, trace.workload, raw)
        environment = self._environment(evaluation.environment)
        protocol = FLASHINFER_BENCH_PROTOCOL
        removed_log = next((text for text in record.removed if text.pointer == LOG_POINTER), None)
        run = normalize_run(
            trace,
            evaluation,
            outcome,
            workload=workload.manifest.digest,
            implementation=implementation,
            protocol=protocol.digest,
            environment=environment.digest,
            removed_log=removed_log,
        )
        performance = evaluation.performance
        return ReadRun(
            record=record,
            benchmark=trace.definition,
            run=run,
            comparison_key=comparison_key(
                operation=operation.digest,
                workload=workload.manifest.digest,
                protocol=protocol.digest,
                environment=environment.digest,
                correctness=workload.correctness_key,
                metric=metric_key(run),
            ),
            workload=workload,
            implementation_digest=implementation,
            protocol=protocol,
            environment=environment,
            latency_ns=outcome.latency_ns,
            reference_latency_ms=finite(performance.reference_latency_ms) if performance else None,
            speedup_factor=finite(performance.speedup_factor) if performance else None,
            log_size_bytes=removed_log.size_bytes if removed_log else len(outcome.log),
            timezone_assumed=outcome.observed.zone_assumed,
            error_not_finite=outcome.error_not_finite,
            legacy_forms=tuple(sorted(parsed.legacy)),
            drift=_with_legacy(parsed),
        )

    def _workload(self, record: Record, catalog: Catalog) -> ReadWorkload:
        trace, parsed, raw = _read_trace(record)
        workload = self._normalized(_operation(trace, catalog), trace.workload, raw)
        return ReadWorkload(record, trace.definition, workload, _with_legacy(parsed))

    def _read_environment(self, record: Record) -> Document[ExecutionEnvironment]:
        trace, parsed, _ = _read_trace(record)
        assert trace.evaluation is not None  # noqa: S101 - made to hold an environment
        return Document(self._environment(trace.evaluation.environment), _with_legacy(parsed))

    def _normalized(self, operation: Operation, workload: upstream.Workload, raw: str) -> NormalizedWorkload:
        """Return the WorkloadCase of a workload given with its JSON text; many records share few of them."""
        key = (operation, raw)
        if (known := self._workloads.get(key)) is None:
            if len(self._workloads) >= _CACHE_SIZE:
                self._workloads.clear()
            known = self._workloads[key] = operation.normalize(workload)
        return known

    def _environment(self, environment: upstream.Environment) -> ExecutionEnvironment:
        key = (environment.hardware, *(environment.libs or {}).items())
        if (known := self._environments.get(key)) is None:
            if len(self._environments) >= _CACHE_SIZE:
                self._environments.clear()
            known = self._environments[key] = normalize_environment(environment)
        return known


def _guarded(record: Record, read: Callable[[Record], T]) -> T | Held:
    try:
        return read(record)
    except HeldBackError as error:
        return Held(record, error.reason, error.detail)
    except ValidationError as error:
        return Held(record, Reason.SCHEMA_VIOLATION, f"no canonical document can hold it: {explain(error)}")
    except ManifestError as error:
        return Held(record, Reason.SCHEMA_VIOLATION, str(error))
    except (RecursionError, ValueError):
        # What pydantic's serializer and the JSON encoder say of values nested some hundred deep.
        return Held(record, Reason.SCHEMA_VIOLATION, "it is nested too deeply")


def _read_trace(record: Record) -> tuple[upstream.Trace, upstream.Parsed, str]:
    """Return a record as a trace, what was met in it, and the JSON text of its workload."""
    if record.raw is None:
        raise HeldBackError(Reason.LINE_TOO_LONG, f"the record has {record.size} bytes; 16 MiB are the limit")
    decoded = decode(record.raw)
    parsed = upstream.Parsed(decoded, from_document=record.from_document)
    trace = upstream.read_trace(decoded.value, parsed)
    check_axes(trace.workload)
    return trace, parsed, json.dumps(decoded.value["workload"])


def _operation(trace: upstream.Trace, catalog: Catalog) -> Operation:
    operation = catalog.operation(trace.definition)
    if operation is None:
        raise HeldBackError(Reason.UNKNOWN_DEFINITION, f"definition {trace.definition!r} is unknown; it is tried again")
    return operation


def _decode_document(raw: bytes, reason: Reason) -> Decoded:
    try:
        return decode(raw)
    except HeldBackError as error:
        raise HeldBackError(reason, error.detail) from None


def _with_legacy(parsed: upstream.Parsed) -> Counter[str]:
    counts = parsed.drift.copy()
    counts.update(f"legacy:{form}" for form in parsed.legacy)
    return counts
