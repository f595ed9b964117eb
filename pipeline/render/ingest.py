"""The report of an ingest as text."""

from __future__ import annotations

from pipeline.ingest import IngestReport
from pipeline.render import text as words
from pipeline.render.screen import Screen


def render(screen: Screen, report: IngestReport) -> None:
    """Write what was pulled, what became of it, and whether it is published."""
    screen.heading(f"{'Dry run of' if report.dry_run else 'Ingested'} {report.source}")
    known = ("" if report.new_snapshot else " (known already)") + ("" if report.complete else ", incomplete")
    screen.pairs(
        [
            ("repository", report.repository or ""),
            ("revision", report.revision or ""),
            (
                "snapshot",
                f"#{report.sequence} {words.short(report.snapshot_id)}{known}",
            ),
            (
                "recovered",
                ", ".join(f"#{sequence}" for sequence in report.recovered)
                + ", recorded by an earlier ingest and finished by this one"
                if report.recovered
                else "",
            ),
            (
                "files",
                f"{report.files:,}: {report.files_read:,} read, {report.files_unchanged:,} unchanged, "
                f"{report.files_not_fetched:,} listed only, {report.files_quarantined:,} held back",
            ),
            (
                "records",
                f"{report.records:,} = {report.added:,} added + {report.already_known:,} known"
                f" + {report.duplicates:,} duplicate + {report.quarantined:,} held back",
            ),
            ("freed", f"{report.freed:,} earlier records" if report.freed else ""),
            (
                "added",
                ", ".join(
                    words.count(amount, noun)
                    for amount, noun in (
                        (report.operations_added, "operation"),
                        (report.workloads_added, "workload"),
                        (report.implementations_added, "implementation"),
                        (report.runs_added, "run"),
                    )
                ),
            ),
            ("withdrawn", words.count(report.records_withdrawn, "record") if report.records_withdrawn else ""),
            ("reinstated", words.count(report.records_reinstated, "record") if report.records_reinstated else ""),
            ("changed", f"operations of {', '.join(report.operations_changed)}" if report.operations_changed else ""),
            (
                "held back",
                ", ".join(f"{reason} {amount:,}" for reason, amount in sorted(report.quarantine_reasons.items())),
            ),
            ("drift", words.count(report.drift, "unknown field or legacy form", "unknown fields and legacy forms")),
            ("warehouse", "published" if report.published else "unchanged"),
            ("time", f"{report.seconds:.1f} s"),
        ]
    )
