"""Plans and results of controlled reruns as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.render import text as words
from pipeline.render.screen import Screen


def render_plan(screen: Screen, files: Sequence[str], left_out: Mapping[str, str]) -> None:
    """Write how many jobs there are, and which runs have none and why."""
    screen.prose(f"{words.count(len(files), 'job')} written")
    for run, why in left_out.items():
        screen.prose(f"no job for {words.short(run)}: {why}", "  ")


def render_verdicts(screen: Screen, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write what each rerun says of its target."""
    screen.table(
        ("operation", "implementation", "workload", "GPU", "status", "latency", "reported", "ratio", "verdict", "run"),
        [
            (
                row["operation"],
                row["implementation"],
                row["shape_summary"],
                row["hardware"],
                row["status"],
                words.latency(row["latency_ns"]),
                words.latency(row["target_latency_ns"]),
                words.ratio(row["ratio"]),
                ": ".join(filter(None, (row["verdict"] or "nothing reported", ", ".join(row["reasons"])))),
                words.short(row["run_digest"]),
            )
            for row in rows
        ],
        right=("latency", "reported", "ratio"),
    )
