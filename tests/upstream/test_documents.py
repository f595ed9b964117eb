from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.upstream.decode import Decoded
from pipeline.upstream.documents import Parsed, Trace, read_definition, read_solution, read_trace
from pipeline.upstream.held import HeldBackError, Reason
from tests.trace_set import definition, solution, trace, workload_line


def parsed(*, bare: bool = False, from_document: bool = False) -> Parsed:
    return Parsed(Decoded(None, bare), from_document=from_document)


def put(value: Any, place: str, new: Any) -> Any:
    """A deep copy with the value at a dotted place replaced, or removed where the new one is ``...``."""
    value = copy.deepcopy(value)
    *path, last = place.split(".")
    inner = value
    for name in path:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    if new is ...:
        del inner[last]
    else:
        inner[int(last) if isinstance(inner, list) else last] = new
    return value


def read(value: Any) -> tuple[Trace, Parsed]:
    notes = parsed()
    return read_trace(value, notes), notes


def test_a_modern_document_has_no_peculiarity() -> None:
    notes = parsed()
    read_definition(definition(), notes)
    read_solution(solution(), notes)
    read_trace(trace(), notes)
    read_trace(workload_line(), notes)
    assert not notes.legacy
    assert not notes.drift


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("definition", ...), ("definition", ""), ("definition", None), ("definition", 7), ("workload", ...),
        ("workload", None), ("workload", []), ("workload.axes", ...), ("workload.axes", None), ("workload.axes", [8]),
        ("workload.axes.rows", "8"), ("workload.axes.rows", True), ("workload.axes.rows", None),
        ("workload.inputs", []), ("workload.inputs.x", "random"), ("workload.inputs.x.type", ...),
        ("workload.inputs.x.type", 1), ("workload.uuid", 7), ("workload.tolerance", {"max_atol": "1"}),
        ("workload.tolerance", {"max_rtol": float("nan")}), ("solution", 7), ("evaluation", []),
        ("evaluation", "PASSED"),
        ("evaluation.status", ...), ("evaluation.status", None), ("evaluation.status", 1),
        ("evaluation.environment", ...), ("evaluation.environment", None), ("evaluation.environment.hardware", ...),
        ("evaluation.environment.hardware", 7), ("evaluation.environment.libs", ["torch"]),
        ("evaluation.environment.libs.torch", 2.8), ("evaluation.timestamp", ...), ("evaluation.timestamp", 1780000000),
        ("evaluation.timestamp", None), ("evaluation.log", 7), ("evaluation.correctness", []),
        ("evaluation.correctness.max_relative_error", "small"), ("evaluation.correctness.max_absolute_error", True),
        ("evaluation.performance", 0.5), ("evaluation.performance.latency_ms", "fast"),
        ("evaluation.performance.latency_ms", "0.5"), ("evaluation.performance.latency_ms", True),
        ("evaluation.performance.latency_ms", [1]), ("evaluation.performance.speedup_factor", {}),
    ],
)  # fmt: skip
def test_schema_violations(place: str, value: Any) -> None:
    with pytest.raises(HeldBackError) as caught:
        read(put(trace(), place, value))
    assert caught.value.reason == Reason.SCHEMA_VIOLATION
    assert caught.value.detail


@pytest.mark.parametrize("value", [None, [], [trace()], "x", 7, 1.5, True])
def test_a_record_is_an_object(value: Any) -> None:
    with pytest.raises(HeldBackError) as caught:
        read(value)
    assert caught.value.reason == Reason.SCHEMA_VIOLATION


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("workload.axes.rows", 8.0),
        ("workload.inputs", ...),
        ("workload.inputs.x", {"type": "safetensors", "path": "p", "tensor_key": "k"}),
        ("workload.inputs.x", {"type": "a kind that came later"}),
        ("workload.tolerance", {"max_atol": 0.1, "max_rtol": None}),
        ("workload.tolerance", None),
        ("solution", None),
        ("evaluation", None),
        ("evaluation.log", None),
        ("evaluation.log", ...),
        ("evaluation.correctness", None),
        ("evaluation.correctness.max_relative_error", "Infinity"),
        ("evaluation.correctness.max_relative_error", "-Infinity"),
        ("evaluation.correctness.max_absolute_error", "NaN"),
        ("evaluation.correctness.extra", {"any": ["thing"]}),
        ("evaluation.performance", None),
        ("evaluation.performance.reference_latency_ms", None),
        ("evaluation.environment.libs", {}),
        ("evaluation.environment.libs", ...),
    ],
)
def test_forms_that_upstream_writes_today(place: str, value: Any) -> None:
    _, notes = read(put(trace(), place, value))
    assert not notes.legacy
    assert not notes.drift


def older_device(value: Any) -> Any:
    value["evaluation"]["environment"]["device"] = value["evaluation"]["environment"].pop("hardware")
    return value


def older_input(value: Any) -> Any:
    value["workload"]["inputs"]["x"] = {"format": "random"}
    return value


@pytest.mark.parametrize(
    "older",
    [
        pytest.param(older_device, id="device"),
        pytest.param(older_input, id="format"),
        pytest.param(lambda value: put(value, "workload.uuid", ...), id="no uuid"),
        pytest.param(lambda value: put(value, "workload.uuid", None), id="null uuid"),
        pytest.param(lambda value: put(value, "evaluation.status", "INCORRECT"), id="INCORRECT"),
    ],
)
def test_older_traces_mean_the_same_and_are_marked(older: Callable[[Any], Any]) -> None:
    modern = put(trace(), "evaluation.status", "INCORRECT_NUMERICAL")
    document, notes = read(older(copy.deepcopy(modern)))
    expected, _ = read(modern)
    assert len(notes.legacy) == 1
    assert not notes.drift
    assert document.evaluation == expected.evaluation
    assert document.workload.axes == expected.workload.axes
    assert document.workload.inputs == expected.workload.inputs


def test_an_older_definition_and_solution_mean_the_same_and_are_marked() -> None:
    older = definition()
    older["type"] = older.pop("op_type")
    notes = parsed()
    assert read_definition(older, notes) == read_definition(definition(), parsed())
    assert len(notes.legacy) == 1
    assert not notes.drift

    older = solution()
    older["spec"]["languages"] = [older["spec"].pop("language"), "cuda"]
    notes = parsed()
    assert read_solution(older, notes) == read_solution(solution(), parsed())
    assert len(notes.legacy) == 1
    assert not notes.drift


def test_the_modern_field_wins_beside_the_older_one() -> None:
    value = put(trace(), "evaluation.environment.device", "another")
    document, notes = read(value)
    assert document.evaluation is not None
    assert document.evaluation.environment.hardware == "NVIDIA B200"
    assert not notes.legacy
    assert dict(notes.drift) == {"evaluation.environment.device": 1}


def test_legacy_of_the_file_itself() -> None:
    assert len(parsed(bare=True).legacy) == 1
    assert len(parsed(bare=True, from_document=True).legacy) == 2


@pytest.mark.parametrize(
    ("place", "drift"),
    [
        ("novel", "novel"),
        ("workload.novel", "workload.novel"),
        ("evaluation.novel", "evaluation.novel"),
        ("evaluation.performance.novel", "evaluation.performance.novel"),
        ("workload.inputs.x.novel", "workload.inputs.*.novel"),
    ],
)
def test_an_unknown_field_is_drift_by_its_path(place: str, drift: str) -> None:
    _, notes = read(put(trace(), place, {"a": 1}))
    assert dict(notes.drift) == {drift: 1}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("name", ...), ("name", ""), ("op_type", ...), ("op_type", 7), ("axes", ...), ("axes", []),
        ("axes.rows", "var"),
        ("axes.rows.type", "variable"), ("axes.hidden.value", "64"), ("axes.hidden.value", 1.5),
        ("axes.hidden.value", float("inf")), ("inputs", ...), ("inputs", []), ("inputs.x.dtype", ...),
        ("inputs.x.shape", "rows"), ("inputs.x.shape", [1.5]), ("inputs.x.shape", [None]), ("outputs", ...),
        ("tags", "a"), ("reference", 7),
    ],
)  # fmt: skip
def test_invalid_definitions(place: str, value: Any) -> None:
    with pytest.raises(HeldBackError) as caught:
        read_definition(put(definition(), place, value), parsed())
    assert caught.value.reason == Reason.INVALID_DEFINITION


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("name", ...), ("name", ""), ("definition", ...), ("spec", ...), ("spec", []), ("spec.language", ...),
        ("spec.target_hardware", "B200"), ("spec.entry_point", 7), ("sources", ...), ("sources", {}),
        ("sources.0.path", ...), ("sources.0.content", ...), ("sources.0.content", 7), ("author", 7),
    ],
)  # fmt: skip
def test_invalid_solutions(place: str, value: Any) -> None:
    with pytest.raises(HeldBackError) as caught:
        read_solution(put(solution(), place, value), parsed())
    assert caught.value.reason == Reason.INVALID_SOLUTION


@pytest.mark.parametrize("languages", [[], [7], "python", None])
def test_a_solution_without_a_language(languages: Any) -> None:
    value = put(put(solution(), "spec.language", ...), "spec.languages", languages)
    with pytest.raises(HeldBackError) as caught:
        read_solution(value, parsed())
    assert caught.value.reason == Reason.INVALID_SOLUTION


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_a_document_is_an_object(value: Any) -> None:
    for reader, reason in ((read_definition, "INVALID_DEFINITION"), (read_solution, "INVALID_SOLUTION")):
        with pytest.raises(HeldBackError) as caught:
            reader(value, parsed())
        assert caught.value.reason == reason
