"""Statistics of samples."""

from __future__ import annotations

import random

import pytest

from pipeline.rerun.runner.statistics import summarize


def test_every_statistic_of_a_known_sample() -> None:
    summary = summarize([5, 1, 2, 4, 3])
    assert summary["median"] == 3
    assert summary["mean"] == 3
    assert (summary["minimum"], summary["maximum"]) == (1, 5)
    assert summary["p05"] == pytest.approx(1.2)
    assert summary["p95"] == pytest.approx(4.8)
    assert summary["mad"] == 1


def test_order_of_samples_changes_nothing() -> None:
    samples = [random.Random(7).randrange(1000, 2000) for _ in range(200)]  # noqa: S311
    assert summarize(samples) == summarize(sorted(samples, reverse=True))


def test_interval_is_what_resampling_gives() -> None:
    """The closed form against the percentile bootstrap by resampling, which has noise of its own."""
    draw = random.Random(11)  # noqa: S311
    samples = [int(draw.lognormvariate(9, 0.2)) for _ in range(200)]
    medians = sorted(sorted(draw.choices(samples, k=200))[99] for _ in range(4000))
    ordered = sorted(samples)
    low, high = summarize(samples)["confidence95"]  # type: ignore[misc]
    assert abs(ordered.index(low) - ordered.index(medians[100])) <= 2
    assert abs(ordered.index(high) - ordered.index(medians[3900])) <= 2


def test_equal_samples_leave_no_doubt() -> None:
    summary = summarize([700] * 200)
    assert summary["confidence95"] == [700, 700]
    assert summary["mad"] == 0
