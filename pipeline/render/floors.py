"""Both floor models by family, as text."""

from __future__ import annotations

from pipeline.query.floors import Floors
from pipeline.render import text as words
from pipeline.render.screen import Screen


def render(screen: Screen, answer: Floors) -> None:
    """Write one line a model and family, then the runs that are faster than a floor."""
    if not answer.families:
        screen.prose("No eligible run yet.")
        return
    screen.heading("Latency over floor, of eligible runs")
    screen.table(
        ("model", "family", "runs", "workloads", "no floor", "below", "by baseline", "median", "minimum"),
        [
            (
                each.model,
                each.family,
                f"{each.runs:,}",
                f"{each.workloads:,}",
                f"{each.without_floor:,}",
                f"{each.below:,}",
                f"{each.baseline_below:,}",
                words.ratio(each.median_ratio),
                words.ratio(each.minimum_ratio),
            )
            for each in answer.families
        ],
        right=("runs", "workloads", "no floor", "below", "by baseline", "median", "minimum"),
    )
    if answer.runs_below:
        screen.heading("Runs below a floor")
        screen.table(
            ("model", "operation", "GPU", "axes", "role", "latency", "floor", "ratio", "run"),
            [
                (
                    each.model,
                    each.operation,
                    each.hardware,
                    ", ".join(f"{axis}={value}" for axis, value in each.axes.items()),
                    each.role,
                    words.latency(each.latency_ns),
                    words.latency(each.floor_ns),
                    words.ratio(each.ratio),
                    words.short(each.run_digest),
                )
                for each in answer.runs_below
            ],
            right=("latency", "floor", "ratio"),
        )
