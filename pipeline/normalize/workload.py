"""A workload of a definition to WorkloadCase."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.manifests import OperationSpec, WorkloadCase, canonical_text, sha256_of
from pipeline.manifests.expressions import Expression, UnboundAxisError, evaluate, parse_expression
from pipeline.manifests.keys import correctness_key
from pipeline.manifests.operation import (
    ConstantAxis,
    DerivedAxis,
    WorkloadBody,
    WorkloadCorrectness,
    WorkloadScalar,
    WorkloadTensor,
    WorkloadTensorData,
)
from pipeline.manifests.scalars import SAFE_INTEGER, Metadata
from pipeline.normalize import words
from pipeline.upstream import documents as upstream
from pipeline.upstream.held import HeldBackError, Reason

WORKLOAD_COMPARATOR = "sol_execbench_eval"
"""The comparator that the public index names in every FlashInfer-Bench workload and run."""


@dataclass(frozen=True, slots=True)
class BoundTensor:
    """A tensor argument of a workload with its dimensions."""

    role: str
    position: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    generator: str | None


@dataclass(frozen=True, slots=True)
class NormalizedWorkload:
    """A WorkloadCase with what the tables keep beside it."""

    manifest: WorkloadCase
    correctness_key: str
    uuid: str
    inputs_sha256: str
    tensor_files: bool
    tensors: tuple[BoundTensor, ...]


class Operation:
    """A definition ready to bind workloads: its manifest, and its axes in the order of the definition."""

    def __init__(self, definition: upstream.Definition, manifest: OperationSpec) -> None:
        self.name = definition.name
        self.manifest = manifest
        self.digest = manifest.digest
        self._upstream_inputs = tuple(definition.inputs)
        self._constants: dict[str, int] = {}
        self._derived: list[tuple[str, Expression]] = []
        for name in definition.axes:
            axis = manifest.spec.axes[name.lower()]
            if isinstance(axis, ConstantAxis):
                self._constants[name.lower()] = axis.value
            elif isinstance(axis, DerivedAxis):
                self._derived.append((name.lower(), parse_expression(axis.expression)))

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        """Dtypes of the inputs, unique, sorted by code point."""
        return tuple(sorted({_dtype(argument) for argument in self.manifest.spec.inputs}))

    def bind(self, axes: Mapping[str, int]) -> dict[str, int]:
        """Return the values of all axes: the workload's, then constants, then derived ones in their order.

        Raises:
            HeldBackError: UNBOUND_AXIS or AXIS_OUT_OF_RANGE.
        """
        bound = self._constants | dict(axes)
        unbound: HeldBackError | None = None
        for name, expression in self._derived:
            if name in bound:
                continue
            try:
                bound[name] = _in_range(name, evaluate(expression, bound))
            except UnboundAxisError as error:
                # An axis out of range comes first among the reasons, so the others are looked at before.
                unbound = unbound or HeldBackError(Reason.UNBOUND_AXIS, f"derived axis {name} of {self.name}: {error}")
        if unbound is not None:
            raise unbound
        return bound

    def normalize(self, workload: upstream.Workload) -> NormalizedWorkload:
        """Return the WorkloadCase of a workload of this definition.

        Raises:
            HeldBackError: AXIS_OUT_OF_RANGE or UNBOUND_AXIS.
        """
        axes = {name.lower(): _in_range(name, value) for name, value in workload.axes.items()}
        bound = self.bind(axes)
        tensors: dict[str, WorkloadTensor] = {}
        scalars: dict[str, WorkloadScalar] = {}
        rows: list[BoundTensor] = []
        for position, (given, argument) in enumerate(
            zip(self._upstream_inputs, self.manifest.spec.inputs, strict=True)
        ):
            described = workload.inputs.get(given)
            if described is not None and described.type == "scalar":
                if (value := _number(described.value)) is not None:
                    scalars[argument.name] = WorkloadScalar(dtype=_dtype(argument), value=value)
            elif argument.tensor is not None:
                shape = self._shape(argument.name, argument.tensor.shape, bound)
                generator = _generator(described)
                tensors[argument.name] = WorkloadTensor(
                    shape=shape,
                    dtype=argument.tensor.dtype,
                    data=WorkloadTensorData(generator=generator) if generator else None,
                )
                rows.append(BoundTensor("input", position, argument.name, argument.tensor.dtype, shape, generator))
        rows.extend(self._outputs(bound))
        manifest = WorkloadCase(
            metadata=Metadata(
                name=words.document_name(self.name, workload_uuid(workload)[:8]), title=self._title(workload)
            ),
            spec=WorkloadBody(
                operation_spec_digest=self.digest,
                axes=axes,
                tensors=tensors,
                scalars=scalars or None,
                correctness=_correctness(workload),
            ),
        )
        return NormalizedWorkload(
            manifest=manifest,
            correctness_key=correctness_key(manifest),
            uuid=workload_uuid(workload),
            inputs_sha256=_inputs_sha256(workload),
            tensor_files=any(described.type == "safetensors" for described in workload.inputs.values()),
            tensors=tuple(rows),
        )

    def _shape(self, name: str, shape: tuple[int | str, ...], bound: Mapping[str, int]) -> tuple[int, ...]:
        try:
            return tuple(size if isinstance(size, int) else bound[size] for size in shape)
        except KeyError as error:
            raise HeldBackError(
                Reason.UNBOUND_AXIS, f"axis {error.args[0]} of {name} in {self.name} has no value"
            ) from None

    def _outputs(self, bound: Mapping[str, int]) -> list[BoundTensor]:
        """Return the outputs whose dimensions are all bound: only inputs must be for a workload to be one."""
        rows = []
        for position, argument in enumerate(self.manifest.spec.outputs):
            if argument.tensor is None:
                continue
            shape = [size if isinstance(size, int) else bound.get(size) for size in argument.tensor.shape]
            if None not in shape:
                known = tuple(size for size in shape if size is not None)
                rows.append(BoundTensor("output", position, argument.name, argument.tensor.dtype, known, None))
        return rows

    def _title(self, workload: upstream.Workload) -> str:
        axes = ", ".join(f"{name}={value}" for name, value in workload.axes.items())
        return f"{self.name} · {axes}" if axes else self.name


def workload_uuid(workload: upstream.Workload) -> str:
    """Return the uuid of a workload, or the one made of its axes where it has none."""
    if workload.uuid is not None:
        return workload.uuid
    text = json.dumps(workload.axes, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_axes(workload: upstream.Workload) -> None:
    """Check the axes of a workload as text, before its definition is known.

    Raises:
        HeldBackError: SCHEMA_VIOLATION: a name that is no axis name, two that are equal in lower case, or a
            value that is no whole number.
    """
    seen: set[str] = set()
    for name, value in workload.axes.items():
        lower = name.lower()
        if words.token(lower) != lower or not lower[:1].isalpha():
            raise HeldBackError(Reason.SCHEMA_VIOLATION, f"workload.axes: {name!r} is no axis name")
        if lower in seen:
            raise HeldBackError(Reason.SCHEMA_VIOLATION, f"workload.axes: two axes are named {lower} in lower case")
        if isinstance(value, float) and not (math.isinf(value) or value.is_integer()):
            raise HeldBackError(Reason.SCHEMA_VIOLATION, f"workload.axes.{name}: {value} is no whole number")
        seen.add(lower)


def _in_range(name: str, value: int | float) -> int:
    if not 0 <= value <= SAFE_INTEGER:
        raise HeldBackError(Reason.AXIS_OUT_OF_RANGE, f"axis {name} is {value}: it must be from 0 to 2^53-1")
    return int(value)


def _dtype(argument: Any) -> str:
    kind = argument.tensor if argument.tensor is not None else argument.scalar
    return str(kind.dtype)


def _generator(described: upstream.Input | None) -> str | None:
    if described is None:
        return None
    return "safetensors" if described.type == "safetensors" else "random"


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def _correctness(workload: upstream.Workload) -> WorkloadCorrectness:
    tolerance = workload.tolerance
    return WorkloadCorrectness(
        comparator=WORKLOAD_COMPARATOR,
        max_absolute_error=tolerance.max_atol if tolerance else None,
        max_relative_error=tolerance.max_rtol if tolerance else None,
    )


def _inputs_sha256(workload: upstream.Workload) -> str:
    inputs = {name: item.model_dump(exclude_unset=True) for name, item in workload.inputs.items()}
    return sha256_of(canonical_text(_finite(inputs)))


def _finite(value: Any) -> Any:
    """Return a value with text in place of numbers that are not finite, which JCS cannot write."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value
