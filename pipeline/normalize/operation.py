"""Definition to OperationSpec."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from pydantic import ValidationError

from pipeline.manifests import OperationSpec
from pipeline.manifests.documents import explain
from pipeline.manifests.operation import (
    Argument,
    Axis,
    ConstantAxis,
    DerivedAxis,
    OperationBody,
    Reference,
    Scalar,
    Semantics,
    Tensor,
    VariableAxis,
)
from pipeline.manifests.scalars import Metadata, SourceRef
from pipeline.normalize import words
from pipeline.upstream import documents as upstream
from pipeline.upstream.held import HeldBackError, Reason


@dataclass(frozen=True, slots=True)
class Project:
    """The trace set that a document belongs to; each part is None where the source has none."""

    repository: str | None
    revision: str | None

    def page(self, path: str) -> str | None:
        """Return the public page of a path of the trace set, where there is one."""
        if self.repository is None or self.revision is None or not self.repository.startswith("https://"):
            return None
        return f"{self.repository}/blob/{self.revision}/{quote(path)}"


def normalize_operation(definition: upstream.Definition, project: Project) -> OperationSpec:
    """Return the OperationSpec of a definition.

    Raises:
        HeldBackError: INVALID_DEFINITION: two axes or arguments equal in lower case, a bad expression, a
            constant without a value, a name that no canonical name can be made of.
    """
    try:
        return OperationSpec(
            metadata=Metadata(
                name=words.document_name(definition.name),
                title=definition.name,
                description=definition.description,
                source_refs=(SourceRef(url=page),) if (page := project.page("definitions")) else None,
            ),
            spec=OperationBody(
                family=words.kebab(definition.op_type),
                axes=_axes(definition),
                inputs=_arguments(definition.inputs),
                outputs=_arguments(definition.outputs),
                semantics=Semantics(mutation="none", determinism="unspecified"),
                reference=Reference(language="python") if definition.reference else None,
            ),
        )
    except ValidationError as error:
        raise HeldBackError(Reason.INVALID_DEFINITION, explain(error)) from None


def _axes(definition: upstream.Definition) -> dict[str, Axis]:
    axes: dict[str, Axis] = {}
    for name, axis in definition.axes.items():
        lower = name.lower()
        if lower in axes:
            raise HeldBackError(Reason.INVALID_DEFINITION, f"two axes are named {lower} in lower case")
        axes[lower] = _axis(name, axis)
    return axes


def _axis(name: str, axis: upstream.Axis) -> Axis:
    if axis.type == "var":
        return VariableAxis()
    if axis.type == "const":
        if axis.value is None:
            raise HeldBackError(Reason.INVALID_DEFINITION, f"constant axis {name} has no value")
        return ConstantAxis(value=axis.value)
    if axis.expression is None:
        raise HeldBackError(Reason.INVALID_DEFINITION, f"derived axis {name} has no expression")
    return DerivedAxis(expression=axis.expression.lower())


def _arguments(arguments: dict[str, upstream.TensorSpec]) -> tuple[Argument, ...]:
    return tuple(_argument(words.argument_name(name), spec) for name, spec in arguments.items())


def _argument(name: str, spec: upstream.TensorSpec) -> Argument:
    dtype = words.dtype(spec.dtype)
    if not spec.shape:
        return Argument(name=name, scalar=Scalar(dtype=dtype))
    return Argument(name=name, tensor=Tensor(shape=tuple(map(words.dimension, spec.shape)), dtype=dtype))
