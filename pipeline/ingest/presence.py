"""Which records a repository has taken back, and which it has again.

Only a complete view of another commit can tell that something is gone: see :func:`is_complete_view`. A record is known
by its bytes, so one that moved to another file is still there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pipeline.ingest.intact import IntactBlobs
from pipeline.ingest.rows import Row
from pipeline.normalize.adapter import Adapter
from pipeline.sources.hub import is_complete_view
from pipeline.sources.listing import Kind
from pipeline.store.snapshots import Snapshot
from pipeline.upstream.framing import is_lfs_pointer

WITHDRAWN = "withdrawn"
REINSTATED = "reinstated"


class Presence:
    """Compares a snapshot with what its repository had before.

    Args:
        snapshot: the snapshot that is ingested.
        earlier: the snapshots before it, in sequence.
        withdrawn: the records of its trace set that are withdrawn so far.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        earlier: Sequence[Snapshot],
        withdrawn: Collection[str],
        blobs: IntactBlobs,
        adapter: Adapter,
    ) -> None:
        self._snapshot = snapshot
        self._withdrawn = withdrawn
        self._blobs = blobs
        self._adapter = adapter
        self._earlier = [candidate for candidate in earlier if candidate.scope == snapshot.scope]
        self._files = _trace_files([snapshot])

    def rows(self) -> list[Row]:
        """Return the rows of ``presence`` that the snapshot adds: none unless it is a complete view."""
        if not is_complete_view(self._snapshot.pull):
            return []
        since = self._since_last_view()
        here = set(self._files)
        gone = self._records(_trace_files(since), but=here)
        back: set[str] = set()
        read: set[str] = set()
        if gone or self._withdrawn:
            last_view = set(_trace_files([s for s in since[:1] if is_complete_view(s.pull)]))
            # A record that is withdrawn was not in the last complete view: only other files can bring it back.
            fresh = self._records(self._files, but=last_view)
            back = fresh.intersection(self._withdrawn)
            gone -= fresh
            read = here - last_view
        gone.difference_update(self._withdrawn)
        if gone:
            gone -= self._records(self._files, but=read)
        return [self._row(record, WITHDRAWN) for record in sorted(gone)] + [
            self._row(record, REINSTATED) for record in sorted(back)
        ]

    def _since_last_view(self) -> list[Snapshot]:
        """Return the snapshots of other commits from the last complete view on: all before that is decided."""
        views = [place for place, candidate in enumerate(self._earlier) if is_complete_view(candidate.pull)]
        return [
            candidate
            for candidate in self._earlier[views[-1] if views else 0 :]
            if candidate.pull.revision not in (None, self._snapshot.pull.revision)
        ]

    def _records(self, files: dict[str, str], *, but: Collection[str]) -> set[str]:
        """Return the SHA-256 of the records in trace blobs, leaving out some of the blobs."""
        found: set[str] = set()
        for sha256, path in files.items():
            blob = self._blobs.path(sha256)
            if sha256 not in but and not is_lfs_pointer(blob):
                records = self._blobs.restored(sha256, self._adapter.frame(blob, path))
                found.update(record.sha256 for record in records)
        return found

    def _row(self, record: str, event: str) -> Row:
        return {
            "observation_sha256": record,
            "scope": self._snapshot.scope,
            "event": event,
            "snapshot_id": self._snapshot.snapshot_id,
            "sequence": self._snapshot.sequence,
            "at": self._snapshot.fetched_at,
        }


def _trace_files(snapshots: Iterable[Snapshot]) -> dict[str, str]:
    """Return the trace blobs of snapshots, with a path of each."""
    return {
        file.sha256: file.path
        for snapshot in snapshots
        for file in snapshot.pull.files
        if file.kind is Kind.TRACE and file.fetched and file.sha256 is not None
    }
