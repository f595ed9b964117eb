from __future__ import annotations

import csv
import io
import json
import os
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import DuckDBPyConnection, Statement

from pipeline import __version__
from pipeline.errors import UsageError
from pipeline.export.results import save, write_csv
from pipeline.export.tables import export_table
from pipeline.query.rows import values
from pipeline.query.sql import execute, statements
from pipeline.store.layout import DataDirectory
from pipeline.store.tables import TABLES, table
from tests.trace_set import tree


@pytest.mark.parametrize("name", [declared.name for declared in TABLES])
def test_every_table_is_written_as_declared(connection: DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    done = export_table(connection, name, tmp_path / "out.parquet")
    written = pq.read_table(tmp_path / "out.parquet")
    declared = table(name)
    assert written.schema.names == [column.name for column in declared.columns]
    assert [field.metadata[b"comment"].decode() for field in written.schema] == [
        column.comment for column in declared.columns
    ]
    assert done.rows == written.num_rows == connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
    assert done.bytes == (tmp_path / "out.parquet").stat().st_size


@pytest.mark.parametrize("name", ["leaderboard", "runs", "source_files"])
def test_rows_are_sorted_by_the_key(connection: DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    export_table(connection, name, tmp_path / "out.parquet")
    written = pq.read_table(tmp_path / "out.parquet").select(table(name).key).to_pylist()
    assert written == sorted(written, key=lambda row: [row[column] for column in table(name).key])
    assert len(written) > 1


def test_the_file_says_where_it_comes_from(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    export_table(connection, "leaderboard", tmp_path / "out.parquet")
    metadata = {
        key.decode(): value.decode() for key, value in pq.read_schema(tmp_path / "out.parquet").metadata.items()
    }
    assert metadata["kernelhouse_version"] == __version__
    (build_key,) = connection.execute("SELECT value FROM meta WHERE key = 'build_key'").fetchall()
    assert metadata["build_key"] == build_key[0]
    assert metadata["snapshot_ids"] == " ".join(values(connection, "SELECT snapshot_id FROM snapshots"))


def test_the_same_table_is_written_as_the_same_bytes(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    for name in ("a", "b"):
        export_table(connection, "runs", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    target.write_text("old")
    export_table(connection, "runs", target)
    assert pq.read_table(target).num_rows == 7
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("name", "target", "sentence"),
    [
        ("leaderbord", "out", "did you mean leaderboard"),
        ("qqq", "out", "there are snapshots"),
        ("runs; DROP TABLE runs", "out", "there is no table"),
        ("runs", "missing/out", "does not exist"),
        ("runs", ".", "is a folder"),
        ("runs", "\udcff", "is no UTF-8"),
        ("runs", "n" * 300, "cannot be used (File name too long): choose a shorter name"),
        ("runs", "n" * 250, f"{'n' * 250} cannot be used (File name too long): choose a shorter name"),
    ],
)
def test_what_cannot_be_exported(
    connection: DuckDBPyConnection, tmp_path: Path, name: str, target: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as error:
        export_table(connection, name, tmp_path / target)
    assert sentence in str(error.value)
    assert list(tmp_path.iterdir()) == []


QUERY = """
SELECT 1 AS a, 2 AS a, 'nan'::DOUBLE AS x, NULL AS n, [1, 2] AS l, TIMESTAMP '2026-01-01' AS t, 'a,"b' AS q, true AS b
"""


def test_csv(connection: DuckDBPyConnection) -> None:
    stream = io.StringIO()
    [statement] = statements(connection, QUERY)
    assert write_csv(execute(connection, statement), stream) == 1
    assert list(csv.reader(io.StringIO(stream.getvalue()))) == [
        ["a", "a_1", "x", "n", "l", "t", "q", "b"],
        ["1", "2", "NaN", "", "[1, 2]", "2026-01-01T00:00:00.000Z", 'a,"b', "true"],
    ]


def test_csv_tells_null_from_the_empty_text(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    values = (
        """(1, NULL), (2, ''), (3, ' '), (4, 'NULL'), (5, 'a,b'), (6, 'a"b'), (7, 'a' || chr(13) || chr(10) || 'b')"""
    )
    [statement] = statements(connection, f"SELECT * FROM (VALUES {values}) AS t(n, s) ORDER BY n")
    save(connection, statement, "csv", tmp_path / "out")
    assert (tmp_path / "out").read_text().startswith('n,s\n1,\n2,""\n3, \n4,NULL\n5,"a,b"\n6,"a""b"\n')
    read = duckdb.sql(f"FROM read_csv('{tmp_path / 'out'}', allow_quoted_nulls = false) ORDER BY n").fetchall()
    assert read == execute_all(connection, statement)


def execute_all(connection: DuckDBPyConnection, statement: Statement) -> list[tuple[object, ...]]:
    return list(execute(connection, statement).rows)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("99999999999999999999999999999999999999::HUGEINT", Decimal(10**38 - 1)),
        ("18446744073709551616::UHUGEINT", Decimal(2**64)),
        ("[7::UHUGEINT]", [Decimal(7)]),
        ("'10:00:00+02'::TIMETZ", "10:00:00+02"),
        ("'0101'::BIT", "0101"),
        ("MAP{'0101'::BIT: 1}", [("0101", 1)]),
        ("12345678901234567890.123456789::DECIMAL(38,9)", Decimal("12345678901234567890.123456789")),
    ],
)
def test_parquet_is_exact(connection: DuckDBPyConnection, tmp_path: Path, value: str, written: object) -> None:
    [statement] = statements(connection, f"SELECT {value} AS a; -- a comment")
    save(connection, statement, "parquet", tmp_path / "out")
    assert pq.read_table(tmp_path / "out").to_pylist() == [{"a": written}]


def test_what_parquet_cannot_hold_is_told(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    [statement] = statements(connection, "SELECT MAP{} AS a")
    with pytest.raises(UsageError, match="Parquet cannot hold this result"):
        save(connection, statement, "parquet", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format_name", ["csv", "json", "parquet"])
def test_results_are_saved(connection: DuckDBPyConnection, tmp_path: Path, format_name: str) -> None:
    [statement] = statements(connection, "SELECT range AS n FROM range(70000)")
    target = tmp_path / "out"
    assert save(connection, statement, format_name, target) == (70_000, target.stat().st_size)
    match format_name:
        case "csv":
            numbers = [int(line) for line in target.read_text().split()[1:]]
        case "json":
            numbers = [row["n"] for row in json.loads(target.read_text())["rows"]]
        case _:
            numbers = pq.read_table(target)["n"].to_pylist()
    assert numbers == list(range(70_000))


def test_parquet_keeps_types_and_renames_twins(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    [statement] = statements(connection, QUERY)
    save(connection, statement, "parquet", tmp_path / "out")
    schema = pq.read_schema(tmp_path / "out")
    assert schema.names == ["a", "a_1", "x", "n", "l", "t", "q", "b"]
    assert schema.field("t").type == pa.timestamp("us")
    assert schema.field("l").type == pa.list_(pa.int32())


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT INTERVAL 1 DAY AS i", "cast the column"),
        ("SELECT 340282366920938463463374607431768211455::UHUGEINT AS u", "DECIMAL"),
        ("SELECT error('boo')", "boo"),
        ("SELECT nope", "nope"),
    ],
)
def test_a_failed_save_leaves_nothing(
    connection: DuckDBPyConnection, tmp_path: Path, query: str, sentence: str
) -> None:
    [statement] = statements(connection, query)
    with pytest.raises(UsageError, match=sentence):
        save(connection, statement, "parquet", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


OWN = [
    "warehouse.duckdb",
    "warehouse.duckdb.wal",
    "format.json",
    "writer.lock",
    "corrections.toml",
    "blobs/x",
    "blobs/sha256/ab/x",
    "snapshots/x.json",
    "tables/runs/x.parquet",
    "dagster/x",
    ".tmp-x",
]


@pytest.mark.parametrize("name", OWN)
def test_a_part_of_a_data_directory_is_no_place_to_write_to(
    connection: DuckDBPyConnection, tmp_path: Path, name: str
) -> None:
    data = DataDirectory(tmp_path / "data")
    data.prepare()
    place = data.root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(place)
    before = tree(tmp_path)
    for target in (place, tmp_path / "link"):
        with pytest.raises(UsageError, match="belongs to the data directory"):
            export_table(connection, "runs", target)
    assert tree(tmp_path) == before


def test_a_part_that_lies_elsewhere_is_a_part_all_the_same(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.prepare()
    (tmp_path / "reviewed.toml").write_bytes(b"")
    data.corrections.symlink_to(tmp_path / "reviewed.toml")
    with pytest.raises(UsageError, match="belongs to the data directory"):
        export_table(connection, "runs", data.corrections)
    assert (tmp_path / "reviewed.toml").read_bytes() == b""


@pytest.mark.parametrize("name", ["exports/runs.parquet", "runs.parquet", "mine/corrections.toml"])
def test_what_people_put_beside_the_parts_is_theirs(connection: DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    data = DataDirectory(tmp_path / "data")
    data.prepare()
    (data.root / name).parent.mkdir(exist_ok=True)
    assert export_table(connection, "runs", data.root / name).rows


def test_a_link_to_itself_is_told(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match=r"loop cannot be used \(Too many levels of symbolic links\)"):
        export_table(connection, "runs", tmp_path / "loop")


def test_a_file_that_is_open_here_is_not_replaced(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as stream:
        for target in (tmp_path / "out", Path(f"/dev/fd/{stream.fileno()}")):
            with pytest.raises(UsageError, match="is open in this command already"):
                export_table(connection, "runs", target)
    export_table(connection, "runs", tmp_path / "out")
    assert pq.read_table(tmp_path / "out").num_rows


def test_what_is_no_plain_file_is_left_alone(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no plain file"):
        export_table(connection, "runs", tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "target.parquet")
    export_table(connection, "runs", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert pq.read_table(tmp_path / "target.parquet").num_rows
