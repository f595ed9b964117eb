"""Plan: which runs to repeat, as job files that carry everything a host with a GPU needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from pipeline.errors import DataDirectoryError, UsageError
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.normalize.operation import Project
from pipeline.normalize.workload import Operation
from pipeline.rerun.jobs import Limits, Target, build_job
from pipeline.rerun.runner.job import Job
from pipeline.store.blobs import BlobStore
from pipeline.store.files import refusal
from pipeline.upstream import documents as upstream
from pipeline.upstream.decode import decode
from pipeline.upstream.held import HeldBackError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipeline.store.layout import DataDirectory


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs: every condition that is given must hold, and one must be given."""

    runs: tuple[str, ...] = ()
    """Digests, or unique prefixes of them."""
    operation: str | None = None
    solution: str | None = None
    author: str | None = None
    workload: str | None = None
    """Upstream uuid, or a digest or a prefix of one."""
    records: bool = False
    """Only the runs that hold a record of the source-native profile now."""
    sql: str | None = None
    """A query whose column ``run_digest`` names runs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs of a selection, and the runs that have none."""

    jobs: list[Job]
    left_out: dict[str, str]
    """Why a selected run has no job, by its digest."""


def plan(
    connection: DuckDBPyConnection,
    data: DataDirectory,
    selection: Selection,
    *,
    device: str = "any",
    limits: Limits | None = None,
    limit: int | None = None,
) -> Plan:
    """Return a job for each selected run that passed and was timed, newest first.

    Raises:
        UsageError: nothing is selected, or the SQL cannot be used.
        DataDirectoryError: a blob is missing.
    """
    blobs = BlobStore(data.blobs)
    operations: dict[str, tuple[Operation, dict[str, Any]]] = {}
    jobs: list[Job] = []
    left_out: dict[str, str] = {}
    for row in _selected(connection, selection):
        if limit is not None and len(jobs) >= limit:
            break
        run = row["run_digest"]
        if row["status"] != "passed" or row["latency_ns"] is None:
            left_out[run] = f"its status is {row['status']}: there is no latency to compare with"
            continue
        if row["definition_blob"] not in operations:
            operations[row["definition_blob"]] = _operation(blobs, row["definition_blob"])
        operation, definition = operations[row["definition_blob"]]
        record = decode(blobs.read(row["blob_sha256"], row["byte_offset"], row["size_bytes"])).value
        workload = operation.normalize(upstream.Workload.model_validate(record["workload"]))
        if workload.manifest.digest != row["workload_digest"]:
            left_out[run] = "its definition has changed since it was read: its workload is no longer the same"
            continue
        if blobs.tombstone(row["solution_sha256"]) is not None:
            left_out[run] = "a takedown removed sources of its solution"
            continue
        job = build_job(
            operation=operation,
            workload=workload.manifest,
            implementation=json.loads(row["implementation"]),
            definition=definition,
            solution=_solution(blobs, row["solution_sha256"]),
            workload_record=record["workload"],
            target=Target(json.loads(row["run"]), json.loads(row["environment"])),
            tensor_files=_tensor_files(connection, row["snapshot_id"], record["workload"]),
            device=device,
            limits=limits,
        )
        jobs.append(job)
    return Plan(jobs, left_out)


def write_jobs(jobs: Sequence[Job], folder: Path) -> list[Path]:
    """Write each job to ``<digest>.json`` in a folder.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{job.short}.json" for job in jobs]
        for job, path in zip(jobs, paths, strict=True):
            path.write_text(job.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(refusal(error, folder)) from error
    return paths


def _selected(connection: DuckDBPyConnection, selection: Selection) -> Iterator[dict[str, Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if selection.runs:
        prefixes = [_prefix(text) for text in selection.runs]
        conditions.append(" OR ".join("starts_with(run.run_digest, ?)" for _ in prefixes))
        values.extend(prefixes)
    for column, value in (
        ("operation.name", selection.operation),
        ("implementation.name", selection.solution),
        ("implementation.author", selection.author),
    ):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if selection.workload is not None:
        conditions.append("run.workload_uuid = ? OR starts_with(run.workload_digest, ?)")
        values.extend((selection.workload, _prefix(selection.workload)))
    if selection.records:
        conditions.append("run.run_digest IN (SELECT run_digest FROM current_records WHERE profile = 'source_native')")
    if selection.sql is not None:
        conditions.append("run.run_digest IN (SELECT unnest(?::VARCHAR[]))")
        values.append(_chosen_by(connection, selection.sql))
    if not conditions:
        ways = "--operation, --solution, --author, --workload, --records or --sql"
        raise UsageError(f"name runs, or choose some with {ways}")
    where = " AND ".join(f"({condition})" for condition in conditions)
    connection.execute(_RUNS.format(where=where), values)
    names = [column[0] for column in connection.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in connection.fetchall()]
    if not rows:
        raise UsageError("no run fits: see kernelhouse leaderboard or kernelhouse sql for what there is")
    return iter(rows)


def _chosen_by(connection: DuckDBPyConnection, query: str) -> list[str]:
    """Return what a query has in its column ``run_digest``."""
    try:
        relation = connection.sql(query)
        if "run_digest" not in getattr(relation, "columns", ()):  # of an empty text nothing is made
            raise UsageError("the query of --sql has no column run_digest: select that of runs or leaderboard")
        return [str(digest) for (digest,) in relation.select("run_digest").fetchall()]
    except duckdb.Error as error:
        raise UsageError(f"runs cannot be chosen so ({str(error).partition(chr(10))[0]}): correct --sql") from error


def _prefix(text: str) -> str:
    return text if text.startswith("sha256:") else f"sha256:{text}"


def _operation(blobs: BlobStore, blob: str) -> tuple[Operation, dict[str, Any]]:
    raw = blobs.read(blob)
    try:
        operation = FlashInferBench().read_definition(raw, Project(None, None)).value.operation
    except HeldBackError as error:
        raise DataDirectoryError(f"blob {blob} is no definition any more ({error}): ingest --rebuild") from error
    return operation, json.loads(raw)


def _solution(blobs: BlobStore, blob: str) -> dict[str, Any]:
    solution: dict[str, Any] = json.loads(blobs.read(blob))
    return solution


def _tensor_files(connection: DuckDBPyConnection, snapshot: str, workload: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the tensor files of a workload by the path that it gives; what no pull listed is missing.

    The snapshot of the record comes first, then the newest of the same trace set, which may have come in pieces.
    """
    found = {}
    for described in workload.get("inputs", {}).values():
        path = described.get("path")
        if path is None:
            continue
        for (sha256,) in connection.execute(_LISTED, [path.removeprefix("./"), snapshot, snapshot]).fetchall():
            found[path] = sha256
    return found


_LISTED = """
SELECT sha256
FROM source_files
JOIN snapshots USING (snapshot_id)
WHERE
    path = ? AND sha256 IS NOT NULL
    AND (source, repository) IS NOT DISTINCT FROM (
        SELECT (source, repository) FROM snapshots WHERE snapshot_id = ?
    )
ORDER BY snapshot_id = ? DESC, sequence DESC
LIMIT 1
"""

_RUNS = """
SELECT
    run.run_digest, run.status, run.latency_ns, run.workload_digest, run.manifest AS run,
    environment.manifest AS environment, implementation.manifest AS implementation, solution_sha256,
    operation.blob_sha256 AS definition_blob, seen.blob_sha256, seen.byte_offset, seen.size_bytes,
    seen.snapshot_id
FROM runs AS run
JOIN operations AS operation USING (operation_digest)
JOIN implementations AS implementation USING (implementation_digest)
JOIN environments AS environment USING (environment_digest)
JOIN (
    SELECT
        run_digest,
        arg_min(struct_pack(blob_sha256, byte_offset, size_bytes, snapshot_id), observation_sha256) AS seen
    FROM observations
    GROUP BY run_digest
) AS observed USING (run_digest)
WHERE run.source = 'flashinfer-bench' AND ({where})
ORDER BY run.observed_at DESC, run.run_digest
"""
