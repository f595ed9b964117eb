"""A trace with its evaluation to BenchmarkRun."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.manifests import BenchmarkRun
from pipeline.manifests.canonical import sha256_of
from pipeline.manifests.measurement import (
    Evidence,
    LatencyNs,
    RunBody,
    RunCorrectness,
    SourceNative,
    Timing,
)
from pipeline.manifests.scalars import SAFE_INTEGER, Artifact, Metadata
from pipeline.normalize import words
from pipeline.normalize.measures import Instant, instant, nanoseconds
from pipeline.normalize.workload import WORKLOAD_COMPARATOR, workload_uuid
from pipeline.upstream import documents as upstream
from pipeline.upstream.framing import RemovedText
from pipeline.upstream.held import HeldBackError, Reason

SOURCE = "flashinfer-bench"

STATUSES = {
    "PASSED": "passed",
    "INCORRECT_SHAPE": "incorrect_shape",
    "INCORRECT_NUMERICAL": "incorrect_numerical",
    "INCORRECT_DTYPE": "incorrect_dtype",
    "RUNTIME_ERROR": "runtime_error",
    "COMPILE_ERROR": "compile_error",
    "TIMEOUT": "timeout",
    "REWARD_HACK": "suspected_reward_hack",
    "INVALID_REFERENCE": "invalid_reference",
}
"""Statuses that upstream writes, and their canonical names."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trace says of itself, checked, before its definition and solution are looked up."""

    status: str
    observed: Instant
    latency_ns: int | None
    log: bytes
    error_not_finite: bool


def read_outcome(evaluation: upstream.Evaluation | None) -> Outcome:
    """Check the evaluation of a trace.

    Raises:
        HeldBackError: NO_EVALUATION, UNKNOWN_STATUS, INVALID_TIMESTAMP, MISSING_PERFORMANCE,
            NON_POSITIVE_LATENCY, in this order.
    """
    if evaluation is None:
        raise HeldBackError(Reason.NO_EVALUATION, "the record has a workload but no evaluation: nothing was measured")
    status = STATUSES.get(evaluation.status)
    if status is None:
        raise HeldBackError(Reason.UNKNOWN_STATUS, f"status {evaluation.status[:60]!r} is not one that upstream writes")
    observed = instant(evaluation.timestamp)
    if observed is None:
        raise HeldBackError(
            Reason.INVALID_TIMESTAMP, f"timestamp {evaluation.timestamp[:60]!r} is no ISO 8601 date and time"
        )
    performance = evaluation.performance
    latency_ms = performance.latency_ms if performance else None
    if latency_ms is None:
        if status == "passed":
            raise HeldBackError(Reason.MISSING_PERFORMANCE, "the run passed but gives no latency")
        latency_ns = None
    else:
        if not math.isfinite(latency_ms) or latency_ms <= 0:
            raise HeldBackError(Reason.NON_POSITIVE_LATENCY, f"latency_ms is {latency_ms}: it must be positive")
        if latency_ms * 1e6 >= SAFE_INTEGER:
            raise HeldBackError(Reason.SCHEMA_VIOLATION, f"latency_ms is {latency_ms}: over 2^53-1 nanoseconds")
        latency_ns = nanoseconds(latency_ms)
        if latency_ns == 0:
            raise HeldBackError(Reason.NON_POSITIVE_LATENCY, f"latency_ms is {latency_ms}: under half a nanosecond")
    return Outcome(
        status=status,
        observed=observed,
        latency_ns=latency_ns,
        log=(evaluation.log or "").encode(),
        error_not_finite=_not_finite(evaluation.correctness),
    )


def normalize_run(
    trace: upstream.Trace, evaluation: upstream.Evaluation, outcome: Outcome, *, workload: str, implementation: str,
    protocol: str, environment: str, removed_log: RemovedText | None = None,
) -> BenchmarkRun:  # fmt: skip
    """Return the BenchmarkRun of a trace whose outcome is checked.

    The last arguments are four digests, and the log that the trace had before it was taken out.

    Raises:
        pydantic.ValidationError: a value that no canonical document can hold.
    """
    log_digest = sha256_of(outcome.log) if outcome.log else None
    if removed_log is not None:
        log_digest = removed_log.digest
    return BenchmarkRun(
        metadata=Metadata(
            name=run_name(trace.definition, workload_uuid(trace.workload)),
            title=f"{trace.solution} · {trace.definition}",
        ),
        spec=RunBody(
            implementation_digest=implementation,
            workload_digest=workload,
            protocol_digest=protocol,
            environment_digest=environment,
            status=outcome.status,  # type: ignore[arg-type]
            correctness=_correctness(evaluation.correctness),
            timing=Timing(primary_statistic="mean", latency_ns=LatencyNs(mean=outcome.latency_ns))
            if outcome.latency_ns is not None
            else None,
            source_native=SourceNative(
                source=SOURCE, benchmark=trace.definition, metrics=_metrics(evaluation.performance)
            ),
            evidence=Evidence(logs=Artifact(uri=f"kernelindex:artifact/{log_digest}", digest=log_digest))
            if log_digest
            else None,
            observed_at=outcome.observed.text,
        ),
    )


def run_name(definition: str, uuid: str) -> str:
    """Return the editorial name of the run of a workload."""
    return words.document_name("sol-trace", definition, uuid[:8])


def finite(value: int | float | None) -> int | float | None:
    """Return a number, or None where it is absent or not finite."""
    return value if value is not None and math.isfinite(value) else None


def _not_finite(correctness: upstream.Correctness | None) -> bool:
    if correctness is None:
        return False
    bounds = (correctness.max_absolute_error, correctness.max_relative_error)
    return any(bound is not None and not math.isfinite(bound) for bound in bounds)


def _correctness(correctness: upstream.Correctness | None) -> RunCorrectness | None:
    if correctness is None:
        return None
    return RunCorrectness(
        comparator=WORKLOAD_COMPARATOR,
        maximum_absolute_error=finite(correctness.max_absolute_error),
        maximum_relative_error=finite(correctness.max_relative_error),
    )


def _metrics(performance: upstream.Performance | None) -> dict[str, int | float] | None:
    if performance is None:
        return None
    metrics = {
        "latency_ms": finite(performance.latency_ms),
        "reference_latency_ms": finite(performance.reference_latency_ms),
        "speedup_factor": finite(performance.speedup_factor),
    }
    return {name: value for name, value in metrics.items() if value is not None} or None
