"""The state of a warehouse as text."""

from __future__ import annotations

from pipeline.query.status import HeldBack, Pull, Status
from pipeline.render import text as words
from pipeline.render.screen import Screen


def render(screen: Screen, answer: Status) -> None:
    """Write pulls, contents, quarantine, disk use and versions."""
    screen.heading("Pulls")
    for pull in answer.pulls:
        _pull(screen, pull)
    if not answer.pulls:
        screen.prose("none", "  ")
    screen.heading("Contents")
    screen.pairs(
        [
            *((name, f"{answer.rows[name]:,}") for name in _CONTENTS),
            ("run statuses", ", ".join(f"{status} {amount:,}" for status, amount in answer.run_statuses.items())),
            ("eligible runs", f"{answer.eligible_runs:,}"),
            ("hardware", ", ".join(f"{hardware} {amount:,}" for hardware, amount in answer.hardware.items())),
            ("observed", f"{words.day(answer.observed_from)} to {words.day(answer.observed_to)}"),
            ("drift", words.count(answer.drift, "unknown field or legacy form", "unknown fields and legacy forms")),
        ]
    )
    screen.heading("Quarantine")
    screen.pairs((held.reason, _held_back(held)) for held in answer.quarantine)
    if not answer.quarantine:
        screen.prose("nothing is held back", "  ")
    screen.heading("Disk use")
    screen.pairs(
        [
            *((room, words.size(used)) for room, used in answer.disk_bytes.items()),
            ("data directory", answer.data_directory),
        ]
    )
    screen.heading("Versions")
    screen.pairs([*answer.versions.items(), *answer.meta.items()])


_CONTENTS = (
    "operations",
    "workloads",
    "implementations",
    "environments",
    "protocols",
    "runs",
    "observations",
    "artifacts",
    "cohorts",
    "leaderboard",
    "record_history",
)


def _held_back(held: HeldBack) -> str:
    amounts = ((held.records, "record"), (held.files, "file"))
    return ", ".join(words.count(amount, noun) for amount, noun in amounts if amount)


def _pull(screen: Screen, pull: Pull) -> None:
    missing = "" if pull.complete else ", incomplete"
    screen.prose(f"#{pull.sequence} {pull.source}, {words.moment(pull.fetched_at)}{missing}", "  ")
    screen.pairs(
        [
            ("repository", pull.repository or ""),
            ("revision", pull.revision or ""),
            ("authors", ", ".join(pull.authors)),
            ("files", f"{pull.files:,} ({words.size(pull.bytes)})"),
            (
                "records",
                f"{pull.records:,} = {pull.added:,} added + {pull.already_known:,} known"
                f" + {pull.duplicates:,} duplicate + {pull.quarantined:,} held back",
            ),
            ("freed", f"{pull.freed:,} earlier records" if pull.freed else ""),
            ("snapshot", words.short(pull.snapshot_id)),
        ],
        "    ",
    )
