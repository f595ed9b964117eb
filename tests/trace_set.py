"""Small trace sets in the upstream layout, and a data directory to ingest them into that checks itself each time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from pipeline.ingest import IngestReport, IngestRequest, ingest
from pipeline.ingest.pull import open_source, publish, replay_missing
from pipeline.manifests import load_manifest
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.store.blobs import BlobStore
from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory
from pipeline.store.snapshots import read_snapshots, record_snapshot
from pipeline.store.tables import EVIDENCE, TABLES

Json = dict[str, Any]
Files = Mapping[str, bytes]
"""A trace set: content by path."""

REPOSITORY = "https://example.org/datasets/traces"
REVISIONS = tuple(digit * 40 for digit in "123456789")

DEFINITION = "definitions/elementwise/scale_rows.json"
SOLUTION = "solutions/baseline/elementwise/scale_rows/scale_torch.json"
RIVAL = "solutions/gpt-5/elementwise/scale_rows/scale_triton.json"
WORKLOADS = "workloads/elementwise/scale_rows.jsonl"
TRACES = "traces/baseline/elementwise/scale_rows.jsonl"
RIVAL_TRACES = "traces/gpt-5/elementwise/scale_rows.jsonl"


def encode(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def lines(*records: Any) -> bytes:
    """Records as JSON lines; bytes are taken as they are."""
    return b"".join((record if isinstance(record, bytes) else encode(record)) + b"\n" for record in records)


def definition(name: str = "scale_rows", **changes: Any) -> Json:
    document = {
        "name": name,
        "op_type": "elementwise",
        "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 64}},
        "inputs": {
            "x": {"shape": ["rows", "hidden"], "dtype": "bfloat16"},
            "scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "bfloat16"}},
        "reference": "def run(x, scale):\n    return x * scale\n",
    }
    return document | changes


def solution(name: str = "scale_torch", *, code: str = "def run(x, scale): ...\n", **changes: Any) -> Json:
    document = {
        "name": name,
        "definition": "scale_rows",
        "author": "baseline",
        "spec": {"language": "python", "target_hardware": ["NVIDIA B200"], "entry_point": "main.py::run"},
        "sources": [{"path": "main.py", "content": code}],
    }
    return document | changes


def workload(rows: int = 8, **changes: Any) -> Json:
    document = {
        "axes": {"rows": rows},
        "inputs": {"x": {"type": "random"}, "scale": {"type": "scalar", "value": 0.5}},
        "uuid": f"00000000-0000-4000-8000-{rows:012d}",
    }
    return document | changes


def workload_line(rows: int = 8, **changes: Any) -> Json:
    """A line of a workload file: no solution, no evaluation."""
    return {"definition": "scale_rows", "workload": workload(rows, **changes), "solution": None, "evaluation": None}


def evaluation(latency_ms: Any = 0.011, **changes: Any) -> Json:
    document = {
        "status": "PASSED",
        "environment": {"hardware": "NVIDIA B200", "libs": {"torch": "2.8.0", "triton": "3.4.0", "cuda": "12.8"}},
        "timestamp": "2026-03-02T10:00:01.250Z",
        "log": "",
        "correctness": {"max_relative_error": 0.0, "max_absolute_error": 0.0},
        "performance": {"latency_ms": latency_ms, "reference_latency_ms": 0.05, "speedup_factor": 2.5},
    }
    return document | changes


def trace(
    rows: int = 8,
    latency_ms: Any = 0.011,
    *,
    by: str | None = "scale_torch",
    of: str = "scale_rows",
    workload: Json | None = None,
    **changes: Any,
) -> Json:
    """A trace line; changes go to its evaluation."""
    return {
        "definition": of,
        "workload": workload if workload is not None else globals()["workload"](rows),
        "solution": by,
        "evaluation": evaluation(latency_ms, **changes),
    }


def small_set() -> dict[str, bytes]:
    """A definition, a baseline and a rival, two workloads, five measurements of which the rival holds the records."""
    return {
        DEFINITION: encode(definition()),
        SOLUTION: encode(solution()),
        RIVAL: encode(solution("scale_triton", code="@triton.jit\n", author="gpt-5")),
        WORKLOADS: lines(workload_line(8), workload_line(16)),
        TRACES: lines(
            trace(8, 0.011),
            trace(16, 0.020),
            trace(16, 0.021, timestamp="2026-03-03T09:00:00"),
        ),
        RIVAL_TRACES: lines(
            trace(8, 0.009, by="scale_triton", timestamp="2026-03-04T10:00:00Z", log="compiled\nran"),
            trace(16, 0.030, by="scale_triton", timestamp="2026-03-01T10:00:00Z"),
        ),
    }


def write_files(root: Path, files: Files) -> Path:
    """Write a trace set below a folder."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    root.mkdir(exist_ok=True)
    return root


def tree(root: Path) -> dict[str, str | None]:
    """SHA-256 of every file below a folder, None for folders, by path."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


@dataclass
class Warehouse:
    """A data directory; every ingest into it is followed by checks that hold for all of them."""

    root: Path

    @property
    def data(self) -> DataDirectory:
        return DataDirectory(self.root / "data")

    def ingest(self, source: Files | Path, **request: Any) -> IngestReport:
        """Ingest a trace set, published; then check accounting, keys, places and digests."""
        report = ingest(self.data, IngestRequest(source=str(self._folder(source)), **request))
        check_report(report)
        if not request.get("dry_run"):
            self.check()
        return report

    def take(self, source: Files | Path, **request: Any) -> None:
        """Ingest a trace set without publishing, which takes most of the time."""
        self.data.prepare()
        blobs, adapter = BlobStore(self.data.blobs), FlashInferBench()
        pull = open_source(IngestRequest(source=str(self._folder(source)), **request)).pull(blobs, adapter, _quiet)
        record_snapshot(self.data, pull, read_snapshots(self.data), datetime.now(UTC))
        replay_missing(self.data, blobs, adapter, _quiet)

    def publish(self) -> None:
        publish(self.data)
        self.check()

    @contextmanager
    def open(self) -> Iterator[DuckDBPyConnection]:
        connection = connect(self.data.database)
        try:
            yield connection
        finally:
            connection.close()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.open() as connection:
            return connection.execute(query).fetchall()

    def value(self, query: str) -> Any:
        ((value,),) = self.rows(query)
        return value

    def held(self) -> list[tuple[Any, ...]]:
        """What is held back now: file, line, reason."""
        return self.rows("SELECT source_file, source_line, reason FROM quarantine ORDER BY ALL")

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table but ``meta``, sorted."""
        names = [table.name for table in TABLES if table.name != "meta"]
        with self.open() as connection:
            return {name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr) for name in names}

    def check(self) -> None:
        with self.open() as connection:
            _check_accounting(connection)
            _check_keys(connection)
            _check_places(connection, BlobStore(self.data.blobs))
            _check_manifests(connection)

    def _folder(self, source: Files | Path) -> Path:
        if isinstance(source, Path):
            return source
        self.root.mkdir(parents=True, exist_ok=True)
        place = self.root / f"set-{sum(1 for _ in self.root.glob('set-*'))}"
        return write_files(place, source)


def check_report(report: IngestReport) -> None:
    """Nothing is lost between reading and writing, and the report says so."""
    assert report.records == report.added + report.already_known + report.duplicates + report.quarantined
    taken = report.files_read + report.files_unchanged + report.files_quarantined + report.files_not_fetched
    assert report.files == taken


def _quiet(stage: str, done: int, total: int | None) -> None:
    pass


def _check_accounting(connection: DuckDBPyConnection) -> None:
    wrong = connection.execute(
        """
        FROM ingests
        WHERE records != added + already_known + duplicates + quarantined
        OR files != files_read + files_unchanged + files_quarantined + files_not_fetched
        """
    ).fetchall()
    assert wrong == []


def _check_keys(connection: DuckDBPyConnection) -> None:
    for table in TABLES:
        key = ", ".join(f'"{name}"' for name in table.key)
        repeated = connection.execute(f"SELECT {key} FROM {table.name} GROUP BY ALL HAVING count(*) > 1").fetchall()
        assert repeated == [], table.name


def _check_places(connection: DuckDBPyConnection, blobs: BlobStore) -> None:
    """Observations, quarantine and artifacts point at exactly the bytes whose digest they carry."""
    observed = "SELECT observation_sha256, blob_sha256, byte_offset, size_bytes FROM observations"
    held = (
        "SELECT raw_sha256, blob_sha256, coalesce(byte_offset, 0), size_bytes FROM quarantine WHERE blob_sha256 != ''"
    )
    for sha256, blob, offset, size in connection.execute(f"{observed} UNION ALL {held}").fetchall():
        assert "sha256:" + hashlib.sha256(blobs.read(blob, offset, size)).hexdigest() == sha256
    for digest, size, blob, offset, pointer in connection.execute(
        "SELECT digest, size_bytes, blob_sha256, byte_offset, pointer FROM artifacts"
    ).fetchall():
        value, _ = json.JSONDecoder().raw_decode(blobs.read(blob)[offset:].decode())
        for step in pointer.split("/")[1:]:
            value = value[int(step)] if isinstance(value, list) else value[step]
        text = value.encode()
        assert ("sha256:" + hashlib.sha256(text).hexdigest(), len(text)) == (digest, size)


def _check_manifests(connection: DuckDBPyConnection) -> None:
    """A stored manifest is what its digest says, when it is read again as ``digest`` and ``verify`` do."""
    for table in EVIDENCE:
        if "manifest" in [column.name for column in table.columns]:
            for digest, text in connection.execute(f"SELECT {table.key[0]}, manifest FROM {table.name}").fetchall():
                assert load_manifest(text.encode()).digest == digest
