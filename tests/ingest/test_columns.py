"""Read in columns or one by one: the same rows, digests, quarantine and accounting."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.one_by_one import OneByOne
from bench.synthetic import write_one_more, write_trace_set
from pipeline.ingest import pull, run_intake
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.sources.directory import DirectorySource
from pipeline.store.blobs import BlobStore
from pipeline.store.layout import DataDirectory
from pipeline.store.snapshots import read_snapshots, record_snapshot
from pipeline.store.tables import EVIDENCE

_ENVIRONMENT = "KERNELHOUSE_TRACE_SET"


def _quiet(stage: str, done: int, total: int | None) -> None:
    pass


def _ingested(adapter: FlashInferBench, place: Path, *sources: Path) -> DataDirectory:
    """Ingest trace sets one after the other, at fixed times, up to the parts."""
    data = DataDirectory(place)
    data.prepare()
    blobs = BlobStore(data.blobs)
    for day, source in enumerate(sources, 1):
        pulled = DirectorySource(source).pull(blobs, adapter, _quiet)
        record_snapshot(data, pulled, read_snapshots(data), datetime(2026, 1, day, tzinfo=UTC))
    pull.replay_missing(data, blobs, adapter, _quiet)
    return data


def _rows(data: DataDirectory) -> dict[str, list[str]]:
    """Return the rows of each table in an order of their own, in full: minus zero is not zero."""
    return {
        table.name: sorted(repr(row) for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist())
        for table in EVIDENCE
        if (folder := data.tables / table.name).exists()
    }


def _commits(data: DataDirectory) -> list[dict[str, Any]]:
    commits = [json.loads(path.read_bytes()) for path in sorted(data.commits.glob("*.json"))]
    return [{name: value for name, value in commit.items() if name != "parts"} for commit in commits]


def _compare(folder: Path, *sources: Path) -> DataDirectory:
    columns = _ingested(FlashInferBench(), folder / "columns", *sources)
    one_by_one = _ingested(OneByOne(), folder / "one by one", *sources)
    assert _rows(columns) == _rows(one_by_one)
    assert _commits(columns) == _commits(one_by_one)
    return columns


def _share_in_columns(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Watch how many of the records that are read fit columns."""
    fitting, rest = [], []
    read_batch = run_intake.RunIntake._read_batch

    def watched(self: Any, *arguments: Any) -> Any:
        batch = read_batch(self, *arguments)
        fitting.extend(batch.placed[len(batch.columns.rest) :])
        rest.extend(batch.columns.rest)
        return batch

    monkeypatch.setattr(run_intake.RunIntake, "_read_batch", watched)
    return lambda: len(fitting) / (len(fitting) + len(rest))


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("synthetic")
    write_trace_set(root, 2_000)
    return root


def test_a_synthetic_set_in_small_batches(synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_intake, "BATCH_RECORDS", 300)
    share = _share_in_columns(monkeypatch)
    columns = _ingested(FlashInferBench(), tmp_path / "columns", synthetic)
    assert 0.97 < share() < 1
    one_by_one = _ingested(OneByOne(), tmp_path / "one by one", synthetic)
    assert _rows(columns) == _rows(one_by_one)
    assert _commits(columns) == _commits(one_by_one)


@pytest.mark.slow
def test_ten_thousand_synthetic_records(tmp_path: Path) -> None:
    write_trace_set(tmp_path / "set", 10_000)
    _compare(tmp_path, tmp_path / "set")


def test_a_later_file_with_known_records(synthetic: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    write_one_more(more, 200)
    (path,) = more.glob("traces/*/*/*.jsonl")
    known = (synthetic / path.relative_to(more)).read_bytes()
    path.write_bytes(path.read_bytes() + known + known)
    _compare(tmp_path, synthetic, more, synthetic)


def test_the_same_parts_again_byte_for_byte(synthetic: Path, tmp_path: Path) -> None:
    made = [_ingested(FlashInferBench(), tmp_path / name, synthetic) for name in ("once", "again")]
    once, again = (
        {path.relative_to(data.tables): path.read_bytes() for path in data.tables.rglob("*.parquet")} for data in made
    )
    assert once == again


@pytest.mark.skipif(_ENVIRONMENT not in os.environ, reason=f"{_ENVIRONMENT} names no folder")
@pytest.mark.parametrize("name", ["flashinfer-trace", "hostile/set"])
def test_published_and_hostile_sets(name: str, tmp_path: Path) -> None:
    _compare(tmp_path, Path(os.environ[_ENVIRONMENT]) / name)


RECORD: dict[str, Any] = {
    "definition": "gemm_v0",
    "workload": {"axes": {"M": 3}, "inputs": {"A": {"type": "random"}}, "uuid": "u-1"},
    "solution": "s",
    "evaluation": {
        "status": "PASSED",
        "environment": {"hardware": "NVIDIA B200", "libs": {"torch": "2.8.0"}},
        "timestamp": "2025-10-21T08:00:11.069000",
        "log": "",
        "correctness": {"max_relative_error": 0.5, "max_absolute_error": 0.25, "extra": None},
        "performance": {"latency_ms": 0.5, "reference_latency_ms": 1.0, "speedup_factor": 2.0},
    },
}

ODD_PIECES = [
    ('"latency_ms": 0.5', '"latency_ms": ' + text)
    for text in (
        "1", "1e0", "1E-2", "-0", "-0.0", "0", "0.0000004", "0.0000005", "1e300", "1e400", "01", ".5", "NaN",
        "Infinity", '"NaN"', "true", "null", "9007199254740993", "123456789012345678901234567890", "9007199254.740991",
        "1e-400",
    )
] + [
    ('"speedup_factor": 2.0', '"speedup_factor": ' + text)
    for text in (
        "-0", "-0.0", "0", '"Infinity"', '"NaN"', '"nan"', "1e21", "1e-7", "9007199254740993", "18014398509481984",
        "9223372036854775807", "9223372036854775808", "36893488147419103232", "1180591620717411303424",
        "1180591620717411300000", "null", "[]",
    )
] + [
    ('"max_absolute_error": 0.25', '"max_absolute_error": ' + text)
    for text in (
        '"Infinity"', '"-Infinity"', "null", "-1", "-0", "5e-324", "NaN", "true", "9007199254740993",
        "36893488147419103232", "36893488147419103000",
    )
] + [
    ("2025-10-21T08:00:11.069000", text)
    for text in (
        "2025-10-21T08:00:11", "2025-10-21T08:00:11.069", "2025-10-21T08:00:11.069999Z", "2025-10-21 08:00:11",
        "2025-10-21T08:00:11.069000+02:00", "2025-10-21T08:00:60", "2025-02-30T08:00:11", "2025-10-21T08:00:11,069",
        "2025-W43-2T08:00:11", "20251021T080011", "2025-10-21T24:00:00", " 2025-10-21T08:00:11",
        "1969-12-31T23:59:59.999999",
        "2025-10-21T08:00:11z", "0001-01-01T00:00:00", "", "0000-01-01T00:00:00", "2024-02-29T08:00:11",
        "2025-02-29T08:00:11", "2025-04-30T23:59:59Z", "2025-04-31T00:00:00", "2025-12-31T23:59:59.999",
        "2025-10-21T08:00:11ZZ", "2025-10-21T08:00:11\\n", "2025-10-21T08:61:11", "\u0662025-10-21T08:00:11",
    )
] + [
    ('"log": ""', '"log": ' + text)
    for text in (
        "null", '"\\n\\t\\u0000\\u001f\\"\\\\/"', '"\\ud83d\\ude00 é"', '"\\ud83d"', '"\t"', '"\x7f\u2028"', "5",
    )
] + [
    ('"solution": "s"', '"solution": ' + text)
    for text in ("null", '"t"', '"\\u0073"', '"s", "solution": "t"', '"t", "solution": "s"', '"s", "solution": 5')
] + [
    ('"status": "PASSED"', '"status": ' + text)
    for text in ('"INCORRECT"', '"TIMEOUT"', '"passed"', '"REWARD_HACK"', '"\\u0050ASSED"')
] + [
    ('"extra": null', '"extra": ' + text) for text in ("{}", '"\xff"', "1", 'null, "note": 1')
] + [
    (piece, f'{piece}, "note": 1') for piece in ('"solution": "s"', '"log": ""', '"speedup_factor": 2.0')
] + [
    ('"speedup_factor": 2.0', f'"speedup_factor": 2.0, "profile": {text}') for text in ("null", "{}")
] + [
    ('"uuid": "u-1"', text)
    for text in ('"uuid": null', '"uuid": ""', '"uuid": "\\u0000"', '"uuid": "u-1", "note": 1', '"uuid": "é"')
] + [
    ('"M": 3', text)
    for text in ('"M": 3.0', '"M": 3.5', '"M": -1', '"m": 3', '"M": 3, "M": 4', '"M": 3, "m": 4', '"M": NaN')
] + [
    ('"hardware": "NVIDIA B200"', text)
    for text in (
        '"device": "NVIDIA B200"', '"hardware": ""', '"hardware": "\\ud800"', '"hardware": "B200", "driver": 1',
    )
] + [
    ('"torch": "2.8.0"', text) for text in ('"torch": ""', '"torch": null', '"Torch": "1", "torch": "2"', '"a b": "1"')
] + [
    ("{", " {"), ("}}", "}}\t"), ("}}", "}} x"), ("{", "\ufeff{"),
    ('{"definition"', '{"definition": "other", "definition"'),
]  # fmt: skip


def _small_set(root: Path, lines: list[bytes]) -> None:
    definition = {
        "name": "gemm_v0",
        "op_type": "gemm",
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 8}},
        "inputs": {"A": {"shape": ["M", "N"], "dtype": "bfloat16"}},
        "outputs": {"C": {"shape": ["M", "N"], "dtype": "bfloat16"}},
    }
    files: dict[str, bytes] = {
        "definitions/gemm/gemm_v0.json": json.dumps(definition).encode(),
        "traces/baseline/gemm/gemm_v0.jsonl": b"\n".join(lines),
    }
    for name in ("s", "t"):
        solution = {
            "name": name,
            "definition": "gemm_v0",
            "spec": {"language": "python", "entry_point": "main.py::run"},
            "sources": [{"path": "main.py", "content": f"# {name}"}],
        }
        files[f"solutions/baseline/gemm/gemm_v0/{name}.json"] = json.dumps(solution).encode()
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def test_odd_records(tmp_path: Path) -> None:
    text = json.dumps(RECORD, ensure_ascii=False)
    assert all(piece in text for piece, _ in ODD_PIECES)
    lines = [text.encode()]
    lines += [
        text.replace(piece, other, 1).encode("latin-1" if "\xff" in other else "utf-8") for piece, other in ODD_PIECES
    ]
    # Twice the same run from other bytes, and with another uuid: names are those of the first.
    lines += [text.replace('"extra": null', '"extra":  null').encode(), text.replace("u-1", "u-2").encode()]
    # The same again, where the first does not fit columns.
    other = text.replace('"latency_ms": 0.5', '"latency_ms": 0.75')
    lines += [other.replace("u-1", "u-3").replace('"log": ""', '"log": "", "note": 1').encode(), other.encode()]
    _small_set(tmp_path / "set", lines)
    _compare(tmp_path, tmp_path / "set")


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_spoilt_records(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = []
    for _ in range(40):
        text = json.dumps(RECORD, ensure_ascii=False)
        for piece, other in data.draw(st.lists(st.sampled_from(ODD_PIECES), max_size=3)):
            text = text.replace(piece, other, 1)
        line = bytearray(text.encode())
        for _ in range(data.draw(st.integers(0, 2))):
            place = data.draw(st.integers(0, len(line) - 1))
            line[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2)).replace(b"\n", b"")
        lines.append(bytes(line))
    folder = tmp_path_factory.mktemp("spoilt")
    _small_set(folder / "set", lines)
    _compare(folder, folder / "set")


def test_nothing_is_left_behind_by_a_failed_replay(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise duckdb.Error("no space left")

    monkeypatch.setattr(run_intake.RunIntake, "_new_runs", fail)
    with pytest.raises(duckdb.Error):
        _ingested(FlashInferBench(), tmp_path / "data", synthetic)
    assert not [path for path in (tmp_path / "data" / "tables").rglob("*") if path.is_file()]
