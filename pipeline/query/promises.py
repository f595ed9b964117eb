"""What every table promises, generated from its declaration, table by table.

:mod:`pipeline.query.verify` looks at a whole data directory; a promise is about one table, and those of the evidence
can be checked before anything is published. Blocking ones say that a table is sound, the others watch how upstream
and policy develop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pipeline.query.verify import (
    REFERENCES,
    Check,
    Findings,
    check_accounting,
    check_comparison_keys,
    check_floors,
    check_invariants,
    check_key,
    check_part,
    check_reference,
    check_supersession,
    read_manifest,
)
from pipeline.store.arrow import arrow_schema
from pipeline.store.lineage import Place, Recipe
from pipeline.store.tables import CORRECTIONS, DRIFT, INGESTS, LEADERBOARD, QUARANTINE, RUNS, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipeline.store.layout import DataDirectory
    from pipeline.store.parts import Commit

SAMPLE = 200
"""Manifests of a table whose digests are computed again, drawn anew each time."""

MOST_HELD_BACK = 0.02
"""Share of the latest pull's records that may be held back; the public trace set has 0.9 %."""

MOST_DRIFT = 0.01
"""Unknown fields and legacy forms for each record ever pulled; the public trace set has none."""

MOST_BELOW_FLOOR = 0.05
"""Share of the ranked runs that may be faster than their floor: ``headroom-v1`` is no true bound and has 2.4 %."""


@dataclass(frozen=True)
class Opened:
    """Tables to look at: a connection that has them and, of evidence, the Parquet parts of each."""

    connection: DuckDBPyConnection
    parts: Mapping[str, Sequence[Path]] = field(default_factory=dict)


@dataclass(frozen=True)
class Promise:
    """Something that is to hold of a table; with ``blocking``, what depends on the table must not be made without."""

    place: Place
    name: str
    description: str
    blocking: bool
    check: Callable[[Opened], Check]


def promises(made: Mapping[Place, Recipe]) -> list[Promise]:
    """Return every promise of the tables that are made, in the order of their making."""
    return [promise for recipe in made.values() for promise in _promises(recipe.table, recipe.place, made)]


def _promises(table: Table, place: Place, made: Mapping[Place, Recipe]) -> Iterator[Promise]:
    def promise(name: str, description: str, check: Callable[[Opened], Check], *, blocking: bool = True) -> Promise:
        return Promise(place, name, description, blocking, check)

    evidence = place[0] == "evidence"
    if evidence:
        yield promise("schema", "Its parts have the declared columns, without undeclared nulls", _schema(table))
    if table is not DRIFT or not evidence:  # its rows in the parts are counts of one pull each, and add up
        key = (table.part_key if evidence else ()) or table.key
        yield promise("key", f"No two rows share {', '.join(key)}", _key(table.name, key))
    if references := [reference for reference in REFERENCES if _is_of(reference, place, made)]:
        yield promise("references", "Whatever it refers to is there", _references(references))
    if evidence and any(column.name == "manifest" for column in table.columns):
        yield promise("digests", "A sample of manifests has its digests", _digests(table), blocking=False)
    match place:
        case ("evidence", INGESTS.name):
            yield promise("accounting", "Records and files of every pull add up", _on_connection(check_accounting))
        case ("evidence", RUNS.name):
            check = _on_connection(check_comparison_keys)
            yield promise("comparison_keys", "Keys are the digest of what they compare", check)
        case ("evidence", QUARANTINE.name):
            said = f"At most {MOST_HELD_BACK:.0%} of the latest pull's records are held back"
            yield promise("rate", said, _rate("held back", _HELD_BACK, MOST_HELD_BACK), blocking=False)
        case ("warehouse", DRIFT.name):
            said = f"At most {MOST_DRIFT:.0%} unknown fields and legacy forms a record"
            yield promise("rate", said, _rate("drift", _DRIFT, MOST_DRIFT), blocking=False)
        case ("warehouse", CORRECTIONS.name):
            said = "Superseded runs lead to one that is not"
            yield promise("supersession", said, _on_connection(check_supersession))
        case ("warehouse", RUNS.name):
            said = "No eligible run is faster than its floor without the flag that says so"
            yield promise("bound", said, _on_connection(check_floors))
        case ("warehouse", LEADERBOARD.name):
            yield promise("invariants", "Ranks, cohorts and records agree", _on_connection(check_invariants))
            said = f"At most {MOST_BELOW_FLOOR:.0%} of the ranked runs are faster than their floor"
            yield promise("floors", said, _rate("below floor", _BELOW_FLOOR, MOST_BELOW_FLOOR), blocking=False)


def check_parts(data: DataDirectory, commits: Sequence[Commit], table: Table) -> Check:
    """Every part of a table that a commit names is there, byte for byte: to be asked before anything is built on it."""
    found = Findings("parts", "Parquet parts match their commit")
    for commit in commits:
        for part in commit.parts:
            if part.table == table.name:
                check_part(found, data, commit, part)
    return found.check()


def _is_of(reference: Sequence[str], place: Place, made: Mapping[Place, Recipe]) -> bool:
    """Tell whether a reference is of the table at a place: evidence can refer to nothing but evidence."""
    source, _, target, _ = reference
    if place[0] == "evidence":
        return source == place[1] and ("evidence", target) in made
    return source == place[1]


def _schema(table: Table) -> Callable[[Opened], Check]:
    def check(opened: Opened) -> Check:
        found = Findings("schema", "parts are as declared")
        for file in opened.parts[table.name]:
            found.looked_at += 1
            if not pq.read_schema(file).equals(arrow_schema(table)):
                found.problem(f"tables/{table.name}/{file.name}", "its columns are not the declared ones")
        required = [column.name for column in table.part_columns if not column.nullable]
        counts = ", ".join(f'count(*) - count("{name}")' for name in required)
        [nulls] = opened.connection.execute(f"SELECT {counts} FROM {table.name}").fetchall()
        for name, amount in zip(required, nulls, strict=True):
            if amount:
                found.problem(f"{table.name}.{name}", f"it is null in {amount} rows")
        return found.check()

    return check


def _key(name: str, columns: Sequence[str]) -> Callable[[Opened], Check]:
    def check(opened: Opened) -> Check:
        found = Findings("key", "rows have a key of their own")
        check_key(found, opened.connection, name, columns)
        return found.check()

    return check


def _references(references: Sequence[tuple[str, str, str, str]]) -> Callable[[Opened], Check]:
    def check(opened: Opened) -> Check:
        found = Findings("references", "kinds of reference resolve")
        for reference in references:
            check_reference(found, opened.connection, *reference)
        return found.check()

    return check


def _digests(table: Table) -> Callable[[Opened], Check]:
    [key] = table.key

    def check(opened: Opened) -> Check:
        found = Findings("digests", "manifests of a sample have the digest of their canonical text")
        sample = f"SELECT manifest, {key} FROM {table.name} USING SAMPLE {SAMPLE} ROWS"
        for text, digest in opened.connection.execute(sample).fetchall():
            found.looked_at += 1
            read_manifest(text, digest, f"{table.name} {digest}", found)
        return found.check()

    return check


def _on_connection(look: Callable[[DuckDBPyConnection], Check]) -> Callable[[Opened], Check]:
    return lambda opened: look(opened.connection)


def _rate(name: str, sql: str, most: float) -> Callable[[Opened], Check]:
    """Return a check that a part (first column) is at most a share of the whole (second column)."""

    def check(opened: Opened) -> Check:
        [(part, whole)] = opened.connection.execute(sql).fetchall()
        found = Findings(name, f"counted, {part:,} of them {name}", looked_at=whole)
        if part > most * whole:
            found.problem(name, f"{part:,} of {whole:,} are over the bound of {most:.0%}")
        return found.check()

    return check


_HELD_BACK = """
SELECT coalesce(arg_max(quarantined, sequence), 0), coalesce(arg_max(records, sequence), 0) FROM ingests
"""

_DRIFT = """
SELECT
    (SELECT coalesce(sum(occurrences), 0)::BIGINT FROM drift),
    (SELECT coalesce(sum(records), 0)::BIGINT FROM ingests)
"""

_BELOW_FLOOR = "SELECT count(*) FILTER (vs_floor < 1), count(vs_floor) FROM leaderboard"
