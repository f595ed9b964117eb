"""``rerun import``: results of controlled reruns become evidence, like any pull."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import CheckFailure
from pipeline.ingest.pull import ingest
from pipeline.ingest.report import IngestReport, IngestRequest
from pipeline.manifests import canonical_text, sha256_of
from pipeline.rerun.results import RerunSource, read_results
from pipeline.store.blobs import BlobStore
from pipeline.store.database import connect
from pipeline.upstream.decode import decode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipeline.rerun.runner.job import Job
    from pipeline.sources.listing import Progress
    from pipeline.store.layout import DataDirectory


def import_reruns(data: DataDirectory, folder: Path, progress: Progress) -> tuple[IngestReport, list[dict[str, Any]]]:
    """Take a folder of results into the warehouse; return the report and what each rerun says.

    All or nothing: one file that was altered, or that repeats what this warehouse does not know, and none is taken.

    Raises:
        CheckFailure: such a file.
        SourceError: no folder, or no result in it.
        DataDirectoryError: the data directory cannot be used.
    """
    source = RerunSource(folder)
    jobs = [job for job, _ in read_results(folder)]
    with closing(connect(data.database)) as connection:
        for job in jobs:
            _check_known(connection, BlobStore(data.blobs), job)
    report = ingest(data, IngestRequest(), progress, source=source)
    with closing(connect(data.database)) as connection:
        return report, _verdicts(connection, [job.digest for job in jobs])


def _check_known(connection: DuckDBPyConnection, blobs: BlobStore, job: Job) -> None:
    document = job.document
    target = document.get("target", {}).get("digest")
    for noun, digest, table in (
        ("run", target, "runs"),
        ("implementation", document["implementation"]["digest"], "implementations"),
        ("operation", document["operation"]["digest"], "operations"),
    ):
        sql = f"SELECT count(*) FROM {table} WHERE {noun}_digest = ?"
        if digest is not None and connection.execute(sql, [digest]).fetchall() == [(0,)]:
            raise CheckFailure(
                f"job {job.short} is about {noun} {digest}, which this warehouse does not have: first ingest the"
                " trace set that it was planned from"
            )
    for noun, known in (
        ("definition", _is_definition(connection, blobs, document)),
        ("solution", _is_solution(connection, blobs, document)),
        ("workload", target is None or _is_workload(connection, blobs, target, document)),
        ("tensor file", all(_is_listed(connection, *file) for file in document["tensor_files"].items())),
    ):
        if not known:
            raise CheckFailure(
                f"job {job.short} carries a {noun} that is not the one in this warehouse: it was altered, or planned"
                " from another trace set; plan and run it again"
            )


def _is_definition(connection: DuckDBPyConnection, blobs: BlobStore, document: dict[str, Any]) -> bool:
    """Tell whether a job's definition is a file as fetched: the operation's digest does not cover the reference."""
    sql = _FILES.format(blob="blob_sha256", table="operations", noun="operation")
    files = connection.execute(sql, [document["operation"]["digest"]] * 2).fetchall()
    return any(json.loads(blobs.read(file)) == document["definition"] for (file,) in files)


def _is_solution(connection: DuckDBPyConnection, blobs: BlobStore, document: dict[str, Any]) -> bool:
    """Tell whether a job's solution is a file as fetched; texts that a takedown blanked there go by their digests."""
    digest = document["implementation"]["digest"]
    sql = "SELECT sources_sha256 FROM implementations WHERE implementation_digest = ?"
    [[digests]] = connection.execute(sql, [digest]).fetchall()
    same_texts = sha256_of(canonical_text(document["sources"])) == digests
    sql = _FILES.format(blob="solution_sha256", table="implementations", noun="implementation")
    wanted = document["solution"]
    for (file,) in connection.execute(sql, [digest] * 2).fetchall():
        found = json.loads(blobs.read(file))
        if found == wanted or (same_texts and found | {"sources": None} == wanted | {"sources": None}):
            return True
    return False


def _is_workload(connection: DuckDBPyConnection, blobs: BlobStore, run: str, document: dict[str, Any]) -> bool:
    """Tell whether a job's workload is that of a record of the run: its digest does not cover all of it."""
    sql = "SELECT blob_sha256, byte_offset, size_bytes FROM observations WHERE run_digest = ?"
    records = (decode(blobs.read(*place)).value for place in connection.execute(sql, [run]).fetchall())
    return any(record.get("workload", {}) == document["workload_record"] for record in records)


def _is_listed(connection: DuckDBPyConnection, path: str, sha256: str) -> bool:
    sql = "SELECT count(*) FROM source_files WHERE path = ? AND sha256 = ?"
    return connection.execute(sql, [path.removeprefix("./"), sha256]).fetchall() != [(0,)]


_FILES = """
SELECT {blob} FROM {table} WHERE {noun}_digest = ?
UNION
SELECT file.sha256
FROM source_files AS file
JOIN {table} AS known ON known.source_path = file.path
WHERE {noun}_digest = ? AND fetched
"""


def _verdicts(connection: DuckDBPyConnection, jobs: list[str]) -> list[dict[str, Any]]:
    connection.execute(_VERDICTS, [jobs])
    names = [column[0] for column in connection.description or ()]
    return [dict(zip(names, row, strict=True)) for row in connection.fetchall()]


_VERDICTS = """
SELECT
    rerun.run_digest, target_run_digest, operation.name AS operation, implementation.name AS implementation,
    workload.shape_summary, run.hardware, run.status, verdict, rerun.reasons, ratio, run.latency_ns, low_ns, high_ns,
    target.latency_ns AS target_latency_ns
FROM reruns AS rerun
JOIN runs AS run USING (run_digest)
JOIN operations AS operation USING (operation_digest)
JOIN implementations AS implementation ON implementation.implementation_digest = run.implementation_digest
JOIN workloads AS workload ON workload.workload_digest = run.workload_digest
LEFT JOIN runs AS target ON target.run_digest = rerun.target_run_digest
WHERE list_contains(?, rerun.job_digest)
ORDER BY operation, implementation, shape_summary, rerun.run_digest
"""
