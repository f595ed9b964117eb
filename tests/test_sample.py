"""The bundled sample against the three public pages that it is written from."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

import pytest

from pipeline.manifests import BenchmarkRun
from pipeline.manifests.keys import comparison_key, metric_key
from pipeline.normalize.environment import normalize_environment
from pipeline.normalize.implementation import NormalizedSolution, normalize_implementation
from pipeline.normalize.operation import Project, normalize_operation
from pipeline.normalize.protocol import FLASHINFER_BENCH_PROTOCOL
from pipeline.normalize.run import normalize_run, read_outcome
from pipeline.normalize.workload import NormalizedWorkload, Operation
from pipeline.upstream.decode import decode
from pipeline.upstream.documents import (
    Definition,
    Lax,
    Parsed,
    Trace,
    read_definition,
    read_solution,
    read_trace,
)

TRACE_SET = files("pipeline") / "sample" / "trace-set"

DENSE = "gemm_nvfp4_n4096_k4096"
SPARSE = "sparse_gemm_nvfp4_n2048_k2048"
GROUPED = "grouped_gemm_fp8_fp4_m_masked_g4_n2048_k2048"
NAMES = [DENSE, SPARSE, GROUPED]

NO_PROJECT = Project(repository=None, revision=None)

Document = TypeVar("Document", bound=Lax)


def read(raw: bytes, reader: Callable[[Any, Parsed], Document]) -> Document:
    """Read a document of the sample, which must be as upstream writes it today: no legacy form, no unknown field."""
    decoded = decode(raw)
    parsed = Parsed(decoded)
    document = reader(decoded.value, parsed)
    parsed.note_drift(document)
    assert not parsed.legacy
    assert not parsed.drift
    return document


def records(folder: str, name: str) -> list[Trace]:
    lines = (TRACE_SET / folder / "gemm" / f"{name}.jsonl").read_bytes().splitlines()
    return [read(line, read_trace) for line in lines]


def definition_of(name: str) -> Definition:
    return read((TRACE_SET / f"definitions/gemm/{name}.json").read_bytes(), read_definition)


def operation_of(name: str) -> Operation:
    definition = definition_of(name)
    return Operation(definition, normalize_operation(definition, NO_PROJECT))


def implementation_of(name: str) -> NormalizedSolution:
    folder = f"solutions/baseline/gemm/{name}"
    (file,) = (TRACE_SET / folder).iterdir()
    solution = read(file.read_bytes(), read_solution)
    return normalize_implementation(
        solution, operation_of(name), NO_PROJECT, folder="baseline", path=f"{folder}/{file.name}"
    )


@dataclass(frozen=True)
class Measured:
    """A run of the sample with the workload and the environment that it is of."""

    run: BenchmarkRun
    workload: NormalizedWorkload
    environment: str
    comparison_key: str

    @property
    def latency_ns(self) -> int:
        timing = self.run.spec.timing
        assert timing is not None
        assert timing.latency_ns.mean is not None
        return int(timing.latency_ns.mean)


def measured(name: str, place: int) -> Measured:
    trace = records("traces/baseline", name)[place]
    assert trace.evaluation is not None
    operation = operation_of(name)
    workload = operation.normalize(trace.workload)
    environment = normalize_environment(trace.evaluation.environment).digest
    run = normalize_run(
        trace,
        trace.evaluation,
        read_outcome(trace.evaluation),
        workload=workload.manifest.digest,
        implementation=implementation_of(name).manifest.digest,
        protocol=FLASHINFER_BENCH_PROTOCOL.digest,
        environment=environment,
    )
    key = comparison_key(
        operation=operation.digest,
        workload=workload.manifest.digest,
        protocol=FLASHINFER_BENCH_PROTOCOL.digest,
        environment=environment,
        correctness=workload.correctness_key,
        metric=metric_key(run),
    )
    return Measured(run, workload, environment, key)


@pytest.mark.parametrize(("name", "printed"), [(SPARSE, "sha256:5ccea92f1de0"), (GROUPED, "sha256:67a497131590")])
def test_operation_digests_begin_as_their_pages_print_them(name: str, printed: str) -> None:
    assert operation_of(name).digest.startswith(printed)


def test_the_dense_run_has_the_digests_that_its_page_prints() -> None:
    dense = measured(DENSE, 0)
    assert dense.workload.manifest.digest == "sha256:17946874a71497e00df2798525198fed396103b592c3ffba9724681e3bca625d"
    assert dense.environment == "sha256:83c9b6e78d493927f18878d57448d9a0d2221a70840b562455b2665a2897ba19"
    assert dense.run.spec.protocol_digest == "sha256:7d44d206ad086b4bece35ce31f6531ebb11f07e0d9dcfb74c75be86d3ec02095"
    assert dense.comparison_key == "sha256:591c3fc4454e829574e6f2565623d5a108451021a8fe8f22b160a4ace6f9f747"


def test_the_dense_run_is_its_page_but_for_the_implementation() -> None:
    spec = measured(DENSE, 0).run.document["spec"]
    del spec["implementationDigest"]
    assert spec == {
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
        "protocolDigest": "sha256:7d44d206ad086b4bece35ce31f6531ebb11f07e0d9dcfb74c75be86d3ec02095",
        "workloadDigest": "sha256:17946874a71497e00df2798525198fed396103b592c3ffba9724681e3bca625d",
        "environmentDigest": "sha256:83c9b6e78d493927f18878d57448d9a0d2221a70840b562455b2665a2897ba19",
    }


@pytest.mark.parametrize(
    ("name", "place", "workload", "key"),
    [
        (
            SPARSE,
            0,
            "sha256:d04d0ad8a4e61b75088e0a52f0aaa91bce2e28d8cd2e054ceefebcd7370e4b2c",
            "sha256:d1e674a2efb9a28bf0533f856a3143b45625f1493da391df6e03c89e826a8839",
        ),
        *(
            (
                GROUPED,
                place,
                "sha256:19c6e666ea0e48c2ba136bfbf372e4a1b909058237c74a847ab179dd0e77a0df",
                "sha256:d54c24b8a75223e0bf38df5a27aa16b7cabe8e86bdb1c53f66e3a06d8f27e5a8",
            )
            for place in (0, 1)
        ),
    ],
)
def test_the_other_runs_join_the_published_cohorts(name: str, place: int, workload: str, key: str) -> None:
    run = measured(name, place)
    assert run.workload.manifest.digest == workload
    assert run.comparison_key == key


WIDTHS = {"fp8_e4m3": 1, "fp32": 4, "int8": 1, "int32": 4}


@pytest.mark.parametrize(
    ("name", "place", "text", "floor", "ratio"),
    [
        (SPARSE, 0, "1.54 ms", "304 ns", "5063.3"),
        (GROUPED, 0, "147.3 µs", "1.85 µs", "79.54"),
        (GROUPED, 1, "153.2 µs", "1.85 µs", None),
    ],
)
def test_rounded_latencies_agree_with_every_figure_of_their_page(
    name: str, place: int, text: str, floor: str, ratio: str | None
) -> None:
    """The floor is the bytes of the input tensors over the 8,000 GB/s that the pages name."""
    run = measured(name, place)
    tensors = run.workload.manifest.document["spec"]["tensors"].values()
    floor_ns = sum(WIDTHS[tensor["dtype"]] * math.prod(tensor["shape"]) for tensor in tensors) / 8000
    assert same_when_rounded(run.latency_ns, text)
    assert same_when_rounded(floor_ns, floor)
    if ratio is not None:
        assert f"{run.latency_ns / floor_ns:.{len(ratio.partition('.')[2])}f}" == ratio


def test_the_second_grouped_run_is_behind_by_what_its_page_prints() -> None:
    first, second = measured(GROUPED, 0), measured(GROUPED, 1)
    assert f"{second.latency_ns / first.latency_ns:.2f}" == "1.04"


def same_when_rounded(nanoseconds: float, printed: str) -> bool:
    """Whether a time is the printed one, rounded to as many decimals."""
    number, unit = printed.split()
    decimals = len(number.partition(".")[2])
    return f"{nanoseconds / {'ns': 1, 'µs': 1e3, 'ms': 1e6}[unit]:.{decimals}f}" == number


@pytest.mark.parametrize("name", NAMES)
def test_the_workload_file_names_the_workloads_of_the_traces(name: str) -> None:
    workloads = records("workloads", name)
    assert all(record.solution is None and record.evaluation is None for record in workloads)
    assert [record.workload for record in workloads] == [trace.workload for trace in records("traces/baseline", name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_without_source_does_not_pass_for_one_with_source(name: str) -> None:
    solution = implementation_of(name)
    assert solution.role == "baseline"
    assert not solution.source_available
    assert solution.manifest.spec.source is None
    assert {trace.solution for trace in records("traces/baseline", name)} == {solution.name}


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_takes_the_inputs_of_its_definition(name: str) -> None:
    definition = definition_of(name)
    functions = [node for node in ast.parse(definition.reference or "").body if isinstance(node, ast.FunctionDef)]
    (run,) = (function for function in functions if function.name == "run")
    assert [argument.arg for argument in run.args.args] == list(definition.inputs)
