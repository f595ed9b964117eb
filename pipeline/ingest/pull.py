"""``ingest``: pull a source, replay what is not ingested yet, publish.

The steps are functions of their own: :func:`take`, :func:`replay`, :func:`publish`. An orchestrator that calls them
one after the other, each as the one writer, leaves the same data directory as :func:`ingest`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pipeline
from pipeline.errors import DataDirectoryError, KernelhouseError, UsageError
from pipeline.ingest.guards import check_shrink, recorded
from pipeline.ingest.intact import IntactBlobs
from pipeline.ingest.presence import REINSTATED, WITHDRAWN
from pipeline.ingest.replay import Replay
from pipeline.ingest.report import IngestReport, IngestRequest
from pipeline.ingest.state import HeldRow, State
from pipeline.ingest.takedown import take_down
from pipeline.manifests import canonical_text, sha256_of
from pipeline.normalize.adapter import Adapter
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.rerun.results import KernelhouseRerun, RerunSource
from pipeline.sources.directory import DirectorySource, sample_source
from pipeline.sources.hub import PREFIX, HubSource, open_client, repository_of
from pipeline.sources.listing import Kind, Progress, Source
from pipeline.store import database
from pipeline.store.blobs import BlobStore
from pipeline.store.corrections import Corrections, read_corrections
from pipeline.store.extension import extend
from pipeline.store.files import refusal
from pipeline.store.layout import FORMAT_VERSION, DataDirectory
from pipeline.store.lock import writing
from pipeline.store.parts import Commit, is_committed, part_files, read_commit, remove_uncommitted, write_commit
from pipeline.store.snapshots import Snapshot, read_snapshots, record_snapshot, remove_leftovers
from pipeline.store.tables import CORRECTIONS

_COMMIT = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(r"https://[^\s/]+/?\S*")


_ADAPTERS: tuple[type[Adapter], ...] = (FlashInferBench, KernelhouseRerun)


def _quiet(stage: str, done: int, total: int | None) -> None:
    """Report no progress."""


def ingest(
    data: DataDirectory, request: IngestRequest, progress: Progress = _quiet, *, source: Source | None = None
) -> IngestReport:
    """Pull a source into a data directory and publish the warehouse, as its one writer.

    Args:
        data: the data directory.
        request: what to pull and how.
        progress: told how far it is.
        source: pulled in place of the one that the request names.

    Raises:
        UsageError: the request does not make sense.
        CorrectionError: the reviewed corrections cannot be applied.
        SourceError: the source cannot be read.
        DataDirectoryError: the data directory cannot be used, or another process writes to it.
        CheckFailure: the pull has far fewer records than the last one of its source.
    """
    started = time.monotonic()
    source = source or open_source(request)
    if request.dry_run:
        return _dry_run(data, source, request, progress, started)
    fresh = not data.root.exists()
    try:
        return _ingest(data, source, request, progress, started)
    except KernelhouseError:
        if fresh:
            data.remove_if_empty()
        raise


def _ingest(
    data: DataDirectory, source: Source, request: IngestRequest, progress: Progress, started: float
) -> IngestReport:
    with writing(data, wait=request.wait), explained(data):
        check_corrections(data, rebuild=request.rebuild)
        unfinished = _unfinished(data)
        pulled = None
        if request.source is not None or not request.rebuild:
            pulled = take(data, source, progress, accept_shrink=request.accept_shrink).snapshot_id
        blobs = BlobStore(data.blobs)
        if request.rebuild:
            forget_derived(data, blobs, progress)
        report = replay(data, progress, of=pulled, blobs=blobs)
        published = publish(data, progress, force=request.rebuild)
    return replace(report, recovered=unfinished, published=published, seconds=_since(started))


def _unfinished(data: DataDirectory) -> tuple[int, ...]:
    """Return the sequences of the pulls that are recorded and not ingested: a process was killed in between."""
    return tuple(snapshot.sequence for snapshot in read_snapshots(data) if not is_committed(data, snapshot))


def take(data: DataDirectory, source: Source, progress: Progress = _quiet, *, accept_shrink: bool = False) -> Snapshot:
    """Pull a source: its files into the blob store, the pull as a snapshot record; the same pull is found again.

    Raises:
        SourceError: the source cannot be read.
        DataDirectoryError: the data directory cannot be used.
        CheckFailure: the pull has far fewer records than the last one of its source.
    """
    data.prepare()
    blobs = BlobStore(data.blobs)
    blobs.remove_temporaries()
    remove_leftovers(data)
    known = recorded(data)
    adapter = adapter_of(source)
    pull = source.pull(blobs, adapter, progress, [snapshot.pull for snapshot in known])
    blobs.sync()
    if not accept_shrink:
        check_shrink(pull, known, [commit for _, commit in committed(data, known)], blobs, adapter)
    return record_snapshot(data, pull, known, datetime.now(UTC))


def replay(
    data: DataDirectory, progress: Progress = _quiet, *, of: str | None = None, blobs: BlobStore | None = None
) -> IngestReport:
    """Bring the parts up to the snapshots; report on the snapshot of that id, else on the newest.

    Raises:
        UsageError: there is no snapshot.
        DataDirectoryError: the data directory cannot be used, or a blob is damaged.
    """
    started = time.monotonic()
    data.check()
    snapshots = _some_recorded(data)
    snapshot = next((known for known in snapshots if known.snapshot_id == of), snapshots[-1])
    replayed = replay_missing(data, blobs or BlobStore(data.blobs), FlashInferBench(), progress, wanted=snapshot)
    return _report(data, snapshot, replayed, started=started)


def _some_recorded(data: DataDirectory) -> list[Snapshot]:
    if not (snapshots := recorded(data)):
        raise UsageError(f"{data.root} holds no snapshot: ingest a source first")
    return snapshots


def open_source(request: IngestRequest) -> Source:
    """Return the source that a request names.

    Raises:
        UsageError: options that do not go with the source, or are malformed.
    """
    authors = tuple(sorted(set(request.authors)))
    if request.revision is not None and not _COMMIT.fullmatch(request.revision):
        raise UsageError(f"--revision {request.revision!r} is no commit: give its 40 hex digits in lower case")
    if request.repository is not None and not _URL.fullmatch(request.repository):
        raise UsageError(f"--repository {request.repository!r} is no https URL")
    if request.source is None or request.source == "sample":
        if request.revision or request.repository or request.authors:
            raise UsageError("the bundled sample takes no --revision, --repository or --author")
        return sample_source()
    if request.source.startswith(PREFIX):
        if request.repository:
            raise UsageError(f"{request.source} is a repository already: leave out --repository")
        client = open_client(os.environ, endpoint=request.endpoint, allow_hosts=request.allow_hosts)
        return HubSource(repository_of(request.source), client, request.revision, authors, request.jobs)
    if not request.source:
        raise UsageError("SOURCE is empty: give 'sample', the folder of a trace set, or hub:OWNER/NAME")
    root = Path(os.path.expanduser(request.source))  # noqa: PTH111 - a Path would raise where there is no such home
    if not root.exists():
        raise UsageError(f"no folder {request.source}: give 'sample', the folder of a trace set, or hub:OWNER/NAME")
    return DirectorySource(root, repository=request.repository, revision=request.revision, authors=authors)


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
        raise DataDirectoryError(f"{refusal(error, data.root)}, then ingest again") from error


def replay_missing(
    data: DataDirectory, blobs: BlobStore, adapter: Adapter, progress: Progress, *, wanted: Snapshot | None = None
) -> Replay | None:
    """Ingest every snapshot that has no commit, in sequence; return the replay of the wanted one, if any.

    ``adapter`` reads the snapshots of its own name, a fresh one those of another.
    """
    snapshots = read_snapshots(data)
    intact = IntactBlobs(blobs, snapshots)
    adapters = {adapter.name: adapter}
    done = committed(data, snapshots)
    remove_uncommitted(data, [commit for _, commit in done])
    found = None
    for snapshot in snapshots[len(done) :]:
        name = snapshot.pull.adapter
        if name not in adapters:
            adapters[name] = new_adapter(name)
        replay = Replay(snapshot, State(data, done), intact, adapters[name], data)
        replay.run(progress)
        commit = replay.commit()
        write_commit(data, commit, snapshot)
        done.append((snapshot, commit))
        if wanted is not None and snapshot.snapshot_id == wanted.snapshot_id:
            found = replay
    return found


def publish(data: DataDirectory, progress: Progress = _quiet, *, force: bool = False) -> bool:
    """Build ``warehouse.duckdb`` where it does not fit commits, corrections and policy, or by force; tell whether.

    Raises:
        CorrectionError: the reviewed corrections do not fit the warehouse; it stays as it was.
        DataDirectoryError: the data directory cannot be used.
    """
    snapshots = read_snapshots(data)
    commits = [commit for _, commit in committed(data, snapshots)]
    corrections = read_corrections(data.corrections)
    built = database.read_meta(data.database)
    if not force and built.get("build_key") == _build_key(commits, corrections):
        return False
    parts = part_files(data, commits)
    corrections.check(parts["runs"], parts)
    take_down(BlobStore(data.blobs), snapshots, parts["artifacts"], corrections.removed, progress)
    progress("publish", 0, None)
    new = None if force else _parts_since(data, commits, corrections, built)
    reviewed = {CORRECTIONS.name: corrections.rows()}
    if new is None or not extend(parts, new, data.database, meta=_meta(commits, corrections), reviewed=reviewed):
        derive(data, data.database)
    return True


def derive(data: DataDirectory, target: Path) -> None:
    """Build a database from the parts, corrections and policy as they are now; change nothing else.

    Raises:
        CorrectionError: the reviewed corrections are malformed.
        DataDirectoryError: a part is missing or damaged.
    """
    commits = [commit for _, commit in committed(data, read_snapshots(data))]
    corrections = read_corrections(data.corrections)
    reviewed = {CORRECTIONS.name: corrections.rows()}
    database.build(part_files(data, commits), target, meta=_meta(commits, corrections), reviewed=reviewed)


def _meta(commits: Sequence[Commit], corrections: Corrections) -> dict[str, str]:
    """Return what a database of these says of itself."""
    return {
        "format_version": str(FORMAT_VERSION),
        "build_key": _build_key(commits, corrections),
        "commits": str(len(commits)),
        "kernelhouse_version": pipeline.__version__,
        "policy_digest": database.policy_digest(),
    }


def _parts_since(
    data: DataDirectory, commits: Sequence[Commit], corrections: Corrections, built: Mapping[str, str]
) -> dict[str, list[Path]] | None:
    """Return the parts that came after a build; None where it was not made of earlier commits in the same way."""
    known = int(built.get("commits", 0))
    if not 0 < known < len(commits) or built.get("build_key") != _build_key(commits[:known], corrections):
        return None
    return part_files(data, commits[known:])


def check_corrections(data: DataDirectory, *, rebuild: bool) -> None:
    """Refuse corrections that do not fit the warehouse before anything is pulled.

    Where parts are yet to be made, the runs are looked up when the warehouse is published.
    """
    corrections = read_corrections(data.corrections)
    snapshots = read_snapshots(data)
    if rebuild or not corrections.entries:  # a rebuild may be there to mend what is read next
        return
    done = committed(data, snapshots)
    if len(done) == len(snapshots):
        parts = part_files(data, [commit for _, commit in done])
        corrections.check(parts["runs"], parts)


def committed(data: DataDirectory, snapshots: Sequence[Snapshot]) -> list[tuple[Snapshot, Commit]]:
    """Return the snapshots that are ingested: the unbroken run from the first on."""
    done = []
    for snapshot in snapshots:
        commit = read_commit(data, snapshot)
        if commit is None:
            break
        done.append((snapshot, commit))
    return done


def _build_key(commits: Sequence[Commit], corrections: Corrections) -> str:
    return sha256_of(
        canonical_text(
            {
                "format": FORMAT_VERSION,
                "policy": database.policy_digest(),
                "corrections": corrections.digest,
                "parts": [part.sha256 for commit in commits for part in commit.parts],
            }
        )
    )


def forget_derived(data: DataDirectory, blobs: BlobStore, progress: Progress = _quiet) -> None:
    """Remove parts and commits, once it is sure that all of them can be made again.

    The published warehouse stays until the new one is ready.

    Raises:
        UsageError: there is no snapshot.
        DataDirectoryError: a snapshot record or a blob is missing or damaged, or this program cannot read it.
    """
    data.prepare()
    snapshots = _some_recorded(data)
    for name in {snapshot.pull.adapter for snapshot in snapshots}:
        new_adapter(name)
    IntactBlobs(blobs, snapshots).check_all(progress)
    if data.commits.exists():
        shutil.rmtree(data.commits)
    for folder in data.tables.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)


def _dry_run(
    data: DataDirectory, source: Source, request: IngestRequest, progress: Progress, started: float
) -> IngestReport:
    """Do everything in a scratch directory that begins as this one and is gone afterwards."""
    data.check()
    with tempfile.TemporaryDirectory(prefix="kernelhouse-") as folder:
        scratch = _stand_in(data, Path(folder) / "data")
        blobs = BlobStore(data.blobs, scratch=scratch.blobs)
        adapter = adapter_of(source)
        known, unfinished = recorded(data), _unfinished(data)
        if request.source is not None or not request.rebuild:
            pull = source.pull(blobs, adapter, progress, [snapshot.pull for snapshot in known])
            snapshot = record_snapshot(scratch, pull, known, datetime.now(UTC))
        elif known:
            snapshot = known[-1]
        else:
            raise UsageError(f"{data.root} holds no snapshot to rebuild from: name a SOURCE")
        if request.rebuild:
            forget_derived(scratch, blobs, progress)
        replay = replay_missing(scratch, blobs, adapter, progress, wanted=snapshot)
        return replace(_report(scratch, snapshot, replay, started=started, dry_run=True), recovered=unfinished)


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
        presence = replay.presence
    else:
        counts, held = _again(data, snapshot)
        added, drift, presence = Counter(), 0, Counter()
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
        records_withdrawn=presence[WITHDRAWN],
        records_reinstated=presence[REINSTATED],
        operations_changed=tuple(replay.operations_changed) if replay is not None else (),
        drift=drift,
        recovered=(),
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
