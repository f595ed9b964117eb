"""Canonical documents: strict models, RFC 8785 text, SHA-256 digests and the keys made of them.

A manifest is ``{apiVersion, kind, metadata, spec}``. Its digest covers apiVersion, kind and spec;
metadata is editorial and never changes it.
"""

from pipeline.manifests.canonical import canonical_text, digest_of, sha256_of
from pipeline.manifests.documents import (
    KINDS,
    BenchmarkProtocol,
    BenchmarkRun,
    ExecutionEnvironment,
    ImplementationRevision,
    Manifest,
    OperationSpec,
    SoftwareProject,
    WorkloadCase,
    load_manifest,
    parse_manifest,
)

__all__ = [
    "KINDS",
    "BenchmarkProtocol",
    "BenchmarkRun",
    "ExecutionEnvironment",
    "ImplementationRevision",
    "Manifest",
    "OperationSpec",
    "SoftwareProject",
    "WorkloadCase",
    "canonical_text",
    "digest_of",
    "load_manifest",
    "parse_manifest",
    "sha256_of",
]
