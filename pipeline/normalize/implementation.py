"""Solution to ImplementationRevision."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from pipeline.manifests import ImplementationRevision, canonical_text, sha256_of
from pipeline.manifests.documents import explain
from pipeline.manifests.implementation import (
    Callable,
    ImplementationBody,
    ImplementedOperation,
    Licensing,
    ProjectRevision,
    Source,
    Support,
)
from pipeline.manifests.scalars import Author, Metadata, SourceRef
from pipeline.normalize import words
from pipeline.normalize.hardware import hardware
from pipeline.normalize.operation import Project
from pipeline.normalize.workload import Operation
from pipeline.upstream import documents as upstream
from pipeline.upstream.framing import RemovedText
from pipeline.upstream.held import HeldBackError, Reason

LICENSE = "Apache-2.0"
"""Licence of the FlashInfer-Bench trace set."""

BASELINE = "baseline"
GENERATED = "llm-generated"

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\:]")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source file of a solution, by its place in the document."""

    position: int
    path: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class NormalizedSolution:
    """An ImplementationRevision with what the tables keep beside it."""

    manifest: ImplementationRevision
    name: str
    definition: str
    author: str
    role: str
    source_available: bool
    sources_sha256: str
    sources: tuple[SourceText, ...]


def normalize_implementation(
    solution: upstream.Solution,
    operation: Operation,
    project: Project,
    *,
    folder: str | None,
    path: str,
    removed: Sequence[RemovedText] = (),
) -> NormalizedSolution:
    """Return the implementation of a solution.

    Args:
        solution: the upstream document.
        operation: the operation of the solution's own definition.
        project: repository and revision at which the warehouse first saw the file.
        folder: author folder that the file lies in; it decides the role, whatever the document says.
        path: path of the file inside the trace set.
        removed: source texts that were taken out of the document, by their pointers into it.

    Raises:
        HeldBackError: INVALID_SOLUTION or UNSAFE_SOURCE_PATH.
    """
    spec = solution.spec
    entry_file, _, symbol = (spec.entry_point or "").partition("::")
    for name in [source.path for source in solution.sources] + [entry_file] * bool(entry_file):
        check_path(name)
    texts = _texts(solution, removed)
    primary = next((text for text in texts if text.path == entry_file), texts[0] if texts else None)
    author = folder or solution.author or "unknown"
    role = BASELINE if folder == BASELINE else GENERATED
    targets = [hardware(text) for text in spec.target_hardware or () if text and text.upper() != "LOCAL"]
    try:
        manifest = ImplementationRevision(
            metadata=Metadata(
                name=words.document_name(solution.name),
                title=solution.name,
                description=solution.description,
                labels={"role": role},
                authors=(Author(name=author),),
                source_refs=(SourceRef(url=page),) if (page := project.page(path)) else None,
            ),
            spec=ImplementationBody(
                project_revision=ProjectRevision(repository=project.repository, commit=project.revision),
                operation=ImplementedOperation(spec_digest=operation.digest),
                callable=Callable(
                    language=words.language(spec.language),
                    path=primary.path if primary else None,
                    symbol=symbol or None,
                ),
                support=Support(
                    hardware_architectures=tuple(sorted({target.architecture for target in targets})) or ("unknown",),
                    products_tested=tuple(sorted({target.product for target in targets})),
                    dtypes=operation.input_dtypes,
                ),
                source=Source(content_digest=primary.digest, file_name=primary.path, size_bytes=primary.size_bytes)
                if primary and primary.size_bytes
                else None,
                licensing=Licensing(declared=LICENSE, concluded=LICENSE),
            ),
        )
    except ValidationError as error:
        raise HeldBackError(Reason.INVALID_SOLUTION, explain(error)) from None
    return NormalizedSolution(
        manifest=manifest,
        name=solution.name,
        definition=solution.definition,
        author=author,
        role=role,
        source_available=bool(primary and primary.size_bytes),
        sources_sha256=sha256_of(canonical_text({text.path: text.digest for text in texts})),
        sources=tuple(text for text in texts if text.size_bytes),
    )


def _texts(solution: upstream.Solution, removed: Sequence[RemovedText]) -> list[SourceText]:
    """Return the identity of every source file, also of those whose text was taken out."""
    gone = {text.pointer: text for text in removed}
    texts = []
    for position, source in enumerate(solution.sources):
        content = source.content.encode()
        text = gone.get(f"/sources/{position}/content") or RemovedText("", sha256_of(content), len(content))
        texts.append(SourceText(position, source.path, text.digest, text.size_bytes))
    return texts


def check_path(path: str) -> None:
    """Check that a source path stays inside the folder that it is written to.

    Raises:
        HeldBackError: UNSAFE_SOURCE_PATH: absolute, empty, with ``..``, a backslash, a drive or a control character.
    """
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or _UNSAFE.search(path):
        raise HeldBackError(
            Reason.UNSAFE_SOURCE_PATH, f"source path {path!r} may leave its folder; use a plain relative path"
        )
