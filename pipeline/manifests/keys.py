"""Keys: what makes two runs comparable (the source-native cohort)."""

from __future__ import annotations

from pipeline.manifests.canonical import canonical_text, sha256_of
from pipeline.manifests.documents import BenchmarkRun, WorkloadCase


def correctness_key(workload: WorkloadCase) -> str:
    """Return the digest of the workload's correctness rule."""
    return sha256_of(canonical_text({"correctness": workload.document["spec"]["correctness"]}))


def metric_key(run: BenchmarkRun) -> str:
    """Return ``latency:<primary statistic>:ns``, or ``none`` without a primary measurement."""
    timing = run.spec.timing
    if timing is None or getattr(timing.latency_ns, timing.primary_statistic) is None:
        return "none"
    return f"latency:{timing.primary_statistic}:ns"


def comparison_key(
    *, operation: str, workload: str, protocol: str, environment: str, correctness: str, metric: str
) -> str:
    """Return the source-native cohort key: everything that must be equal, the implementation not among it.

    All arguments are digests or keys; version 1 of the key is part of its text.
    """
    return sha256_of(
        canonical_text(
            {
                "v": 1,
                "operation": operation,
                "workload": workload,
                "protocol": protocol,
                "environment": environment,
                "correctness": correctness,
                "metric": metric,
            }
        )
    )
