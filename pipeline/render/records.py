"""The history of records as text."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.query.records import Event
from pipeline.render import text as words
from pipeline.render.screen import Screen


def render(screen: Screen, events: Sequence[Event]) -> None:
    """Write one line a change of holder, newest first; ``*`` marks the record that stands."""
    if not events:
        screen.prose("No record yet.")
        return
    screen.table(
        ("at", "", "cause", "operation", "GPU", "workload", "implementation", "by", "latency", "before", "gain", "run"),
        [_event(event) for event in events],
        right=("latency", "before", "gain"),
        indent="",
    )


def _event(event: Event) -> Sequence[str]:
    first = event.previous_run_digest is None
    return (
        words.moment(event.at),
        "*" if event.current else "",
        event.cause,
        event.operation,
        event.hardware,
        words.workload(event.shape_summary, event.dtypes),
        event.implementation or "none",
        (event.role if event.role == "baseline" else event.author) or "-",
        words.latency(event.latency_ns),
        "first" if first else words.latency(event.previous_latency_ns),
        words.ratio(event.improvement),
        words.short(event.run_digest) if event.run_digest else "-",
    )
