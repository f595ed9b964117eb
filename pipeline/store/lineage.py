"""What each table is made of: the tables that its policy reads, and the version of all that decides its rows.

A table lies in one or two places. *Evidence* is in the Parquet parts. The *warehouse* holds what a policy of
``warehouse/*.sql`` makes, also of evidence (``parts_runs`` and ``runs`` are two things); evidence without a policy is
loaded as it is and has no place of its own there.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import duckdb

from pipeline.manifests import canonical_text, sha256_of
from pipeline.store.database import declaration, policy_digest, policy_files, policy_views, warehouse_folder
from pipeline.store.layout import FORMAT_VERSION
from pipeline.store.tables import EVIDENCE, META, REVIEWED, SNAPSHOTS, Table, table

Place: TypeAlias = tuple[Literal["evidence", "warehouse"], str]
"""Where a table lies, and its name."""


@dataclass(frozen=True)
class Recipe:
    """How a table comes about."""

    table: Table
    place: Place
    reads: tuple[Place, ...]
    """What its policy names, sorted; nothing for evidence."""
    sql: str
    """The policy; empty where there is none."""
    version: str
    """Digest of everything but the rows read that decides its rows: its policy and declaration, and those it reads."""


def recipes() -> dict[Place, Recipe]:
    """Return the recipe of every table by its place, each after what it reads."""
    made: dict[Place, Recipe] = {}
    for declared in EVIDENCE:
        version = _digest(declared, {"format": str(FORMAT_VERSION)})
        made["evidence", declared.name] = Recipe(declared, ("evidence", declared.name), (), "", version)
    for declared in REVIEWED:
        reviewed: Place = ("warehouse", declared.name)
        made[reviewed] = Recipe(declared, reviewed, (), "", _digest(declared, {"format": str(FORMAT_VERSION)}))
    files = policy_files()
    views = policy_views()
    with closing(duckdb.connect()) as parser:
        for name, own in files.items():
            paths = _with_views(own, views, parser)
            policies = [path.read_text(encoding="utf-8") for path in paths]
            named = {_place(read, files) for sql in policies for read in _tables_of(sql, parser)}
            reads = tuple(sorted(named))
            contents = dict(item for path in paths for item in _contents(path).items())
            version = _digest(table(name), contents | {"/".join(read): made[read].version for read in reads})
            made["warehouse", name] = Recipe(table(name), ("warehouse", name), reads, "\n".join(policies), version)
    noted: Place = ("warehouse", META.name)
    made[noted] = Recipe(META, noted, (("evidence", SNAPSHOTS.name),), "", policy_digest())
    return made


def _place(read: str, files: Container[str]) -> Place:
    name = read.removeprefix("parts_")
    derived = name in files or table(name) in REVIEWED
    return ("evidence", name) if name != read or not derived else ("warehouse", name)


def _with_views(
    paths: tuple[Path, ...], views: Mapping[str, Path], parser: duckdb.DuckDBPyConnection
) -> tuple[Path, ...]:
    """Return the files of a policy after those of the views that it is written with, views of views before them."""
    before: dict[Path, None] = {}
    for path in paths:
        for name in _names_in(path.read_text(encoding="utf-8"), parser):
            if name in views:
                before |= dict.fromkeys(_with_views((views[name],), views, parser))
    return (*before, *paths)


def _tables_of(sql: str, parser: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield the declared tables (``runs``) and parts (``parts_runs``) that a SELECT names."""
    for name in _names_in(sql, parser):
        try:
            table(name.removeprefix("parts_"))
        except KeyError:
            continue  # a name of the query's own
        yield name


def _names_in(sql: str, parser: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield the names that a SELECT reads from."""
    [[tree]] = parser.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    yield from _base_tables(json.loads(tree))


def _base_tables(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield node["table_name"]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _base_tables(item)


def _contents(path: Path) -> dict[str, str]:
    """Return the digests of a policy file and of the files that it reads: those in the folder named after its table."""
    beside = warehouse_folder() / path.stem.partition("_")[2]
    return {file.name: sha256_of(file.read_bytes()) for file in (path, *sorted(beside.glob("*.csv")))}


def _digest(declared: Table, parts: Mapping[str, str]) -> str:
    return sha256_of(canonical_text({"declaration": list(declaration(declared)), "made_of": dict(parts)}))
