from __future__ import annotations

from duckdb import DuckDBPyConnection

from pipeline.query.status import HeldBack, status
from pipeline.store.tables import TABLES
from tests.conftest import House
from tests.query.warehouse_fixture import REPOSITORY, REVISION


def test_status_counts_what_the_warehouse_holds(house: House, connection: DuckDBPyConnection) -> None:
    answer = status(connection, house.data)
    [pull] = answer.pulls
    assert (pull.repository, pull.revision) == (REPOSITORY, REVISION)
    assert (pull.records, pull.added, pull.quarantined) == (8, 7, 1)
    assert set(answer.rows) == {table.name for table in TABLES}
    assert (answer.rows["runs"], answer.eligible_runs, answer.drift) == (7, 6, 3)
    assert answer.run_statuses == {"passed": 6, "runtime_error": 1}
    assert answer.hardware == {"NVIDIA B200": 6, "NVIDIA H100 80GB HBM3": 1}
    assert answer.quarantine == [HeldBack("INVALID_JSON", 0, 1)]
    assert answer.meta["build_key"].startswith("sha256:")


def test_disk_use_is_that_of_the_files(house: House, connection: DuckDBPyConnection) -> None:
    used = status(connection, house.data).disk_bytes
    assert used["database"] == house.data.database.stat().st_size
    assert used["blobs"] == sum(path.stat().st_size for path in house.data.blobs.rglob("*") if path.is_file())
    assert all(used.values())
