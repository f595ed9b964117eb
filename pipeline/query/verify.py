"""Verification: what the warehouse says is recomputed from the evidence that it keeps.

Each check looks at one promise and returns a :class:`Check`; none repairs anything. Checks of the
database take the connection, checks of the files the data directory.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from pipeline.errors import DataDirectoryError, KernelhouseError
from pipeline.ingest.pull import derive
from pipeline.manifests.canonical import canonical_text, digest_of, sha256_of
from pipeline.manifests.keys import comparison_key
from pipeline.query.plain import instant
from pipeline.query.rows import values
from pipeline.sources.listing import Kind
from pipeline.store.blobs import BlobStore
from pipeline.store.database import connect, damage_of
from pipeline.store.parts import Commit, Part, read_commit
from pipeline.store.snapshots import Snapshot, read_snapshots
from pipeline.store.tables import META, TABLES, Table
from pipeline.upstream.framing import frame

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipeline.store.layout import DataDirectory

_SHOWN = 10
_BATCH = 5_000

Progress = Callable[[str, int, int | None], None]
"""Told of every step: what is done, how far, of how much (None: unknown)."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: the file or the table and row, and what is wrong with it."""

    where: str
    what: str


@dataclass(frozen=True)
class Check:
    """The outcome of a check; ``problems`` are the first of its ``failures``."""

    name: str
    ok: bool
    detail: str
    failures: int
    problems: list[Problem]


@dataclass
class Findings:
    """What a check has looked at and found."""

    name: str
    noun: str
    looked_at: int = 0
    failures: int = 0
    problems: list[Problem] = field(default_factory=list)

    def problem(self, where: str, what: str) -> None:
        """Note something that is wrong."""
        self.failures += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(Problem(where, what))

    def check(self) -> Check:
        """Return the outcome."""
        detail = f"{self.looked_at:,} {self.noun}"
        if self.failures:
            detail += f", {self.failures:,} wrong"
        return Check(self.name, not self.failures, detail, self.failures, self.problems)


def verify(connection: DuckDBPyConnection, data: DataDirectory, progress: Progress) -> Iterator[Check]:
    """Yield the outcome of every check, in an order that names causes before their effects.

    A database that cannot be read to its end is a failed check, and the last.
    """
    try:
        yield from _checks(connection, data, progress)
    except duckdb.Error as error:
        if (damage := damage_of(data.database, error)) is None:
            raise
        found = Findings("database", "database", looked_at=1)
        found.problem(_place(data, data.database), str(damage))
        yield found.check()


def _checks(connection: DuckDBPyConnection, data: DataDirectory, progress: Progress) -> Iterator[Check]:
    yield _blobs(data, progress)
    check, snapshots = _snapshots(connection, data)
    yield check
    check, commits = _commits(data, snapshots)
    yield check
    yield _fetched_files(connection, data)
    yield _keys(connection)
    yield from _manifests(connection, progress)
    yield check_comparison_keys(connection)
    yield _references(connection)
    yield check_accounting(connection)
    yield _records(connection, data, commits, progress)
    yield check_supersession(connection)
    yield check_floors(connection)
    yield check_invariants(connection)
    yield _recomputation(connection, data, progress)


# Files


def _blobs(data: DataDirectory, progress: Progress) -> Check:
    """Every blob holds the bytes that its name promises, or those that its tombstone says are left of them."""
    found = Findings("blobs", "files match the SHA-256 in their name or tombstone")
    store = BlobStore(data.blobs)
    files = sorted(path for path in data.blobs.rglob("*") if path.is_file() and not path.name.startswith("."))
    for done, path in enumerate(files):
        progress("blobs", done, len(files))
        found.looked_at += 1
        if (actual := _sha256(path)) == path.name:
            continue
        try:
            tombstone = store.tombstone(path.name)
        except DataDirectoryError as error:
            found.problem(_place(data, path), str(error))
            continue
        if tombstone is None or tombstone.kept_sha256 != f"sha256:{actual}":
            found.problem(_place(data, path), f"its content has SHA-256 {actual}")
    return found.check()


def _snapshots(connection: DuckDBPyConnection, data: DataDirectory) -> tuple[Check, list[Snapshot]]:
    """Every snapshot record has the digest that names it, and the database knows just these."""
    found = Findings("snapshots", "snapshot records have the digest that names them, and are in the database")
    try:
        snapshots = read_snapshots(data)
    except DataDirectoryError as error:
        found.problem(_place(data, data.snapshots), str(error))
        return found.check(), []
    found.looked_at = len(snapshots)
    kept = {snapshot.snapshot_id for snapshot in snapshots}
    known = set(values(connection, "SELECT snapshot_id FROM snapshots"))
    for missing in sorted(kept - known):
        found.problem(f"snapshots {missing}", "the database does not know it: run kernelhouse ingest")
    for missing in sorted(known - kept):
        found.problem(f"snapshots {missing}", "its record is missing from the folder snapshots")
    return found.check(), snapshots


def _commits(data: DataDirectory, snapshots: Sequence[Snapshot]) -> tuple[Check, list[Commit]]:
    """Every snapshot has its commit, and every part that it names is there, byte for byte, with its rows."""
    found = Findings("parts", "Parquet parts match their commit")
    commits = []
    for snapshot in snapshots:
        try:
            commit = read_commit(data, snapshot)
        except DataDirectoryError as error:
            found.problem(f"commit of snapshot {snapshot.snapshot_id}", str(error))
            continue
        if commit is None:
            found.problem(f"commit of snapshot {snapshot.snapshot_id}", "it is missing: run kernelhouse ingest")
            continue
        commits.append(commit)
        for part in commit.parts:
            check_part(found, data, commit, part)
    return found.check(), commits


def check_part(found: Findings, data: DataDirectory, commit: Commit, part: Part) -> None:
    """Find whether a part that a commit names is there, byte for byte, with its rows."""
    import pyarrow.parquet as pq

    found.looked_at += 1
    path = data.tables / part.file
    if not path.is_file():
        found.problem(_place(data, path), f"it is missing, and commit {commit.sequence} names it")
    elif f"sha256:{_sha256(path)}" != part.sha256:
        found.problem(_place(data, path), f"its SHA-256 is not {part.sha256} of commit {commit.sequence}")
    elif (rows := pq.read_metadata(path).num_rows) != part.rows:
        found.problem(_place(data, path), f"it has {rows} rows, commit {commit.sequence} says {part.rows}")


def _fetched_files(connection: DuckDBPyConnection, data: DataDirectory) -> Check:
    """Every file that a snapshot says is fetched has its blob, of its size."""
    found = Findings("fetched files", "fetched files have their blob")
    rows = connection.execute(
        "SELECT snapshot_id, path, sha256, size_bytes FROM source_files WHERE fetched ORDER BY ALL"
    ).fetchall()
    blobs = BlobStore(data.blobs)
    for snapshot, path, sha256, size in rows:
        found.looked_at += 1
        where = f"source_files {snapshot} {path}"
        if sha256 is None or not blobs.has(sha256):
            found.problem(where, f"there is no blob {sha256}")
        elif (actual := blobs.path(sha256).stat().st_size) != size:
            found.problem(where, f"its blob has {actual} bytes, not {size}")
    return found.check()


# Tables


def _keys(connection: DuckDBPyConnection) -> Check:
    """No two rows of a table share its declared key."""
    found = Findings("keys", "rows have a key of their own")
    for table in TABLES:
        check_key(found, connection, table.name, table.key)
    return found.check()


def check_key(found: Findings, connection: DuckDBPyConnection, name: str, columns: Sequence[str]) -> None:
    """Find rows of a table that share a key."""
    key = ", ".join(f'"{column}"' for column in columns)
    found.looked_at += _count(connection, f"SELECT count(*) FROM {name}")
    sql = f"SELECT {key}, count(*) FROM {name} GROUP BY {key} HAVING count(*) > 1 ORDER BY ALL"
    for *row, amount in connection.execute(sql).fetchall():
        found.problem(_row(name, row), f"{amount} rows share this key")


def _references(connection: DuckDBPyConnection) -> Check:
    """Every digest that a row names is there."""
    found = Findings("references", "kinds of reference resolve")
    for reference in REFERENCES:
        check_reference(found, connection, *reference)
    return found.check()


def check_reference(
    found: Findings, connection: DuckDBPyConnection, source: str, column: str, target: str, key: str
) -> None:
    """Find values of a column that are no key of the table that they refer to."""
    found.looked_at += 1
    sql = (
        f"SELECT DISTINCT source.{column} FROM {source} AS source ANTI JOIN {target} AS target"
        f" ON target.{key} = source.{column} WHERE source.{column} IS NOT NULL ORDER BY 1"
    )
    for [missing] in connection.execute(sql).fetchall():
        found.problem(f"{source}.{column} {missing}", f"there is no such row in {target}")


REFERENCES = (
    ("runs", "operation_digest", "operations", "operation_digest"),
    ("runs", "workload_digest", "workloads", "workload_digest"),
    ("runs", "implementation_digest", "implementations", "implementation_digest"),
    ("runs", "protocol_digest", "protocols", "protocol_digest"),
    ("runs", "environment_digest", "environments", "environment_digest"),
    ("runs", "log_digest", "artifacts", "digest"),
    ("runs", "run_digest", "observations", "run_digest"),
    ("workloads", "operation_digest", "operations", "operation_digest"),
    ("workload_tensors", "workload_digest", "workloads", "workload_digest"),
    ("workload_inputs", "workload_digest", "workloads", "workload_digest"),
    ("implementations", "operation_digest", "operations", "operation_digest"),
    ("observations", "run_digest", "runs", "run_digest"),
    ("observations", "implementation_digest", "implementations", "implementation_digest"),
    ("observations", "snapshot_id", "snapshots", "snapshot_id"),
    ("measurements", "run_digest", "runs", "run_digest"),
    ("reruns", "run_digest", "runs", "run_digest"),
    ("reruns", "target_run_digest", "runs", "run_digest"),
    ("reruns", "snapshot_id", "snapshots", "snapshot_id"),
    ("quarantine", "snapshot_id", "snapshots", "snapshot_id"),
    ("releases", "snapshot_id", "snapshots", "snapshot_id"),
    ("source_files", "snapshot_id", "snapshots", "snapshot_id"),
    ("ingests", "snapshot_id", "snapshots", "snapshot_id"),
    ("cohorts", "operation_digest", "operations", "operation_digest"),
    ("cohorts", "workload_digest", "workloads", "workload_digest"),
    ("cohorts", "best_run_digest", "leaderboard", "run_digest"),
    ("cohort_runs", "run_digest", "runs", "run_digest"),
    ("cohort_runs", "cohort_key", "cohorts", "cohort_key"),
    ("leaderboard", "run_digest", "cohort_runs", "run_digest"),
    ("leaderboard", "cohort_key", "cohorts", "cohort_key"),
    ("leaderboard", "implementation_digest", "implementations", "implementation_digest"),
    ("record_history", "run_digest", "cohort_runs", "run_digest"),
    ("record_history", "previous_run_digest", "cohort_runs", "run_digest"),
    ("current_records", "run_digest", "record_history", "run_digest"),
    ("floor_estimates", "workload_digest", "workloads", "workload_digest"),
    ("coverage", "operation_digest", "operations", "operation_digest"),
    ("presence", "snapshot_id", "snapshots", "snapshot_id"),
    ("corrections", "run_digest", "runs", "run_digest"),
    ("corrections", "successor", "runs", "run_digest"),
    ("suspensions", "run_digest", "runs", "run_digest"),
    ("flags", "run_digest", "runs", "run_digest"),
)


# Manifests


def _manifests(connection: DuckDBPyConnection, progress: Progress) -> Iterator[Check]:
    """Every manifest is canonical text with its digest, and says what the columns beside it say."""
    digests = Findings("manifest digests", "manifests have the digest of their canonical text")
    columns = Findings("manifest columns", "manifests say what their row says")
    for table in (table for table in TABLES if table.name in _STATED):
        [key] = table.key
        stated = _STATED[table.name]
        total = _count(connection, f"SELECT count(*) FROM {table.name}")
        connection.execute(f"SELECT manifest, {key}, {', '.join(stated)} FROM {table.name} ORDER BY {key}")
        done = 0
        while batch := connection.fetchmany(_BATCH):
            for text, digest, *row in batch:
                done += 1
                digests.looked_at += 1
                columns.looked_at += 1
                where = f"{table.name} {digest}"
                manifest = read_manifest(text, digest, where, digests)
                if manifest is not None:
                    _compare(manifest["spec"], stated, row, where, columns)
            progress(f"manifests of {table.name}", done, total)
    yield digests.check()
    yield columns.check()


def read_manifest(text: str, digest: str, where: str, found: Findings) -> dict[str, Any] | None:
    """Return the manifest where it can be read; whatever is wrong with its text or digest is found."""
    try:
        manifest: dict[str, Any] = json.loads(text)
        if canonical_text(manifest) != text.encode():
            found.problem(where, "its manifest is not in canonical form")
        if (actual := digest_of(manifest)) != digest:
            found.problem(where, f"its manifest has the digest {actual}")
        return manifest
    except (ValueError, KeyError, TypeError, RecursionError, KernelhouseError) as error:
        found.problem(where, f"its manifest cannot be read: {error}")
        return None


def _compare(
    spec: Mapping[str, Any],
    stated: Mapping[str, Callable[[Any], Any]],
    row: Sequence[Any],
    where: str,
    found: Findings,
) -> None:
    for (name, read), value in zip(stated.items(), row, strict=True):
        said = read(spec)
        shown = instant(value) if isinstance(value, datetime) else value
        if name == "axes":
            shown = _json(shown)
        if said != shown:
            found.problem(where, f"{name} is {shown!r}, its manifest says {said!r}")


def _at(*path: str) -> Callable[[Any], Any]:
    """Return a reader of the value at a path of a manifest's spec; None where there is nothing."""

    def read(spec: Any) -> Any:
        for step in path:
            if not isinstance(spec, dict):
                return None
            spec = spec.get(step)
        return spec

    return read


def _primary_latency(spec: Any) -> Any:
    statistic = _at("timing", "primaryStatistic")(spec)
    return _at("timing", "latencyNs", str(statistic))(spec)


def _json(text: str) -> Any:
    """Return the value of a JSON text; the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


# What a row states beside its manifest: column to the place in the manifest's spec.
_STATED: dict[str, dict[str, Callable[[Any], Any]]] = {
    "operations": {"family": _at("family")},
    "workloads": {"operation_digest": _at("operationSpecDigest"), "axes": _at("axes")},
    "implementations": {
        "operation_digest": _at("operation", "specDigest"),
        "language": _at("callable", "language"),
        "license": _at("licensing", "concluded"),
        "repository": _at("projectRevision", "repository"),
        "first_revision": _at("projectRevision", "commit"),
    },
    "environments": {"hardware": _at("hardware", "product")},
    "protocols": {},
    "runs": {
        "workload_digest": _at("workloadDigest"),
        "implementation_digest": _at("implementationDigest"),
        "protocol_digest": _at("protocolDigest"),
        "environment_digest": _at("environmentDigest"),
        "source": _at("sourceNative", "source"),
        "benchmark": _at("sourceNative", "benchmark"),
        "status": _at("status"),
        "primary_statistic": _at("timing", "primaryStatistic"),
        "latency_ns": _primary_latency,
        "reference_latency_ms": _at("sourceNative", "metrics", "reference_latency_ms"),
        "speedup_factor": _at("sourceNative", "metrics", "speedup_factor"),
        "max_absolute_error": _at("correctness", "maximumAbsoluteError"),
        "max_relative_error": _at("correctness", "maximumRelativeError"),
        "log_digest": _at("evidence", "logs", "digest"),
        "observed_at": _at("observedAt"),
    },
}


def check_comparison_keys(connection: DuckDBPyConnection) -> Check:
    """Every comparison key is the digest of what it stands for."""
    found = Findings("comparison keys", "comparison keys are the digest of what they compare")
    groups = connection.execute(
        """
        SELECT runs.operation_digest, workload_digest, protocol_digest, environment_digest, primary_statistic,
               any_value(workloads.manifest), list(DISTINCT comparison_key), count(*), min(run_digest)
        FROM runs JOIN workloads USING (workload_digest)
        GROUP BY ALL ORDER BY ALL
        """
    )
    for operation, workload, protocol, environment, statistic, manifest, keys, runs, run in groups.fetchall():
        found.looked_at += runs
        rule = _at("spec", "correctness")(_json(manifest))
        key = comparison_key(
            operation=operation,
            workload=workload,
            protocol=protocol,
            environment=environment,
            correctness=sha256_of(canonical_text({"correctness": rule})),
            metric=f"latency:{statistic}:ns" if statistic else "none",
        )
        for wrong in keys:
            if wrong != key:
                found.problem(f"runs {run}", f"its comparison key or that of a run like it is {wrong}, not {key}")
    return found.check()


# Accounting


def check_accounting(connection: DuckDBPyConnection) -> Check:
    """Every ingest accounts for all of its records and files."""
    found = Findings("accounting", "ingests account for every record and file")
    rows = connection.execute(
        """
        SELECT sequence, records, added, already_known, duplicates, quarantined,
               files, files_read, files_unchanged, files_quarantined, files_not_fetched
        FROM ingests ORDER BY sequence
        """
    ).fetchall()
    for sequence, records, added, known, duplicates, quarantined, files, *kinds in rows:
        found.looked_at += 1
        if records != added + known + duplicates + quarantined:
            found.problem(
                f"ingests {sequence}",
                f"{records} records are not {added} added + {known} known + {duplicates} duplicate"
                f" + {quarantined} held back",
            )
        read, unchanged, held, listed = kinds
        if files != read + unchanged + held + listed:
            found.problem(
                f"ingests {sequence}",
                f"{files} files are not {read} read + {unchanged} unchanged + {held} held back + {listed} listed only",
            )
    return found.check()


def _records(
    connection: DuckDBPyConnection, data: DataDirectory, commits: Sequence[Commit], progress: Progress
) -> Check:
    """Every record of every fetched trace file is counted, and is an observation, held back, or was let in later."""
    found = Findings("records", "trace records are observed or held back")
    kept = set(values(connection, _KEPT))
    counted = {key: blob.records for commit in commits for key, blob in commit.records.items()}
    blobs = BlobStore(data.blobs)
    files = connection.execute(_TRACE_FILES).fetchall()
    for done, (path, sha256) in enumerate(files):
        progress("records", done, len(files))
        if sha256 in kept or not blobs.has(sha256):
            continue  # held back as a whole, or named by the check of fetched files
        records = 0
        for record in blobs.restored(sha256, frame(blobs.path(sha256), document=path.endswith(".json"))):
            records += 1
            if record.sha256 not in kept:
                found.problem(f"{path} record {record.line}", f"nothing accounts for it (blob {sha256})")
        found.looked_at += records
        if (said := counted.get((Kind.TRACE, sha256))) != records:
            found.problem(path, f"it has {records} records, its commit counted {said} (blob {sha256})")
    return found.check()


_KEPT = """
SELECT observation_sha256 FROM observations
UNION SELECT raw_sha256 FROM quarantine
UNION SELECT raw_sha256 FROM releases
"""

_TRACE_FILES = """
SELECT DISTINCT ON (sha256) path, sha256 FROM source_files WHERE fetched AND kind = 'trace' ORDER BY sha256, path
"""


# Derived tables


def check_invariants(connection: DuckDBPyConnection) -> Check:
    """What must hold of ranks, records and cohorts whatever the policy."""
    found = Findings("ranks and records", "invariants of the derived tables hold")
    for what, sql in _INVARIANTS.items():
        found.looked_at += 1
        for row in connection.execute(sql).fetchall():
            found.problem(_row("cohort", row), what)
    return found.check()


_INVARIANTS = {
    "ranked runs and results of the cohort differ": """
        SELECT profile, cohort_key FROM cohorts LEFT JOIN leaderboard USING (profile, cohort_key)
        GROUP BY profile, cohort_key, results HAVING count(run_digest) <> results ORDER BY ALL
    """,
    "its best run is not the fastest ranked one": """
        SELECT profile, cohort_key FROM cohorts JOIN leaderboard USING (profile, cohort_key)
        GROUP BY profile, cohort_key, best_latency_ns
        HAVING min(latency_ns) IS DISTINCT FROM best_latency_ns ORDER BY ALL
    """,
    "a run that is not eligible is ranked": """
        SELECT profile, cohort_key, run_digest FROM leaderboard JOIN runs USING (run_digest) WHERE NOT eligible
        ORDER BY ALL
    """,
    "ranks do not rise with latency": """
        SELECT profile, cohort_key, run_digest FROM leaderboard
        QUALIFY rank < max(rank) OVER (PARTITION BY profile, cohort_key ORDER BY latency_ns) ORDER BY ALL
    """,
    "ranks are not dense from 1": """
        SELECT profile, cohort_key FROM leaderboard GROUP BY profile, cohort_key
        HAVING min(rank) <> 1 OR max(rank) <> count(DISTINCT rank) ORDER BY ALL
    """,
    "positions are not 1, 2, 3, ...": """
        SELECT profile, cohort_key FROM leaderboard GROUP BY profile, cohort_key
        HAVING min(position) <> 1 OR max(position) <> count(DISTINCT position) OR max(position) <> count(*) ORDER BY ALL
    """,
    "a new record is not faster than the one before": """
        SELECT profile, cohort_key, run_digest FROM record_history
        WHERE cause = 'new_run' AND latency_ns >= previous_latency_ns ORDER BY ALL
    """,
    "its history goes back in time, or leaves out a position": """
        SELECT profile, cohort_key FROM record_history
        QUALIFY "at" < lag("at") OVER (PARTITION BY profile, cohort_key ORDER BY position)
            OR position <> row_number() OVER (PARTITION BY profile, cohort_key ORDER BY position) ORDER BY ALL
    """,
    "it has ranked runs and no record": """
        SELECT profile, cohort_key FROM cohorts ANTI JOIN current_records USING (profile, cohort_key)
        WHERE results > 0 ORDER BY ALL
    """,
    "a record does not name the holder before it": """
        SELECT profile, cohort_key, run_digest FROM record_history
        QUALIFY previous_run_digest IS DISTINCT FROM
            lag(run_digest) OVER (PARTITION BY profile, cohort_key ORDER BY position) ORDER BY ALL
    """,
    "the current record is not the last of its history": """
        SELECT profile, cohort_key FROM current_records JOIN record_history USING (profile, cohort_key)
        GROUP BY profile, cohort_key, current_records.run_digest
        HAVING arg_max_null(record_history.run_digest, position) IS DISTINCT FROM current_records.run_digest
        ORDER BY ALL
    """,
}


def check_supersession(connection: DuckDBPyConnection) -> Check:
    """No run is superseded by itself, along however many successors."""
    found = Findings("supersession", "superseded runs lead to one that is not")
    successors = dict(
        connection.execute("SELECT run_digest, successor FROM corrections WHERE successor IS NOT NULL").fetchall()
    )
    for start in sorted(successors):
        found.looked_at += 1
        run: str | None = start
        for _ in successors:
            run = successors.get(run)
        if run is not None:
            found.problem(f"corrections {start}", f"it is superseded in a circle through {successors[start]}")
    return found.check()


def check_floors(connection: DuckDBPyConnection) -> Check:
    """No eligible run is faster than its floor without the flag that says so."""
    found = Findings("floors", "eligible runs are above their floor or flagged")
    found.looked_at = _count(connection, "SELECT count(*) FROM runs WHERE eligible")
    for run, latency, floor in connection.execute(_BELOW).fetchall():
        found.problem(f"runs {run}", f"{latency} ns is below its floor of {floor:.6g} ns and not flagged BELOW_FLOOR")
    return found.check()


_BELOW = """
SELECT run_digest, latency_ns, floor_ns FROM runs JOIN floor_estimates USING (workload_digest, hardware)
WHERE model = 'headroom-v2' AND eligible AND latency_ns < floor_ns AND NOT list_contains(flags, 'BELOW_FLOOR')
ORDER BY ALL
"""


def _recomputation(connection: DuckDBPyConnection, data: DataDirectory, progress: Progress) -> Check:
    """Every table is what the parts, the corrections and the policy of this program make of it."""
    found = Findings("recomputation", "tables equal what is made again from parts, corrections and policy")
    progress("recompute", 0, None)
    with tempfile.TemporaryDirectory(prefix="kernelhouse-") as folder:
        again = Path(folder) / "again.duckdb"
        try:
            derive(data, again)
        except KernelhouseError as error:
            found.problem(_place(data, data.database), f"it cannot be made again: {error}")
            return found.check()
        with closing(connect(again)) as made:
            for table in TABLES:
                found.looked_at += 1
                if table is META:
                    if dict(made.execute(_BUILD).fetchall()) != dict(connection.execute(_BUILD).fetchall()):
                        found.problem(
                            "meta", "it was built from other parts, corrections or policy: run kernelhouse ingest"
                        )
                elif _fingerprint(made, table) != _fingerprint(connection, table):
                    _differences(made, connection, table, found)
    return found.check()


_BUILD = "SELECT key, value FROM meta WHERE key IN ('build_key', 'policy_digest', 'format_version')"


def _fingerprint(connection: DuckDBPyConnection, table: Table) -> tuple[Any, ...]:
    """Return the number of rows and a sum over them, whatever their order."""
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    sql = f"SELECT count(*), sum(hash({columns})::HUGEINT) FROM {table.name}"
    (row,) = connection.execute(sql).fetchall()
    return tuple(row)


def _differences(made: DuckDBPyConnection, kept: DuckDBPyConnection, table: Table, found: Findings) -> None:
    """Name the rows that only one of the two has."""
    key = ", ".join(f'"{column}"' for column in table.key)
    with closing(duckdb.connect()) as scratch:
        for name, source in (("made", made), ("kept", kept)):
            scratch.register(name, source.sql(f"FROM {table.name}").to_arrow_table())
        for what, one, other in (
            ("the database has this row, its recomputation has not", "kept", "made"),
            ("the database lacks this row of its recomputation", "made", "kept"),
        ):
            sql = f"SELECT {key} FROM (FROM {one} EXCEPT ALL FROM {other}) ORDER BY ALL"
            for row in scratch.execute(sql).fetchall():
                found.problem(_row(table.name, row), what)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _count(connection: DuckDBPyConnection, sql: str) -> int:
    [[amount]] = connection.execute(sql).fetchall()
    return int(amount)


def _row(table: str, key: Sequence[Any]) -> str:
    return " ".join([table, *map(str, key)])


def _place(data: DataDirectory, path: Path) -> str:
    return path.relative_to(data.root).as_posix()
