"""A published database with the parts of later commits added: the same rows as a build from nothing, sooner.

A copy of the database is changed where the new evidence can matter, and takes its place. New evidence matters within
the *slice*: the operations that it touches, and those that share a benchmark with them, since every policy that looks
beyond a single run compares runs of one operation or workloads of one benchmark. So the policies run unchanged on the
slice, in memory, and only rows that come out differently are written. Tables whose rows belong to no run, cohort or
workload are small, or count over everything: they are made again whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from pipeline.store import database
from pipeline.store.tables import ARTIFACTS, EVIDENCE, META, RUNS, WORKLOADS, Table

_GREATEST_SHARE = 0.25
"""A slice with a larger share of all runs is no gain over a build from nothing."""

_ROW_GROUP_ROWS = 122_880
"""Of a row group that is full, by the default of DuckDB."""

_MOST_ROW_GROUPS = 2, 32
"""Row groups that the runs may be spread over: twice those that it fills, and so many more.

Each extension adds one or more, and leaves deleted rows in others; a build from nothing makes them whole.
"""

_SLICED_BY = ("cohort_key", "run_digest", "workload_digest")
"""What the row of a table may belong to, so that it lies in the slice or outside; the first that it has counts."""


def extend(
    parts: Mapping[str, Sequence[Path]],
    new: Mapping[str, Sequence[Path]],
    target: Path,
    *,
    meta: Mapping[str, str],
    reviewed: Mapping[str, pa.Table],
) -> bool:
    """Add parts to a database that was built by the same policies and reviewed tables from all others.

    ``parts`` are all of them, ``new`` those to be added. Returns False, and changes nothing, where that would be no
    gain. Raises and leaves behind what :func:`pipeline.store.database.build` does.
    """
    with TemporaryDirectory(prefix="kernelhouse-") as spill, closing(duckdb.connect()) as connection:
        database.settle(connection)
        connection.execute(f"SET temp_directory = {database.literal(spill)}")  # else it is the working directory
        for declared in EVIDENCE:
            rows = database.rows_of(declared, new.get(declared.name, ()))
            database.run(connection, declared, f"CREATE TEMP VIEW new_{declared.name} AS {rows}")
        connection.execute(f"ATTACH {database.literal(str(target))} AS whole (READ_ONLY)")
        worthwhile = _choose_slice(connection) <= _GREATEST_SHARE and not _is_worn(connection)
        connection.execute("DETACH whole")
        if not worthwhile:
            return False
        with database.replacing(target) as aside:
            shutil.copyfile(target, aside)
            connection.execute(f"ATTACH {database.literal(str(aside))} AS whole")
            _show_slice(connection, parts)
            database.derive(connection, reviewed, commented=False)
            # What is deleted stays where it is until the next build from nothing: to move the rest together would take
            # longer than all else.
            connection.execute("SET max_vacuum_tasks = 0")
            connection.execute("BEGIN")  # one commit: each would write, and now and then clear, a log of its own
            _merge(connection)
            connection.execute(f"DELETE FROM whole.{META.name}")
            database.write_meta(connection, f"whole.{META.name}", meta)
            connection.execute("COMMIT")
            connection.execute("CHECKPOINT whole")
            connection.execute("DETACH whole")
    return True


def _choose_slice(connection: duckdb.DuckDBPyConnection) -> float:
    """Make ``slice``, the operations that the new evidence can matter to; return their share of all runs."""
    pairs = connection.execute(
        """
        SELECT operation_digest, benchmark, bool_or(touched) AS touched, count(*) AS runs
        FROM (
            SELECT
                operation_digest,
                benchmark,
                run_digest IN (SELECT run_digest FROM new_observations)
                OR run_digest IN (
                    SELECT run_digest
                    FROM whole.observations
                    WHERE observation_sha256 IN (SELECT observation_sha256 FROM new_presence)
                )
                OR run_digest IN (SELECT target_run_digest FROM new_reruns)
                OR implementation_digest IN (SELECT implementation_digest FROM new_implementations)
                OR operation_digest IN (SELECT operation_digest FROM new_operations)
                OR workload_digest IN (SELECT workload_digest FROM new_workloads)
                OR environment_digest IN (SELECT environment_digest FROM new_environments)
                OR benchmark IN (SELECT benchmark FROM new_workload_inputs)
                OR coalesce(log_digest IN (SELECT digest FROM new_artifacts), false) AS touched
            FROM whole.runs
            UNION ALL
            SELECT operation_digest, benchmark, true FROM new_runs
        )
        GROUP BY operation_digest, benchmark
        """
    ).fetchall()
    operations = {operation for operation, _, touched, _ in pairs if touched}
    while True:
        benchmarks = {benchmark for operation, benchmark, _, _ in pairs if operation in operations}
        wider = {operation for operation, benchmark, _, _ in pairs if benchmark in benchmarks}
        if wider == operations:
            break
        operations = wider
    connection.execute("CREATE TEMP TABLE slice (operation_digest VARCHAR)")
    connection.execute("INSERT INTO slice SELECT unnest(?::VARCHAR[])", [sorted(operations)])
    runs = sum(runs for *_, runs in pairs)
    return sum(runs for operation, *_, runs in pairs if operation in operations) / runs if runs else 1.0


def _is_worn(connection: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether the database was extended so often that a build from nothing is due."""
    [(groups, rows)] = connection.execute(
        f"""
        SELECT count(DISTINCT row_group_id), (SELECT count(*) FROM whole.{RUNS.name})
        FROM pragma_storage_info('whole.{RUNS.name}')
        """
    ).fetchall()
    factor, more = _MOST_ROW_GROUPS
    return bool(groups > factor * rows / _ROW_GROUP_ROWS + more)


def _show_slice(connection: duckdb.DuckDBPyConnection, parts: Mapping[str, Sequence[Path]]) -> None:
    """Make the tables ``parts_<table>`` of runs, workloads and what belongs to them: the slice; views of all else."""
    for declared in (RUNS, WORKLOADS, *(other for other in EVIDENCE if other not in (RUNS, WORKLOADS))):
        if declared in (RUNS, WORKLOADS):
            inside = "operation_digest IN (FROM slice)"
        elif declared is ARTIFACTS:
            inside = "kind != 'log' OR digest IN (SELECT log_digest FROM parts_runs)"
        elif _has(declared, "run_digest"):
            inside = "run_digest IN (SELECT run_digest FROM parts_runs)"
        elif _has(declared, "workload_digest"):
            inside = "workload_digest IN (SELECT workload_digest FROM parts_workloads)"
        else:
            rows = database.rows_of(declared, parts.get(declared.name, ()))
            database.run(connection, declared, f"CREATE TEMP VIEW parts_{declared.name} AS {rows}")
            continue
        columns = ", ".join(f'"{column.name}"' for column in declared.part_columns)
        database.run(
            connection,
            declared,
            f"""
            CREATE TEMP TABLE parts_{declared.name} AS
            SELECT {columns} FROM whole.{declared.name} WHERE {inside}
            UNION ALL
            SELECT {columns} FROM new_{declared.name} WHERE {inside}
            """,
        )


def _merge(connection: duckdb.DuckDBPyConnection) -> None:
    """Write what came out differently into the copy."""
    for name, query in (
        (
            "run_digest",
            "SELECT run_digest FROM whole.runs WHERE operation_digest IN (FROM slice)"
            " UNION SELECT run_digest FROM runs",
        ),
        ("workload_digest", "SELECT workload_digest FROM workloads WHERE operation_digest IN (FROM slice)"),
        (
            "cohort_key",
            "SELECT cohort_key FROM whole.cohorts WHERE operation_digest IN (FROM slice)"
            " UNION SELECT cohort_key FROM cohorts",
        ),
    ):
        connection.execute(f"CREATE TEMP TABLE slice_{name} AS {query}")
    for declared in database.ungoverned():
        database.run(connection, declared, f"INSERT INTO whole.{declared.name} BY NAME FROM new_{declared.name}")
    governed = dict.fromkeys(declared for declared, _ in database.policies())
    sliced = {declared: inside for declared in governed if (inside := _inside(declared)) is not None}
    for declared, inside in sliced.items():
        touched = inside
        if declared.stage == "evidence":
            # Wide rows, of which few change, and those in derived columns alone.
            changing = [*declared.key, *(c.name for c in declared.columns if c.derived)]
            _differ(connection, declared, changing, inside)
            touched += f" AND {declared.key[0]} IN (FROM differing)"
        database.run(connection, declared, f"DELETE FROM whole.{declared.name} WHERE {touched}")
        database.run(
            connection, declared, f"INSERT INTO whole.{declared.name} BY NAME FROM {declared.name} WHERE {touched}"
        )
    connection.execute("USE whole")
    for declared in governed:
        if declared not in sliced:
            connection.execute(f"DELETE FROM {declared.name}")
    for declared, select in database.policies():
        if declared not in sliced:
            database.run(connection, declared, f"INSERT INTO {declared.name} BY NAME\n{select}")
    connection.execute("USE memory")


def _differ(connection: duckdb.DuckDBPyConnection, declared: Table, names: Sequence[str], inside: str) -> None:
    """Make ``differing``: the keys of the rows whose columns of these names are not in the copy already."""
    columns = ", ".join(f'"{name}"' for name in names)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE differing AS
        SELECT {declared.key[0]}
        FROM (
            SELECT {columns} FROM {declared.name} WHERE {inside}
            EXCEPT
            SELECT {columns} FROM whole.{declared.name} WHERE {inside}
        )
        """
    )


def _inside(declared: Table) -> str | None:
    """Return the condition that a row lies in the slice, where a column tells that."""
    column = next((name for name in _SLICED_BY if _has(declared, name)), None)
    if column is None:
        return None
    # By operation are the same rows, found sooner.
    return (
        "operation_digest IN (FROM slice)"
        if _has(declared, "operation_digest")
        else f"{column} IN (FROM slice_{column})"
    )


def _has(declared: Table, name: str) -> bool:
    return any(column.name == name for column in declared.columns)
