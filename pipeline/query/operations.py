"""What an operation is: its identity, semantics and sources, read from its manifest and row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.query.rows import fetch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Argument:
    """An input or output: its dtype and symbolic shape; ``shape`` None: a scalar."""

    name: str
    dtype: str
    shape: list[str | int] | None


@dataclass(frozen=True)
class Axis:
    """An axis: constant with ``value``, variable, or derived by ``expression``."""

    name: str
    role: str
    value: int | None
    expression: str | None


@dataclass(frozen=True)
class SourceUse:
    """A source that measured the operation, and when last; ``licenses`` of the implementations measured."""

    source: str
    licenses: list[str]
    last_observed_at: datetime


@dataclass(frozen=True)
class Operation:
    """An operation as its page states it."""

    operation_digest: str
    name: str
    slug: str
    family: str
    op_type: str
    tags: list[str]
    description: str | None
    definition_sha256: str
    source_path: str
    eligible_runs: int
    inputs: list[Argument]
    outputs: list[Argument]
    axes: list[Axis]
    determinism: str
    mutation: str
    sources: list[SourceUse]
    manifest: dict[str, Any]

    @property
    def constants(self) -> dict[str, int]:
        """The axes that the operation itself binds."""
        return {axis.name: axis.value for axis in self.axes if axis.value is not None}


@dataclass(frozen=True)
class _Row:
    operation_digest: str
    name: str
    slug: str
    family: str
    op_type: str
    tags: list[str]
    description: str | None
    definition_sha256: str
    source_path: str
    eligible_runs: int
    manifest: dict[str, Any]


def operation(connection: DuckDBPyConnection, operation_digest: str) -> Operation:
    """Return the operation of that digest, which must exist."""
    [row] = fetch(
        connection,
        _Row,
        """
        SELECT operation_digest, name, slug, family, op_type, tags, description, definition_sha256, source_path,
               manifest,
               (SELECT count(*) FROM runs WHERE runs.operation_digest = operations.operation_digest AND eligible)
                   AS eligible_runs
        FROM operations WHERE operation_digest = ?
        """,
        [operation_digest],
    )
    sources = fetch(
        connection,
        SourceUse,
        """
        SELECT runs.source, max(observed_at) AS last_observed_at,
               coalesce(list_sort(list_distinct(list(license) FILTER (license IS NOT NULL))), []) AS licenses
        FROM runs LEFT JOIN implementations USING (implementation_digest)
        WHERE runs.operation_digest = ? GROUP BY runs.source ORDER BY runs.source
        """,
        [operation_digest],
    )
    spec = row.manifest["spec"]
    semantics = spec.get("semantics", {})
    return Operation(
        **vars(row),
        inputs=[_argument(item) for item in spec["inputs"]],
        outputs=[_argument(item) for item in spec["outputs"]],
        axes=[
            Axis(name, axis["role"], axis.get("value"), axis.get("expression"))
            for name, axis in sorted(spec["axes"].items(), key=lambda item: (len(item[0]), item[0]))
        ],
        determinism=semantics.get("determinism", "unspecified"),
        mutation=semantics.get("mutation", "none"),
        sources=sources,
    )


def _argument(item: dict[str, Any]) -> Argument:
    if tensor := item.get("tensor"):
        return Argument(item["name"], tensor["dtype"], list(tensor["shape"]))
    return Argument(item["name"], item["scalar"]["dtype"], None)
