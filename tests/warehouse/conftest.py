from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from pipeline.store.database import build, connect
from tests.warehouse.rows import Bench, Rows, completed, write_part


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Callable[[Rows], duckdb.DuckDBPyConnection]]:
    """Return a function that builds a warehouse from rows, completed with what they refer to, and opens it."""
    opened: list[duckdb.DuckDBPyConnection] = []

    def make(rows: Rows) -> duckdb.DuckDBPyConnection:
        folder = tmp_path / str(len(opened))
        folder.mkdir()
        parts = {name: [write_part(folder, name, given)] for name, given in completed(rows).items()}
        build(parts, folder / "warehouse.duckdb", meta={})
        opened.append(connect(folder / "warehouse.duckdb"))
        return opened[-1]

    yield make
    for connection in opened:
        connection.close()
