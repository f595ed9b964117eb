"""Lax models of upstream documents: unknown fields are kept as drift, types are not converted.

Sources: ``flashinfer_bench/data`` of the harness (definition, solution, workload, trace), and the older
forms found in published trace sets, each of which is normalized here and reported as a legacy form.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pipeline.manifests.documents import explain
from pipeline.upstream.decode import Decoded
from pipeline.upstream.held import HeldBackError, Reason

_NOT_FINITE_TEXT = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def _number_or_token(value: Any) -> Any:
    """Read the text forms that upstream gives to numbers that are not finite."""
    if isinstance(value, str) and value in _NOT_FINITE_TEXT:
        return _NOT_FINITE_TEXT[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{json.dumps(value)[:40]} is no number")
    return value


def _whole(value: Any) -> Any:
    """Read ``8.0`` as 8, as the upstream reader does; a value that no integer can hold stays a float."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**62:
        return int(value)
    return value


Number = Annotated[int | float, BeforeValidator(_number_or_token)]
Whole = Annotated[int, BeforeValidator(_whole)]
AxisValue = Annotated[int | float, BeforeValidator(_whole)]
Required = Annotated[str, Field(min_length=1)]


class Lax(BaseModel):
    """A part of an upstream document: known fields are typed, unknown ones are kept."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, ser_json_inf_nan="strings")


class Axis(Lax):
    """An axis of a definition: ``const``, ``var`` or ``expr``."""

    type: Literal["const", "var", "expr"]
    value: Whole | None = None
    expression: str | None = None
    description: str | None = None
    parent: str | None = None


class TensorSpec(Lax):
    """An argument of a definition; shape null or empty means a scalar."""

    shape: list[Whole | str] | None = None
    dtype: Required
    description: str | None = None


class Definition(Lax):
    """What is computed."""

    name: Required
    op_type: Required
    axes: dict[str, Axis]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    description: str | None = None
    tags: list[str] | None = None
    constraints: list[str] | None = None
    reference: str | None = None
    custom_inputs_entrypoint: str | None = None


class SourceFile(Lax):
    """A file of a solution."""

    path: str
    content: str


class BuildSpec(Lax):
    """How a solution is built and called."""

    language: Required
    target_hardware: list[str] | None = None
    entry_point: str | None = None
    dependencies: list[str] | None = None
    build_commands: list[str] | None = None
    destination_passing_style: bool | None = None
    binding: str | None = None
    compile_options: Any = None


class Solution(Lax):
    """An implementation of a definition."""

    name: Required
    definition: Required
    author: str | None = None
    description: str | None = None
    spec: BuildSpec
    sources: list[SourceFile]


class Input(Lax):
    """How an input of a workload is made: random, safetensors, scalar, or a kind that came later."""

    type: Required
    value: Any = None
    path: str | None = None
    tensor_key: str | None = None


class Tolerance(Lax):
    """The workload's own correctness bounds."""

    max_atol: Annotated[int | float, Field(ge=0, allow_inf_nan=False)] | None = None
    max_rtol: Annotated[int | float, Field(ge=0, allow_inf_nan=False)] | None = None
    required_matched_ratio: Any = None


class Workload(Lax):
    """A definition's axes and inputs, bound."""

    axes: dict[str, AxisValue]
    inputs: dict[str, Input] = {}
    uuid: Required | None = None
    tolerance: Tolerance | None = None


class Environment(Lax):
    """The device and the versions of libraries."""

    hardware: Required
    libs: dict[str, str] | None = None


class Correctness(Lax):
    """What the comparison found."""

    max_relative_error: Number | None = None
    max_absolute_error: Number | None = None
    extra: Any = None


class Performance(Lax):
    """Times in milliseconds, and their ratio."""

    latency_ms: Number | None = None
    reference_latency_ms: Number | None = None
    speedup_factor: Number | None = None
    profile: Any = None


class Evaluation(Lax):
    """The outcome of one benchmark of a solution on a workload."""

    status: str
    environment: Environment
    timestamp: str
    log: str | None = None
    correctness: Correctness | None = None
    performance: Performance | None = None


class Trace(Lax):
    """One record: a workload of a definition, and the evaluation of a solution on it where there is one."""

    definition: Required
    workload: Workload
    solution: str | None = None
    evaluation: Evaluation | None = None


Document = TypeVar("Document", bound=Lax)


class Parsed:
    """The legacy forms and unknown fields met while a document was read."""

    def __init__(self, decoded: Decoded, *, from_document: bool = False) -> None:
        self.legacy: set[str] = set()
        if decoded.bare_constants:
            self.legacy.add("bare_constant")
        if from_document:
            self.legacy.add("json_document")
        self.drift: Counter[str] = Counter()

    def note_drift(self, model: Lax) -> None:
        """Count every unknown field under the document by its dotted path."""
        self.drift.update(_unknown_fields(model, ""))


def read_definition(value: Any, parsed: Parsed) -> Definition:
    """Read a definition; an older one says ``type`` for ``op_type``.

    Raises:
        HeldBackError: INVALID_DEFINITION with the first fault.
    """
    if isinstance(value, dict) and "op_type" not in value and "type" in value:
        value = {("op_type" if name == "type" else name): inner for name, inner in value.items()}
        parsed.legacy.add("definition_type")
    return _validate(Definition, value, parsed, Reason.INVALID_DEFINITION)


def read_solution(value: Any, parsed: Parsed) -> Solution:
    """Read a solution; an older one has a list ``languages``, of which the first counts.

    Raises:
        HeldBackError: INVALID_SOLUTION with the first fault.
    """
    spec = value.get("spec") if isinstance(value, dict) else None
    if isinstance(spec, dict) and "language" not in spec and isinstance(spec.get("languages"), list):
        languages = spec["languages"]
        if languages:
            rest = {name: inner for name, inner in spec.items() if name != "languages"}
            value = value | {"spec": rest | {"language": languages[0]}}
            parsed.legacy.add("languages_list")
    return _validate(Solution, value, parsed, Reason.INVALID_SOLUTION)


def read_trace(value: Any, parsed: Parsed) -> Trace:
    """Read a trace record, of a trace file or of a workload file.

    Older forms: ``environment.device`` for ``hardware``, input ``format`` for ``type``, status
    ``INCORRECT``, no workload uuid.

    Raises:
        HeldBackError: SCHEMA_VIOLATION with the first fault.
    """
    if not isinstance(value, dict):
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "a record is a JSON object; this one is not")
    value = _modern_trace(value, parsed)
    return _validate(Trace, value, parsed, Reason.SCHEMA_VIOLATION)


def _modern_trace(value: dict[str, Any], parsed: Parsed) -> dict[str, Any]:
    workload = value.get("workload")
    if isinstance(workload, dict):
        inputs = workload.get("inputs")
        if isinstance(inputs, dict) and any(_is_old_input(item) for item in inputs.values()):
            inputs = {name: _renamed(item, "format", "type") for name, item in inputs.items()}
            value = value | {"workload": workload | {"inputs": inputs}}
            parsed.legacy.add("input_format")
        if workload.get("uuid") is None:
            parsed.legacy.add("no_uuid")
    evaluation = value.get("evaluation")
    if isinstance(evaluation, dict):
        environment = evaluation.get("environment")
        if isinstance(environment, dict) and "hardware" not in environment and "device" in environment:
            evaluation = evaluation | {"environment": _renamed(environment, "device", "hardware")}
            value = value | {"evaluation": evaluation}
            parsed.legacy.add("environment_device")
        if evaluation.get("status") == "INCORRECT":
            value = value | {"evaluation": evaluation | {"status": "INCORRECT_NUMERICAL"}}
            parsed.legacy.add("status_incorrect")
    return value


def _is_old_input(item: Any) -> bool:
    return isinstance(item, dict) and "type" not in item and "format" in item


def _renamed(item: Any, old: str, new: str) -> Any:
    if not isinstance(item, dict) or new in item:
        return item
    return {(new if name == old else name): inner for name, inner in item.items()}


def _validate(model: type[Document], value: Any, parsed: Parsed, reason: Reason) -> Document:
    try:
        document = model.model_validate(value)
    except ValidationError as error:
        raise HeldBackError(reason, explain(error)) from None
    parsed.note_drift(document)
    return document


def _unknown_fields(model: Lax, place: str) -> Iterator[str]:
    for name in model.__pydantic_extra__ or ():
        yield f"{place}{name}"
    for name in type(model).model_fields:
        yield from _unknown_below(getattr(model, name), f"{place}{name}")


def _unknown_below(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, Lax):
        yield from _unknown_fields(value, f"{place}.")
    elif isinstance(value, list):
        for item in value:
            yield from _unknown_below(item, f"{place}[]")
    elif isinstance(value, dict):
        # Keys of such an object are names chosen upstream (axes, inputs, libraries), not fields.
        for item in value.values():
            yield from _unknown_below(item, f"{place}.*")
