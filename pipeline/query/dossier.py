"""Dossiers: everything that the warehouse knows of one run, operation, implementation or other object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.query.find import Found, find
from pipeline.query.leaderboard import FLOORS, Floor
from pipeline.query.operations import Operation, operation
from pipeline.query.rows import fetch, rows_at_most, values

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Standing:
    """The place of a run in its comparison group under one profile; ``rank`` None: not ranked."""

    profile: str
    cohort_key: str
    rank: int | None
    tied: bool | None
    results: int
    best_run_digest: str | None
    vs_best: float | None
    vs_baseline: float | None
    floor_ns: float | None
    vs_floor: float | None
    record: bool
    shut_out: list[str]
    input_identity: str | None
    protocol_era: str | None


@dataclass(frozen=True)
class Flag:
    """A flag of a run, and what it rests on."""

    flag: str
    detail: str


@dataclass(frozen=True)
class Suspension:
    """A span of time in which a run has no standing; ``until`` None: it has none now."""

    cause: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True)
class Correction:
    """A reviewed correction of a run."""

    action: str
    successor: str | None
    removes: list[str]
    reason: str
    author: str
    at: datetime


@dataclass(frozen=True)
class Rerun:
    """A controlled rerun: of this run, or the one that this run is; ``ratio`` is its latency over the reported one."""

    run_digest: str
    target_run_digest: str | None
    verdict: str | None
    reasons: list[str]
    ratio: float | None
    hardware: str
    median_ns: float | None
    low_ns: float | None
    high_ns: float | None
    isolation: dict[str, str]
    observed_at: datetime


@dataclass(frozen=True)
class Tensor:
    """A tensor argument with every dimension bound."""

    role: str
    name: str
    dtype: str
    shape: list[int]
    generator: str | None


@dataclass(frozen=True)
class Measurement:
    """One statistic of a run, in ``unit``."""

    metric: str
    statistic: str
    unit: str
    value: float
    sample_count: int | None


@dataclass(frozen=True)
class Artifact:
    """A log, source or sample file, and where its bytes lie, or why they were taken down."""

    digest: str
    kind: str
    media_type: str
    size_bytes: int
    license: str | None
    blob_sha256: str
    byte_offset: int
    pointer: str
    taken_down: str | None


@dataclass(frozen=True)
class Observation:
    """A record that names the run, and where it was read."""

    observation_sha256: str
    snapshot_id: str
    revision: str | None
    source_file: str
    source_line: int
    byte_offset: int
    size_bytes: int


@dataclass(frozen=True)
class _Run:
    run_digest: str
    operation_digest: str
    operation: str
    workload_digest: str
    workload_uuid: str
    implementation_digest: str
    implementation: str
    author: str
    role: str
    language: str
    license: str | None
    source_available: bool
    repository: str | None
    revision: str | None
    protocol_digest: str
    environment_digest: str
    comparison_key: str
    source: str
    benchmark: str
    source_file: str
    source_line: int
    status: str
    hardware: str
    primary_statistic: str | None
    latency_ns: int | None
    reference_latency_ms: float | None
    reference_ratio: float | None
    speedup_factor: float | None
    max_absolute_error: float | None
    max_relative_error: float | None
    log_digest: str | None
    observed_at: datetime
    ingested_at: datetime
    eligible: bool
    reasons: list[str]
    evidence_level: str
    flags: list[str]


@dataclass(frozen=True)
class RunDossier(_Run):
    """A run: identity, standing, correctness, workload, measurements, artifacts, manifests.

    ``reference_ratio`` is the reported reference latency over the measured one.
    """

    axes: dict[str, int]
    shape_summary: str
    dtypes: list[str]
    tensors: list[Tensor]
    scalars: dict[str, dict[str, Any]]
    correctness: dict[str, Any]
    standings: list[Standing]
    flag_details: list[Flag]
    suspensions: list[Suspension]
    corrections: list[Correction]
    floors: list[Floor]
    reruns: list[Rerun]
    measurements: list[Measurement]
    artifacts: list[Artifact]
    observations: list[Observation]
    manifests: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Coverage:
    """How much of an operation is measured on a GPU: workloads known, measured, and passed."""

    hardware: str
    workloads: int
    measured: int
    passing: int
    last_observed_at: datetime | None


@dataclass(frozen=True)
class Measured:
    """An implementation as measured on an operation; latencies in ns, ``vs_best`` in the cohort of that latency."""

    implementation_digest: str
    name: str
    author: str
    role: str
    language: str
    license: str | None
    source_available: bool
    source: str | None
    runs: int
    eligible_runs: int
    cohorts_led: int
    best_latency_ns: int | None
    vs_best: float | None
    evidence_levels: list[str]


@dataclass(frozen=True)
class OperationDossier:
    """An operation: what it is, where it is measured, by what."""

    operation: Operation
    workloads: int
    coverage: list[Coverage]
    implementations: list[Measured]


@dataclass(frozen=True)
class RunLine:
    """A run in a list."""

    run_digest: str
    operation: str
    shape_summary: str
    dtypes: list[str]
    hardware: str
    status: str
    latency_ns: int | None
    rank: int | None
    vs_best: float | None
    evidence_level: str
    flags: list[str]
    observed_at: datetime


@dataclass(frozen=True)
class _Implementation:
    implementation_digest: str
    name: str
    operation_digest: str
    operation: str
    author: str
    role: str
    language: str
    license: str | None
    source_available: bool
    source_path: str
    solution_sha256: str
    sources_sha256: str
    repository: str | None
    first_revision: str | None
    manifest: dict[str, Any]


@dataclass(frozen=True)
class ImplementationDossier(_Implementation):
    """An implementation: identity, source, and its ``run_count`` runs, newest first (ranks under ``source_native``)."""

    artifacts: list[Artifact]
    run_count: int
    runs: list[RunLine]


@dataclass(frozen=True)
class ObjectDossier:
    """A workload, environment, protocol or artifact: its row, its manifest where it has one, and its runs as above."""

    row: dict[str, Any]
    manifest: dict[str, Any] | None
    run_count: int
    runs: list[RunLine]


Dossier = RunDossier | OperationDossier | ImplementationDossier | ObjectDossier


def dossier(connection: DuckDBPyConnection, text: str, *, run_limit: int | None = None) -> tuple[Found, Dossier]:
    """Return what ``text`` (name or digest prefix) stands for, with its dossier.

    ``run_limit`` keeps so many of the runs that a dossier lists. Raises UsageError where ``text`` stands for nothing
    or for several things.
    """
    found = find(connection, text)
    match found.kind:
        case "run":
            return found, run_dossier(connection, found.digest)
        case "operation":
            return found, operation_dossier(connection, found.digest)
        case "implementation":
            return found, implementation_dossier(connection, found.digest, run_limit)
    return found, _object_dossier(connection, found, run_limit)


def run_dossier(connection: DuckDBPyConnection, run_digest: str) -> RunDossier:
    """Return the dossier of the run of that digest, which must exist."""
    key = [run_digest]
    [run] = fetch(connection, _Run, _RUN, key)
    [workload] = fetch(connection, _Workload, _WORKLOAD, [run.workload_digest])
    manifests = {
        kind: fetch(connection, _Manifest, f"SELECT manifest FROM {table} WHERE {column} = ?", [digest])[0].manifest
        for kind, table, column, digest in (
            ("run", "runs", "run_digest", run_digest),
            ("protocol", "protocols", "protocol_digest", run.protocol_digest),
            ("environment", "environments", "environment_digest", run.environment_digest),
        )
    }
    spec = workload.manifest["spec"]
    samples = manifests["run"]["spec"].get("evidence", {}).get("rawSamples", {}).get("digest")
    return RunDossier(
        **vars(run),
        axes=workload.axes,
        shape_summary=workload.shape_summary,
        dtypes=workload.dtypes,
        tensors=fetch(connection, Tensor, _TENSORS, [run.workload_digest]),
        scalars=spec.get("scalars", {}),
        correctness=spec.get("correctness", {}),
        standings=fetch(connection, Standing, _STANDINGS, key),
        flag_details=fetch(connection, Flag, _FLAGS, key),
        suspensions=fetch(connection, Suspension, _SUSPENSIONS, key),
        corrections=fetch(connection, Correction, _CORRECTIONS, key),
        floors=fetch(connection, Floor, _FLOORS, [run.workload_digest, run.hardware]),
        reruns=fetch(connection, Rerun, _RERUNS, key * 2),
        measurements=fetch(connection, Measurement, _MEASUREMENTS, key),
        artifacts=fetch(
            connection, Artifact, f"{_ARTIFACTS} WHERE digest IN (?, ?) ORDER BY kind", [run.log_digest, samples]
        ),
        observations=fetch(connection, Observation, _OBSERVATIONS, key),
        manifests=manifests,
    )


def operation_dossier(connection: DuckDBPyConnection, operation_digest: str) -> OperationDossier:
    """Return the dossier of the operation of that digest, which must exist."""
    key = [operation_digest]
    [[workloads]] = connection.execute("SELECT count(*) FROM workloads WHERE operation_digest = ?", key).fetchall()
    return OperationDossier(
        operation=operation(connection, operation_digest),
        workloads=workloads,
        coverage=fetch(connection, Coverage, _COVERAGE, key),
        implementations=fetch(connection, Measured, _MEASURED, key * 2),
    )


def implementation_dossier(
    connection: DuckDBPyConnection, implementation_digest: str, run_limit: int | None = None
) -> ImplementationDossier:
    """Return the dossier of the implementation of that digest, which must exist."""
    [row] = fetch(connection, _Implementation, _IMPLEMENTATION, [implementation_digest])
    content = row.manifest["spec"].get("source", {}).get("contentDigest")
    return ImplementationDossier(
        **vars(row),
        artifacts=fetch(connection, Artifact, f"{_ARTIFACTS} WHERE digest = ?", [content]),
        run_count=_run_count(connection, "implementation_digest", implementation_digest),
        runs=_runs(connection, "implementation_digest", implementation_digest, run_limit),
    )


def _object_dossier(connection: DuckDBPyConnection, found: Found, run_limit: int | None) -> ObjectDossier:
    table, key, run_column = {
        "workload": ("workloads", "workload_digest", "workload_digest"),
        "environment": ("environments", "environment_digest", "environment_digest"),
        "protocol": ("protocols", "protocol_digest", "protocol_digest"),
        "artifact": ("artifacts", "digest", "log_digest"),
    }[found.kind]
    manifest = None
    columns = "*"
    if found.kind != "artifact":
        columns = "* EXCLUDE (manifest)"
        sql = f"SELECT manifest FROM {table} WHERE {key} = ?"
        manifest = fetch(connection, _Manifest, sql, [found.digest])[0].manifest
    connection.execute(f"SELECT {columns} FROM {table} WHERE {key} = ?", [found.digest])
    names = [column[0] for column in connection.description or ()]
    row = dict(zip(names, connection.fetchall()[0], strict=True))
    run_count = _run_count(connection, run_column, found.digest)
    return ObjectDossier(row, manifest, run_count, _runs(connection, run_column, found.digest, run_limit))


def _run_count(connection: DuckDBPyConnection, column: str, digest: str) -> int:
    [count] = values(connection, f"SELECT count(*) FROM runs WHERE {column} = ?", [digest])
    return int(count)


def _runs(connection: DuckDBPyConnection, column: str, digest: str, limit: int | None) -> list[RunLine]:
    return fetch(connection, RunLine, _RUN_LINES.format(column=column), [digest, rows_at_most(limit)])


@dataclass(frozen=True)
class _Manifest:
    manifest: dict[str, Any]


@dataclass(frozen=True)
class _Workload:
    axes: dict[str, int]
    shape_summary: str
    dtypes: list[str]
    manifest: dict[str, Any]


_RUN = """
SELECT run_digest, runs.operation_digest, operations.name AS operation, workload_digest, workload_uuid,
       runs.implementation_digest, implementations.name AS implementation, author, role, language, license,
       source_available, implementations.repository, implementations.first_revision AS revision,
       protocol_digest, environment_digest, comparison_key, source, benchmark, source_file, source_line, status,
       hardware, primary_statistic, latency_ns, reference_latency_ms,
       CASE WHEN latency_ns > 0 THEN reference_latency_ms * 1e6 / latency_ns END AS reference_ratio,
       speedup_factor, max_absolute_error, max_relative_error, log_digest, observed_at, ingested_at, eligible, reasons,
       evidence_level, flags
FROM runs
JOIN operations ON operations.operation_digest = runs.operation_digest
JOIN implementations ON implementations.implementation_digest = runs.implementation_digest
WHERE run_digest = ?
"""

_WORKLOAD = "SELECT axes, shape_summary, dtypes, manifest FROM workloads WHERE workload_digest = ?"

_TENSORS = """
SELECT role, name, dtype, shape, generator FROM workload_tensors WHERE workload_digest = ? ORDER BY role, position
"""

_STANDINGS = """
SELECT cohort_runs.profile, cohort_key, rank, tied, results, cohorts.best_run_digest, vs_best, vs_baseline,
       leaderboard.floor_ns, leaderboard.vs_floor,
       coalesce(current_records.run_digest = cohort_runs.run_digest, false) AS record,
       cohort_runs.shut_out, cohort_runs.input_identity, cohort_runs.protocol_era
FROM cohort_runs
JOIN cohorts USING (profile, cohort_key)
LEFT JOIN leaderboard USING (profile, cohort_key, operation, run_digest)
LEFT JOIN current_records USING (profile, cohort_key)
WHERE cohort_runs.run_digest = ?
ORDER BY cohort_runs.profile
"""

_RERUNS = """
SELECT run_digest, target_run_digest, verdict, reruns.reasons, ratio, hardware, median_ns, low_ns, high_ns, isolation,
       observed_at
FROM reruns JOIN runs USING (run_digest)
WHERE target_run_digest = ? OR run_digest = ? ORDER BY observed_at, run_digest
"""

_MEASUREMENTS = """
SELECT metric, statistic, unit, value, sample_count FROM measurements WHERE run_digest = ? ORDER BY metric, statistic
"""

_ARTIFACTS = """
SELECT digest, kind, media_type, size_bytes, license, blob_sha256, byte_offset, pointer,
       (SELECT min(reason) FROM corrections WHERE list_contains(removes, artifacts.digest)) AS taken_down
FROM artifacts
"""

_FLAGS = "SELECT flag, detail FROM flags WHERE run_digest = ? ORDER BY flag"

_SUSPENSIONS = "SELECT cause, since, until FROM suspensions WHERE run_digest = ? ORDER BY since, cause"

_CORRECTIONS = """
SELECT action, successor, removes, reason, author, "at" FROM corrections WHERE run_digest = ? ORDER BY "at", action
"""

_FLOORS = f"{FLOORS} WHERE workload_digest = ? AND hardware = ? ORDER BY model, peaks"

_OBSERVATIONS = """
SELECT observation_sha256, snapshot_id, revision, source_file, source_line, byte_offset, size_bytes
FROM observations
LEFT JOIN snapshots USING (snapshot_id)
WHERE run_digest = ? ORDER BY sequence, source_file, source_line
"""

_COVERAGE = """
SELECT hardware, workloads, measured, passing, last_observed_at
FROM coverage WHERE operation_digest = ? ORDER BY hardware
"""

# An implementation may be written for a sister definition: what was measured on the operation counts as well.
_MEASURED = """
WITH measured AS (
    SELECT runs.implementation_digest, runs.source, runs.eligible, runs.evidence_level, leaderboard.rank,
           leaderboard.latency_ns, leaderboard.vs_best
    FROM runs
    JOIN operations USING (operation_digest)
    LEFT JOIN leaderboard ON leaderboard.run_digest = runs.run_digest AND profile = 'source_native'
        AND leaderboard.operation = operations.name
    WHERE operation_digest = ?
)
SELECT implementation_digest, name, author, role, language, license, source_available, any_value(source) AS source,
       count(source) AS runs, count(*) FILTER (eligible) AS eligible_runs, count(*) FILTER (rank = 1) AS cohorts_led,
       min(latency_ns) AS best_latency_ns, arg_min(vs_best, latency_ns) AS vs_best,
       coalesce(list_sort(list_distinct(list(evidence_level) FILTER (evidence_level IS NOT NULL))), [])
           AS evidence_levels
FROM implementations
LEFT JOIN measured USING (implementation_digest)
WHERE source IS NOT NULL OR operation_digest = ?
GROUP BY ALL
ORDER BY best_latency_ns NULLS LAST, name, implementation_digest
"""

_IMPLEMENTATION = """
SELECT implementation_digest, implementations.name, implementations.operation_digest, definition AS operation, author,
       role, language, license, source_available, source_path, solution_sha256, sources_sha256, repository,
       first_revision, manifest
FROM implementations WHERE implementation_digest = ?
"""

_RUN_LINES = """
WITH newest AS (
    SELECT * EXCLUDE (manifest) FROM runs WHERE {column} = ? ORDER BY observed_at DESC, run_digest LIMIT ?
)
SELECT newest.run_digest, operations.name AS operation, shape_summary, dtypes, newest.hardware, status,
       newest.latency_ns, rank, vs_best, newest.evidence_level, newest.flags, newest.observed_at
FROM newest
JOIN operations ON operations.operation_digest = newest.operation_digest
JOIN workloads ON workloads.workload_digest = newest.workload_digest
LEFT JOIN leaderboard ON leaderboard.run_digest = newest.run_digest AND profile = 'source_native'
    AND leaderboard.implementation_digest = newest.implementation_digest
ORDER BY newest.observed_at DESC, newest.run_digest
"""
