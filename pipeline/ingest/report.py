"""What an ingest is asked for, and what it tells afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """What to pull and how."""

    source: str | None = None
    """``sample`` or the folder of a trace set; None: the sample, or nothing where only a rebuild is wanted."""
    revision: str | None = None
    """40-hex commit that a folder holds."""
    repository: str | None = None
    """https URL of the trace set that a folder holds."""
    authors: tuple[str, ...] = ()
    """Author folders to limit solutions and traces to; empty: all."""
    dry_run: bool = False
    """Report what would be added and change nothing."""
    rebuild: bool = False
    """Throw away everything derived and replay all snapshots."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of an ingest; counts are of the snapshot unless they say otherwise."""

    snapshot_id: str
    sequence: int
    source: str
    repository: str | None
    revision: str | None
    new_snapshot: bool
    """False where the same pull was ingested before."""
    complete: bool
    files: int
    files_read: int
    files_unchanged: int
    files_not_fetched: int
    files_quarantined: int
    records: int
    added: int
    already_known: int
    duplicates: int
    quarantined: int
    freed: int
    """Records of earlier snapshots that this ingest let in."""
    workload_records: int
    operations_added: int
    workloads_added: int
    implementations_added: int
    runs_added: int
    drift: int
    """Unknown fields and legacy forms met in what was read."""
    published: bool
    """A new warehouse.duckdb was put into place."""
    dry_run: bool
    seconds: float
    quarantine_reasons: Mapping[str, int] = field(default_factory=dict)
    """What is held back of this trace set now, by reason."""
