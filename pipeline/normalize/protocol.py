"""The one BenchmarkProtocol of all FlashInfer-Bench traces."""

from __future__ import annotations

from pipeline.manifests import BenchmarkProtocol
from pipeline.manifests.measurement import (
    Comparability,
    Harness,
    Measurement,
    ProtocolBody,
    ProtocolCorrectness,
)
from pipeline.manifests.scalars import Metadata

FLASHINFER_BENCH_PROTOCOL = BenchmarkProtocol(
    metadata=Metadata(name="flashinfer-bench-trace", title="FlashInfer-Bench trace harness"),
    spec=ProtocolBody(
        harness=Harness(name="flashinfer-bench", repository="https://github.com/flashinfer-ai/flashinfer-bench"),
        measurement=Measurement(timer="harness_reported", primary_statistic="mean"),
        correctness=ProtocolCorrectness(
            reference="definition reference implementation", comparator="flashinfer_bench_eval"
        ),
        comparability=Comparability(family="flashinfer_bench_trace"),
    ),
)
"""A trace names no version of its harness, so every trace shares this protocol."""
