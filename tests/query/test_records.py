from __future__ import annotations

import pytest
from duckdb import DuckDBPyConnection

from pipeline.errors import UsageError
from pipeline.query.records import records
from tests.conftest import House
from tests.query.warehouse_fixture import GEMM, GROUPED, HOSTILE, UNMEASURED


def test_changes_of_holder_come_newest_first(house: House, connection: DuckDBPyConnection) -> None:
    newest, first = records(connection, GROUPED)
    assert (newest.run_digest, newest.previous_run_digest) == (
        house.digests["grouped_fast"],
        house.digests["grouped_slow"],
    )
    assert newest.improvement == pytest.approx(153_200 / 147_300)
    assert (newest.current, first.current) == (True, False)
    assert (first.previous_run_digest, first.previous_implementation, first.improvement) == (None, None, None)


def test_all_operations(connection: DuckDBPyConnection) -> None:
    events = records(connection)
    assert len(events) == 6
    assert [event.at for event in events] == sorted((event.at for event in events), reverse=True)
    assert records(connection, limit=2) == events[:2]


def test_a_generated_kernel_takes_the_record(house: House, connection: DuckDBPyConnection) -> None:
    [event] = [event for event in records(connection, GEMM) if event.run_digest == house.digests["winner"]]
    assert (event.implementation, event.role, event.previous_implementation) == (
        HOSTILE,
        "llm-generated",
        "cublas_n128",
    )
    assert event.axes == {"m": 64}


def test_an_operation_without_records(connection: DuckDBPyConnection) -> None:
    assert records(connection, UNMEASURED) == []


@pytest.mark.parametrize(("name", "profile"), [("gemm_n1", "source_native"), (GEMM, "fastest")])
def test_unknown_names_and_profiles_are_refused(connection: DuckDBPyConnection, name: str, profile: str) -> None:
    with pytest.raises(UsageError):
        records(connection, name, profile=profile)
