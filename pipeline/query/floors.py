"""Both floor models against what is measured: one line a model and family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.query.rows import fetch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class FamilyFloors:
    """How a floor model fits the eligible runs of a family; ratios are latency over floor."""

    model: str
    family: str
    runs: int
    workloads: int
    without_floor: int
    """Runs whose floor is null, or nothing."""
    below: int
    """Runs that are faster than their floor."""
    baseline_below: int
    """Those of them that are by the source's baseline."""
    median_ratio: float | None
    minimum_ratio: float | None


@dataclass(frozen=True)
class BelowFloor:
    """An eligible run that is faster than its floor."""

    model: str
    run_digest: str
    operation: str
    hardware: str
    axes: dict[str, int]
    role: str
    latency_ns: int
    floor_ns: float
    ratio: float
    flagged: bool


@dataclass(frozen=True)
class Floors:
    """The answer; ``runs_below`` has the lowest ratio first."""

    families: list[FamilyFloors]
    runs_below: list[BelowFloor]


def floors(connection: DuckDBPyConnection) -> Floors:
    """Return both models by family, and the eligible runs that are faster than a floor."""
    return Floors(fetch(connection, FamilyFloors, _FAMILIES), fetch(connection, BelowFloor, _BELOW))


_FAMILIES = """
SELECT model, family, count(*) AS runs, count(DISTINCT (workload_digest, hardware)) AS workloads,
       count(*) FILTER (coalesce(floor_ns, 0) = 0) AS without_floor,
       count(*) FILTER (latency_ns < floor_ns) AS below,
       count(*) FILTER (latency_ns < floor_ns AND role = 'baseline') AS baseline_below,
       median(latency_ns / nullif(floor_ns, 0)) AS median_ratio, min(latency_ns / nullif(floor_ns, 0)) AS minimum_ratio
FROM (SELECT DISTINCT model FROM floor_estimates) AS models
CROSS JOIN runs
JOIN operations USING (operation_digest)
JOIN implementations ON implementations.implementation_digest = runs.implementation_digest
LEFT JOIN floor_estimates USING (model, workload_digest, hardware)
WHERE eligible
GROUP BY model, family
ORDER BY model, family
"""

_BELOW = """
SELECT model, run_digest, operations.name AS operation, runs.hardware, axes, role, latency_ns, floor_ns,
       latency_ns / floor_ns AS ratio, list_contains(flags, 'BELOW_FLOOR') AS flagged
FROM runs
JOIN floor_estimates USING (workload_digest, hardware)
JOIN workloads USING (workload_digest)
JOIN operations ON operations.operation_digest = runs.operation_digest
JOIN implementations ON implementations.implementation_digest = runs.implementation_digest
WHERE eligible AND latency_ns < floor_ns
ORDER BY model, ratio, run_digest
"""
