"""The seam of a source's format: what the ingest asks of the reader of a kind of trace set.

A second benchmark joins by another :class:`Adapter`. Records are handed over in batches and come back
as outcomes, so that an adapter is free to work through a batch in columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from pipeline.manifests import BenchmarkProtocol, BenchmarkRun, ExecutionEnvironment
from pipeline.normalize.implementation import NormalizedSolution
from pipeline.normalize.operation import Project
from pipeline.normalize.workload import NormalizedWorkload, Operation
from pipeline.sources.listing import Listing
from pipeline.upstream.framing import Record, RemovedText
from pipeline.upstream.held import Reason

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """A definition or solution that was read, with the unknown fields and legacy forms met in it."""

    value: T
    drift: Counter[str]


@dataclass(frozen=True, slots=True)
class NormalizedDefinition:
    """A definition ready to bind workloads, with what the tables keep beside its manifest."""

    operation: Operation
    op_type: str
    tags: tuple[str, ...]
    description: str | None
    definition_sha256: str


@dataclass(frozen=True, slots=True)
class Held:
    """A record that cannot be normalized."""

    record: Record
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class ReadWorkload:
    """A record that gives a workload and no run."""

    record: Record
    benchmark: str
    workload: NormalizedWorkload
    drift: Counter[str]


@dataclass(frozen=True, slots=True)
class Rerun:
    """What makes a run a controlled rerun: who ran which job, and what it says of the run that it repeats."""

    job_digest: str
    target_run_digest: str | None
    """The run that it repeats; None where nothing was reported before."""
    verdict: str | None
    reasons: tuple[str, ...]
    ratio: float | None
    host_identity: str | None
    gpu_identity: str | None
    median_ns: float | None
    low_ns: float | None
    high_ns: float | None
    isolation: Mapping[str, str]
    telemetry: Mapping[str, Any]
    samples_digest: str | None
    """SHA-256 of the canonical text of the raw samples, which lie at ``/measurement/samples_ns`` of the record."""
    samples_size_bytes: int


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A record that gives a run."""

    record: Record
    benchmark: str
    run: BenchmarkRun
    comparison_key: str
    workload: NormalizedWorkload
    implementation_digest: str
    protocol: BenchmarkProtocol
    environment: ExecutionEnvironment
    latency_ns: int | None
    reference_latency_ms: float | None
    speedup_factor: float | None
    log_size_bytes: int
    timezone_assumed: bool
    error_not_finite: bool
    legacy_forms: tuple[str, ...]
    drift: Counter[str] = field(default_factory=Counter)
    log_pointer: str = "/evaluation/log"
    """JSON pointer to the log inside the record."""
    rerun: Rerun | None = None


RUN_COLUMNS = pa.schema(
    [
        pa.field(name, kind)
        for kind, names in (
            (pa.int32(), ("place", "workload", "environment")),
            (
                pa.string(),
                (
                    "run_digest", "operation_digest", "workload_digest", "implementation_digest", "protocol_digest",
                    "environment_digest", "comparison_key", "source", "benchmark", "status", "hardware",
                    "primary_statistic", "log_digest", "manifest", "workload_uuid", "inputs_sha256",
                ),
            ),
            (pa.int64(), ("latency_ns", "log_size_bytes")),
            (
                pa.float64(),
                ("reference_latency_ms", "speedup_factor", "max_absolute_error", "max_relative_error"),
            ),
            (pa.timestamp("us"), ("observed_at",)),
            (pa.bool_(), ("timezone_assumed", "error_not_finite")),
        )
        for name in names
    ]
)  # fmt: skip
"""What a batch of runs read in columns says, a row a run.

``place`` is the place of its record in the batch; ``workload`` and ``environment`` are places in what the batch shares.
Columns may be dictionaries of these types.
"""


@dataclass(frozen=True, slots=True)
class SharedWorkload:
    """A workload that many records share, so that it is normalized once."""

    number: int
    """Another for each workload of a reader."""
    benchmark: str
    workload: NormalizedWorkload


@dataclass(frozen=True, slots=True)
class RunBatch:
    """A batch of trace records read in columns, as far as they fit."""

    workloads: Sequence[SharedWorkload]
    """The workloads of those that fit, each once."""
    environments: Sequence[ExecutionEnvironment]
    """Their environments, each once."""
    protocol: BenchmarkProtocol | None
    """The protocol of all of them; None where none fits."""
    rest: Sequence[int]
    """Places of the records that do not fit: the one-by-one path decides on them."""
    runs: Callable[[], pa.Table]
    """Work out the runs that fit, as :data:`RUN_COLUMNS`, in their order; one batch at a time, in any thread."""

    @classmethod
    def unfit(cls, records: int) -> RunBatch:
        """Return a batch of which nothing fits."""
        return cls((), (), None, range(records), RUN_COLUMNS.empty_table)


class RunReader(Protocol):
    """Reads the trace records of one snapshot in columns."""

    def read(self, records: Sequence[Record]) -> RunBatch:
        """Read a batch of trace records; what it says of a record is what the one-by-one path would say."""
        ...


class OneByOne:
    """The reader of an adapter whose records are read one by one: none of them fits columns."""

    def read(self, records: Sequence[Record]) -> RunBatch:
        """Leave every record to the one-by-one path."""
        return RunBatch.unfit(len(records))


class Catalog(Protocol):
    """The definitions and solutions that records are read with."""

    def operation(self, name: str) -> Operation | None:
        """Return the operation of a definition, by its upstream name."""
        ...

    def implementation(self, name: str) -> str | None:
        """Return the digest of a solution's implementation, by its upstream name."""
        ...


class Adapter(Listing, Protocol):
    """The reader of one format of trace sets."""

    license: str
    """Licence of the trace set (SPDX)."""

    def frame(self, blob: Path, path: str) -> Iterable[Record]:
        """Return the records of a trace or workload file; ``path`` is its name in the trace set."""
        ...

    def read_definition(self, raw: bytes, project: Project) -> Document[NormalizedDefinition]:
        """Normalize a definition file; HeldBackError where that cannot be done."""
        ...

    def read_solution(
        self, raw: bytes, path: str, project: Project, catalog: Catalog, removed: Sequence[RemovedText] = ()
    ) -> Document[NormalizedSolution]:
        """Normalize a solution file, out of which texts may be taken; HeldBackError where that cannot be done."""
        ...

    def read_runs(self, records: Sequence[Record], catalog: Catalog) -> list[ReadRun | Held]:
        """Normalize a batch of trace records, one outcome each, in their order."""
        ...

    def columns(self, catalog: Catalog) -> RunReader:
        """Return a reader of trace records in columns, for as long as the catalog stays as it is."""
        ...

    def read_workloads(self, records: Sequence[Record], catalog: Catalog) -> list[ReadWorkload | Held]:
        """Normalize a batch of workload records, one outcome each, in their order."""
        ...
