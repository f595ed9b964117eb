"""The leaderboard of an operation: its cohorts, each with ranks, record, baseline state and floor."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.errors import UsageError
from pipeline.query.find import check_profile, find_operations
from pipeline.query.hardware import means
from pipeline.query.operations import Operation, operation
from pipeline.query.rows import fetch, rows_at_most, values

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Entry:
    """A ranked run; latencies in ns, ``vs_*`` plain ratios of its latency."""

    cohort_key: str
    rank: int
    tied: bool
    run_digest: str
    implementation: str
    implementation_digest: str
    author: str
    role: str
    language: str
    license: str | None
    source_available: bool
    source: str
    latency_ns: int
    vs_best: float
    vs_baseline: float | None
    vs_floor: float | None
    evidence_level: str
    flags: list[str]
    observed_at: datetime


@dataclass(frozen=True)
class ShutOut:
    """An eligible run that the profile shows and does not rank, for these flags."""

    cohort_key: str
    run_digest: str
    implementation: str
    author: str
    role: str
    latency_ns: int
    flags: list[str]


@dataclass(frozen=True)
class Floor:
    """An estimated bound on a workload's latency on a GPU, with its derivation."""

    workload_digest: str
    hardware: str
    model: str
    peaks: str
    gpu: str | None
    bytes_moved: float | None
    hbm_gb_s: float | None
    dram_ns: float | None
    operations: float | None
    peak_tflops: float | None
    peak_class: str | None
    compute_ns: float | None
    floor_ns: float | None
    bound_by: str | None
    assumptions: list[str]


@dataclass(frozen=True)
class Record:
    """The record of a cohort now; ``fastest_*`` differ from it inside a tie band only."""

    cohort_key: str
    run_digest: str
    latency_ns: int
    fastest_run_digest: str
    fastest_latency_ns: int
    held_since: datetime


@dataclass(frozen=True)
class _CohortRow:
    cohort_key: str
    workload_digest: str
    axes: dict[str, int]
    shape_summary: str
    dtypes: list[str]
    hardware: str
    environment_digest: str
    environment_manifest: dict[str, Any]
    protocol_digest: str
    protocol_manifest: dict[str, Any]
    metric: str
    input_identity: str | None
    protocol_era: str | None
    results: int
    runs: int
    best_run_digest: str | None
    best_latency_ns: int | None
    baseline_state: str
    baseline_latency_ns: int | None
    first_observed_at: datetime
    last_observed_at: datetime


@dataclass(frozen=True)
class Cohort(_CohortRow):
    """Runs that may be compared; ``entries`` are its ranked runs, ``not_ranked`` the others by reason code.

    ``input_identity`` (a workload uuid) and ``protocol_era`` (inferred from the time of measurement) are of the strict
    profile; ``shut_out`` lists what that shows and does not rank.
    """

    record: Record | None
    floors: list[Floor]
    not_ranked: dict[str, int]
    shut_out: list[ShutOut]
    entries: list[Entry]


@dataclass(frozen=True)
class Board:
    """An operation with its cohorts, ordered by hardware and axes; ``fitting`` counts what a limit left out as well."""

    operation: Operation
    fitting: int
    cohorts: list[Cohort]


@dataclass(frozen=True)
class Leaderboard:
    """The answer: one board an operation digest (a name may have been redefined)."""

    profile: str
    policy_version: str
    boards: list[Board]


def leaderboard(
    connection: DuckDBPyConnection,
    name: str,
    *,
    profile: str = "source_native",
    axes: Mapping[str, int] | None = None,
    gpu: str | None = None,
    limit: int | None = None,
    cohort_limit: int | None = None,
) -> Leaderboard:
    """Return the cohorts of the operation called ``name`` (or of that digest prefix).

    ``axes`` keeps the cohorts with these values (constants of the operation count as bound), ``gpu`` those on
    that GPU, ``cohort_limit`` so many, those with the most results, and ``limit`` so many runs of each. Raises
    UsageError for an unknown name or profile, and where filters leave nothing of an operation that has cohorts.
    """
    check_profile(connection, profile)
    [policy] = values(connection, "SELECT policy_version FROM profiles WHERE profile = ?", [profile])
    operations = [operation(connection, found.digest) for found in find_operations(connection, name)]
    hardware = values(connection, _HARDWARE, [profile, [each.operation_digest for each in operations]])
    _check_filters(operations, hardware, axes or {}, gpu)
    meant = [text for text in hardware if gpu is None or means(gpu, text)]
    boards = []
    for each in operations:
        wanted = [meant, json.dumps(each.constants), json.dumps(axes or {})]
        parameters = [profile, each.operation_digest, *wanted, rows_at_most(cohort_limit)]
        chosen = connection.execute(_CHOSEN, parameters).fetchall()
        fitting = chosen[0][1] if chosen else 0
        boards.append(Board(each, fitting, _cohorts(connection, each, profile, [key for key, _ in chosen], limit)))
    if hardware and not any(board.cohorts for board in boards):
        raise _not_measured(connection, profile, operations, axes or {})
    return Leaderboard(profile, policy, boards)


def _cohorts(
    connection: DuckDBPyConnection, of: Operation, profile: str, keys: Sequence[str], limit: int | None
) -> list[Cohort]:
    rows = fetch(connection, _CohortRow, _COHORTS, [profile, keys])
    records = {each.cohort_key: each for each in fetch(connection, Record, _RECORDS, [profile, keys])}
    floors: defaultdict[tuple[str, str], list[Floor]] = defaultdict(list)
    for floor in fetch(connection, Floor, _FLOORS, [of.operation_digest]):
        floors[floor.workload_digest, floor.hardware].append(floor)
    not_ranked: defaultdict[str, dict[str, int]] = defaultdict(dict)
    shut_out: defaultdict[str, list[ShutOut]] = defaultdict(list)
    # Seldom any: a run without a latency is in a cohort of its own.
    if partly_ranked := [row.cohort_key for row in rows if row.runs > row.results]:
        parameters = [profile, of.operation_digest, partly_ranked]
        for key, reason, amount in connection.execute(_NOT_RANKED, parameters).fetchall():
            not_ranked[key][reason] = amount
        for run in fetch(connection, ShutOut, _SHUT_OUT, parameters):
            shut_out[run.cohort_key].append(run)
    entries: defaultdict[str, list[Entry]] = defaultdict(list)
    of_operation = [profile, of.name, of.operation_digest]
    for entry in fetch(connection, Entry, _ENTRIES, [*of_operation, keys, rows_at_most(limit)]):
        entries[entry.cohort_key].append(entry)
    cohorts = [
        Cohort(
            **vars(row),
            record=records.get(row.cohort_key),
            floors=floors[row.workload_digest, row.hardware],
            not_ranked=not_ranked[row.cohort_key],
            shut_out=shut_out[row.cohort_key],
            entries=entries[row.cohort_key],
        )
        for row in rows
    ]
    cohorts.sort(key=lambda each: (each.hardware, sorted(each.axes.items()), each.environment_digest, each.cohort_key))
    return cohorts


def _check_filters(
    operations: Sequence[Operation], hardware: Sequence[str], axes: Mapping[str, int], gpu: str | None
) -> None:
    known = {axis.name for each in operations for axis in each.axes}
    for axis in axes:
        if axis not in known:
            raise UsageError(f'the operation has no axis "{axis}"; it has {", ".join(sorted(known))}')
    if gpu is not None and hardware and not any(means(gpu, text) for text in hardware):
        raise UsageError(f'the operation is not measured on "{gpu}"; it is on {", ".join(hardware)}')


def _not_measured(
    connection: DuckDBPyConnection, profile: str, operations: Sequence[Operation], axes: Mapping[str, int]
) -> UsageError:
    """Return an error that says which values of the wanted axes are measured, those nearest to the wish first."""
    digests = [each.operation_digest for each in operations]
    bound = [json.loads(text) for text in values(connection, _AXES, [profile, digests])]
    parts = []
    for axis, wish in axes.items():
        measured = {each[axis] for each in bound if axis in each}
        if measured:
            nearest = sorted(sorted(measured, key=lambda value: abs(value - wish))[:6])
            parts.append(f"{axis} near {wish}: {', '.join(map(str, nearest))}")
    wanted = ", ".join(f"{axis}={value}" for axis, value in axes.items())
    measured_are = f"; measured are {'; '.join(parts)}" if parts else ""
    return UsageError(f"the operation is not measured with {wanted}{measured_are}")


_HARDWARE = """
SELECT DISTINCT hardware FROM cohorts WHERE profile = ? AND list_contains(?, operation_digest) ORDER BY hardware
"""

_AXES = "SELECT DISTINCT axes FROM cohorts WHERE profile = ? AND list_contains(?, operation_digest)"

_CHOSEN = """
SELECT cohort_key, count(*) OVER () AS fitting
FROM cohorts
WHERE profile = ? AND operation_digest = ? AND list_contains(?::VARCHAR[], hardware)
    AND json_contains(json_merge_patch(?, axes), ?)
ORDER BY results DESC, cohort_key
LIMIT ?
"""

_COHORTS = """
SELECT cohort_key, workload_digest, cohorts.axes, shape_summary, dtypes, cohorts.hardware,
       environment_digest, environments.manifest AS environment_manifest,
       protocol_digest, protocols.manifest AS protocol_manifest,
       metric, input_identity, protocol_era, results, runs, best_run_digest, best_latency_ns, baseline_state,
       baseline_latency_ns, first_observed_at, last_observed_at
FROM cohorts
JOIN workloads USING (workload_digest)
JOIN environments USING (environment_digest)
JOIN protocols USING (protocol_digest)
WHERE profile = ? AND list_contains(?::VARCHAR[], cohort_key)
"""

_ENTRIES = """
SELECT leaderboard.cohort_key, rank, tied, run_digest, implementation, leaderboard.implementation_digest,
       leaderboard.author, leaderboard.role, language, license, source_available, runs.source, leaderboard.latency_ns,
       vs_best, vs_baseline, vs_floor, leaderboard.evidence_level, leaderboard.flags, leaderboard.observed_at
FROM leaderboard
JOIN runs USING (run_digest)
JOIN implementations ON implementations.implementation_digest = leaderboard.implementation_digest
WHERE profile = ? AND leaderboard.operation = ? AND runs.operation_digest = ?
    AND list_contains(?::VARCHAR[], cohort_key) AND position <= ?
ORDER BY leaderboard.cohort_key, position
"""

FLOORS = """
SELECT workload_digest, hardware, model, peaks, gpu, bytes_moved, hbm_gb_s, dram_ns, operations, peak_tflops,
       peak_class, compute_ns, floor_ns, bound_by, assumptions
FROM floor_estimates
JOIN workloads USING (workload_digest)
"""

_FLOORS = f"{FLOORS} WHERE operation_digest = ? ORDER BY model, peaks"

_RECORDS = """
SELECT cohort_key, run_digest, latency_ns, fastest_run_digest, fastest_latency_ns, held_since
FROM current_records
WHERE profile = ? AND list_contains(?::VARCHAR[], cohort_key)
"""

_SHUT_OUT = """
SELECT cohort_key, run_digest, implementations.name AS implementation, author, role, runs.latency_ns,
       shut_out AS flags
FROM cohort_runs
JOIN runs USING (run_digest)
JOIN implementations ON implementations.implementation_digest = runs.implementation_digest
WHERE profile = ? AND runs.operation_digest = ? AND list_contains(?::VARCHAR[], cohort_key) AND eligible
    AND NOT ranked
ORDER BY cohort_key, runs.latency_ns, run_digest
"""

_NOT_RANKED = """
SELECT cohort_key, reason, count(*) AS amount
FROM (
    SELECT cohort_key, unnest(CASE WHEN len(reasons) = 0 THEN shut_out ELSE reasons END) AS reason
    FROM cohort_runs
    JOIN runs USING (run_digest)
    WHERE profile = ? AND runs.operation_digest = ? AND list_contains(?::VARCHAR[], cohort_key) AND NOT ranked
)
GROUP BY ALL ORDER BY ALL
"""
