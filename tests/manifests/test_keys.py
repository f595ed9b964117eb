"""Digests and keys that are public facts: pages of the public index show them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from pipeline.manifests import BenchmarkRun, ExecutionEnvironment, Manifest, WorkloadCase, load_manifest
from pipeline.manifests.keys import comparison_key, correctness_key, metric_key
from pipeline.normalize.protocol import FLASHINFER_BENCH_PROTOCOL

PROTOCOL = "sha256:7d44d206ad086b4bece35ce31f6531ebb11f07e0d9dcfb74c75be86d3ec02095"
ENVIRONMENT = "sha256:83c9b6e78d493927f18878d57448d9a0d2221a70840b562455b2665a2897ba19"
WORKLOAD = "sha256:17946874a71497e00df2798525198fed396103b592c3ffba9724681e3bca625d"
IMPLEMENTATION = "sha256:18fa0b9785c9bd605848a831c2f8819866388f3b30f63f13b4b5ea5be4fe5924"
RUN = "sha256:79e6fe7d3a269927819b1fb69fd28d541dc6bbc769afb19c97961b7f44c89579"


def manifest(kind: str, spec: dict[str, Any]) -> Manifest:
    head = {"apiVersion": "kernelindex.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}}
    return load_manifest(json.dumps(head | {"spec": spec}).encode())


def run(**changes: Any) -> BenchmarkRun:
    spec = {
        "status": "passed",
        "timing": {"latencyNs": {"mean": 137343}, "primaryStatistic": "mean"},
        "observedAt": "2026-06-06T21:33:43.574Z",
        "correctness": {"comparator": "sol_execbench_eval", "maximumAbsoluteError": 0, "maximumRelativeError": 0},
        "sourceNative": {
            "source": "flashinfer-bench",
            "metrics": {
                "latency_ms": 0.13734333333333335,
                "speedup_factor": 9.739133072834502,
                "reference_latency_ms": 1.337605,
            },
            "benchmark": "gemm_nvfp4_n4096_k4096",
        },
        "protocolDigest": PROTOCOL,
        "workloadDigest": WORKLOAD,
        "environmentDigest": ENVIRONMENT,
        "implementationDigest": IMPLEMENTATION,
    }
    read = manifest("BenchmarkRun", {name: value for name, value in (spec | changes).items() if value is not None})
    assert isinstance(read, BenchmarkRun)
    return read


def test_protocol() -> None:
    assert FLASHINFER_BENCH_PROTOCOL.digest == PROTOCOL


def test_environment() -> None:
    read = manifest(
        "ExecutionEnvironment",
        {
            "hardware": {"vendor": "nvidia", "product": "NVIDIA B200", "architecture": "unknown"},
            "software": {
                "framework": {"name": "pytorch", "version": "2.11.0+cu130"},
                "libraries": {"triton": "3.6.0"},
                "cudaToolkit": "13.0",
            },
        },
    )
    assert isinstance(read, ExecutionEnvironment)
    assert read.digest == ENVIRONMENT


def test_run() -> None:
    assert run().digest == RUN


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "latency:mean:ns"),
        ({"timing": {"latencyNs": {"median": 5}, "primaryStatistic": "median"}}, "latency:median:ns"),
        ({"timing": None, "status": "timeout"}, "none"),
        # A primary statistic that was not measured is no primary measurement.
        ({"timing": {"latencyNs": {"minimum": 5}, "primaryStatistic": "mean"}, "status": "timeout"}, "none"),
    ],
)
def test_metric_key(changes: dict[str, Any], key: str) -> None:
    assert metric_key(run(**changes)) == key


def test_correctness_key_is_of_the_rule_alone() -> None:
    def workload(axes: dict[str, int], **rule: Any) -> WorkloadCase:
        spec = {"operationSpecDigest": RUN, "axes": axes, "tensors": {}, "correctness": {"comparator": "c"} | rule}
        read = manifest("WorkloadCase", spec)
        assert isinstance(read, WorkloadCase)
        return read

    text = b'{"correctness":{"comparator":"c"}}'
    assert correctness_key(workload({"m": 1})) == "sha256:" + hashlib.sha256(text).hexdigest()
    assert correctness_key(workload({"m": 2})) == correctness_key(workload({"m": 1}))
    assert correctness_key(workload({"m": 1}, maxAbsoluteError=0.1)) != correctness_key(workload({"m": 1}))


PARTS = {
    name: f"sha256:{digit * 64}" for name, digit in zip(("operation", "workload", "protocol"), "123", strict=True)
} | {
    "environment": "e",
    "correctness": "c",
    "metric": "none",
}


def test_comparison_key_is_the_digest_of_its_parts() -> None:
    text = json.dumps({"v": 1} | PARTS, sort_keys=True, separators=(",", ":"))
    assert comparison_key(**PARTS) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", PARTS)
def test_every_part_of_the_comparison_key_counts(name: str) -> None:
    assert comparison_key(**(PARTS | {name: "other"})) != comparison_key(**PARTS)
