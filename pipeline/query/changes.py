"""What pulls changed: the warehouse as it is, compared with what its policy makes of the pulls before them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pipeline.errors import UsageError
from pipeline.ingest.pull import committed
from pipeline.query.rows import fetch, values
from pipeline.sources.listing import Kind
from pipeline.store import database
from pipeline.store.corrections import read_corrections
from pipeline.store.layout import DataDirectory
from pipeline.store.parts import Commit, part_files
from pipeline.store.snapshots import Snapshot, read_snapshots
from pipeline.store.tables import CORRECTIONS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")


@dataclass(frozen=True)
class Pull:
    """A pull whose changes are told."""

    snapshot_id: str
    sequence: int
    source: str
    revision: str | None
    fetched_at: datetime
    complete: bool


@dataclass(frozen=True)
class RecordChange:
    """A cohort whose holder is another; latencies in ns, ``cause`` as the record history tells the last change."""

    profile: str
    cohort_key: str
    operation: str
    hardware: str
    axes: dict[str, int]
    cause: str
    run_digest: str | None
    implementation: str | None
    latency_ns: int | None
    previous_run_digest: str | None
    previous_implementation: str | None
    previous_latency_ns: int | None
    previous_reasons: list[str]
    """Why the holder before is not eligible now; empty: it was beaten."""


@dataclass(frozen=True)
class RunsAdded:
    """How many runs an operation gained on a GPU."""

    operation: str
    hardware: str
    runs: int
    eligible: int


@dataclass(frozen=True)
class RunChange:
    """A run that lost or regained its standing; latency in ns."""

    run_digest: str
    operation: str
    implementation: str
    hardware: str
    latency_ns: int | None
    reasons: list[str]


@dataclass(frozen=True)
class DefinitionChange:
    """A definition whose document is another; where its operation is too, old runs stay with the old one."""

    scope: str
    name: str
    definition_sha256: str
    previous_definition_sha256: str
    operation_digest: str
    previous_operation_digest: str


@dataclass(frozen=True)
class QuarantineChange:
    """A record or file that is held back, or was."""

    scope: str
    source_file: str
    source_line: int | None
    reason: str
    detail: str


@dataclass(frozen=True)
class Changes:
    """Everything that the pulls after ``since`` changed; None: since the beginning."""

    since: str | None
    pulls: list[Pull]
    records: list[RecordChange]
    runs_added: list[RunsAdded]
    runs_withdrawn: list[RunChange]
    runs_reinstated: list[RunChange]
    definitions: list[DefinitionChange]
    quarantine_added: list[QuarantineChange]
    quarantine_freed: list[QuarantineChange]


@dataclass(frozen=True)
class Rule:
    """A kind of change that a pipeline may want to stop at."""

    meaning: str
    broken_by: Callable[[Changes], int]


RULES: Mapping[str, Rule] = {
    "withdrawn": Rule("a run was withdrawn", lambda changes: len(changes.runs_withdrawn)),
    "lost-record": Rule(
        "the holder of a record lost its standing",
        lambda changes: sum(bool(record.previous_reasons) for record in changes.records),
    ),
    "quarantine": Rule("something more is held back", lambda changes: len(changes.quarantine_added)),
    "definition-changed": Rule("the document of a definition changed", lambda changes: len(changes.definitions)),
    "operation-changed": Rule(
        "a definition means another operation",
        lambda changes: sum(d.operation_digest != d.previous_operation_digest for d in changes.definitions),
    ),
    "incomplete": Rule("the last pull is incomplete", lambda changes: not all(p.complete for p in changes.pulls[-1:])),
}
"""Rules of ``changes --fail-on``."""


def broken(changes: Changes, rules: Sequence[str]) -> list[str]:
    """Return a sentence for each of these rules that the changes break."""
    counted = [(name, int(RULES[name].broken_by(changes))) for name in dict.fromkeys(rules)]
    return [f"{name}: {RULES[name].meaning} ({count:,})" for name, count in counted if count]


def changes(data: DataDirectory, since: str | None = None) -> Changes:
    """Return what the pulls after a snapshot changed; without one, what the last pull changed.

    What was before is made anew with the policy of today, so only what pulls brought shows, and it costs a build.

    Raises:
        UsageError: no such snapshot, or several.
        DataDirectoryError: no warehouse yet, or one that cannot be read.
    """
    with database.published(data) as connection:
        published = set(values(connection, "SELECT snapshot_id FROM snapshots"))
    done = [(s, commit) for s, commit in committed(data, read_snapshots(data)) if s.snapshot_id in published]
    place = len(done) - 1 if since is None else _place([snapshot for snapshot, _ in done], since)
    before = done[:place]
    with _both(data, [commit for _, commit in before]) as connection:
        return Changes(
            since=before[-1][0].snapshot_id if before else None,
            pulls=[
                Pull(s.snapshot_id, s.sequence, s.pull.source, s.pull.revision, s.fetched_at, s.pull.complete)
                for s, _ in done[place:]
            ],
            records=fetch(connection, RecordChange, _RECORDS),
            runs_added=fetch(connection, RunsAdded, _RUNS_ADDED),
            runs_withdrawn=fetch(connection, RunChange, _STANDING.format(earlier="old", later="new")),
            runs_reinstated=fetch(connection, RunChange, _STANDING.format(earlier="new", later="old")),
            definitions=list(_definitions(data, done, place)),
            quarantine_added=fetch(connection, QuarantineChange, _QUARANTINE.format(here="new", absent="old")),
            quarantine_freed=fetch(connection, QuarantineChange, _QUARANTINE.format(here="old", absent="new")),
        )


def _place(snapshots: Sequence[Snapshot], since: str) -> int:
    """Return how many snapshots there are up to the one of a digest prefix."""
    match = _PREFIX.fullmatch(since.lower())
    if match is None:
        raise UsageError(f'"{since}" names no snapshot: give 8 or more hex digits of its id, see kernelhouse status')
    found = [n for n, s in enumerate(snapshots, 1) if s.snapshot_id.startswith(f"sha256:{match[1]}")]
    if len(found) != 1:
        what = "several snapshots begin" if found else "no snapshot begins"
        raise UsageError(f'{what} with "{since}": kernelhouse status lists them')
    return found[0]


@contextmanager
def _both(data: DataDirectory, before: Sequence[Commit]) -> Iterator[DuckDBPyConnection]:
    """Open the published database as ``new`` and one of the earlier pulls as ``old``."""
    with TemporaryDirectory(prefix="kernelhouse-") as scratch:
        earlier = Path(scratch) / "before.duckdb"
        # Today's corrections on both sides: what a review decided is no change that a pull made.
        reviewed = {CORRECTIONS.name: read_corrections(data.corrections).rows()}
        database.build(part_files(data, before), earlier, meta={}, reviewed=reviewed)
        with closing(database.connect_several({"old": earlier, "new": data.database})) as connection:
            yield connection


def _definitions(
    data: DataDirectory, done: Sequence[tuple[Snapshot, Commit]], place: int
) -> Iterator[DefinitionChange]:
    """Yield the definitions that mean another document than before: of a name in a trace set the latest file counts."""
    documents: dict[str, tuple[str, str, str]] = {}
    for path in part_files(data, [commit for _, commit in done])["operations"]:
        rows = pq.read_table(path, columns=["blob_sha256", "name", "definition_sha256", "operation_digest"])
        for row in rows.to_pylist():
            documents[row["blob_sha256"]] = row["name"], row["definition_sha256"], row["operation_digest"]
    before: dict[tuple[str, str], tuple[str, str]] = {}
    bound: dict[tuple[str, str], tuple[str, str]] = {}
    for number, (snapshot, _) in enumerate(done):
        if number == place:
            before = dict(bound)
        here: dict[tuple[str, str], tuple[str, str]] = {}
        for file in snapshot.pull.files:
            if file.kind is Kind.DEFINITION and file.fetched and file.sha256 in documents:
                name, *meaning = documents[file.sha256]
                here.setdefault((snapshot.scope, name), (meaning[0], meaning[1]))
        bound |= here
    if place == len(done):
        before = bound
    for (scope, name), (old_document, old_operation) in sorted(before.items()):
        document, operation = bound[scope, name]
        if document != old_document:
            yield DefinitionChange(scope, name, document, old_document, operation, old_operation)


_RECORDS = """
WITH held AS (
    SELECT
        coalesce(now.profile, before.profile) AS profile,
        coalesce(now.cohort_key, before.cohort_key) AS cohort_key,
        now.run_digest,
        now.latency_ns,
        before.run_digest AS previous_run_digest,
        before.latency_ns AS previous_latency_ns
    FROM new.current_records AS now
    FULL JOIN old.current_records AS before ON now.profile = before.profile AND now.cohort_key = before.cohort_key
    WHERE now.run_digest IS DISTINCT FROM before.run_digest
)

SELECT
    held.*,
    cohort.operation,
    cohort.hardware,
    cohort.axes,
    last.cause,
    holder.name AS implementation,
    loser.name AS previous_implementation,
    coalesce(beaten.reasons, []) AS previous_reasons
FROM held
JOIN new.cohorts AS cohort ON held.profile = cohort.profile AND held.cohort_key = cohort.cohort_key
JOIN (
    SELECT profile, cohort_key, arg_max(cause, position) AS cause
    FROM new.record_history
    GROUP BY profile, cohort_key
) AS last ON held.profile = last.profile AND held.cohort_key = last.cohort_key
LEFT JOIN new.runs AS winner ON held.run_digest = winner.run_digest
LEFT JOIN new.implementations AS holder ON winner.implementation_digest = holder.implementation_digest
LEFT JOIN new.runs AS beaten ON held.previous_run_digest = beaten.run_digest
LEFT JOIN new.implementations AS loser ON beaten.implementation_digest = loser.implementation_digest
ORDER BY cohort.operation, cohort.hardware, cohort.axes, held.profile, held.cohort_key
"""

_RUNS_ADDED = """
SELECT run.benchmark AS operation, run.hardware, count(*) AS runs, count_if(run.eligible) AS eligible
FROM new.runs AS run
WHERE run.run_digest NOT IN (SELECT run_digest FROM old.runs)
GROUP BY ALL
ORDER BY ALL
"""

_STANDING = """
SELECT
    run.run_digest, run.benchmark AS operation, implementation.name AS implementation, run.hardware, run.latency_ns,
    run.reasons
FROM new.runs AS run
JOIN new.implementations AS implementation USING (implementation_digest)
JOIN {later}.runs AS later ON run.run_digest = later.run_digest
LEFT JOIN {earlier}.runs AS earlier ON run.run_digest = earlier.run_digest
WHERE 'WITHDRAWN' IN later.reasons AND NOT coalesce('WITHDRAWN' IN earlier.reasons, false)
ORDER BY run.run_digest
"""

_QUARANTINE = """
WITH here AS (SELECT *, if(source_line IS NULL, source_file, kind || ' ' || raw_sha256) AS held FROM {here}.quarantine)

SELECT scope, source_file, source_line, reason, detail
FROM here
WHERE (scope, held) NOT IN (
    SELECT (scope, if(source_line IS NULL, source_file, kind || ' ' || raw_sha256)) FROM {absent}.quarantine
)
ORDER BY scope, source_file, source_line
"""
