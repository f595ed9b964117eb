"""The published database: evidence parts and the policy of ``warehouse/*.sql``, built aside and renamed into place.

The live file is never opened for writing, so readers are never blocked and never see half a build.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from pipeline.errors import DataDirectoryError
from pipeline.store.files import TEMPORARY, appearing, refusal
from pipeline.store.layout import DataDirectory
from pipeline.store.tables import EVIDENCE, META, TABLES, Table, table

if TYPE_CHECKING:  # every command imports this module, few need Arrow
    import pyarrow as pa

_MEMORY_BYTES = 1_200_000_000
"""What a build may at least hold before it spills to disk beside the target; a million runs stay below it."""

_MEMORY_A_PART_BYTE = 2.0
"""What it may hold for each byte of its parts, up to half of the machine's memory.

Some steps cannot spill, and a join that spills the manifests takes twice as long."""

_COMPRESSION = {"manifest": " USING COMPRESSION zstd"}
"""Of the widest column; what DuckDB chooses by itself takes half as long again and twice the space."""

_VIEWS = "[0-9][0-9]_*.view.sql"

_MOST_THREADS = 4
"""Each thread holds its own buffers: more of them cost memory sooner than they save time."""


def warehouse_folder() -> Path:
    """Return the folder of the policy SQL: inside an installed wheel, else of the checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_data" / "warehouse", package.parent / "warehouse"):
        if folder.is_dir():
            return folder
    raise DataDirectoryError(f"the policy SQL is missing beside {package}: install kernelhouse again")


def policy_digest() -> str:
    """Return the digest of everything but the evidence that decides a build: SQL, peaks and table declarations."""
    folder = warehouse_folder()
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("[0-9][0-9]_*.sql")), *sorted(folder.glob("peaks/*.csv"))):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    for declared in TABLES:
        digest.update("\n".join(declaration(declared)).encode())
    return f"sha256:{digest.hexdigest()}"


def build(
    parts: Mapping[str, Sequence[Path]],
    target: Path,
    *,
    meta: Mapping[str, str],
    reviewed: Mapping[str, pa.Table] | None = None,
) -> None:
    """Build the database from the Parquet parts of each evidence table and rename it onto ``target``.

    ``reviewed`` holds the rows of the reviewed tables, by name; ``meta`` becomes the rows of the table ``meta``.
    One build at a time for a target: the caller holds the data directory. Whatever fails, ``target`` stays as it was
    and nothing is left beside it; DataDirectoryError where a part does not fit its declaration.
    """
    with replacing(target) as aside, closing(duckdb.connect(str(aside))) as connection:
        _fill(connection, parts, reviewed or {}, meta)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a path beside a database; when the block ends well, what was made there takes the place of the database.

    Raises:
        DataDirectoryError: it cannot be written.
    """
    _remove_leftovers(target)
    try:
        with appearing(target) as aside:
            yield aside
    except duckdb.Error as error:
        raise DataDirectoryError(refusal(error, target)) from error
    finally:
        _remove_leftovers(target)


def check_current(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Check that a published database follows the policy of this version of the program.

    DataDirectoryError where it does not: its tables may lack what the questions ask for.
    """
    rows = connection.execute(f"SELECT value FROM {META.name} WHERE key = 'policy_digest'").fetchall()
    if rows != [(policy_digest(),)]:
        raise DataDirectoryError(f"{path} follows another version's policy: run kernelhouse ingest --rebuild")


def read_meta(path: Path) -> dict[str, str]:
    """Return the table ``meta`` of a published database; empty where there is none, or none that can be read."""
    try:
        with closing(connect(path)) as connection:
            return dict(connection.execute(f"SELECT key, value FROM {META.name}").fetchall())
    except (DataDirectoryError, duckdb.Error):
        return {}


@contextmanager
def published(data: DataDirectory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the published database of a data directory as :func:`connect` does, where this program can use both.

    Raises:
        DataDirectoryError: no warehouse yet, or one that is damaged or belongs to another version of the program.
    """
    data.check_format()
    with closing(connect(data.database)) as connection, explained(data.database):
        check_current(connection, data.database)
        yield connection


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a published database for reading only, in UTC, cut off from files and network, and locked so.

    An open connection keeps the build that it opened, and so does a second one to the same path in the same process.
    DataDirectoryError where there is no warehouse yet, or none that can be read.
    """
    if not path.is_file():
        raise DataDirectoryError(f"no warehouse in {path.parent}: run kernelhouse ingest first")
    try:
        connection = duckdb.connect(str(path), read_only=True, config={"python_enable_replacements": "false"})
    except duckdb.Error as error:
        what = f"{path} cannot be read ({_sentence(error)})"
        raise DataDirectoryError(f"{what}: run kernelhouse ingest --rebuild") from error
    _lock_up(connection)
    return connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what DuckDB says of a published database whose bytes are damaged into DataDirectoryError."""
    try:
        yield
    except duckdb.Error as error:
        if (damage := damage_of(path, error)) is None:
            raise
        raise damage from error


def damage_of(path: Path, error: duckdb.Error) -> DataDirectoryError | None:
    """Return what to say where the bytes of a published database are not those that were written."""
    said = _sentence(error)
    if "Corrupt database file" not in said:
        return None
    return DataDirectoryError(f"{path} is damaged ({said}): run kernelhouse ingest --rebuild")


def connect_several(databases: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """Open several databases in one connection, each under its name, as :func:`connect` opens one."""
    # Without a folder named here, what does not fit memory would go to the working directory.
    spill = str(Path(tempfile.gettempdir()) / f"kernelhouse-spill-{os.getpid()}")
    connection = duckdb.connect(config={"python_enable_replacements": "false", "temp_directory": spill})
    try:
        for name, path in databases.items():
            connection.execute(f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)")
    except duckdb.Error as error:
        what = f"{path} cannot be read ({_sentence(error)})"
        raise DataDirectoryError(f"{what}: run kernelhouse ingest --rebuild") from error
    _lock_up(connection)
    return connection


def _lock_up(connection: duckdb.DuckDBPyConnection) -> None:
    # Connections of one process to one file share their settings: a second one finds them made and locked.
    if connection.execute("SELECT current_setting('lock_configuration')").fetchone() == (False,):
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


def connect_parts(parts: Mapping[str, Sequence[Path]]) -> duckdb.DuckDBPyConnection:
    """Open the evidence alone, before anything is published: each of its tables is a view of its Parquet parts.

    Their derived columns are missing. DataDirectoryError where a part does not fit its declaration.
    """
    # Without a folder named here, what does not fit memory would go to the working directory.
    spill = str(Path(tempfile.gettempdir()) / f"kernelhouse-spill-{os.getpid()}")
    connection = duckdb.connect(config={"python_enable_replacements": "false", "temp_directory": spill})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET memory_limit = '{_MEMORY_BYTES}B'")
    for declared in EVIDENCE:
        rows = rows_of(declared, parts.get(declared.name, ()))
        run(connection, declared, f"CREATE TEMP VIEW {declared.name} AS {rows}")
    return connection


def _fill(
    connection: duckdb.DuckDBPyConnection,
    parts: Mapping[str, Sequence[Path]],
    reviewed: Mapping[str, pa.Table],
    meta: Mapping[str, str],
) -> None:
    """Make every table: evidence straight from its parts first, then the policies in the order of their numbers."""
    settle(connection, part_bytes=sum(_size(path) for paths in parts.values() for path in paths))
    for declared in EVIDENCE:
        rows = rows_of(declared, parts.get(declared.name, ()))
        run(connection, declared, f"CREATE TEMP VIEW parts_{declared.name} AS {rows}")
    derive(connection, reviewed)
    write_meta(connection, META.name, meta)
    connection.execute("CHECKPOINT")  # closing would swallow a failure and leave rows in the .wal


def settle(connection: duckdb.DuckDBPyConnection, *, part_bytes: int = 0) -> None:
    """Set a connection up for a build: bounded memory, UTC, and where the policy SQL finds its files."""
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    memory_bytes = max(_MEMORY_BYTES, min(int(_MEMORY_A_PART_BYTE * part_bytes), half))
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET memory_limit = '{memory_bytes}B'")
    connection.execute(f"SET threads = {min(_MOST_THREADS, os.cpu_count() or 1)}")
    connection.execute(f"SET VARIABLE warehouse = {literal(_unglobbed(warehouse_folder()))}")


def derive(connection: duckdb.DuckDBPyConnection, reviewed: Mapping[str, pa.Table], *, commented: bool = True) -> None:
    """Make and fill every table but ``meta`` from ``parts_<table>``; with comments where somebody will read them."""
    connection.execute("BEGIN")  # one commit for hundreds of statements
    for declared in TABLES:
        for statement in declaration(declared) if commented else islice(declaration(declared), 1):
            connection.execute(statement)
    connection.execute("COMMIT")
    for name, rows in reviewed.items():
        connection.register("reviewed_rows", rows)
        connection.execute(f"INSERT INTO {table(name).name} BY NAME FROM reviewed_rows")
        connection.unregister("reviewed_rows")
    for name, path in policy_views().items():
        connection.execute(f"CREATE TEMP VIEW {name} AS\n{path.read_text(encoding='utf-8')}")
    straight = [(declared, f"FROM parts_{declared.name}") for declared in ungoverned()]
    for declared, select in (*straight, *policies()):
        run(connection, declared, f"INSERT INTO {declared.name} BY NAME\n{select}")


def write_meta(connection: duckdb.DuckDBPyConnection, target: str, meta: Mapping[str, str]) -> None:
    """Fill the table ``meta``."""
    for key in sorted(meta):
        connection.execute(f"INSERT INTO {target} VALUES (?, ?)", (key, meta[key]))


def policies() -> list[tuple[Table, str]]:
    """Return the policy SQL in the order of its numbers, each with the table that it fills, wholly or in part."""
    return [(table(name), path.read_text(encoding="utf-8")) for name, files in policy_files().items() for path in files]


def ungoverned() -> list[Table]:
    """Return the tables of evidence that have no policy: they hold what their parts hold."""
    governed = {declared for declared, _ in policies()}
    return [declared for declared in EVIDENCE if declared not in governed]


def run(connection: duckdb.DuckDBPyConnection, declared: Table, statement: str) -> None:
    """Run a statement that reads evidence for a table; DataDirectoryError naming it where the evidence does not fit."""
    try:
        connection.execute(statement)
    except duckdb.Error as error:
        if os.strerror(errno.ENOSPC) in str(error):
            raise  # no fault of the evidence
        what = f"the table {declared.name} cannot be built ({_sentence(error)})"
        raise DataDirectoryError(f"{what}: run kernelhouse ingest --rebuild") from error


def policy_files() -> dict[str, tuple[Path, ...]]:
    """Return the SQL files of each table that has some, in the order of their numbers.

    ``NN_<table>.sql`` fills a table, ``NN_<table>.<part>.sql`` fills it in part.
    """
    files: dict[str, tuple[Path, ...]] = {}
    for path in sorted(warehouse_folder().glob("[0-9][0-9]_*.sql")):
        if not path.match(_VIEWS):
            name = _made_by(path)
            files[name] = (*files.get(name, ()), path)
    return files


def policy_views() -> dict[str, Path]:
    """Return the SQL files of the views that policies are written with, ``NN_<view>.view.sql``, in their order.

    A view is a rule between tables: it is there while a database is built, and not in it.
    """
    return {_made_by(path): path for path in sorted(warehouse_folder().glob(_VIEWS))}


def _made_by(path: Path) -> str:
    return path.name.partition("_")[2].partition(".")[0]


def declaration(declared: Table) -> Iterator[str]:
    """Yield the statement that makes a table as declared, then those that put a comment on it and on each column."""
    columns = ", ".join(
        f'"{column.name}" {column.type.value}{"" if column.nullable else " NOT NULL"}'
        f"{_COMPRESSION.get(column.name, '')}"
        for column in declared.columns
    )
    yield f"CREATE TABLE {declared.name} ({columns})"
    yield f"COMMENT ON TABLE {declared.name} IS {literal(declared.comment)}"
    for column in declared.columns:
        yield f'COMMENT ON COLUMN {declared.name}."{column.name}" IS {literal(column.comment)}'


def rows_of(declared: Table, files: Sequence[Path]) -> str:
    """Return the query of the rows of parts of a table, in the declared types."""
    if not files:
        columns = ", ".join(f'NULL::{column.type.value} AS "{column.name}"' for column in declared.part_columns)
        return f"SELECT {columns} WHERE false"
    paths = ", ".join(literal(_unglobbed(path)) for path in files)
    columns = ", ".join(
        f'CAST("{column.name}" AS {column.type.value}) AS "{column.name}"' for column in declared.part_columns
    )
    return f"SELECT {columns} FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"


def literal(text: str) -> str:
    """Return a text as an SQL literal: neither comments nor table functions of a view take parameters."""
    return "'" + text.replace("'", "''") + "'"


def _unglobbed(path: Path) -> str:
    """Return a path that DuckDB's file functions take for itself, not for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 where it is missing, which is told when it is read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sentence(error: duckdb.Error) -> str:
    """Return the first line of what DuckDB says."""
    return str(error).partition("\n")[0].rstrip(". ")


def _remove_leftovers(target: Path) -> None:
    """Remove what a build of the target left beside it: database, write-ahead log, spill folder."""
    for leftover in target.parent.glob(f"{TEMPORARY}*-{target.name}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink(missing_ok=True)
