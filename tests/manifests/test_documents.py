from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ManifestError
from pipeline.manifests import KINDS, Manifest, load_manifest, parse_manifest
from pipeline.manifests.scalars import SAFE_INTEGER

API = "kernelindex.dev/v1alpha1"
DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ARTIFACT = {"uri": f"kernelindex:artifact/{DIGEST}", "digest": DIGEST}

METADATA = {
    "name": "a.name_with-everything",
    "title": "Title",
    "description": "",
    "labels": {"role": "baseline"},
    "authors": [{"name": "Ada", "github": "ada"}],
    "sourceRefs": [{"url": "https://example.org/x"}],
}

# Every field that the models know, once.
FULL: dict[str, dict[str, Any]] = {
    "OperationSpec": {
        "family": "gqa-paged",
        "axes": {
            "k": {"role": "constant", "type": "integer", "value": 2048},
            "m": {"role": "variable", "type": "integer", "minimum": 0, "maximum": 65536},
            "half": {"role": "derived", "type": "integer", "expression": "(k + m) // 2"},
        },
        "inputs": [
            {"name": "x", "tensor": {"shape": ["m", 2048], "dtype": "fp8_e4m3", "layout": "row_major"}},
            {"name": "eps", "scalar": {"dtype": "fp32"}},
        ],
        "outputs": [{"name": "y", "tensor": {"shape": ["half"], "dtype": "bf16", "layout": "strided"}}],
        "semantics": {"expression": "y = x", "mutation": "in_place", "determinism": "deterministic"},
        "reference": {"language": "python", "artifact": ARTIFACT},
    },
    "WorkloadCase": {
        "operationSpecDigest": DIGEST,
        "axes": {"m": 0, "n": SAFE_INTEGER},
        "tensors": {
            "x": {
                "shape": [1, 2048],
                "dtype": "bf16",
                "strides": [2048, 1],
                "alignmentBytes": 16,
                "data": {"generator": "random", "seed": 7, "parameters": {"std": 0.5, "n": 3}, "artifact": ARTIFACT},
            }
        },
        "scalars": {"eps": {"dtype": "fp32", "value": 1e-6}},
        "correctness": {
            "comparator": "sol_execbench_eval",
            "maxAbsoluteError": 0.01,
            "maxRelativeError": 0,
            "requiredMatchedRatio": 0.99,
            "nanPolicy": "reject",
            "infinityPolicy": "exact_match",
        },
    },
    "ImplementationRevision": {
        "projectRevision": {"repository": "https://a.b/c", "commit": COMMIT, "version": "v1", "treeDigest": DIGEST},
        "operation": {"specDigest": DIGEST},
        "callable": {"language": "cuda", "path": "main.cu", "symbol": "run", "interface": "torch"},
        "support": {
            "hardwareArchitectures": ["sm_100", "unknown"],
            "productsTested": [],
            "dtypes": ["bf16", "int32"],
            "axes": {"m": {"minimum": 1, "maximum": 64}},
            "layouts": ["row_major"],
        },
        "source": {"contentDigest": DIGEST, "fileName": "main.cu", "sizeBytes": 10},
        "buildVariants": [{"name": "default", "install": "pip install x", "requirements": ["torch"]}],
        "licensing": {"declared": "Apache-2.0", "concluded": "Apache-2.0", "evidence": ARTIFACT},
    },
    "SoftwareProject": {
        "name": "FlashInfer",
        "kind": "library",
        "repository": "https://github.com/flashinfer-ai/flashinfer",
        "homepage": "https://flashinfer.ai",
        "host": {"kind": "github", "id": "42"},
        "packages": [{"ecosystem": "pypi", "name": "flashinfer"}],
    },
    "BenchmarkProtocol": {
        "harness": {"name": "h", "repository": "https://a.b/c", "version": "1", "commit": COMMIT},
        "measurement": {
            "timer": "cuda_events",
            "primaryStatistic": "median",
            "synchronization": "per_call",
            "compileIncluded": False,
            "setupIncluded": False,
            "warmupIterations": 10,
            "warmupDuration": "100ms",
            "measuredIterations": 100,
            "samples": 5,
            "inputRegeneration": "never",
            "outlierPolicy": "none",
        },
        "devicePolicy": {"clocksLocked": True, "powerLimitWatts": 700, "persistenceMode": True},
        "correctness": {"reference": "torch", "comparator": "allclose"},
        "comparability": {"family": "f", "notes": "n"},
    },
    "ExecutionEnvironment": {
        "hardware": {
            "vendor": "nvidia",
            "product": "NVIDIA B200",
            "architecture": "sm_100",
            "formFactor": "SXM",
            "memoryBytes": 180_000_000_000,
            "count": 8,
            "interconnect": "NVLink",
        },
        "software": {
            "cudaToolkit": "13.0",
            "framework": {"name": "pytorch", "version": "2.11.0"},
            "libraries": {"triton": "3.6.0"},
            "operatingSystem": "Linux",
            "kernel": "6.8",
            "driver": "580",
            "compiler": "gcc 13",
        },
        "settings": {"clock": "boost"},
        "imageDigest": DIGEST,
    },
    "BenchmarkRun": {
        "implementationDigest": DIGEST,
        "workloadDigest": DIGEST,
        "protocolDigest": DIGEST,
        "environmentDigest": DIGEST,
        "status": "passed",
        "correctness": {
            "comparator": "c",
            "maximumAbsoluteError": 0.5,
            "maximumRelativeError": 0,
            "matchedRatio": 1,
        },
        "timing": {
            "primaryStatistic": "mean",
            "latencyNs": {
                "mean": 10, "median": 9.5, "p05": 8, "p95": 12, "minimum": 7, "maximum": 13, "mad": 0.5,
                "confidence95": [8, 12.5],
            },
            "samples": 100,
            "rawSamples": ARTIFACT,
        },
        "measurements": [{"metric": "power", "unit": "W", "statistic": "mean", "value": 700.5, "sampleCount": 3}],
        "sourceNative": {"source": "s", "benchmark": "b", "externalId": "1", "metrics": {"latency_ms": 0.5}},
        "evidence": {"logs": ARTIFACT, "rawSamples": ARTIFACT, "harness": ARTIFACT},
        "observedAt": "2026-06-06T21:33:43.574Z",
    },
}  # fmt: skip


def document(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": dict(METADATA), "spec": FULL[kind] | spec}


def load(value: Any) -> Manifest:
    return load_manifest(json.dumps(value).encode())


def changed(value: Any, place: str, new: Any) -> Any:
    """A copy with the value at a dotted place replaced."""
    name, _, rest = place.partition(".")
    key: Any = int(name) if isinstance(value, list) else name
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[key] = changed(copy.get(key, {}) if isinstance(copy, dict) else copy[key], rest, new) if rest else new
    return copy


def places(value: Any, place: str = "") -> list[str]:
    """The dotted place of every object inside a document."""
    found = []
    if isinstance(value, dict):
        found.append(place)
        for name, inner in value.items():
            found += places(inner, f"{place}.{name}".strip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, f"{place}.{index}")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_contract_is_known_and_kept(kind: str) -> None:
    given_document = document(kind)
    manifest = load(given_document)
    assert json.loads(manifest.text) == given_document
    assert load_manifest(manifest.text.encode()).digest == manifest.digest
    assert parse_manifest(manifest.document).digest == manifest.digest


# Objects whose keys are names chosen by the writer, so that another one is no unknown field.
OPEN = ("labels", "axes", "tensors", "scalars", "parameters", "libraries", "settings", "metrics")


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (kind, place)
        for kind in KINDS
        for place in places({"apiVersion": API, "kind": kind, "metadata": METADATA, "spec": FULL[kind]})
        if place.split(".")[-1] not in OPEN
    ],
)
def test_an_unknown_field_is_refused_wherever_it_stands(kind: str, place: str) -> None:
    with pytest.raises(ManifestError, match="surprise"):
        load(changed(document(kind), f"{place}.surprise".strip("."), 1))


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "7", '"x"', "{", "{}", '{"kind": "OperationSpec"}', '{"kind": 7}', '{"kind": ["x"]}',
        '{"kind": "BenchmarkRuns"}', '{"apiVersion": "kernelindex.dev/v1alpha1", "kind": "BenchmarkRun"}',
        "\ufeff{}", "{} {}", "[" * 100_000, '{"a":' * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_manifest(text: str) -> None:
    with pytest.raises(ManifestError):
        load_manifest(text.encode())


@pytest.mark.parametrize("depth", [100, 300, 500, 900, 950, 990])
def test_nesting_is_refused_with_a_sentence_at_any_depth(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    text = json.dumps(document("SoftwareProject", packages="HERE")).replace('"HERE"', nested)
    with pytest.raises(ManifestError):
        load_manifest(text.encode())


@pytest.mark.parametrize(
    ("plain", "doubled"),
    [
        (b'"count": 8', b'"count": 8, "count": 8'),
        (b'"triton"', b'"triton": "1", "triton"'),
        (b'"kind"', b'"kind": "ExecutionEnvironment", "kind"'),
        (b'"count"', b'"coun\\u0074": 1, "count"'),
    ],
)
def test_duplicate_keys_are_refused_at_every_level(plain: bytes, doubled: bytes) -> None:
    text = json.dumps(document("ExecutionEnvironment")).encode()
    load_manifest(text)
    assert plain in text
    with pytest.raises(ManifestError, match="twice"):
        load_manifest(text.replace(plain, doubled, 1))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("BenchmarkRun", "spec.timing.latencyNs.mean"),
        ("BenchmarkRun", "spec.timing.latencyNs.mad"),
        ("BenchmarkRun", "spec.timing.latencyNs.confidence95"),
        ("BenchmarkRun", "spec.sourceNative.metrics.speedup_factor"),
        ("BenchmarkRun", "spec.correctness.maximumAbsoluteError"),
        ("BenchmarkRun", "spec.measurements.0.value"),
        ("WorkloadCase", "spec.scalars.eps.value"),
        ("WorkloadCase", "spec.tensors.x.data.parameters.std"),
        ("WorkloadCase", "spec.correctness.maxAbsoluteError"),
        ("WorkloadCase", "spec.axes.m"),
        ("BenchmarkProtocol", "spec.devicePolicy.powerLimitWatts"),
        ("ExecutionEnvironment", "spec.settings.clock"),
    ],
)
def test_numbers_are_finite(kind: str, place: str, number: str) -> None:
    value: Any = ["HERE", 2] if place.endswith("confidence95") else "HERE"
    text = json.dumps(changed(document(kind), place, value)).replace('"HERE"', number)
    with pytest.raises(ManifestError):
        load_manifest(text.encode())


@pytest.mark.parametrize("number", [SAFE_INTEGER + 2, -SAFE_INTEGER - 2, 10**30 + 1])
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("OperationSpec", "spec.axes.k.value"),
        ("WorkloadCase", "spec.axes.m"),
        ("WorkloadCase", "spec.tensors.x.shape.0"),
        ("WorkloadCase", "spec.tensors.x.data.seed"),
        ("WorkloadCase", "spec.scalars.eps.value"),
        ("WorkloadCase", "spec.tensors.x.data.parameters.n"),
        ("WorkloadCase", "spec.correctness.maxAbsoluteError"),
        ("ImplementationRevision", "spec.source.sizeBytes"),
        ("ExecutionEnvironment", "spec.hardware.memoryBytes"),
        ("ExecutionEnvironment", "spec.settings.clock"),
        ("BenchmarkRun", "spec.timing.latencyNs.mean"),
        ("BenchmarkRun", "spec.timing.latencyNs.mad"),
        ("BenchmarkRun", "spec.sourceNative.metrics.latency_ms"),
        ("BenchmarkRun", "spec.correctness.maximumRelativeError"),
    ],
)
def test_integers_that_a_double_would_change_are_refused(kind: str, place: str, number: int) -> None:
    with pytest.raises(ManifestError):
        load(changed(document(kind), place, number))


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_refused_wherever_a_value_may_stand(kind: str) -> None:
    given_document = document(kind)
    for place in places(given_document):
        for name in changed(given_document, place, {}) if not place else _at(given_document, place):
            with pytest.raises(ManifestError, match=r"null|kind"):
                load(changed(given_document, f"{place}.{name}".strip("."), None))


def _at(value: Any, place: str) -> Any:
    for name in place.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


# fmt: off
REFUSED = [
    ("OperationSpec", "apiVersion", "kernelindex.dev/v1"),
    ("OperationSpec", "metadata.name", "Upper"), ("OperationSpec", "metadata.name", "-x"),
    ("OperationSpec", "metadata.name", ""), ("OperationSpec", "metadata.name", "a" * 201),
    ("OperationSpec", "metadata.name", "a\n"), ("OperationSpec", "metadata.labels", {"Role": "x"}),
    ("OperationSpec", "metadata.labels", {"role": 7}), ("OperationSpec", "metadata.sourceRefs", [{"url": "http://a.b"}]),
    ("OperationSpec", "spec.family", "Gemm"), ("OperationSpec", "spec.family", "a_b"),
    ("OperationSpec", "spec.family", "-a"), ("OperationSpec", "spec.family", "a" * 101),
    ("OperationSpec", "spec.axes.M", {"role": "variable", "type": "integer"}),
    ("OperationSpec", "spec.axes.k.value", "2048"), ("OperationSpec", "spec.axes.k.value", True),
    ("OperationSpec", "spec.axes.k.value", 1.5), ("OperationSpec", "spec.axes.k.role", "const"),
    ("OperationSpec", "spec.axes.k.expression", "m"), ("OperationSpec", "spec.axes.half.expression", "k ** 2"),
    ("OperationSpec", "spec.axes.half.expression", "K"), ("OperationSpec", "spec.axes.m.type", "float"),
    ("OperationSpec", "spec.inputs.0.name", "X"), ("OperationSpec", "spec.inputs.0.name", "1x"),
    ("OperationSpec", "spec.inputs.0.tensor.dtype", "BF16"), ("OperationSpec", "spec.inputs.0.tensor.layout", "csr"),
    ("OperationSpec", "spec.inputs.0.tensor.shape", ["M"]), ("OperationSpec", "spec.inputs.0.tensor.shape", [-1]),
    ("OperationSpec", "spec.inputs.0.scalar", {"dtype": "fp32"}), ("OperationSpec", "spec.inputs.0", {"name": "x"}),
    ("OperationSpec", "spec.inputs.1.name", "x"), ("OperationSpec", "spec.semantics.mutation", "some"),
    ("OperationSpec", "spec.semantics.determinism", "yes"),
    ("WorkloadCase", "spec.operationSpecDigest", "ab" * 32),
    ("WorkloadCase", "spec.operationSpecDigest", DIGEST.upper()),
    ("WorkloadCase", "spec.operationSpecDigest", DIGEST + "\n"),
    ("WorkloadCase", "spec.operationSpecDigest", DIGEST[:-1]),
    ("WorkloadCase", "spec.axes.m", -1), ("WorkloadCase", "spec.axes.m", 1.5), ("WorkloadCase", "spec.axes.m", "1"),
    ("WorkloadCase", "spec.tensors.x.shape", ["m"]), ("WorkloadCase", "spec.correctness.maxAbsoluteError", -0.5),
    ("WorkloadCase", "spec.correctness.requiredMatchedRatio", 1.5), ("WorkloadCase", "spec.correctness.nanPolicy", "x"),
    ("WorkloadCase", "spec.scalars.eps.value", "1"), ("WorkloadCase", "spec.scalars.eps.value", True),
    ("ImplementationRevision", "spec.projectRevision.commit", "abc"),
    ("ImplementationRevision", "spec.projectRevision.commit", COMMIT.upper()),
    ("ImplementationRevision", "spec.projectRevision.repository", "git@github.com:a/b"),
    ("ImplementationRevision", "spec.support.hardwareArchitectures", ["b", "a"]),
    ("ImplementationRevision", "spec.support.hardwareArchitectures", ["a", "a"]),
    ("ImplementationRevision", "spec.support.productsTested", ["a", "B"]),
    ("ImplementationRevision", "spec.support.productsTested", ["\U0001f600", "\ufb33"]),
    ("ImplementationRevision", "spec.support.dtypes", ["int32", "bf16"]),
    ("ImplementationRevision", "spec.support.layouts", ["b", "a"]),
    ("ImplementationRevision", "spec.source.sizeBytes", -1),
    ("SoftwareProject", "spec.kind", "company"),
    ("BenchmarkProtocol", "spec.measurement.primaryStatistic", "best"),
    ("BenchmarkRun", "spec.status", "PASSED"), ("BenchmarkRun", "spec.status", "unknown"),
    ("BenchmarkRun", "spec.observedAt", "2026-06-06T21:33:43Z"),
    ("BenchmarkRun", "spec.observedAt", "2026-06-06T21:33:43.5741Z"),
    ("BenchmarkRun", "spec.observedAt", "2026-06-06T21:33:43.574"),
    ("BenchmarkRun", "spec.observedAt", "2026-06-06 21:33:43.574Z"),
    ("BenchmarkRun", "spec.observedAt", "2026-06-06T21:33:43.574Z\n"),
    ("BenchmarkRun", "spec.observedAt", "٢٠٢٦-06-06T21:33:43.574Z"),
    ("BenchmarkRun", "spec.observedAt", "2026-13-06T21:33:43.574Z"),
    ("BenchmarkRun", "spec.observedAt", 1780000000),
    ("BenchmarkRun", "spec.timing", {"primaryStatistic": "mean", "latencyNs": {}}),
    ("BenchmarkRun", "spec.timing", {"primaryStatistic": "minimum", "latencyNs": {"minimum": 5}}),
    ("BenchmarkRun", "spec.timing.latencyNs.mean", 0), ("BenchmarkRun", "spec.timing.latencyNs.mean", -1),
    ("BenchmarkRun", "spec.timing.latencyNs.mean", "10"), ("BenchmarkRun", "spec.timing.latencyNs.mean", True),
    ("BenchmarkRun", "spec.timing.latencyNs.confidence95", [1]),
    ("BenchmarkRun", "spec.timing.latencyNs.confidence95", [1, 2, 3]),
    ("BenchmarkRun", "spec.correctness.matchedRatio", 1.5),
    ("BenchmarkRun", "spec.sourceNative.metrics", {"Latency": 1}),
    ("BenchmarkRun", "spec.sourceNative.metrics", {"a": "1"}),
]
# fmt: on


@pytest.mark.parametrize(("kind", "place", "value"), REFUSED)
def test_refused_with_its_place(kind: str, place: str, value: Any) -> None:
    load(document(kind))
    with pytest.raises(ManifestError) as caught:
        load(changed(document(kind), place, value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("ImplementationRevision", "spec.support.productsTested", ["B", "a"]),
        # By code point, not by UTF-16 unit.
        ("ImplementationRevision", "spec.support.productsTested", ["\ufb33", "\U0001f600"]),
        ("OperationSpec", "spec.family", "0" * 100),
        ("OperationSpec", "metadata.name", "0" * 200),
        ("OperationSpec", "spec.inputs.0.tensor.shape", []),
        ("BenchmarkRun", "spec.timing", {"primaryStatistic": "median", "latencyNs": {"median": 5}}),
        ("BenchmarkRun", "spec.timing.latencyNs.mean", 5e-324),
        ("BenchmarkRun", "spec.timing.latencyNs.mean", SAFE_INTEGER),
        ("BenchmarkRun", "spec.correctness.maximumAbsoluteError", 1e300),
    ],
)
def test_accepted_at_the_edge(kind: str, place: str, value: Any) -> None:
    manifest = load(changed(document(kind), place, value))
    assert load_manifest(manifest.text.encode()).digest == manifest.digest


@pytest.mark.parametrize("missing", ["apiVersion", "kind", "metadata", "spec"])
def test_a_manifest_has_four_parts(missing: str) -> None:
    value = document("SoftwareProject")
    del value[missing]
    with pytest.raises(ManifestError, match=missing):
        load(value)


@pytest.mark.parametrize(
    "status",
    [
        "incorrect_shape", "incorrect_numerical", "incorrect_dtype", "runtime_error", "compile_error", "timeout",
        "invalid_reference", "suspected_reward_hack", "resource_exceeded", "policy_violation", "incomplete_evidence",
        "revoked",
    ],
)  # fmt: skip
def test_only_a_passed_run_needs_a_latency(status: str) -> None:
    spec = {name: value for name, value in FULL["BenchmarkRun"].items() if name != "timing"}
    value = document("BenchmarkRun") | {"spec": spec | {"status": status}}
    assert json.loads(load(value).text)["spec"]["status"] == status
    with pytest.raises(ManifestError, match="latency"):
        load(value | {"spec": spec | {"status": "passed"}})


@given(
    st.text(),
    st.text(),
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), st.text(), max_size=3),
    st.permutations(["apiVersion", "kind", "metadata", "spec"]),
)
def test_metadata_and_key_order_never_change_a_digest(
    title: str, description: str, labels: dict[str, str], order: list[str]
) -> None:
    plain = document("WorkloadCase")
    metadata = {"name": "other", "title": title, "description": description, "labels": labels}
    edited = plain | {"metadata": metadata, "spec": dict(reversed(plain["spec"].items()))}
    assert load({name: edited[name] for name in order}).digest == load(plain).digest


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_stored_run_is_read_again_whatever_its_numbers(number: float) -> None:
    """``verify`` reads what was stored, and JCS writes 1e20 without a point or exponent."""
    manifest = load(changed(document("BenchmarkRun"), "spec.sourceNative.metrics", {"speedup_factor": number}))
    assert load_manifest(manifest.text.encode()).digest == manifest.digest


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("OperationSpec", "spec.semantics.mutation", "none"),
        ("WorkloadCase", "spec.axes.m", 1),
        ("ImplementationRevision", "spec.operation.specDigest", OTHER),
        ("ExecutionEnvironment", "spec.software.driver", "581"),
        ("BenchmarkRun", "spec.observedAt", "2026-06-06T21:33:43.575Z"),
    ],
)
def test_anything_in_the_spec_changes_the_digest(kind: str, place: str, value: Any) -> None:
    assert load(changed(document(kind), place, value)).digest != load(document(kind)).digest


def test_all_published_manifests_keep_their_digest(trace_set: Path) -> None:
    published = (trace_set / "flashinfer-trace-expected" / "published_manifests.jsonl").read_bytes().splitlines()
    wrong = []
    for line in published:
        row = json.loads(line)
        manifest = parse_manifest(row["manifest"])
        if manifest.digest != row["digest"] or load_manifest(manifest.text.encode()).digest != row["digest"]:
            wrong.append(row["digest"])
    assert wrong == []
    assert len(published) == 2388
