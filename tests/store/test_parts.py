from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataDirectoryError
from pipeline.sources.listing import Pull
from pipeline.store.arrow import arrow_schema
from pipeline.store.files import TEMPORARY
from pipeline.store.layout import DataDirectory
from pipeline.store.parts import Commit, Part, part_files, read_commit, remove_uncommitted, write_commit, write_part
from pipeline.store.snapshots import Snapshot, record_snapshot
from pipeline.store.tables import EVIDENCE, MEASUREMENTS, table

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def measurement(run: int, statistic: str = "mean", **changes: Any) -> dict[str, Any]:
    row = {"run_digest": f"run {run:03d}", "metric": "latency", "statistic": statistic, "unit": "ns", "value": 1.5}
    return row | {"sample_count": None} | changes


def rows(*measurements: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(measurements), schema=arrow_schema(MEASUREMENTS))


def snapshot(data: DataDirectory, known: list[Snapshot] | None = None) -> Snapshot:
    known = known or []
    return record_snapshot(data, Pull("directory", "x", None, f"{len(known)}" * 40, (), ()), known, NOW)


def committed(data: DataDirectory, snapshot: Snapshot, *parts: Part) -> Commit:
    commit = Commit(snapshot.snapshot_id, snapshot.sequence, {"records": 3}, {}, parts)
    write_commit(data, commit, snapshot)
    return commit


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    data = DataDirectory(tmp_path / "data")
    data.prepare()
    return data


@pytest.mark.parametrize("declared", EVIDENCE, ids=lambda declared: declared.name)
def test_parts_have_the_declared_columns_without_the_derived_ones(declared: Any) -> None:
    schema = arrow_schema(declared)
    assert schema.names == [column.name for column in declared.columns if not column.derived]
    assert set(declared.part_key or declared.key) <= set(schema.names)
    for field, column in zip(schema, declared.part_columns, strict=True):
        assert field.nullable is column.nullable


def test_a_part_holds_its_rows_by_key_and_is_named_by_its_snapshot(data: DataDirectory) -> None:
    given_rows = rows(measurement(2), measurement(1, "p95"), measurement(1, "mean", sample_count=7))
    first = snapshot(data)
    part = write_part(data, MEASUREMENTS, given_rows, first)
    assert (part.table, part.rows) == ("measurements", 3)
    assert part.file == f"measurements/000001-{first.snapshot_id[7:19]}.parquet"
    written = pq.read_table(data.tables / part.file)
    assert written.schema.equals(arrow_schema(MEASUREMENTS), check_metadata=False)
    assert [(r["run_digest"], r["statistic"], r["sample_count"]) for r in written.to_pylist()] == [
        ("run 001", "mean", 7),
        ("run 001", "p95", None),
        ("run 002", "mean", None),
    ]


@given(st.permutations([measurement(run, statistic) for run in range(4) for statistic in ("mean", "p05")]))
def test_bytes_do_not_depend_on_the_order_of_rows(tmp_path: Path, measurements: list[dict[str, Any]]) -> None:
    data = DataDirectory(tmp_path / "data")
    data.prepare()
    first = snapshot(data)
    expected = write_part(data, MEASUREMENTS, rows(*sorted(measurements, key=repr)), first)
    assert write_part(data, MEASUREMENTS, rows(*measurements), first) == expected


def test_a_commit_comes_back_as_it_was(data: DataDirectory) -> None:
    first = snapshot(data)
    assert read_commit(data, first) is None
    commit = committed(data, first, write_part(data, MEASUREMENTS, rows(measurement(1)), first))
    assert read_commit(data, first) == commit
    files = part_files(data, [commit])
    assert files["measurements"] == [data.tables / commit.parts[0].file]
    assert set(files) == {declared.name for declared in EVIDENCE}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b'{"snapshot_id": "x"}', b"\xff"])
def test_a_damaged_commit_is_told(data: DataDirectory, content: bytes) -> None:
    first = snapshot(data)
    committed(data, first)
    (path,) = data.commits.iterdir()
    path.write_bytes(content)
    with pytest.raises(DataDirectoryError, match="--rebuild"):
        read_commit(data, first)


def test_a_missing_part_is_told(data: DataDirectory) -> None:
    first = snapshot(data)
    commit = committed(data, first, write_part(data, MEASUREMENTS, rows(measurement(1)), first))
    (data.tables / commit.parts[0].file).unlink()
    with pytest.raises(DataDirectoryError, match="--rebuild"):
        part_files(data, [commit])


def test_what_no_commit_names_is_removed(data: DataDirectory) -> None:
    first = snapshot(data)
    second = snapshot(data, [first])
    commit = committed(data, first, write_part(data, MEASUREMENTS, rows(measurement(1)), first))
    kept = sorted(path for path in data.tables.rglob("*") if path.is_file())
    write_part(data, MEASUREMENTS, rows(measurement(2)), second)
    folder = data.tables / table("runs").name
    folder.mkdir()
    for leftover in (
        folder / "000002-x.parquet",
        folder / f"{TEMPORARY}1-x.parquet",
        data.commits / f"{TEMPORARY}1-x.json",
    ):
        leftover.write_bytes(b"half")
    remove_uncommitted(data, [commit])
    assert sorted(path for path in data.tables.rglob("*") if path.is_file()) == kept
