"""OperationSpec: what is computed, by axes, arguments and semantics."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.manifests.expressions import parse_expression
from pipeline.manifests.scalars import (
    Artifact,
    Count,
    Digest,
    Integer,
    NotNegative,
    Number,
    Ratio,
    Slug,
    Strict,
    Text,
    Token,
)


def _expression(text: str) -> str:
    parse_expression(text)
    return text


class ConstantAxis(Strict):
    """An axis whose value belongs to the operation."""

    role: Literal["constant"] = "constant"
    type: Literal["integer"] = "integer"
    value: Integer


class VariableAxis(Strict):
    """An axis that each workload binds."""

    role: Literal["variable"] = "variable"
    type: Literal["integer"] = "integer"
    minimum: Integer | None = None
    maximum: Integer | None = None


class DerivedAxis(Strict):
    """An axis that follows from others: integers, axis names, ``+ - * // %`` and parentheses."""

    role: Literal["derived"] = "derived"
    type: Literal["integer"] = "integer"
    expression: Annotated[Text, AfterValidator(_expression)]


Axis = Annotated[ConstantAxis | VariableAxis | DerivedAxis, Field(discriminator="role")]


class Tensor(Strict):
    """A tensor argument: dimensions are integers or axis names."""

    shape: tuple[Count | Token, ...]
    dtype: Token
    layout: Literal["row_major", "col_major", "contiguous", "strided"] | None = None


class Scalar(Strict):
    """A scalar argument."""

    dtype: Token


class Argument(Strict):
    """A named input or output: a tensor or a scalar."""

    name: Token
    tensor: Tensor | None = None
    scalar: Scalar | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.tensor is None) == (self.scalar is None):
            raise ValueError(f"argument {self.name} must have either tensor or scalar")
        return self


class Semantics(Strict):
    """What the operation may do to its inputs, and whether equal inputs give equal bits."""

    expression: Text | None = None
    mutation: Literal["none", "in_place", "destination"]
    determinism: Literal["deterministic", "nondeterministic", "unspecified"]


class Reference(Strict):
    """The reference implementation; its code is not part of the operation's identity."""

    language: Token | None = None
    artifact: Artifact | None = None


class OperationBody(Strict):
    """The spec of an OperationSpec."""

    family: Slug
    axes: dict[Token, Axis]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    semantics: Semantics
    reference: Reference | None = None

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        for arguments in (self.inputs, self.outputs):
            names = [argument.name for argument in arguments]
            if len(set(names)) != len(names):
                raise ValueError("two arguments of the operation have one name")
        return self


class WorkloadTensorData(Strict):
    """How the content of an input is made."""

    generator: Token
    seed: Integer | None = None
    parameters: dict[Token, str | bool | Number] | None = None
    artifact: Artifact | None = None


class WorkloadTensor(Strict):
    """An input with every dimension bound."""

    shape: tuple[Count, ...]
    dtype: Token
    strides: tuple[Integer, ...] | None = None
    alignment_bytes: Count | None = None
    data: WorkloadTensorData | None = None


class WorkloadScalar(Strict):
    """A scalar input with its value."""

    dtype: Token
    value: Number


class WorkloadCorrectness(Strict):
    """The rule by which outputs are judged."""

    comparator: Token
    max_absolute_error: NotNegative | None = None
    max_relative_error: NotNegative | None = None
    required_matched_ratio: Ratio | None = None
    nan_policy: Literal["reject", "exact_match", "ignore"] | None = None
    infinity_policy: Literal["reject", "exact_match", "ignore"] | None = None


class WorkloadBody(Strict):
    """The spec of a WorkloadCase: an operation with its axes and inputs bound."""

    operation_spec_digest: Digest
    axes: dict[Token, Count]
    tensors: dict[Token, WorkloadTensor]
    scalars: dict[Token, WorkloadScalar] | None = None
    correctness: WorkloadCorrectness
