"""``ingest``: pull a source, replay what is not ingested yet, publish.

The steps are functions of their own: :func:`take`, :func:`replay`, :func:`publish`. An orchestrator that calls them
one after the other leaves the same data directory as :func:`ingest`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pipeline
from pipeline.errors import DataDirectoryError, SourceError, UsageError
from pipeline.ingest.replay import Replay
from pipeline.ingest.report import IngestReport, IngestRequest
from pipeline.ingest.state import HeldRow, State
from pipeline.manifests import canonical_text, sha256_of
from pipeline.normalize.adapter import Adapter
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.rerun.results import KernelhouseRerun, RerunSource
from pipeline.sources.directory import DirectorySource, sample_source
from pipeline.sources.listing import Kind, Progress, Source
from pipeline.store import database
from pipeline.store.blobs import BlobStore
from pipeline.store.layout import FORMAT_VERSION, DataDirectory
from pipeline.store.parts import Commit, part_files, read_commit, remove_uncommitted, write_commit
from pipeline.store.snapshots import Snapshot, read_snapshots, record_snapshot, remove_leftovers

_COMMIT = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(r"https://[^\s/]+/?\S*")


_ADAPTERS: tuple[type[FlashInferBench] | type[KernelhouseRerun], ...] = (FlashInferBench, KernelhouseRerun)


def _quiet(stage: str, done: int, total: int | None) -> None:
    """Report no progress."""


def ingest(
    data: DataDirectory, request: IngestRequest, progress: Progress = _quiet, *, source: Source | None = None
) -> IngestReport:
    """Pull a source into a data directory and publish the warehouse.

    Args:
        data: the data directory.
        request: what to pull and how.
        progress: told how far it is.
        source: pulled in place of the one that the request names.

    Raises:
        UsageError: the request does not make sense.
        SourceError: the source cannot be read.
        DataDirectoryError: the data directory cannot be used.
    """
    started = time.monotonic()
    source = source or open_source(request)
    if request.dry_run:
        return _dry_run(data, source, adapter_of(source), progress, started)
    with explained(data):
        pulled = None
        if request.source is not None or not request.rebuild:
            pulled = take(data, source, progress).snapshot_id
        if request.rebuild:
            forget_derived(data)
        report = replay(data, progress, of=pulled)
        published = publish(data, progress, force=request.rebuild)
    return replace(report, published=published, seconds=_since(started))


def take(data: DataDirectory, source: Source, progress: Progress = _quiet) -> Snapshot:
    """Pull a source: its files into the blob store, the pull as a snapshot record; the same pull is found again.

    Raises:
        SourceError: the source cannot be read.
        DataDirectoryError: the data directory cannot be used.
    """
    data.prepare()
    blobs = BlobStore(data.blobs)
    blobs.remove_temporaries()
    remove_leftovers(data)
    pull = source.pull(blobs, adapter_of(source), progress)
    blobs.sync()
    return record_snapshot(data, pull, read_snapshots(data), datetime.now(UTC))


def replay(data: DataDirectory, progress: Progress = _quiet, *, of: str | None = None) -> IngestReport:
    """Bring the parts up to the snapshots; report on the snapshot of that id, else on the newest.

    Raises:
        UsageError: there is no snapshot.
        DataDirectoryError: the data directory cannot be used.
    """
    started = time.monotonic()
    data.check()
    snapshots = read_snapshots(data)
    if not snapshots:
        raise UsageError(f"{data.root} holds no snapshot: ingest a source first")
    snapshot = next((known for known in snapshots if known.snapshot_id == of), snapshots[-1])
    replayed = replay_missing(data, BlobStore(data.blobs), FlashInferBench(), progress, wanted=snapshot)
    return _report(data, snapshot, replayed, started=started)


def open_source(request: IngestRequest) -> Source:
    """Return the source that a request names.

    Raises:
        UsageError: options that do not go with the source, or are malformed.
    """
    if request.revision is not None and not _COMMIT.fullmatch(request.revision):
        raise UsageError(f"--revision {request.revision!r} is no commit: give its 40 hex digits")
    if request.repository is not None and not _URL.fullmatch(request.repository):
        raise UsageError(f"--repository {request.repository!r} is no https URL")
    if request.source is None or request.source == "sample":
        if request.revision or request.repository or request.authors:
            raise UsageError("the bundled sample takes no --revision, --repository or --author")
        return sample_source()
    root = Path(request.source).expanduser()
    if not root.exists():
        raise SourceError(f"no folder {request.source}: give 'sample' or the folder of a trace set")
    return DirectorySource(
        root, repository=request.repository, revision=request.revision, authors=tuple(sorted(set(request.authors)))
    )


def new_adapter(name: str) -> Adapter:
    """Return the reader of the documents of a snapshot, by the name that its record has.

    Raises:
        DataDirectoryError: this program knows no such reader.
    """
    for kind in _ADAPTERS:
        if kind.name == name:
            return kind()
    raise DataDirectoryError(f"a snapshot was read by {name!r}, which this kernelhouse does not know: upgrade it")


def adapter_of(source: Source) -> Adapter:
    """Return the reader of the documents of a source."""
    return KernelhouseRerun() if isinstance(source, RerunSource) else FlashInferBench()


@contextmanager
def explained(data: DataDirectory) -> Iterator[None]:
    """Turn what the file system refuses into a sentence: it is no fault of the source or of the program."""
    try:
        yield
    except OSError as error:
        what = f"{data.root} cannot be used ({error.strerror or error}: {error.filename or 'no file named'})"
        raise DataDirectoryError(f"{what}; free disk space or mend the folder, then ingest again") from error


def replay_missing(
    data: DataDirectory, blobs: BlobStore, adapter: Adapter, progress: Progress, *, wanted: Snapshot | None = None
) -> Replay | None:
    """Ingest every snapshot that has no commit, in sequence; return the replay of the wanted one, if any.

    ``adapter`` reads the snapshots of its own name, a fresh one those of another.
    """
    snapshots = read_snapshots(data)
    adapters = {adapter.name: adapter}
    done = committed(data, snapshots)
    remove_uncommitted(data, [commit for _, commit in done])
    found = None
    for snapshot in snapshots[len(done) :]:
        name = snapshot.pull.adapter
        if name not in adapters:
            adapters[name] = new_adapter(name)
        replay = Replay(snapshot, State(data, done), blobs, adapters[name])
        replay.run(progress)
        commit = replay.commit(data)
        write_commit(data, commit, snapshot)
        done.append((snapshot, commit))
        if wanted is not None and snapshot.snapshot_id == wanted.snapshot_id:
            found = replay
    return found


def publish(data: DataDirectory, progress: Progress = _quiet, *, force: bool = False) -> bool:
    """Build ``warehouse.duckdb`` where it does not fit the commits and the policy, or by force; tell whether."""
    commits = [commit for _, commit in committed(data, read_snapshots(data))]
    build_key = _build_key(data, commits)
    if not force and database.built_with(data.database) == build_key:
        return False
    progress("publish", 0, None)
    meta = {
        "format_version": str(FORMAT_VERSION),
        "build_key": build_key,
        "kernelhouse_version": pipeline.__version__,
        "policy_digest": database.policy_digest(),
    }
    database.build(part_files(data, commits), data.database, meta=meta)
    return True


def committed(data: DataDirectory, snapshots: Sequence[Snapshot]) -> list[tuple[Snapshot, Commit]]:
    """Return the snapshots that are ingested: the unbroken run from the first on."""
    done = []
    for snapshot in snapshots:
        commit = read_commit(data, snapshot)
        if commit is None:
            break
        done.append((snapshot, commit))
    return done


def _build_key(data: DataDirectory, commits: Sequence[Commit]) -> str:
    return sha256_of(
        canonical_text(
            {
                "format": FORMAT_VERSION,
                "policy": database.policy_digest(),
                "parts": [part.sha256 for commit in commits for part in commit.parts],
            }
        )
    )


def forget_derived(data: DataDirectory) -> None:
    """Remove parts and commits; the published warehouse stays until the new one is ready."""
    data.prepare()
    if data.commits.exists():
        shutil.rmtree(data.commits)
    for folder in data.tables.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)


def _dry_run(data: DataDirectory, source: Source, adapter: Adapter, progress: Progress, started: float) -> IngestReport:
    """Do everything in a scratch directory that begins as this one and is gone afterwards."""
    data.check()
    with tempfile.TemporaryDirectory(prefix="kernelhouse-") as folder:
        scratch = _stand_in(data, Path(folder) / "data")
        blobs = BlobStore(data.blobs, scratch=scratch.blobs)
        pull = source.pull(blobs, adapter, progress)
        snapshot = record_snapshot(scratch, pull, read_snapshots(scratch), datetime.now(UTC))
        replay = replay_missing(scratch, blobs, adapter, progress, wanted=snapshot)
        return _report(scratch, snapshot, replay, started=started, dry_run=True)


def _stand_in(data: DataDirectory, root: Path) -> DataDirectory:
    """Return a data directory whose snapshots, commits and parts are links to those of another."""
    scratch = DataDirectory(root)
    scratch.prepare()
    for path in (*data.snapshots.glob("*.json"), *data.tables.glob("*/*")):
        link = root / path.relative_to(data.root)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path.resolve())
    return scratch


def _report(
    data: DataDirectory, snapshot: Snapshot, replay: Replay | None, *, started: float, dry_run: bool = False
) -> IngestReport:
    """Return the report of a snapshot that was replayed now, or (without a replay) earlier."""
    if replay is not None:
        counts = Counter(replay.counts)
        held, added, drift = replay.held, replay.collector.added, sum(replay.collector.drift.values())
    else:
        counts, held = _again(data, snapshot)
        added, drift = Counter(), 0
    return IngestReport(
        snapshot_id=snapshot.snapshot_id,
        sequence=snapshot.sequence,
        source=snapshot.pull.source,
        repository=snapshot.pull.repository,
        revision=snapshot.pull.revision,
        new_snapshot=replay is not None,
        complete=snapshot.pull.complete,
        files=len(snapshot.pull.files),
        files_read=counts["files_read"],
        files_unchanged=counts["files_unchanged"],
        files_not_fetched=counts["files_not_fetched"],
        files_quarantined=counts["files_quarantined"],
        records=counts["records"],
        added=counts["added"],
        already_known=counts["already_known"],
        duplicates=counts["duplicates"],
        quarantined=counts["quarantined"],
        freed=counts["freed"],
        workload_records=counts["workload_records"],
        operations_added=added["operations"],
        workloads_added=added["workloads"],
        implementations_added=added["implementations"],
        runs_added=added["runs"],
        drift=drift,
        published=False,
        dry_run=dry_run,
        seconds=_since(started),
        quarantine_reasons=dict(sorted(Counter(str(row.reason) for row in held.values()).items())),
    )


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


def _again(data: DataDirectory, snapshot: Snapshot) -> tuple[Counter[str], dict[tuple[str, str | None], HeldRow]]:
    """Return the counts of a snapshot that is ingested already: nothing is read, what was added is known now."""
    done = committed(data, read_snapshots(data))
    commit = next(commit for committed, commit in done if committed.snapshot_id == snapshot.snapshot_id)
    held = State(data, done).held(snapshot.scope)
    counts = Counter(commit.accounting)
    counts["quarantined"] = sum(
        (Kind.TRACE, sha256) in held
        for (kind, _), counted in commit.records.items()
        if kind == Kind.TRACE
        for sha256 in counted.held
    )
    counts["already_known"] = counts["records"] - counts["duplicates"] - counts["quarantined"]
    counts["files_unchanged"] += counts["files_read"]
    counts["files_read"] = counts["added"] = counts["freed"] = 0
    return counts, held
