"""``rerun import``: results of controlled reruns become evidence, like any pull."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import CheckFailure
from pipeline.ingest.pull import ingest
from pipeline.ingest.report import IngestReport, IngestRequest
from pipeline.rerun.results import RerunSource, read_results
from pipeline.store.database import connect

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
        _check_known(connection, jobs)
    report = ingest(data, IngestRequest(), progress, source=source)
    with closing(connect(data.database)) as connection:
        return report, _verdicts(connection, [job.digest for job in jobs])


def _check_known(connection: DuckDBPyConnection, jobs: list[Job]) -> None:
    for job in jobs:
        document = job.document
        for noun, digest, table in (
            ("run", document.get("target", {}).get("digest"), "runs"),
            ("implementation", document["implementation"]["digest"], "implementations"),
            ("operation", document["operation"]["digest"], "operations"),
        ):
            sql = f"SELECT count(*) FROM {table} WHERE {noun}_digest = ?"
            if digest is not None and connection.execute(sql, [digest]).fetchall() == [(0,)]:
                raise CheckFailure(
                    f"job {job.short} is about {noun} {digest}, which this warehouse does not have: first ingest the"
                    " trace set that it was planned from"
                )


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
