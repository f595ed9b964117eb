"""From what the adapter read to rows of the declared tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pipeline.manifests import BenchmarkProtocol, ExecutionEnvironment, canonical_text
from pipeline.normalize.adapter import NormalizedDefinition, ReadRun, Rerun
from pipeline.normalize.implementation import NormalizedSolution
from pipeline.normalize.words import kebab
from pipeline.normalize.workload import NormalizedWorkload
from pipeline.store.snapshots import Snapshot

Row = dict[str, Any]

LATENCY = {"metric": "latency", "unit": "ns"}
"""What every row of ``measurements`` says of a latency."""

LOG_ARTIFACT = {"kind": "log", "media_type": "text/plain; charset=utf-8", "pointer": "/evaluation/log"}
"""What every row of ``artifacts`` says of the log of a run."""


def snapshot_row(snapshot: Snapshot) -> Row:
    """Return the row of ``snapshots``."""
    pull = snapshot.pull
    return {
        "snapshot_id": snapshot.snapshot_id,
        "source": pull.source,
        "adapter": pull.adapter,
        "repository": pull.repository,
        "revision": pull.revision,
        "authors": list(pull.authors),
        "sequence": snapshot.sequence,
        "fetched_at": snapshot.fetched_at,
        "files": len(pull.files),
        "bytes": sum(file.size_bytes for file in pull.files),
        "complete": pull.complete,
    }


def source_file_rows(snapshot: Snapshot) -> list[Row]:
    """Return the rows of ``source_files``."""
    return [
        {
            "snapshot_id": snapshot.snapshot_id,
            "path": file.path,
            "kind": file.kind.value,
            "sha256": file.sha256,
            "size_bytes": file.size_bytes,
            "fetched": file.fetched,
            "locator": file.locator,
        }
        for file in snapshot.pull.files
    ]


def operation_row(definition: NormalizedDefinition, path: str, blob_sha256: str, snapshot: Snapshot) -> Row:
    """Return the row of ``operations``."""
    operation = definition.operation
    return {
        "operation_digest": operation.digest,
        "name": operation.name,
        "slug": kebab(operation.name),
        "family": operation.manifest.spec.family,
        "op_type": definition.op_type,
        "tags": list(definition.tags),
        "description": definition.description,
        "definition_sha256": definition.definition_sha256,
        "source_path": path,
        "blob_sha256": blob_sha256,
        "snapshot_id": snapshot.snapshot_id,
        "manifest": operation.manifest.text,
    }


def implementation_row(
    solution: NormalizedSolution, path: str, blob_sha256: str, license_name: str, snapshot: Snapshot
) -> Row:
    """Return the row of ``implementations``."""
    spec = solution.manifest.spec
    return {
        "implementation_digest": solution.manifest.digest,
        "operation_digest": spec.operation.spec_digest,
        "definition": solution.definition,
        "name": solution.name,
        "author": solution.author,
        "role": solution.role,
        "language": spec.callable.language,
        "license": license_name,
        "source_available": solution.source_available,
        "source_path": path,
        "solution_sha256": blob_sha256,
        "sources_sha256": solution.sources_sha256,
        "repository": spec.project_revision.repository,
        "first_revision": spec.project_revision.commit,
        "snapshot_id": snapshot.snapshot_id,
        "manifest": solution.manifest.text,
    }


def source_artifact_rows(
    solution: NormalizedSolution, blob_sha256: str, license_name: str, snapshot: Snapshot
) -> list[Row]:
    """Return the rows of ``artifacts`` for the source files of a solution."""
    return [
        {
            "digest": source.digest,
            "kind": "source",
            "media_type": "text/plain; charset=utf-8",
            "size_bytes": source.size_bytes,
            "license": license_name,
            "blob_sha256": blob_sha256,
            "byte_offset": 0,
            "pointer": f"/sources/{source.position}/content",
            "snapshot_id": snapshot.snapshot_id,
        }
        for source in solution.sources
    ]


def workload_row(workload: NormalizedWorkload, snapshot: Snapshot) -> Row:
    """Return the row of ``workloads``."""
    spec = workload.manifest.spec
    return {
        "workload_digest": workload.manifest.digest,
        "operation_digest": spec.operation_spec_digest,
        "axes": canonical_text(spec.axes).decode(),
        "shape_summary": ", ".join(f"{name} = {spec.axes[name]}" for name in sorted(spec.axes)),
        "dtypes": sorted({tensor.dtype for tensor in spec.tensors.values()}),
        "snapshot_id": snapshot.snapshot_id,
        "manifest": workload.manifest.text,
    }


def workload_tensor_rows(workload: NormalizedWorkload) -> list[Row]:
    """Return the rows of ``workload_tensors``."""
    return [
        {
            "workload_digest": workload.manifest.digest,
            "role": tensor.role,
            "position": tensor.position,
            "name": tensor.name,
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "generator": tensor.generator,
        }
        for tensor in workload.tensors
    ]


def workload_inputs_row(benchmark: str, workload: NormalizedWorkload, snapshot: Snapshot) -> Row:
    """Return the row of ``workload_inputs``."""
    return {
        "benchmark": benchmark,
        "workload_uuid": workload.uuid,
        "workload_digest": workload.manifest.digest,
        "inputs_sha256": workload.inputs_sha256,
        "tensor_files": workload.tensor_files,
        "snapshot_id": snapshot.snapshot_id,
    }


def environment_row(environment: ExecutionEnvironment, snapshot: Snapshot) -> Row:
    """Return the row of ``environments``."""
    hardware, software = environment.spec.hardware, environment.spec.software
    parts = [f"GPU {hardware.product}"]
    if software.cuda_toolkit:
        parts.append(f"CUDA {software.cuda_toolkit}")
    if software.framework:
        parts.append(f"Framework {software.framework.name} {software.framework.version}")
    return {
        "environment_digest": environment.digest,
        "name": " · ".join(parts),
        "hardware": hardware.product,
        "snapshot_id": snapshot.snapshot_id,
        "manifest": environment.text,
    }


def protocol_row(protocol: BenchmarkProtocol, snapshot: Snapshot) -> Row:
    """Return the row of ``protocols``."""
    return {
        "protocol_digest": protocol.digest,
        "name": f"{protocol.spec.harness.name} · {protocol.spec.measurement.primary_statistic}",
        "snapshot_id": snapshot.snapshot_id,
        "manifest": protocol.text,
    }


def observation_row(read: ReadRun, path: str, blob_sha256: str, snapshot_id: str) -> Row:
    """Return the row of ``observations``; ``snapshot_id`` is where the record was first read."""
    record = read.record
    return {
        "observation_sha256": record.sha256,
        "implementation_digest": read.implementation_digest,
        "run_digest": read.run.digest,
        "snapshot_id": snapshot_id,
        "blob_sha256": blob_sha256,
        "source_file": path,
        "source_line": record.line,
        "byte_offset": record.offset,
        "size_bytes": record.size,
        "workload_uuid": read.workload.uuid,
        "inputs_sha256": read.workload.inputs_sha256,
        "timezone_assumed": read.timezone_assumed,
        "error_not_finite": read.error_not_finite,
        "legacy_forms": list(read.legacy_forms),
    }


def run_row(read: ReadRun, snapshot: Snapshot) -> Row:
    """Return the row of ``runs``."""
    run, spec = read.run, read.run.spec
    correctness, evidence = spec.correctness, spec.evidence
    return {
        "run_digest": run.digest,
        "operation_digest": read.workload.manifest.spec.operation_spec_digest,
        "workload_digest": spec.workload_digest,
        "implementation_digest": read.implementation_digest,
        "protocol_digest": spec.protocol_digest,
        "environment_digest": spec.environment_digest,
        "comparison_key": read.comparison_key,
        "source": spec.source_native.source if spec.source_native else snapshot.pull.adapter,
        "benchmark": read.benchmark,
        "status": spec.status,
        "hardware": read.environment.spec.hardware.product,
        "primary_statistic": spec.timing.primary_statistic if spec.timing else None,
        "latency_ns": read.latency_ns,
        "reference_latency_ms": _double(read.reference_latency_ms),
        "speedup_factor": _double(read.speedup_factor),
        "max_absolute_error": _double(correctness.maximum_absolute_error if correctness else None),
        "max_relative_error": _double(correctness.maximum_relative_error if correctness else None),
        "log_digest": evidence.logs.digest if evidence and evidence.logs else None,
        "observed_at": datetime.fromisoformat(spec.observed_at).replace(tzinfo=None),
        "ingested_at": snapshot.fetched_at,
        "snapshot_id": snapshot.snapshot_id,
        "manifest": run.text,
    }


def measurement_rows(read: ReadRun) -> list[Row]:
    """Return the rows of ``measurements``: each latency statistic of the run in nanoseconds, and what else it has."""
    timing = read.run.spec.timing
    if timing is None:
        return []
    statistics = timing.latency_ns.model_dump(exclude_none=True, exclude={"confidence95"})
    rows = [
        {
            "run_digest": read.run.digest,
            "metric": other.metric,
            "statistic": other.statistic,
            "unit": other.unit,
            "value": float(other.value),
            "sample_count": other.sample_count,
        }
        for other in read.run.spec.measurements or ()
    ]
    return rows + [
        {
            **LATENCY,
            "run_digest": read.run.digest,
            "statistic": statistic,
            "value": float(value),
            "sample_count": timing.samples,
        }
        for statistic, value in statistics.items()
    ]


def log_artifact_row(read: ReadRun, blob_sha256: str, license_name: str, snapshot: Snapshot) -> Row | None:
    """Return the row of ``artifacts`` for the log of a run, where it has one."""
    evidence = read.run.spec.evidence
    if evidence is None or evidence.logs is None:
        return None
    return {
        **LOG_ARTIFACT,
        "digest": evidence.logs.digest,
        "size_bytes": read.log_size_bytes,
        "license": license_name,
        "blob_sha256": blob_sha256,
        "byte_offset": read.record.offset,
        "pointer": read.log_pointer,
        "snapshot_id": snapshot.snapshot_id,
    }


def rerun_row(read: ReadRun, rerun: Rerun, snapshot: Snapshot) -> Row:
    """Return the row of ``reruns``."""
    return {
        "run_digest": read.run.digest,
        "target_run_digest": rerun.target_run_digest,
        "verdict": rerun.verdict,
        "reasons": list(rerun.reasons),
        "ratio": _double(rerun.ratio),
        "passed": read.run.spec.status == "passed",
        "median_ns": _double(rerun.median_ns),
        "low_ns": _double(rerun.low_ns),
        "high_ns": _double(rerun.high_ns),
        "host_identity": rerun.host_identity,
        "gpu_identity": rerun.gpu_identity,
        "job_digest": rerun.job_digest,
        "isolation": canonical_text(dict(rerun.isolation)).decode(),
        "telemetry": canonical_text(dict(rerun.telemetry)).decode(),
        "snapshot_id": snapshot.snapshot_id,
    }


def samples_artifact_row(
    read: ReadRun, rerun: Rerun, blob_sha256: str, license_name: str, snapshot: Snapshot
) -> Row | None:
    """Return the row of ``artifacts`` for the raw samples of a rerun, where it was timed."""
    if rerun.samples_digest is None:
        return None
    return {
        "digest": rerun.samples_digest,
        "kind": "samples",
        "media_type": "application/json",
        "size_bytes": rerun.samples_size_bytes,
        "license": license_name,
        "blob_sha256": blob_sha256,
        "byte_offset": read.record.offset,
        "pointer": "/measurement/samples_ns",
        "snapshot_id": snapshot.snapshot_id,
    }


def _double(value: int | float | None) -> float | None:
    return None if value is None else float(value)
