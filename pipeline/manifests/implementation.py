"""ImplementationRevision and SoftwareProject: code that computes an operation, and where it comes from."""

from __future__ import annotations

from typing import Literal

from pipeline.manifests.scalars import (
    Artifact,
    Commit,
    Count,
    Digest,
    Integer,
    SetLike,
    Slug,
    Strict,
    Text,
    Token,
    TokenSet,
    Url,
)


class ProjectRevision(Strict):
    """The commit of the repository that holds the code."""

    repository: Url | None = None
    commit: Commit | None = None
    version: Text | None = None
    tree_digest: Digest | None = None


class ImplementedOperation(Strict):
    """The operation that the code is written for."""

    spec_digest: Digest


class Callable(Strict):
    """What is called: a file of the sources and a symbol in it."""

    language: Token
    path: Text | None = None
    symbol: Text | None = None
    interface: Text | None = None


class AxisRange(Strict):
    """Values of an axis that the code supports."""

    minimum: Integer | None = None
    maximum: Integer | None = None
    multiple_of: Integer | None = None


class Support(Strict):
    """Where the code is said to run: set-like lists, unique and sorted by code point."""

    hardware_architectures: SetLike
    products_tested: SetLike
    dtypes: TokenSet
    axes: dict[Token, AxisRange] | None = None
    layouts: TokenSet | None = None


class Source(Strict):
    """The primary source file: SHA-256 and size of its UTF-8 bytes."""

    content_digest: Digest
    file_name: Text
    size_bytes: Count


class BuildVariant(Strict):
    """One way to build or install the code."""

    name: Text
    install: Text | None = None
    requirements: tuple[Text, ...] | None = None


class Licensing(Strict):
    """The licence as declared, and as concluded (SPDX)."""

    declared: Text | None = None
    concluded: Text | None = None
    evidence: Artifact | None = None


class ImplementationBody(Strict):
    """The spec of an ImplementationRevision."""

    project_revision: ProjectRevision
    operation: ImplementedOperation
    callable: Callable
    support: Support
    source: Source | None = None
    build_variants: tuple[BuildVariant, ...] | None = None
    licensing: Licensing | None = None


class ProjectHost(Strict):
    """The service that hosts a project, and its id there."""

    kind: Token
    id: Text


class ProjectPackage(Strict):
    """A package that the project publishes."""

    ecosystem: Token
    name: Text


class ProjectBody(Strict):
    """The spec of a SoftwareProject."""

    name: Text
    kind: Literal["library", "individual", "vendor"]
    slug: Slug | None = None
    repository: Url | None = None
    homepage: Url | None = None
    host: ProjectHost | None = None
    packages: tuple[ProjectPackage, ...] | None = None
