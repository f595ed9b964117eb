from __future__ import annotations

import datetime as dt
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipeline
from pipeline.errors import DataDirectoryError
from pipeline.store.arrow import arrow_schema
from pipeline.store.database import build, connect, policy_digest, read_meta, warehouse_folder
from pipeline.store.tables import TABLES, table

DRIFT = arrow_schema(table("drift"))


def _drift(path: Path, *rows: tuple[str, str, int], schema: pa.Schema = DRIFT) -> Path:
    names = [column.name for column in table("drift").columns]
    pq.write_table(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema), path)
    return path


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_warehouse_of_nothing_has_every_table_and_every_comment(tmp_path: Path) -> None:
    build({}, tmp_path / "warehouse.duckdb", meta={"format_version": "1", "build_key": "sha256:x"})
    assert _files(tmp_path) == {"warehouse.duckdb"}
    with connect(tmp_path / "warehouse.duckdb") as connection:
        tables = dict(connection.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
        assert tables == {declared.name: declared.comment for declared in TABLES}
        columns = "table_name, column_name, data_type, is_nullable, comment"
        query = f"SELECT {columns} FROM duckdb_columns() WHERE NOT internal"
        assert set(connection.execute(query).fetchall()) == {
            (declared.name, column.name, column.type.value, column.nullable, column.comment)
            for declared in TABLES
            for column in declared.columns
        }
        assert connection.execute("FROM meta ORDER BY key").fetchall() == [
            ("build_key", "sha256:x"),
            ("format_version", "1"),
        ]


def test_parts_are_cast_to_their_declaration_whatever_the_order_of_their_columns(tmp_path: Path) -> None:
    odd = pa.schema([("occurrences", pa.int8()), ("path", pa.large_string()), ("source_file", pa.string())])
    folder = tmp_path / "it's [a] * path"  # neither a pattern nor the end of a literal
    folder.mkdir()
    parts = [_drift(folder / "1.parquet", ("f", "p", 1)), _drift(folder / "2.parquet", ("f", "p", 2), schema=odd)]
    build({"drift": parts}, folder / "warehouse.duckdb", meta={})
    with connect(folder / "warehouse.duckdb") as connection:
        assert connection.execute("FROM drift").fetchall() == [("f", "p", 3)]


def test_instants_are_utc_wherever_the_machine_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    schema = arrow_schema(table("snapshots"))
    fetched = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001 - the tables hold UTC without a zone
    row = {"snapshot_id": "s", "source": "d", "adapter": "a", "authors": [], "sequence": 1, "fetched_at": fetched}
    row |= {"files": 0, "bytes": 0, "complete": True}
    pq.write_table(pa.Table.from_pylist([row], schema=schema), tmp_path / "part.parquet")
    build({"snapshots": [tmp_path / "part.parquet"]}, tmp_path / "warehouse.duckdb", meta={})
    with connect(tmp_path / "warehouse.duckdb") as connection:
        query = "SELECT fetched_at, strftime(fetched_at::TIMESTAMPTZ, '%H:%M%z') FROM snapshots"
        assert connection.execute(query).fetchall() == [(fetched, "12:00+00")]


def _occurrences(target: Path) -> str:
    """Return what another process reads, since one process keeps the file that it opened first."""
    program = (
        "import sys, pathlib; from pipeline.store.database import connect;"
        "print(connect(pathlib.Path(sys.argv[1])).execute('SELECT occurrences FROM drift').fetchone()[0])"
    )
    root = Path(pipeline.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", program, str(target)], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_reader_keeps_its_build_while_a_new_one_takes_the_name(tmp_path: Path) -> None:
    target = tmp_path / "warehouse.duckdb"
    build({"drift": [_drift(tmp_path / "1", ("f", "p", 1))]}, target, meta={})
    with connect(target) as reader:
        build({"drift": [_drift(tmp_path / "2", ("f", "p", 2))]}, target, meta={})
        assert reader.execute("SELECT occurrences FROM drift").fetchall() == [(1,)]
        assert _occurrences(target) == "2"
    with connect(target) as later:
        assert later.execute("SELECT occurrences FROM drift").fetchall() == [(2,)]


@pytest.mark.parametrize("damage", ["no parquet", "null", "not there", "no number"])
def test_a_failed_build_leaves_the_old_one_and_nothing_else(tmp_path: Path, damage: str) -> None:
    target = tmp_path / "data" / "warehouse.duckdb"
    target.parent.mkdir()
    build({"drift": [_drift(tmp_path / "good", ("f", "p", 1))]}, target, meta={})
    before = hashlib.sha256(target.read_bytes()).digest()
    bad = tmp_path / "bad"
    match damage:
        case "no parquet":
            bad.write_bytes(b"torn")
        case "null":
            nullable = pa.schema([field.with_nullable(True) for field in DRIFT])
            pq.write_table(pa.Table.from_pylist([{"source_file": "f", "occurrences": 1}], schema=nullable), bad)
        case "no number":
            text = pa.schema([("source_file", pa.string()), ("path", pa.string()), ("occurrences", pa.string())])
            pq.write_table(pa.Table.from_pylist([dict.fromkeys(text.names, "many")], schema=text), bad)
    with pytest.raises(DataDirectoryError, match=r"^the table drift cannot be built \([^\n]+\): run"):
        build({"drift": [bad]}, target, meta={})
    assert hashlib.sha256(target.read_bytes()).digest() == before
    assert _files(target.parent) == {target.name}


def test_leftovers_of_a_killed_build_are_in_nobodys_way(tmp_path: Path) -> None:
    target = tmp_path / "warehouse.duckdb"
    (tmp_path / ".tmp-1-warehouse.duckdb").write_bytes(b"half a database")
    (tmp_path / ".tmp-1-warehouse.duckdb.wal").write_bytes(b"half a log")
    (tmp_path / ".tmp-1-warehouse.duckdb.tmp").mkdir()
    build({}, target, meta={})
    assert _files(tmp_path) == {target.name}


def test_a_build_is_known_by_its_key(tmp_path: Path) -> None:
    target = tmp_path / "warehouse.duckdb"
    assert read_meta(target) == {}
    build({}, target, meta={"build_key": "sha256:x"})
    assert read_meta(target)["build_key"] == "sha256:x"
    build({}, target, meta={})
    assert read_meta(target) == {}
    target.write_bytes(b"no database")
    assert read_meta(target) == {}


def test_there_is_no_warehouse_before_the_first_ingest(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match=r"^no warehouse in .*: run kernelhouse ingest first$"):
        connect(tmp_path / "warehouse.duckdb")
    assert _files(tmp_path) == set()


def test_a_damaged_warehouse_is_named(tmp_path: Path) -> None:
    (tmp_path / "warehouse.duckdb").write_bytes(b"no database at all" * 1000)
    with pytest.raises(DataDirectoryError, match=r"warehouse\.duckdb cannot be read \([^\n]+\): run"):
        connect(tmp_path / "warehouse.duckdb")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("empty") / "warehouse.duckdb"
    build({}, target, meta={})
    return target


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}.copy'",
        "ATTACH '{file}.duckdb'",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET TimeZone = 'Asia/Tokyo'",
        "SET lock_configuration = false",
        "INSERT INTO meta VALUES ('a', 'b')",
        "DROP TABLE meta",
        "SELECT * FROM local_rows",
    ],
)
def test_a_reader_is_shut_in(empty: Path, tmp_path: Path, query: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    local_rows = pa.table({"a": [1]})  # DuckDB would find a variable of the caller by its name
    with connect(empty) as first, connect(empty) as second:
        for connection in (first, second):
            with pytest.raises(duckdb.Error):
                connection.execute(query.format(file=file))
            assert connection.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
    assert local_rows.num_rows == 1
    assert _files(tmp_path) == {"secret.csv"}


def test_the_policy_digest_follows_every_file_that_decides(tmp_path: Path) -> None:
    """A copy of the package with its policy beside it, as an installed wheel carries it, and one byte changed."""
    package = Path(pipeline.__file__).parent
    shutil.copytree(package, tmp_path / "pipeline", ignore=shutil.ignore_patterns("__pycache__", "_data"))
    policy = tmp_path / "pipeline" / "_data" / "warehouse"
    shutil.copytree(warehouse_folder(), policy)

    def digest() -> str:
        program = "from pipeline.store.database import policy_digest as p, warehouse_folder as w; print(p(), w())"
        run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
        answer, _, folder = run.stdout.strip().partition(" ")
        assert Path(folder) == policy
        return answer

    assert digest() == policy_digest()
    seen = {digest()}
    for name in ("51_leaderboard.sql", "peaks/published-v1.csv"):
        with (policy / name).open("a") as file:
            file.write("\n")
        seen.add(digest())
    declarations = tmp_path / "pipeline" / "store" / "tables.py"
    declarations.write_text(declarations.read_text().replace('"How often it was met"', '"How often"'))
    seen.add(digest())
    assert len(seen) == 4
    (policy / "README.md").write_text("Words decide nothing.")
    assert digest() in seen
