"""Statistics of the samples of a run, in nanoseconds; the same samples give the same numbers everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

PROFILER_BAND = (1.15, 2_500)
WALL_BAND = (1.25, 6_000)
"""Another timer may find a call up to this factor, plus this many nanoseconds, slower than the events say."""


def summarize(samples: Sequence[int]) -> dict[str, float | int | list[int]]:
    """Return median, mean, p05, p95, minimum, maximum, MAD and the 95 % interval of the median.

    The interval is the percentile bootstrap of the median in closed form: a resample's m-th value is at most the
    k-th sample with the probability that a binomial of n trials at k/n reaches m (Efron, 1979). So no random
    resampling is needed, and none can be tuned.
    """
    ordered = sorted(samples)
    middle = _median(ordered)
    low, high = _bootstrap95(ordered)
    return {
        "median": middle,
        "mean": sum(ordered) / len(ordered),
        "p05": _quantile(ordered, 0.05),
        "p95": _quantile(ordered, 0.95),
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "mad": _median(sorted(abs(sample - middle) for sample in ordered)),
        "confidence95": [low, high],
    }


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _quantile(ordered: Sequence[int], share: float) -> float:
    """Interpolate linearly between the neighbours."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _bootstrap95(ordered: Sequence[int]) -> tuple[int, int]:
    size = len(ordered)
    low_rank, high_rank = (size + 1) // 2, size // 2 + 1
    low = next(k for k in range(1, size + 1) if _at_least(size, k / size, low_rank) >= 0.025)
    high = next(k for k in range(1, size + 1) if _at_least(size, k / size, high_rank) >= 0.975)
    return ordered[low - 1], ordered[high - 1]


def _at_least(trials: int, chance: float, wanted: int) -> float:
    """Return the probability that a binomial reaches a count."""
    if chance >= 1:
        return 1.0
    log_yes, log_no = math.log(chance), math.log1p(-chance)
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
            + k * log_yes + (trials - k) * log_no
        )
        for k in range(wanted, trials + 1)
    )  # fmt: skip


def timers_disagree(median_ns: float, profiler_ns: float, wall_ns: float) -> str | None:
    """Return in words which timer says more of a call than the events and its band allow, or None."""
    for name, value, (factor, slack) in (
        ("profiler", profiler_ns, PROFILER_BAND),
        ("wall clock", wall_ns, WALL_BAND),
    ):
        if not value <= median_ns * factor + slack:
            return f"events say {median_ns:.0f} ns and the {name} {value:.0f} ns a call"
    return None
