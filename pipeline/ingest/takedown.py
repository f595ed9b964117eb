"""Takedowns: the texts that reviewed corrections remove are taken out of every blob that holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pipeline.sources.listing import Kind, Progress
from pipeline.store.blobs import BlobStore
from pipeline.store.frames import pl
from pipeline.store.snapshots import Snapshot
from pipeline.store.tombstones import Removal, remove_texts
from pipeline.upstream.framing import Record, frame


def take_down(
    blobs: BlobStore,
    snapshots: Iterable[Snapshot],
    artifacts: Sequence[Path],
    digests: Collection[str],
    progress: Progress,
) -> None:
    """Take texts out of all blobs of the snapshots; one that is out already is not looked for in vain a second time.

    Every blob of a solution, trace or workload file is searched, since a log may repeat in any of them. Records over
    16 MiB are held back unread and stay as they are.

    Args:
        blobs: the blob store.
        snapshots: all snapshots.
        artifacts: the Parquet parts of ``artifacts``, which tell the size of each text.
        digests: the texts.
        progress: told how far it is.
    """
    if not digests:
        return
    rows = pl.scan_parquet(list(artifacts), glob=False).filter(pl.col("digest").is_in(list(digests))).collect()
    wanted = dict(zip(rows["digest"], rows["size_bytes"], strict=True))
    files = {
        file.sha256: file
        for snapshot in snapshots
        for file in snapshot.pull.files
        if file.fetched and file.sha256 is not None and file.kind in (Kind.SOLUTION, Kind.TRACE, Kind.WORKLOAD)
    }
    for done, (sha256, file) in enumerate(files.items()):
        progress("take down", done, len(files))
        if file.kind is Kind.SOLUTION:
            raw = blobs.read(sha256)
            records: Iterable[Record] = [Record(1, 0, len(raw), sha256, raw, from_document=True)]
        else:
            records = frame(blobs.path(sha256), document=file.path.endswith(".json"))
        _clear(blobs, sha256, records, wanted)


def _clear(blobs: BlobStore, sha256: str, records: Iterable[Record], wanted: dict[str, int]) -> None:
    changed: dict[int, bytes] = {}
    removals: list[Removal] = []
    for record in blobs.restored(sha256, records):
        if record.raw is None:
            continue
        kept, removed = remove_texts(record.raw, wanted)
        if removed:
            changed[record.offset] = kept
            removals += [Removal(record.offset, record.sha256, *text) for text in removed]
    if removals:
        blobs.redact(sha256, changed, removals)
