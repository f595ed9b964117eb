"""What a controlled rerun says about the run that it repeats: verdict-v1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

VERDICT_VERSION = "verdict-v1"

AGREEMENT = 0.10
"""Two latencies agree where neither is over this share above the other."""


class Verdict(StrEnum):
    """How a rerun compares with the report."""

    REPRODUCED = "REPRODUCED"
    SLOWER = "SLOWER"
    FASTER = "FASTER"
    CORRECT_OTHER_HARDWARE = "CORRECT_OTHER_HARDWARE"
    INCORRECT = "INCORRECT"
    FAILED = "FAILED"
    SUSPECT = "SUSPECT"


@dataclass(frozen=True, slots=True)
class Timed:
    """A latency in nanoseconds, with its 95 % interval where one is known, and the product that it was measured on."""

    product: str
    latency_ns: float | None
    interval_ns: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons; the ratio is the rerun's latency over the reported one, where they compare."""

    verdict: Verdict
    reasons: tuple[str, ...]
    ratio: float | None = None


def judge(
    *, correct: bool, status: str, cause: str | None, violations: Sequence[str], rerun: Timed, target: Timed
) -> Judgement:
    """Return the verdict on a rerun.

    Args:
        correct: every output that was checked was right, and the run came to its end.
        status: canonical status of the rerun.
        cause: why it did not pass, as a code.
        violations: codes of what the solution did and no honest one does.
        rerun: its latency; none on a CPU.
        target: the latency that was reported.
    """
    if violations:
        return Judgement(Verdict.SUSPECT, tuple(sorted(set(violations))))
    if not correct:
        verdict = Verdict.INCORRECT if status.startswith("incorrect_") else Verdict.FAILED
        return Judgement(verdict, (cause or status.upper(),))
    if rerun.product != target.product:
        reason = f"measured on {rerun.product}, reported on {target.product}"
        return Judgement(Verdict.CORRECT_OTHER_HARDWARE, (reason,))
    if rerun.latency_ns is None or target.latency_ns is None:
        return Judgement(Verdict.FAILED, ("NO_LATENCY_TO_COMPARE",))
    ratio = rerun.latency_ns / target.latency_ns
    if agree(rerun, target):
        return Judgement(Verdict.REPRODUCED, (), ratio)
    return Judgement(Verdict.SLOWER if ratio > 1 else Verdict.FASTER, (), ratio)


def agree(one: Timed, other: Timed) -> bool:
    """Tell whether two latencies lie, or their intervals come, within the agreed share of each other."""
    low, high = _interval(one)
    other_low, other_high = _interval(other)
    return low <= other_high * (1 + AGREEMENT) and other_low <= high * (1 + AGREEMENT)


def _interval(timed: Timed) -> tuple[float, float]:
    if timed.interval_ns is not None:
        return timed.interval_ns
    assert timed.latency_ns is not None  # noqa: S101 - callers compare what was timed
    return timed.latency_ns, timed.latency_ns
