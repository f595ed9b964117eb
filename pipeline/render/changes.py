"""What pulls changed, as text."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.query.changes import Changes, DefinitionChange, QuarantineChange, RecordChange, RunChange
from pipeline.render import text as words
from pipeline.render.screen import Screen


def render(screen: Screen, changes: Changes) -> None:
    """Write the pulls, then each kind of change that there is."""
    if not changes.pulls:
        screen.prose("No pull since then.")
        return
    screen.heading(f"Changes since {words.short(changes.since) if changes.since else 'the beginning'}")
    screen.table(
        ("pull", "fetched", "source", "revision", "snapshot", ""),
        [
            (
                f"#{pull.sequence}",
                words.moment(pull.fetched_at),
                pull.source,
                (pull.revision or "")[:12],
                words.short(pull.snapshot_id),
                "" if pull.complete else "incomplete",
            )
            for pull in changes.pulls
        ],
    )
    if changes.records:
        screen.heading(words.count(len(changes.records), "record has a new holder", "records have new holders"))
        screen.table(
            ("operation", "GPU", "axes", "holder", "latency", "before", "latency before", "cause", "profile"),
            [_record(record) for record in changes.records],
            right=("latency", "latency before"),
        )
    if changes.runs_added:
        screen.heading(words.count(sum(added.runs for added in changes.runs_added), "run added", "runs added"))
        screen.table(
            ("operation", "GPU", "runs", "eligible"),
            [
                (added.operation, added.hardware, f"{added.runs:,}", f"{added.eligible:,}")
                for added in changes.runs_added
            ],
            right=("runs", "eligible"),
        )
    _runs(screen, "withdrawn", changes.runs_withdrawn)
    _runs(screen, "reinstated", changes.runs_reinstated)
    if changes.definitions:
        screen.heading(words.count(len(changes.definitions), "definition changed", "definitions changed"))
        screen.table(("definition", "trace set", "operation"), [_definition(each) for each in changes.definitions])
    _quarantine(screen, "held back", changes.quarantine_added)
    _quarantine(screen, "let in or gone", changes.quarantine_freed)


def _record(record: RecordChange) -> Sequence[str]:
    return (
        record.operation,
        record.hardware,
        ", ".join(f"{name} = {value}" for name, value in record.axes.items()),
        record.implementation or "none",
        words.latency(record.latency_ns),
        record.previous_implementation or "none",
        words.latency(record.previous_latency_ns),
        record.cause,
        record.profile,
    )


def _runs(screen: Screen, what: str, runs: Sequence[RunChange]) -> None:
    if runs:
        screen.heading(words.count(len(runs), f"run {what}", f"runs {what}"))
        screen.table(
            ("operation", "implementation", "GPU", "latency", "run"),
            [
                (
                    run.operation,
                    run.implementation,
                    run.hardware,
                    words.latency(run.latency_ns),
                    words.short(run.run_digest),
                )
                for run in runs
            ],
            right=("latency",),
        )


def _definition(change: DefinitionChange) -> Sequence[str]:
    same = change.operation_digest == change.previous_operation_digest
    before, now = words.short(change.previous_operation_digest), words.short(change.operation_digest)
    return change.name, change.scope, "the same" if same else f"{before} is now {now}"


def _quarantine(screen: Screen, what: str, rows: Sequence[QuarantineChange]) -> None:
    if rows:
        screen.heading(f"{len(rows):,} {what}")
        screen.table(
            ("reason", "place", "detail"),
            [
                (row.reason, row.source_file + (f":{row.source_line}" if row.source_line else ""), row.detail)
                for row in rows
            ],
        )
