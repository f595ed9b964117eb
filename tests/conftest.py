from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from duckdb import DuckDBPyConnection
from hypothesis import HealthCheck, settings

from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory
from tests.query.warehouse_fixture import make
from tests.trace_set import Warehouse

# A slow machine is no failure, and CI tries the same examples every time.
settings.register_profile(
    "kernelhouse",
    deadline=None,
    derandomize="CI" in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kernelhouse")


@pytest.fixture(scope="session")
def trace_set() -> Path:
    """The folder with the real trace set, what it must come to, and the hostile one; skipped where there is none."""
    folder = os.environ.get("KERNELHOUSE_TRACE_SET")
    if not folder:
        pytest.skip("KERNELHOUSE_TRACE_SET names no folder")
    return Path(folder)


@pytest.fixture
def warehouse_at(tmp_path: Path) -> Warehouse:
    """An empty data directory to ingest small trace sets into."""
    return Warehouse(tmp_path / "warehouse")


@dataclass(frozen=True)
class House:
    """A small data directory (see warehouse_fixture) and the digests of what is in it, by short names."""

    data: DataDirectory
    digests: dict[str, str]


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Shared by all tests: read it, never change it."""
    data = DataDirectory(tmp_path_factory.mktemp("house") / "data")
    return House(data, make(data, tmp_path_factory.mktemp("scratch")))


@pytest.fixture
def own_house(house: House, tmp_path: Path) -> House:
    """A copy that a test may damage."""
    shutil.copytree(house.data.root, tmp_path / "data")
    return House(DataDirectory(tmp_path / "data"), house.digests)


@pytest.fixture
def opened() -> Iterator[Callable[[House], DuckDBPyConnection]]:
    """Return a function that opens the database of a house, as the product does."""
    connections: list[DuckDBPyConnection] = []

    def open_house(house: House) -> DuckDBPyConnection:
        connections.append(connect(house.data.database))
        return connections[-1]

    yield open_house
    for connection in connections:
        connection.close()


@pytest.fixture
def connection(house: House, opened: Callable[[House], DuckDBPyConnection]) -> DuckDBPyConnection:
    return opened(house)
