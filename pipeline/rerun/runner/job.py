"""Job files: what to run, self-certifying by digests, checked with the standard library alone.

A job is one line of JSON. The manifests that it refers to travel as the exact text under their digest, so that
checking one takes a hash and no canonical JSON.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import PROTOCOL, PROTOCOL_VERSION

FORMAT = "kernelhouse-rerun-job/1"

CERTIFIED = ("operation", "workload", "implementation", "protocol")
"""Manifests of a job: ``{digest, text}``, the text being the RFC 8785 text of apiVersion, kind and spec."""

LIMITS = ("build_seconds", "run_seconds", "memory_bytes", "output_bytes")

_FIELDS = {
    "format": str,
    "nonce": str,
    "seed": int,
    "definition": dict,
    "solution": dict,
    "workload_record": dict,
    "axes": dict,
    "sources": dict,
    "tensor_files": dict,
    "limits": dict,
    "device": str,
    **dict.fromkeys(CERTIFIED, dict),
}


class JobError(Exception):
    """A job that must not be run: one sentence."""


@dataclass(frozen=True)
class Job:
    """A checked job."""

    text: str
    """The whole document, byte for byte."""
    digest: str
    """``sha256:`` and the hex digits over its text."""
    document: dict[str, Any]

    @property
    def short(self) -> str:
        """Enough of the digest to name files."""
        return self.digest.removeprefix("sha256:")[:16]

    @property
    def title(self) -> str:
        """The job for people: solution, and the axes of the workload."""
        axes = self.document["workload_record"]["axes"]
        return f"{self.document['solution']['name']} · " + ", ".join(f"{name}={axes[name]}" for name in axes)

    @property
    def destination_passing(self) -> bool:
        """The solution is called with its outputs as the last arguments; upstream's default where it says nothing."""
        style = self.document["solution"]["spec"].get("destination_passing_style")
        return True if style is None else bool(style)


def sha256_of(data: bytes) -> str:
    """Return ``sha256:`` and the hex digits over some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def read_job(path: Path) -> Job:
    """Read and check a job file.

    Raises:
        JobError: it cannot be read, is no job, or a digest in it does not fit.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"{path} cannot be read ({error}): give a job file that rerun plan wrote") from error
    try:
        return parse_job(text)
    except JobError as error:
        raise JobError(f"{path}: {error}") from None


def parse_job(text: str) -> Job:
    """Check the text of a job.

    Raises:
        JobError: no job, a field of another type, or a digest that does not fit.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JobError(f"no JSON ({error}): plan the job again") from error
    try:
        _check(document)
        job = Job(text, sha256_of(text.encode()), document)
        _ = job.title, job.destination_passing
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise JobError(f"a field is missing or of another kind ({error!r}): plan the job again") from error
    return job


def _check(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise JobError(f"no job of format {FORMAT}: plan the job again with this version")
    for name, kind in _FIELDS.items():
        if type(document.get(name)) is not kind:
            raise JobError(f"{name} must be {kind.__name__}: plan the job again")
    unknown = sorted(set(document) - set(_FIELDS) - {"target"})
    if unknown:
        raise JobError(f"unknown field {unknown[0]}: plan the job again with this version")
    for name in CERTIFIED:
        _certify(name, document[name])
    if "target" in document:
        _certify("target", document["target"])
        _certify("target.environment", document["target"].get("environment"))
    _check_links(document)
    _check_sources(document)
    if any(type(value) is not int for value in document["axes"].values()):
        raise JobError("axes must be whole numbers: plan the job again")
    for name in LIMITS:
        value = document["limits"].get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise JobError(f"limits.{name} must be a whole number over 0")


def _certify(name: str, manifest: Any) -> None:
    if not isinstance(manifest, dict) or not isinstance(manifest.get("text"), str):
        raise JobError(f"{name} must be {{digest, text}}: plan the job again")
    found = sha256_of(manifest["text"].encode())
    if manifest.get("digest") != found:
        raise JobError(f"{name} has digest {manifest.get('digest')} but its text has {found}: the job was altered")


def _check_links(document: dict[str, Any]) -> None:
    """Check that the manifests of a job belong to each other, and that this runner follows its protocol."""
    spec = {name: json.loads(document[name]["text"])["spec"] for name in CERTIFIED}
    harness = spec["protocol"]["harness"]
    if (harness.get("name"), harness.get("version")) != (PROTOCOL, PROTOCOL_VERSION):
        raise JobError(f"its protocol is {harness}: this runner follows {PROTOCOL} version {PROTOCOL_VERSION}")
    if spec["workload"]["operationSpecDigest"] != document["operation"]["digest"]:
        raise JobError("its workload is of another operation: the job was altered")
    if "target" in document:
        target = json.loads(document["target"]["text"])["spec"]
        links = {"workload": "workloadDigest", "implementation": "implementationDigest"}
        for name, link in links.items():
            if target[link] != document[name]["digest"]:
                raise JobError(f"its target measures another {name}: the job was altered")
        if target["environmentDigest"] != document["target"]["environment"]["digest"]:
            raise JobError("its target has another environment: the job was altered")


def _check_sources(document: dict[str, Any]) -> None:
    """Check every source against its digest, and the primary one against the implementation."""
    contents = {}
    for source in document["solution"].get("sources", []):
        path, content = source["path"], source["content"].encode()
        parts = path.split("/")
        if not path or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
            raise JobError(f"source path {path!r} may leave its folder: the job is refused")
        contents[path] = sha256_of(content)
    if contents != document["sources"]:
        raise JobError("its source files do not have the digests that it lists: the job was altered")
    primary = json.loads(document["implementation"]["text"])["spec"].get("source")
    if primary is not None and contents.get(primary["fileName"]) != primary["contentDigest"]:
        raise JobError(f"{primary['fileName']} is not the file that the implementation names: the job was altered")
