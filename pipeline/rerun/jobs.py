"""Job files: from upstream documents and manifests to the one line of JSON that the runner takes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.manifests import Manifest, canonical_text, sha256_of
from pipeline.normalize.workload import Operation
from pipeline.rerun.protocol import RERUN_PROTOCOL
from pipeline.rerun.runner.job import FORMAT, Job, parse_job


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may take."""

    build_seconds: int = 600
    run_seconds: int = 300
    memory_bytes: int = 32 * 2**30
    """Of the host's memory, and of the device's."""
    output_bytes: int = 2**30
    """Of each file that it writes."""


@dataclass(frozen=True, slots=True)
class Target:
    """The run that a job repeats: its manifest and that of its environment."""

    run: Mapping[str, Any]
    environment: Mapping[str, Any]


def build_job(
    *, operation: Operation, workload: Manifest, implementation: Mapping[str, Any], definition: Mapping[str, Any],
    solution: Mapping[str, Any], workload_record: Mapping[str, Any], target: Target | None = None,
    tensor_files: Mapping[str, str] | None = None, device: str = "any", limits: Limits | None = None, seed: int = 0,
    nonce: str | None = None,
) -> Job:  # fmt: skip
    """Return the job that runs an implementation on a workload.

    Args:
        operation: the operation of the workload, ready to bind its axes.
        workload: the WorkloadCase.
        implementation: the manifest of the implementation.
        definition: the upstream definition, with its reference code.
        solution: the upstream solution, with its sources.
        workload_record: ``workload`` of the upstream record: axes, inputs, uuid, tolerance.
        target: the run to compare with; None where nothing was reported yet.
        tensor_files: SHA-256 of each tensor file that an input comes from, by its path.
        device: product that must run it, or ``any``.
        limits: what it may take.
        seed: part of the seed of every input; the rest is drawn by the judge.
        nonce: told again by the result; drawn where it is not given.

    Raises:
        JobError: the documents do not belong together.
    """
    axes = {name.lower(): int(value) for name, value in workload_record["axes"].items()}
    document: dict[str, Any] = {
        "format": FORMAT,
        "nonce": nonce or secrets.token_hex(16),
        "seed": seed,
        "device": device,
        "limits": asdict(limits or Limits()),
        "axes": operation.bind(axes),
        "operation": certified(operation.manifest.document),
        "workload": certified(workload.document),
        "implementation": certified(implementation),
        "protocol": certified(RERUN_PROTOCOL.document),
        "definition": definition,
        "solution": solution,
        "workload_record": workload_record,
        "sources": {source["path"]: sha256_of(source["content"].encode()) for source in solution["sources"]},
        "tensor_files": dict(tensor_files or {}),
    }
    if target is not None:
        document["target"] = certified(target.run) | {"environment": certified(target.environment)}
    return parse_job(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def certified(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return a manifest as its digest and the very text that the digest is of."""
    text = canonical_text({name: manifest[name] for name in ("apiVersion", "kind", "spec")})
    return {"digest": sha256_of(text), "text": text.decode()}
