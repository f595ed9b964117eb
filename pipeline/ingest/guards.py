"""What a pull must pass before it may change the published warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import duckdb

from pipeline.errors import CheckFailure, DataDirectoryError
from pipeline.normalize.adapter import Adapter
from pipeline.sources.hub import is_complete_view
from pipeline.sources.listing import Kind, Pull
from pipeline.store import database
from pipeline.store.blobs import BlobStore
from pipeline.store.layout import DataDirectory
from pipeline.store.parts import BlobRecords, Commit
from pipeline.store.snapshots import Snapshot, missing_record, read_snapshots

SHRINK_LIMIT = 0.2
"""Largest part of its records that a source may lose from one complete pull to the next unless a person agrees."""


def recorded(data: DataDirectory) -> list[Snapshot]:
    """Return all snapshots in their sequence, once it is sure that none is missing.

    Raises:
        DataDirectoryError: the record of a pull that was ingested or published is missing, or one is damaged.
    """
    snapshots = read_snapshots(data)
    known = {snapshot.snapshot_id for snapshot in snapshots}
    for sequence, snapshot_id in _published(data):
        if snapshot_id not in known:
            raise missing_record(data, sequence)
    return snapshots


def _published(data: DataDirectory) -> list[tuple[int, str]]:
    """Return the pulls that the published database names; none where it cannot be read, since a rebuild mends that."""
    try:
        with closing(database.connect(data.database)) as connection:
            return connection.execute("SELECT sequence, snapshot_id FROM snapshots ORDER BY sequence").fetchall()
    except (DataDirectoryError, duckdb.Error):
        return []


def check_shrink(
    pull: Pull, earlier: Sequence[Snapshot], commits: Sequence[Commit], blobs: BlobStore, adapter: Adapter
) -> None:
    """Refuse a complete view with far fewer records than the last one of its source.

    It is refused before it is recorded: what was fetched stays in the blob store, and nothing else changes.

    Raises:
        CheckFailure: saying how many records are gone.
    """
    if not is_complete_view(pull):
        return
    views = [s.pull for s in earlier if s.pull.source == pull.source and is_complete_view(s.pull)]
    if not views or pull.revision in [view.revision for view in views]:
        return
    counted = {key: counts for commit in commits for key, counts in commit.records.items()}
    before = _count(views[-1], counted, blobs, adapter)
    now = _count(pull, counted, blobs, adapter)
    if now < before * (1 - SHRINK_LIMIT):
        raise CheckFailure(
            f"{pull.source} at {pull.revision} has {now:,} records where {views[-1].revision} had {before:,}: "
            "nothing was changed; if that is meant, ingest again with --accept-shrink"
        )


def _count(pull: Pull, counted: Mapping[tuple[str, str], BlobRecords], blobs: BlobStore, adapter: Adapter) -> int:
    """Return how many trace records a pull has; files that are read already are not read again."""
    records = 0
    for file in pull.files:
        if file.kind is Kind.TRACE and file.sha256 is not None:
            known = counted.get((file.kind, file.sha256))
            records += known.records if known else sum(1 for _ in adapter.frame(blobs.path(file.sha256), file.path))
    return records
