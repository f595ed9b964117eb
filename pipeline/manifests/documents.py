"""The seven kinds of manifest, and how one is read from JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NoReturn

from pydantic import ValidationError

from pipeline.errors import ManifestError
from pipeline.manifests.canonical import API_VERSION, canonical_text, digest_of
from pipeline.manifests.implementation import ImplementationBody, ProjectBody
from pipeline.manifests.measurement import EnvironmentBody, ProtocolBody, RunBody
from pipeline.manifests.operation import OperationBody, WorkloadBody
from pipeline.manifests.scalars import Metadata, Strict


class Manifest(Strict):
    """A canonical document: ``{apiVersion, kind, metadata, spec}``."""

    api_version: Literal["kernelindex.dev/v1alpha1"] = API_VERSION
    kind: str
    metadata: Metadata
    spec: Strict

    @cached_property
    def document(self) -> dict[str, Any]:
        """The document as plain JSON values, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, serialize_as_any=True)

    @cached_property
    def digest(self) -> str:
        """``sha256:`` and 64 hex digits over the JCS text of apiVersion, kind and spec."""
        return digest_of(self.document)

    @cached_property
    def text(self) -> str:
        """The RFC 8785 text of the whole document, metadata included."""
        return canonical_text(self.document).decode()


class OperationSpec(Manifest):
    """What is computed."""

    kind: Literal["OperationSpec"] = "OperationSpec"
    spec: OperationBody


class WorkloadCase(Manifest):
    """An operation with its axes and inputs bound."""

    kind: Literal["WorkloadCase"] = "WorkloadCase"
    spec: WorkloadBody


class ImplementationRevision(Manifest):
    """Code that computes an operation, at one revision."""

    kind: Literal["ImplementationRevision"] = "ImplementationRevision"
    spec: ImplementationBody


class SoftwareProject(Manifest):
    """A project that implementations come from."""

    kind: Literal["SoftwareProject"] = "SoftwareProject"
    spec: ProjectBody


class BenchmarkProtocol(Manifest):
    """How runs are measured."""

    kind: Literal["BenchmarkProtocol"] = "BenchmarkProtocol"
    spec: ProtocolBody


class ExecutionEnvironment(Manifest):
    """Where runs are measured."""

    kind: Literal["ExecutionEnvironment"] = "ExecutionEnvironment"
    spec: EnvironmentBody


class BenchmarkRun(Manifest):
    """One measurement of an implementation on a workload."""

    kind: Literal["BenchmarkRun"] = "BenchmarkRun"
    spec: RunBody


KINDS: dict[str, type[Manifest]] = {
    "OperationSpec": OperationSpec,
    "WorkloadCase": WorkloadCase,
    "ImplementationRevision": ImplementationRevision,
    "SoftwareProject": SoftwareProject,
    "BenchmarkProtocol": BenchmarkProtocol,
    "ExecutionEnvironment": ExecutionEnvironment,
    "BenchmarkRun": BenchmarkRun,
}


def load_manifest(text: bytes) -> Manifest:
    """Read one manifest from JSON text in UTF-8.

    Raises:
        ManifestError: not JSON, a duplicate key, a number that is not finite, an unknown field or kind,
            or anything else that the kind does not allow.
    """
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ManifestError(f"not a JSON document: {error}") from error
    if not isinstance(value, dict):
        raise ManifestError("a manifest is a JSON object with apiVersion, kind, metadata and spec")
    return parse_manifest(value)


def parse_manifest(value: Mapping[str, Any]) -> Manifest:
    """Validate a manifest from plain JSON values.

    Raises:
        ManifestError: an unknown field or kind, or anything else that the kind does not allow.
    """
    kind = value.get("kind")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise ManifestError(f"kind is {kind!r}: it must be one of {', '.join(KINDS)}")
    for name in ("apiVersion", "metadata"):
        if name not in value:
            raise ManifestError(f"{name} is missing: a manifest has apiVersion, kind, metadata and spec")
    if (place := _null_place(value)) is not None:
        raise ManifestError(f"{place} is null: leave an absent field out")
    try:
        # JSON mode, so that arrays fill tuples while every other conversion stays forbidden.
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise ManifestError(explain(error)) from error


def explain(error: ValidationError) -> str:
    """Return the first fault of a validation error as a sentence: where, and what."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "document"
    more = error.error_count() - 1
    return f"{where}: {first['msg']}" + (f" (and {more} more)" if more else "")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return value


def _null_place(value: Any) -> str | None:
    """Return the dotted place of the first null inside a JSON value, or None."""
    if value is None:
        return ""
    items: Any = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        if (place := _null_place(inner)) is not None:
            return f"{name}.{place}".rstrip(".")
    return None


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON number")
