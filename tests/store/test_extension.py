"""A database that was extended holds what one that is built from nothing holds."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.synthetic import write_one_more, write_trace_set
from pipeline.ingest import IngestRequest, ingest, pull
from pipeline.store import extension
from pipeline.store.layout import DataDirectory
from pipeline.store.tables import TABLES
from tests.fake_hub.pulls import pull as from_hub
from tests.fake_hub.revisions import ONE, THREE, TWO
from tests.fake_hub.server import FakeHub
from tests.fake_hub.sets import definition, solution, trace


def _rows(path: Path) -> dict[str, list[str]]:
    rows = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for table in TABLES:
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            rows[table.name] = sorted(map(repr, connection.execute(f"SELECT {columns} FROM {table.name}").fetchall()))
    return rows


@pytest.fixture
def extended(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Watch whether databases are extended."""
    told: list[bool] = []

    def watched(*arguments: Any, **named: Any) -> bool:
        told.append(extension.extend(*arguments, **named))
        return told[-1]

    monkeypatch.setattr(pull, "extend", watched)
    return told


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic trace set: read it, never change it."""
    folder = tmp_path_factory.mktemp("synthetic") / "whole"
    write_trace_set(folder, 1_500)
    return folder


@pytest.fixture(scope="module")
def ingested(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = DataDirectory(tmp_path_factory.mktemp("ingested") / "data")
    ingest(data, IngestRequest(str(whole)))
    return data.root


@pytest.fixture
def data(ingested: Path, tmp_path: Path) -> DataDirectory:
    """A data directory with the synthetic trace set, built anew."""
    shutil.copytree(ingested, tmp_path / "data")
    return DataDirectory(tmp_path / "data")


def _compare(data: DataDirectory, folder: Path) -> None:
    pull.derive(data, folder / "anew.duckdb")
    assert _rows(data.database) == _rows(folder / "anew.duckdb")


def _one_more(folder: Path, whole: Path) -> None:
    write_one_more(folder, 50)


def _one_solution_more(folder: Path, whole: Path) -> None:
    """Bring a baseline's solution under another author: the role of its runs may change."""
    solution = sorted((whole / "solutions" / "baseline").rglob("*.json"))[0]
    target = folder / "solutions" / "model-a" / Path(*solution.relative_to(whole).parts[2:])
    target.parent.mkdir(parents=True)
    shutil.copy(solution, target)


def _another_definition_of_a_name(folder: Path, whole: Path) -> None:
    definition = sorted((whole / "definitions").rglob("*.json"))[0]
    target = folder / definition.relative_to(whole)
    target.parent.mkdir(parents=True)
    target.write_text(definition.read_text().replace("Made up", "Made up again"))


def _one_uuid_for_other_axes(folder: Path, whole: Path) -> None:
    traces = sorted((whole / "traces" / "baseline").rglob("*.jsonl"))[0]
    target = folder / traces.relative_to(whole)
    target.parent.mkdir(parents=True)
    lines = [line for line in traces.read_bytes().split(b"\n") if b'"axes":{"M":1}' in line]
    target.write_bytes(b"\n".join(line.replace(b'"axes":{"M":1}', b'"axes":{"M":77}') for line in lines))


@pytest.mark.parametrize(
    "change", [_one_more, _one_solution_more, _another_definition_of_a_name, _one_uuid_for_other_axes]
)
def test_an_extended_database_is_as_if_built_anew(
    change: Callable[[Path, Path], None], whole: Path, data: DataDirectory, tmp_path: Path, extended: list[bool]
) -> None:
    more = tmp_path / "more"
    change(more, whole)
    assert ingest(data, IngestRequest(str(more))).published
    assert extended == [True]
    _compare(data, tmp_path)


def test_pulls_in_any_order(tmp_path: Path, extended: list[bool]) -> None:
    whole = tmp_path / "whole"
    write_trace_set(whole, 1_000)
    files = sorted(path for path in whole.rglob("*") if path.is_file() and "traces" in path.parts)
    random.Random(5).shuffle(files)  # noqa: S311 - an order
    data = DataDirectory(tmp_path / "data")
    late = files[:6]
    for path in late:
        path.rename(tmp_path / "-".join(path.parts[-3:]))
    ingest(data, IngestRequest(str(whole)))
    for path in late:
        (tmp_path / "-".join(path.parts[-3:])).rename(path)
        ingest(data, IngestRequest(str(whole)))
        _compare(data, tmp_path)
    assert extended == [True] * len(late)


def test_what_touches_most_runs_is_built_anew(tmp_path: Path, extended: list[bool]) -> None:
    write_trace_set(tmp_path / "first", 300, seed=1)
    write_trace_set(tmp_path / "second", 300, seed=1)
    for path in (tmp_path / "second" / "traces").rglob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'"log":""', b'"log":"more"'))
    data = DataDirectory(tmp_path / "data")
    for name in ("first", "second"):
        ingest(data, IngestRequest(str(tmp_path / name)))
    assert extended == [False]
    _compare(data, tmp_path)


def test_withdrawals_and_returns(tmp_path: Path, extended: list[bool]) -> None:
    others: dict[str, bytes] = {}
    for number in range(24):
        name = f"other{number}"
        others[f"definitions/elementwise/{name}.json"] = definition(name, op_type=name)
        others[f"solutions/alice/elementwise/{name}/s.json"] = solution(f"s{number}", of=name)
        others[f"traces/alice/elementwise/{name}.jsonl"] = trace(f"s{number}", 1.0, 1, of=name)
    data = DataDirectory(tmp_path / "data")
    with FakeHub() as hub:
        for files, withdrawn, reinstated in ((ONE, 0, 0), (TWO, 1, 0), (THREE, 0, 1)):
            hub.commit(others | files)
            report = from_hub(data, hub)
            assert (report.records_withdrawn, report.records_reinstated) == (withdrawn, reinstated)
            _compare(data, tmp_path)
    assert extended == [True, True]


def test_changed_corrections_are_built_in_anew_and_kept_by_extensions(
    data: DataDirectory, tmp_path: Path, extended: list[bool]
) -> None:
    with duckdb.connect(str(data.database), read_only=True) as connection:
        [(run,)] = connection.execute("SELECT run_digest FROM current_records ORDER BY ALL LIMIT 1").fetchall()
    data.corrections.write_text(
        f'''
        [[correction]]
        run = "{run}"
        action = "retract"
        reason = "measured warm"
        author = "reviewer"
        date = 2026-05-01
        '''
    )
    for number, told in ((1, []), (2, [True])):
        write_one_more(tmp_path / f"more-{number}", 50 * number)
        assert ingest(data, IngestRequest(str(tmp_path / f"more-{number}"))).published
        assert extended == told
        _compare(data, tmp_path)


def test_a_database_that_was_extended_often_is_built_anew(
    data: DataDirectory, tmp_path: Path, extended: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "_MOST_ROW_GROUPS", (1, 2))
    for number in range(4):
        write_one_more(tmp_path / f"more-{number}", 50, seed=number)
        ingest(data, IngestRequest(str(tmp_path / f"more-{number}")))
    assert extended == [True, True, False, True]
    _compare(data, tmp_path)
