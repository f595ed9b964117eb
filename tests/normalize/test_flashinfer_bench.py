"""Documents and records to manifests, through the adapter that the ingest calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.manifests import canonical_text, load_manifest, sha256_of
from pipeline.manifests.scalars import SAFE_INTEGER
from pipeline.normalize.adapter import Held, NormalizedDefinition, ReadRun, ReadWorkload
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.normalize.implementation import NormalizedSolution
from pipeline.normalize.operation import Project
from pipeline.normalize.workload import Operation
from pipeline.sources.listing import Kind
from pipeline.upstream.framing import MAX_RECORD_BYTES, Record
from pipeline.upstream.held import HeldBackError
from tests.trace_set import (
    REPOSITORY,
    REVISIONS,
    SOLUTION,
    definition,
    encode,
    solution,
    trace,
    workload,
    workload_line,
)

NOWHERE = Project(None, None)
IMPLEMENTATION = "sha256:" + "ab" * 32


@dataclass
class Known:
    """A catalog of what a test knows."""

    operations: dict[str, Operation] = field(default_factory=dict)
    implementations: dict[str, str] = field(default_factory=lambda: {"scale_torch": IMPLEMENTATION})

    def operation(self, name: str) -> Operation | None:
        return self.operations.get(name)

    def implementation(self, name: str) -> str | None:
        return self.implementations.get(name)


def read_definition(document: Any) -> NormalizedDefinition:
    raw = document if isinstance(document, bytes) else encode(document)
    return FlashInferBench().read_definition(raw, NOWHERE).value


def operation_spec(**changes: Any) -> Any:
    return read_definition(definition(**changes)).operation.manifest.document["spec"]


def known(**changes: Any) -> Known:
    return Known({"scale_rows": read_definition(definition(**changes)).operation})


def read_solution(document: Any, path: str = SOLUTION, project: Project = NOWHERE) -> NormalizedSolution:
    raw = document if isinstance(document, bytes) else encode(document)
    return FlashInferBench().read_solution(raw, path, project, known()).value


def record(value: Any, **changes: Any) -> Record:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Record(1, 0, len(raw), sha256_of(raw), raw, **changes)


def read(value: Any, catalog: Known | None = None) -> ReadRun | Held:
    (outcome,) = FlashInferBench().read_runs([record(value)], known() if catalog is None else catalog)
    return outcome


def run(value: Any, catalog: Known | None = None) -> ReadRun:
    outcome = read(value, catalog)
    assert isinstance(outcome, ReadRun), outcome
    return outcome


def workload_spec(given_workload: dict[str, Any], **changes: Any) -> Any:
    return run(trace(workload=given_workload), known(**changes)).workload.manifest.document["spec"]


def run_spec(**changes: Any) -> Any:
    return run(trace(**changes)).run.document["spec"]


# Layout


@pytest.mark.parametrize(
    ("path", "kind", "author"),
    [
        ("definitions/gemm/gemm_n128.json", Kind.DEFINITION, None),
        ("definitions/gemm/notes.md", Kind.OTHER, None),
        ("solutions/gpt-5/gemm/gemm_n128/x.json", Kind.SOLUTION, "gpt-5"),
        ("solutions/some one/gemm/gemm_n128/x.json", Kind.SOLUTION, "some one"),
        ("workloads/gemm/gemm_n128.jsonl", Kind.WORKLOAD, None),
        ("traces/gpt-5/gemm/gemm_n128.jsonl", Kind.TRACE, "gpt-5"),
        ("traces/gemm/gemm_n128.jsonl", Kind.TRACE, None),  # older layout
        ("traces/gpt-5/gemm/gemm_n128.json", Kind.TRACE, "gpt-5"),
        ("blob/workloads/gemm/x.safetensors", Kind.TENSOR, None),
        ("blob/workloads/gemm/x.json", Kind.TENSOR, None),
        ("README.md", Kind.OTHER, None),
        ("traces", Kind.OTHER, None),
        ("traces.jsonl", Kind.OTHER, None),
    ],
)
def test_layout(path: str, kind: Kind, author: str | None) -> None:
    assert FlashInferBench().kind_of(path) == kind
    assert FlashInferBench().author_of(path) == author


# OperationSpec


def test_operation() -> None:
    assert operation_spec() == {
        "family": "elementwise",
        "axes": {
            "rows": {"role": "variable", "type": "integer"},
            "hidden": {"role": "constant", "type": "integer", "value": 64},
        },
        "inputs": [
            {"name": "x", "tensor": {"shape": ["rows", "hidden"], "dtype": "bf16"}},
            {"name": "scale", "scalar": {"dtype": "fp32"}},
        ],
        "outputs": [{"name": "y", "tensor": {"shape": ["rows", "hidden"], "dtype": "bf16"}}],
        "semantics": {"mutation": "none", "determinism": "unspecified"},
        "reference": {"language": "python"},
    }


def test_operation_in_lower_case() -> None:
    spec = operation_spec(
        op_type="GQA_Paged",
        axes={
            "M": {"type": "var"},
            "K": {"type": "const", "value": 8.0},
            "Half": {"type": "expr", "expression": "K//2+M"},
        },
        inputs={"Q": {"shape": ["M", "Half", "16", 4], "dtype": "float8_e4m3fn"}, "0": {"shape": [], "dtype": "INT64"}},
        outputs={},
        reference="",
    )
    assert spec["family"] == "gqa-paged"
    assert spec["axes"]["half"] == {"role": "derived", "type": "integer", "expression": "k//2+m"}
    assert spec["axes"]["k"]["value"] == 8
    assert spec["inputs"] == [
        {"name": "q", "tensor": {"shape": ["m", "half", 16, 4], "dtype": "fp8_e4m3"}},
        {"name": "x_0", "scalar": {"dtype": "int64"}},
    ]
    assert spec["outputs"] == []
    assert "reference" not in spec


def test_inputs_keep_their_order() -> None:
    inputs = {name: {"shape": ["rows"], "dtype": "int32"} for name in ("z", "a", "m")}
    assert [argument["name"] for argument in operation_spec(inputs=inputs)["inputs"]] == ["z", "a", "m"]


@pytest.mark.parametrize("change", [{"description": "x"}, {"tags": ["a"]}, {"name": "y"}, {"reference": "other code"}])
def test_what_does_not_change_an_operation_but_its_document(change: dict[str, Any]) -> None:
    plain, edited = read_definition(definition()), read_definition(definition(**change))
    assert edited.operation.digest == plain.operation.digest
    assert edited.definition_sha256 != plain.definition_sha256
    assert edited.definition_sha256 == sha256_of(canonical_text(definition(**change)))


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {"M": {"type": "var"}, "m": {"type": "var"}}},
        {"inputs": {"X": {"shape": None, "dtype": "int8"}, "x": {"shape": None, "dtype": "int8"}}},
        {"inputs": {"x-1": {"shape": None, "dtype": "int8"}, "x_1": {"shape": None, "dtype": "int8"}}},
        {"outputs": {"Y": {"shape": [1], "dtype": "int8"}, "y": {"shape": [1], "dtype": "int8"}}},
        {"axes": {"k": {"type": "const"}}},
        {"axes": {"k": {"type": "const", "value": 2**53}}},
        {"axes": {"k": {"type": "expr"}}},
        {"axes": {"k": {"type": "expr", "expression": ""}}},
        {"axes": {"k": {"type": "expr", "expression": "rows ** 2"}}},
        {"axes": {"k": {"type": "expr", "expression": "__import__('os').system('x')"}}},
        {"axes": {"k": {"type": "expr", "expression": "len(rows)"}}},
        {"axes": {"k": {"type": "expr", "expression": "(" * 500}}},
        {"axes": {"bad name": {"type": "var"}}},
        {"axes": {"": {"type": "var"}}},
        {"inputs": {"x": {"shape": [-1], "dtype": "int8"}}},
        {"inputs": {"x": {"shape": ["bad name"], "dtype": "int8"}}},
        {"inputs": {"x": {"shape": ["9" * 5000], "dtype": "int8"}}},
        {"inputs": {"x": {"shape": [1], "dtype": "é"}}},
        {"op_type": "é"},
        {"description": "\ud800"},
    ],
)
def test_invalid_definitions(changes: dict[str, Any]) -> None:
    with pytest.raises(HeldBackError) as caught:
        read_definition(json.dumps(definition(**changes)).encode())
    assert caught.value.reason == "INVALID_DEFINITION"
    assert "\n" not in caught.value.detail


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"\xff", b"\xef\xbb\xbf" + encode(definition()), encode(definition()) + b"x", b"[" * 9999]
)
def test_files_that_are_no_definition(raw: bytes) -> None:
    with pytest.raises(HeldBackError) as caught:
        read_definition(raw)
    assert caught.value.reason == "INVALID_DEFINITION"


def test_duplicate_keys_in_a_definition_the_last_wins() -> None:
    doubled = encode(definition()).replace(b'"op_type"', b'"op_type": "first", "op_type"', 1)
    assert read_definition(doubled).operation.digest == read_definition(definition()).operation.digest


# WorkloadCase


def test_workload() -> None:
    given_workload = workload(8, tolerance={"max_atol": 0.01, "max_rtol": 0})
    assert workload_spec(given_workload) == {
        "operationSpecDigest": read_definition(definition()).operation.digest,
        "axes": {"rows": 8},
        "tensors": {"x": {"shape": [8, 64], "dtype": "bf16", "data": {"generator": "random"}}},
        "scalars": {"scale": {"dtype": "fp32", "value": 0.5}},
        "correctness": {"comparator": "sol_execbench_eval", "maxAbsoluteError": 0.01, "maxRelativeError": 0},
    }


@pytest.mark.parametrize(
    ("tolerance", "bounds"),
    [
        (None, {}),
        ({}, {}),
        ({"max_atol": None, "max_rtol": 0.5}, {"maxRelativeError": 0.5}),
        ({"max_atol": 1e-7}, {"maxAbsoluteError": 1e-7}),
        ({"max_atol": 1, "required_matched_ratio": 0.9}, {"maxAbsoluteError": 1}),
    ],
)
def test_tolerance(tolerance: Any, bounds: dict[str, float]) -> None:
    spec = workload_spec(workload(8, tolerance=tolerance))
    assert spec["correctness"] == {"comparator": "sol_execbench_eval"} | bounds


@pytest.mark.parametrize(
    ("described", "tensors", "scalars"),
    [
        ({"type": "random"}, {"x": {"generator": "random"}}, None),
        ({"type": "safetensors", "path": "p", "tensor_key": "k"}, {"x": {"generator": "safetensors"}}, None),
        ({"type": "zeros"}, {"x": {"generator": "random"}}, None),  # any type but safetensors is random
        (None, {"x": None}, None),  # not described
        ({"type": "scalar", "value": 3}, {}, {"x": {"dtype": "bf16", "value": 3}}),  # whatever the declared shape
        ({"type": "scalar", "value": 1e-7}, {}, {"x": {"dtype": "bf16", "value": 1e-7}}),
        ({"type": "scalar", "value": -0.0}, {}, {"x": {"dtype": "bf16", "value": -0.0}}),
        ({"type": "scalar", "value": "3"}, {}, None),  # without a number: left out
        ({"type": "scalar"}, {}, None),
        ({"type": "scalar", "value": None}, {}, None),
        ({"type": "scalar", "value": True}, {}, None),
        ({"type": "scalar", "value": float("nan")}, {}, None),
    ],
)
def test_inputs(described: Any, tensors: dict[str, Any], scalars: dict[str, Any] | None) -> None:
    inputs = {} if described is None else {"x": described}
    spec = workload_spec(workload(8, inputs=inputs))
    assert {name: tensor.get("data") for name, tensor in spec["tensors"].items()} == tensors
    assert spec.get("scalars") == scalars


def test_a_scalar_argument_without_a_value_is_left_out() -> None:
    spec = workload_spec(workload(8, inputs={"scale": {"type": "random"}}))
    assert set(spec["tensors"]) == {"x"}
    assert "scalars" not in spec


AXES = {
    "Late": {"type": "expr", "expression": "half + 1"},
    "B": {"type": "var"},
    "Half": {"type": "expr", "expression": "(B + K) // 2"},
    "Last": {"type": "expr", "expression": "Half % 5"},
    "K": {"type": "const", "value": 7},
}


@pytest.mark.parametrize(
    ("shape", "axes", "bound"),
    [
        (["B", "K", "Half", "Last"], {"B": 4}, [4, 7, 5, 0]),  # constants count wherever they stand
        (["K"], {"B": 4, "K": 9}, [9]),  # the workload's axes first
        (["Half", "Last"], {"B": 4, "Half": 8}, [8, 3]),
        (["B"], {"b": 0}, [0]),
        (["B"], {"B": SAFE_INTEGER}, [SAFE_INTEGER]),
        (["B"], {"B": 4.0}, [4]),
        ([3, "B"], {"B": 1, "other": 5}, [3, 1]),
    ],
)
def test_bound_dimensions(shape: list[Any], axes: dict[str, Any], bound: list[int]) -> None:
    definitions = {name: axis for name, axis in AXES.items() if name != "Late"}
    inputs = {"x": {"shape": shape, "dtype": "int8"}}
    spec = workload_spec(workload(axes=axes), axes=definitions, inputs=inputs, outputs={})
    assert spec["tensors"]["x"]["shape"] == bound
    assert spec["axes"] == {name.lower(): int(value) for name, value in axes.items()}


@pytest.mark.parametrize(
    ("axes", "shape", "values", "reason"),
    [
        (AXES, ["B"], {"B": 4}, "UNBOUND_AXIS"),  # a derived axis uses only what is bound before it
        ({"B": AXES["B"]}, ["B"], {}, "UNBOUND_AXIS"),
        ({"B": AXES["B"]}, ["B", "unknown"], {"B": 1}, "UNBOUND_AXIS"),
        ({"Z": {"type": "expr", "expression": "B // 0"}, "B": AXES["B"]}, ["B"], {"B": 1}, "UNBOUND_AXIS"),
        ({"Z": {"type": "expr", "expression": "B % (B - B)"}, "B": AXES["B"]}, ["B"], {"B": 1}, "UNBOUND_AXIS"),
        ({"Z": {"type": "expr", "expression": "B - 5"}, "B": AXES["B"]}, ["Z"], {"B": 1}, "AXIS_OUT_OF_RANGE"),
        ({"Z": {"type": "expr", "expression": "B * B"}, "B": AXES["B"]}, ["Z"], {"B": 2**52}, "AXIS_OUT_OF_RANGE"),
        ({"B": AXES["B"]}, ["B"], {"B": -1}, "AXIS_OUT_OF_RANGE"),
        ({"B": AXES["B"]}, ["B"], {"B": 2**53}, "AXIS_OUT_OF_RANGE"),
        ({"B": AXES["B"]}, ["B"], {"B": 10**400}, "AXIS_OUT_OF_RANGE"),
        ({"B": AXES["B"]}, ["B"], {"B": 1e300}, "AXIS_OUT_OF_RANGE"),
        ({"B": AXES["B"]}, ["B"], {"B": float("inf")}, "AXIS_OUT_OF_RANGE"),
        # Both: the first of the order.
        ({"B": AXES["B"]}, ["unknown"], {"B": -1}, "AXIS_OUT_OF_RANGE"),
        (
            {
                "Y": {"type": "expr", "expression": "nobody + 1"},
                "Z": {"type": "expr", "expression": "B - 5"},
                "B": AXES["B"],
            },
            ["B"],
            {"B": 1},
            "AXIS_OUT_OF_RANGE",
        ),
    ],
)
def test_axes_without_a_good_value(axes: Any, shape: list[Any], values: dict[str, Any], reason: str) -> None:
    catalog = known(axes=axes, inputs={"x": {"shape": shape, "dtype": "int8"}}, outputs={})
    outcome = read(trace(workload=workload(axes=values)), catalog)
    assert isinstance(outcome, Held)
    assert outcome.reason == reason


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ({"rows": 184}, b'{"rows":184}'),
        ({"rows": 8, "Beam": 2, "a": 1}, b'{"Beam":2,"a":1,"rows":8}'),
    ],
)
def test_a_workload_without_uuid_is_named_by_its_axes(axes: dict[str, int], text: bytes) -> None:
    outcome = run(trace(workload=workload(axes=axes, uuid=None)))
    assert outcome.workload.uuid == hashlib.sha256(text).hexdigest()[:12]
    assert len(outcome.legacy_forms) == 1


def test_a_uuid_and_the_tensor_file_are_no_part_of_a_workload_but_known_beside_it() -> None:
    def reading(path: str, uuid: str) -> ReadRun:
        described = {"x": {"type": "safetensors", "path": path, "tensor_key": "k"}}
        return run(trace(workload=workload(8, inputs=described, uuid=uuid)))

    one, other = reading("a.safetensors", "1"), reading("b.safetensors", "2")
    assert one.workload.manifest.digest == other.workload.manifest.digest
    assert one.workload.inputs_sha256 != other.workload.inputs_sha256
    assert one.workload.tensor_files
    assert not run(trace()).workload.tensor_files


@pytest.mark.parametrize("depth", [10, 200, 260, 400, 600, 900])
@pytest.mark.parametrize("place", ["value", "unknown field", "uuid-less"])
def test_a_deeply_nested_workload_is_an_outcome_not_a_crash(depth: int, place: str) -> None:
    """A record is data: whatever it nests, it is read or held back."""
    nested = "[" * depth + "]" * depth
    document = trace(workload=workload(8, inputs={"x": {"type": "random", "value": "HERE"}}))
    if place == "unknown field":
        document = trace(workload=workload(8, novel="HERE"))
    elif place == "uuid-less":
        document = trace(workload=workload(8, uuid=None, inputs={"x": {"type": "scalar", "value": "HERE"}}))
    outcome = read(json.dumps(document).replace('"HERE"', nested).encode())
    if isinstance(outcome, Held):
        assert outcome.reason in ("INVALID_JSON", "SCHEMA_VIOLATION")


def test_workload_lines() -> None:
    adapter = FlashInferBench()
    good, bad = adapter.read_workloads([record(workload_line(8)), record(b"{")], known())
    assert isinstance(good, ReadWorkload)
    assert good.workload.manifest.digest == run(trace(8)).workload.manifest.digest
    assert isinstance(bad, Held)
    assert bad.reason == "INVALID_JSON"


# ImplementationRevision


def implementation_spec(path: str = SOLUTION, project: Project = NOWHERE, **changes: Any) -> Any:
    return read_solution(solution(**changes), path, project).manifest.document["spec"]


CODE = b"def run(x, scale): ...\n"


def test_implementation() -> None:
    assert implementation_spec(project=Project(REPOSITORY, REVISIONS[0])) == {
        "projectRevision": {"repository": REPOSITORY, "commit": REVISIONS[0]},
        "operation": {"specDigest": read_definition(definition()).operation.digest},
        "callable": {"language": "python", "path": "main.py", "symbol": "run"},
        "support": {
            "hardwareArchitectures": ["unknown"],
            "productsTested": ["NVIDIA B200"],
            "dtypes": ["bf16", "fp32"],
        },
        "source": {
            "contentDigest": "sha256:" + hashlib.sha256(CODE).hexdigest(),
            "fileName": "main.py",
            "sizeBytes": len(CODE),
        },
        "licensing": {"declared": "Apache-2.0", "concluded": "Apache-2.0"},
    }


@pytest.mark.parametrize(
    ("project", "revision"),
    [
        (NOWHERE, {}),
        (Project(REPOSITORY, None), {"repository": REPOSITORY}),
        (Project(None, REVISIONS[1]), {"commit": REVISIONS[1]}),
    ],
)
def test_each_part_of_the_project_revision_may_be_absent(project: Project, revision: dict[str, str]) -> None:
    assert implementation_spec(project=project)["projectRevision"] == revision


@pytest.mark.parametrize(
    ("targets", "architectures", "products"),
    [
        (None, ["unknown"], []),
        ([], ["unknown"], []),
        (["LOCAL"], ["unknown"], []),
        (["LOCAL", "B200"], ["sm_100"], ["NVIDIA B200"]),
        (
            ["H100", "B200", "NVIDIA_B200", "A100"],
            ["sm_100", "sm_80", "sm_90"],
            ["NVIDIA A100", "NVIDIA B200", "NVIDIA H100"],
        ),
        (["cpu", "NVIDIA H100", "H100"], ["sm_90", "unknown"], ["NVIDIA H100", "cpu"]),
    ],
)
def test_support(targets: list[str] | None, architectures: list[str], products: list[str]) -> None:
    spec = {"language": "python", "entry_point": "main.py::run", "target_hardware": targets}
    support = implementation_spec(spec=spec)["support"]
    assert (support["hardwareArchitectures"], support["productsTested"]) == (architectures, products)


TWO = [{"path": "a.h", "content": "header"}, {"path": "src/main.cu", "content": "é"}]


@pytest.mark.parametrize(
    ("entry", "sources", "path", "symbol", "source"),
    [
        ("src/main.cu::run", TWO, "src/main.cu", "run", ("é".encode(), "src/main.cu")),
        ("a.h::ns::run", TWO, "a.h", "ns::run", (b"header", "a.h")),
        ("src/main.cu", TWO, "src/main.cu", None, ("é".encode(), "src/main.cu")),
        ("missing.py::run", TWO, "a.h", "run", (b"header", "a.h")),  # else the first
        (None, TWO, "a.h", None, (b"header", "a.h")),
        ("main.py::run", [{"path": "main.py", "content": ""}], "main.py", "run", None),  # absent where it is empty
        ("main.py::run", [], None, "run", None),
    ],
)
def test_primary_source(
    entry: str | None, sources: list[Any], path: str | None, symbol: str | None, source: tuple[bytes, str] | None
) -> None:
    spec = implementation_spec(spec={"language": "CUDA_CPP", "entry_point": entry}, sources=sources)
    expected = {"language": "cuda", "path": path, "symbol": symbol}
    assert spec["callable"] == {name: value for name, value in expected.items() if value is not None}
    if source is None:
        assert "source" not in spec
    else:
        text, name = source
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        assert spec["source"] == {"contentDigest": digest, "fileName": name, "sizeBytes": len(text)}


@pytest.mark.parametrize(
    ("folder", "said", "author", "role"),
    [
        ("baseline", "gpt-5", "baseline", "baseline"),
        ("gpt-5", "baseline", "gpt-5", "llm-generated"),  # generated code never reads as a baseline
        ("Baseline", "baseline", "Baseline", "llm-generated"),
        ("some one\u2011else", None, "some one\u2011else", "llm-generated"),
        ("non\u00a0breaking", "x", "non\u00a0breaking", "llm-generated"),
    ],
)
def test_the_role_comes_from_the_author_folder(folder: str, said: str | None, author: str, role: str) -> None:
    path = f"solutions/{folder}/elementwise/scale_rows/scale_torch.json"
    read_back = read_solution(solution(author=said), path, Project(REPOSITORY, REVISIONS[0]))
    assert (read_back.author, read_back.role) == (author, role)
    metadata = read_back.manifest.document["metadata"]
    assert metadata["labels"] == {"role": role}
    assert metadata["authors"] == [{"name": author}]
    assert (
        load_manifest(read_back.manifest.text.encode()).digest
        == read_solution(solution(), project=Project(REPOSITORY, REVISIONS[0])).manifest.digest
    )


def test_all_sources_have_a_digest_of_their_own() -> None:
    def sources(**contents: str) -> str:
        files = [{"path": path, "content": text} for path, text in contents.items()]
        return read_solution(solution(sources=files, spec={"language": "c", "entry_point": "a::run"})).sources_sha256

    digests = {path: "sha256:" + hashlib.sha256(text).hexdigest() for path, text in (("a", b"1"), ("b", b"2"))}
    assert sources(a="1", b="2") == sources(b="2", a="1") == sha256_of(canonical_text(digests))
    assert sources(a="1", b="3") != sources(a="1", b="2")


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd", "../x", "a/../../x", "a/..", "..", "a\\b", "..\\x", "C:\\x", "C:x", "a\x00b", "a\nb", "/",
        "\x7f",
    ],
)  # fmt: skip
def test_unsafe_source_paths(path: str) -> None:
    with pytest.raises(HeldBackError) as caught:
        read_solution(solution(sources=[{"path": "main.py", "content": "x"}, {"path": path, "content": "x"}]))
    assert caught.value.reason == "UNSAFE_SOURCE_PATH"


def test_an_unsafe_entry_point() -> None:
    with pytest.raises(HeldBackError) as caught:
        read_solution(solution(spec={"language": "python", "entry_point": "../../etc/cron.d/x::run"}))
    assert caught.value.reason == "UNSAFE_SOURCE_PATH"


@pytest.mark.parametrize("path", ["main.py", "a/b/c.cu", "..a", "a..b/c", "with space", "é", ".hidden"])
def test_safe_source_paths(path: str) -> None:
    assert implementation_spec(sources=[{"path": path, "content": "x"}])["callable"]["path"] == path


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"\xef\xbb\xbf{}", encode(solution(definition="unknown"))])
def test_files_that_are_no_solution_yet(raw: bytes) -> None:
    with pytest.raises(HeldBackError) as caught:
        read_solution(raw)
    assert caught.value.reason == "INVALID_SOLUTION"


# BenchmarkRun


def test_run() -> None:
    outcome = run(trace(8, 0.0115, log="é\n", timestamp="2026-03-02T10:00:01.123456"))
    log = "sha256:" + hashlib.sha256("é\n".encode()).hexdigest()
    assert outcome.run.document["spec"] == {
        "implementationDigest": IMPLEMENTATION,
        "workloadDigest": outcome.workload.manifest.digest,
        "protocolDigest": "sha256:7d44d206ad086b4bece35ce31f6531ebb11f07e0d9dcfb74c75be86d3ec02095",
        "environmentDigest": outcome.environment.digest,
        "status": "passed",
        "correctness": {"comparator": "sol_execbench_eval", "maximumAbsoluteError": 0, "maximumRelativeError": 0},
        "timing": {"primaryStatistic": "mean", "latencyNs": {"mean": 11500}},
        "sourceNative": {
            "source": "flashinfer-bench",
            "benchmark": "scale_rows",
            "metrics": {"latency_ms": 0.0115, "reference_latency_ms": 0.05, "speedup_factor": 2.5},
        },
        "evidence": {"logs": {"uri": f"kernelindex:artifact/{log}", "digest": log}},
        "observedAt": "2026-03-02T10:00:01.123Z",
    }
    assert outcome.timezone_assumed


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("PASSED", "passed"),
        ("INCORRECT_SHAPE", "incorrect_shape"),
        ("INCORRECT_NUMERICAL", "incorrect_numerical"),
        ("INCORRECT_DTYPE", "incorrect_dtype"),
        ("RUNTIME_ERROR", "runtime_error"),
        ("COMPILE_ERROR", "compile_error"),
        ("TIMEOUT", "timeout"),
        ("REWARD_HACK", "suspected_reward_hack"),
        ("INVALID_REFERENCE", "invalid_reference"),
        ("INCORRECT", "incorrect_numerical"),  # older
    ],
)
def test_statuses(written: str, status: str) -> None:
    assert run_spec(status=written)["status"] == status


@pytest.mark.parametrize("written", ["", "passed", "PASSED ", "PASSED_MAYBE", "REVOKED", "SUSPECTED_REWARD_HACK"])
def test_unknown_statuses(written: str) -> None:
    outcome = read(trace(status=written))
    assert isinstance(outcome, Held)
    assert outcome.reason == "UNKNOWN_STATUS"


@pytest.mark.parametrize(
    ("correctness", "bounds", "not_finite"),
    [
        (None, None, False),
        ({}, {}, False),
        ({"max_absolute_error": None, "max_relative_error": 0.5}, {"maximumRelativeError": 0.5}, False),
        ({"max_absolute_error": "Infinity", "max_relative_error": 1}, {"maximumRelativeError": 1}, True),
        ({"max_absolute_error": "NaN", "max_relative_error": "NaN"}, {}, True),
        ({"max_absolute_error": float("inf")}, {}, True),
        ({"max_absolute_error": 2.5}, {"maximumAbsoluteError": 2.5}, False),
    ],
)
def test_correctness(correctness: Any, bounds: dict[str, float] | None, not_finite: bool) -> None:
    outcome = run(trace(correctness=correctness))
    spec = outcome.run.document["spec"]
    expected = None if bounds is None else {"comparator": "sol_execbench_eval"} | bounds
    assert spec.get("correctness") == expected
    assert outcome.error_not_finite is not_finite


@pytest.mark.parametrize(
    ("performance", "timing", "metrics"),
    [
        (None, None, None),
        ({}, None, None),
        ({"latency_ms": 2}, 2_000_000, {"latency_ms": 2}),
        ({"latency_ms": None, "speedup_factor": 3}, None, {"speedup_factor": 3}),
        (
            {"latency_ms": 0.5, "reference_latency_ms": "NaN", "speedup_factor": "Infinity"},
            500_000,
            {"latency_ms": 0.5},
        ),
        ({"latency_ms": 0.5, "reference_latency_ms": 0, "speedup_factor": 0.0}, 500_000, "all"),
    ],
)
def test_performance_of_a_failed_run(performance: Any, timing: int | None, metrics: Any) -> None:
    spec = run_spec(status="RUNTIME_ERROR", performance=performance)
    assert (spec["timing"]["latencyNs"]["mean"] if "timing" in spec else None) == timing
    expected = performance if metrics == "all" else metrics
    assert spec["sourceNative"].get("metrics") == expected


@pytest.mark.parametrize(("log", "kept"), [("", False), (None, False), (" ", True), ("\x1b[31m<script>", True)])
def test_logs(log: str | None, kept: bool) -> None:
    assert ("evidence" in run_spec(log=log)) is kept


@pytest.mark.parametrize(
    ("latency", "latency_ns"),
    [(5e-7, 1), (0.13734333333333335, 137343), (1, 1_000_000), (9_007_199_254, 9_007_199_254_000_000)],
)
def test_latency(latency: float, latency_ns: int) -> None:
    outcome = run(trace(latency_ms=latency))
    assert outcome.latency_ns == latency_ns
    assert outcome.run.document["spec"]["timing"]["latencyNs"]["mean"] == latency_ns


def test_a_run_of_a_solution_for_another_definition_is_bound_to_its_own() -> None:
    catalog = known()
    catalog.operations["other"] = read_definition(definition("other", op_type="norm")).operation
    outcome = run(trace(of="other"), catalog)
    assert outcome.workload.manifest.spec.operation_spec_digest == catalog.operations["other"].digest
    assert outcome.implementation_digest == IMPLEMENTATION
    assert outcome.run.document["spec"]["sourceNative"]["benchmark"] == "other"


def test_the_implementation_is_no_part_of_the_comparison_key() -> None:
    catalog = known()
    catalog.implementations["scale_triton"] = "sha256:" + "cd" * 32
    one, other = run(trace(), catalog), run(trace(by="scale_triton", latency_ms=0.5), catalog)
    assert one.comparison_key == other.comparison_key
    assert one.run.digest != other.run.digest
    assert run(trace(status="TIMEOUT", performance=None)).comparison_key != one.comparison_key


def test_duplicate_keys_in_a_record_the_last_wins() -> None:
    raw = json.dumps(trace(latency_ms=0.5)).replace('"latency_ms"', '"latency_ms": 9, "latency_ms"').encode()
    assert run(raw).run.digest == run(trace(latency_ms=0.5)).run.digest


# Reasons, in their order

Damage = Callable[[dict[str, Any]], Any]


def _set(place: str, value: Any) -> Damage:
    def damage(document: dict[str, Any]) -> dict[str, Any]:
        *path, last = place.split(".")
        inner = document
        for name in path:
            if not isinstance(inner.get(name), dict):
                return document  # a fault before it took the place away
            inner = inner[name]
        inner[last] = value
        return document

    return damage


FAULTS: list[tuple[str, Damage]] = [
    ("SCHEMA_VIOLATION", _set("workload.axes.extra", "eight")),
    ("NO_EVALUATION", _set("evaluation", None)),
    ("UNKNOWN_STATUS", _set("evaluation.status", "NO_STATUS")),
    ("INVALID_TIMESTAMP", _set("evaluation.timestamp", "yesterday")),
    ("MISSING_PERFORMANCE", _set("evaluation.performance.latency_ms", None)),
    ("NON_POSITIVE_LATENCY", _set("evaluation.performance.latency_ms", 0)),
    ("UNKNOWN_DEFINITION", _set("definition", "nobody_defined_this")),
    ("UNKNOWN_SOLUTION", _set("solution", "nobody_knows_this")),
    ("AXIS_OUT_OF_RANGE", _set("workload.axes.other", -1)),
    ("UNBOUND_AXIS", lambda document: document["workload"]["axes"].pop("rows") and document),
]
ORDER = [reason for reason, _ in FAULTS]
SAME_PLACE = {"MISSING_PERFORMANCE", "NON_POSITIVE_LATENCY"}


@pytest.mark.parametrize(("reason", "damage"), FAULTS, ids=ORDER)
def test_every_reason(reason: str, damage: Damage) -> None:
    outcome = read(damage(trace()))
    assert isinstance(outcome, Held)
    assert outcome.reason == reason
    assert outcome.detail
    assert "\n" not in outcome.detail


@given(st.sets(st.sampled_from(range(len(FAULTS))), min_size=2))
def test_the_first_of_several_reasons(chosen: set[int]) -> None:
    if {ORDER[index] for index in chosen} >= SAME_PLACE:
        chosen -= {ORDER.index("NON_POSITIVE_LATENCY")}
    document: Any = trace()
    for index in sorted(chosen, reverse=True):
        document = FAULTS[index][1](document)
    outcome = read(document)
    assert isinstance(outcome, Held)
    assert outcome.reason == ORDER[min(chosen)]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\xff{not json", "INVALID_UTF8"),
        (b"{not json", "INVALID_JSON"),
        (b"\xef\xbb\xbf" + json.dumps(trace()).encode(), "INVALID_JSON"),
        (b"[1, 2, 3]", "SCHEMA_VIOLATION"),
        (json.dumps(trace(status="NO_STATUS", log="\ud800")).encode(), "SCHEMA_VIOLATION"),
        (json.dumps(trace(of="nobody", log="\ud800")).encode(), "SCHEMA_VIOLATION"),
        (json.dumps(trace(latency_ms=float("nan"))).encode(), "NON_POSITIVE_LATENCY"),
        (json.dumps(trace(latency_ms="Infinity")).encode(), "NON_POSITIVE_LATENCY"),
        (json.dumps(trace(latency_ms="HERE")).replace('"HERE"', "1e999").encode(), "NON_POSITIVE_LATENCY"),
        (json.dumps(trace(latency_ms=-1)).encode(), "NON_POSITIVE_LATENCY"),
        (json.dumps(trace(latency_ms=1e-9)).encode(), "NON_POSITIVE_LATENCY"),
        (json.dumps(trace(performance=None)).encode(), "MISSING_PERFORMANCE"),
        (json.dumps(trace(performance={})).encode(), "MISSING_PERFORMANCE"),
        (json.dumps(trace(by=None)).encode(), "UNKNOWN_SOLUTION"),
        (json.dumps(trace(by=None, of="nobody")).encode(), "UNKNOWN_DEFINITION"),
        (json.dumps(trace(by="")).encode(), "UNKNOWN_SOLUTION"),
    ],
)
def test_reasons_of_single_records(raw: bytes, reason: str) -> None:
    outcome = read(raw)
    assert isinstance(outcome, Held)
    assert outcome.reason == reason


def test_a_record_that_is_too_long_is_not_looked_into() -> None:
    long = Record(1, 0, MAX_RECORD_BYTES + 1, IMPLEMENTATION, None)
    (outcome,) = FlashInferBench().read_runs([long], known())
    assert isinstance(outcome, Held)
    assert outcome.reason == "LINE_TOO_LONG"


def test_one_outcome_a_record_in_their_order() -> None:
    records = [record(trace(8)), record(b"{"), record(trace(16)), record(trace(status="X"))]
    outcomes = FlashInferBench().read_runs(records, known())
    assert [outcome.record for outcome in outcomes] == records
    assert [isinstance(outcome, Held) for outcome in outcomes] == [False, True, False, True]


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["scale_rows", "scale_torch", "PASSED", "Infinity", "2026-03-02T10:00:01Z", "random", "scalar"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
), st.sampled_from([
    "definition", "workload", "solution", "evaluation", "workload.axes", "workload.axes.rows", "workload.inputs",
    "workload.inputs.x", "workload.inputs.x.type", "workload.inputs.scale.value", "workload.uuid", "workload.tolerance",
    "evaluation.status", "evaluation.environment", "evaluation.environment.hardware", "evaluation.environment.libs",
    "evaluation.environment.libs.torch", "evaluation.timestamp", "evaluation.log", "evaluation.correctness",
    "evaluation.correctness.max_relative_error", "evaluation.performance", "evaluation.performance.latency_ms",
    "evaluation.performance.speedup_factor",
]))  # fmt: skip
def test_any_value_anywhere_gives_an_outcome(value: Any, place: str) -> None:
    document = _set(place, value)(trace())
    outcome = read(json.dumps(document).encode())
    if isinstance(outcome, ReadRun):
        assert load_manifest(outcome.run.text.encode()).digest == outcome.run.digest
        assert load_manifest(outcome.environment.text.encode()).digest == outcome.environment.digest
        assert load_manifest(outcome.workload.manifest.text.encode()).digest == outcome.workload.manifest.digest
