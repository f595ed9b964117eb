"""The history of records: every change of a cohort's holder, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pipeline.query.find import check_profile, find_operations
from pipeline.query.rows import fetch, rows_at_most

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Event:
    """A change of the holder of a cohort's record; latencies in ns, ``improvement`` the latency before over that now.

    ``run_digest`` and what belongs to it is None where a change of standing leaves the cohort without a holder.
    """

    at: datetime
    cause: str
    operation: str
    hardware: str
    axes: dict[str, int]
    shape_summary: str
    dtypes: list[str]
    run_digest: str | None
    implementation: str | None
    author: str | None
    role: str | None
    latency_ns: int | None
    previous_run_digest: str | None
    previous_implementation: str | None
    previous_latency_ns: int | None
    improvement: float | None
    current: bool
    cohort_key: str
    policy_version: str


def records(
    connection: DuckDBPyConnection,
    name: str | None = None,
    *,
    profile: str = "source_native",
    limit: int | None = None,
) -> list[Event]:
    """Return the changes of holder of one operation (by name or digest prefix) or of all, newest first.

    Raises UsageError for an unknown name or profile.
    """
    check_profile(connection, profile)
    digests = [] if name is None else [found.digest for found in find_operations(connection, name)]
    return fetch(connection, Event, _EVENTS, [profile, name is None, digests, rows_at_most(limit)])


_EVENTS = """
SELECT record_history.at, cause, cohorts.operation, cohorts.hardware, cohorts.axes, shape_summary, dtypes,
       record_history.run_digest, holder.name AS implementation, holder.author, holder.role,
       record_history.latency_ns, record_history.previous_run_digest, loser.name AS previous_implementation,
       previous_latency_ns, improvement,
       position = max(position) OVER (PARTITION BY profile, cohort_key) AND record_history.run_digest IS NOT NULL
           AS current,
       cohort_key, policy_version
FROM record_history
JOIN cohorts USING (profile, cohort_key)
JOIN workloads USING (workload_digest)
LEFT JOIN runs ON runs.run_digest = record_history.run_digest
LEFT JOIN implementations AS holder ON holder.implementation_digest = runs.implementation_digest
LEFT JOIN runs AS beaten ON beaten.run_digest = record_history.previous_run_digest
LEFT JOIN implementations AS loser ON loser.implementation_digest = beaten.implementation_digest
WHERE profile = ? AND (? OR list_contains(?::VARCHAR[], cohorts.operation_digest))
ORDER BY record_history.at DESC, cohort_key, position DESC
LIMIT ?
"""
