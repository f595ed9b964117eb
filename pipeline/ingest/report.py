"""What an ingest is asked for, and what it tells afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """What to pull and how."""

    source: str | None = None
    """``sample``, the folder of a trace set, or ``hub:OWNER/NAME``; None: the sample, or nothing where only a rebuild
    is wanted."""
    revision: str | None = None
    """40-hex commit: that a folder holds, or to pull from the Hub in place of the head of its main branch."""
    repository: str | None = None
    """https URL of the trace set that a folder holds."""
    authors: tuple[str, ...] = ()
    """Author folders to limit solutions and traces to; empty: all."""
    dry_run: bool = False
    """Report what would be added and change nothing."""
    rebuild: bool = False
    """Throw away everything derived and replay all snapshots."""
    endpoint: str | None = None
    """Address of the Hub; None: ``HF_ENDPOINT``, else the public one."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts (``HOST`` or ``HOST:PORT``) that the Hub may be, or redirect to, in http."""
    jobs: int = 8
    """Files fetched at a time."""
    wait: bool = False
    """Wait for another writer of the data directory."""
    accept_shrink: bool = False
    """Take a pull though it has far fewer records than the last one of its source."""


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
    records_withdrawn: int
    """Records that this pull of the repository has no more."""
    records_reinstated: int
    """Records that were withdrawn and are there again."""
    operations_changed: tuple[str, ...]
    """Definitions whose name means another operation than before; earlier runs stay with the earlier one."""
    drift: int
    """Unknown fields and legacy forms met in what was read."""
    recovered: tuple[int, ...]
    """Sequence of each pull that an earlier ingest recorded and did not finish; this one did."""
    published: bool
    """A new warehouse.duckdb was put into place."""
    dry_run: bool
    seconds: float
    quarantine_reasons: Mapping[str, int] = field(default_factory=dict)
    """What is held back of this trace set now, by reason."""
