from __future__ import annotations

import pytest
from duckdb import DuckDBPyConnection

from pipeline.manifests import digest_of
from pipeline.query.dossier import (
    ImplementationDossier,
    ObjectDossier,
    OperationDossier,
    RunDossier,
    dossier,
    run_dossier,
)
from tests.conftest import House
from tests.query.warehouse_fixture import GEMM, HOSTILE, LOG, REVISION, TRACE_FILE


def test_a_run_states_everything_about_itself(house: House, connection: DuckDBPyConnection) -> None:
    found, run = dossier(connection, house.digests["grouped_slow"])
    assert isinstance(run, RunDossier)
    assert found.kind == "run"
    assert run.revision == REVISION
    assert run.reference_ratio == pytest.approx(1.337605e6 / 153_200)
    assert [(each.statistic, each.value, each.unit) for each in run.measurements] == [("mean", 153_200, "ns")]
    assert {tensor.name: (tensor.dtype, tensor.shape) for tensor in run.tensors}["a_fp8"] == (
        "fp8_e4m3",
        [4, 512, 2048],
    )
    assert run.scalars == {"expected_m": {"dtype": "int32", "value": 256}}
    assert run.correctness == {"comparator": "sol_execbench_eval"}
    assert run.artifacts == []
    standing = next(each for each in run.standings if each.profile == "source_native")
    assert (standing.rank, standing.results, standing.best_run_digest, standing.record) == (
        2,
        2,
        house.digests["grouped_fast"],
        False,
    )


def test_the_manifests_of_a_run_have_its_digests(house: House, connection: DuckDBPyConnection) -> None:
    run = run_dossier(connection, house.digests["winner"])
    assert {kind: digest_of(manifest) for kind, manifest in run.manifests.items()} == {
        "run": run.run_digest,
        "protocol": run.protocol_digest,
        "environment": run.environment_digest,
    }


def test_a_failed_run_keeps_its_log_and_place(house: House, connection: DuckDBPyConnection) -> None:
    run = run_dossier(connection, house.digests["failed"])
    assert (run.eligible, run.latency_ns, run.reference_ratio) == (False, None, None)
    assert "STATUS_RUNTIME_ERROR" in run.reasons
    [artifact] = run.artifacts
    assert (artifact.kind, artifact.size_bytes, artifact.blob_sha256) == ("log", len(LOG), house.digests["blob"])
    [seen] = run.observations
    assert (seen.source_file, seen.source_line) == (TRACE_FILE, 5)
    assert all(standing.rank is None for standing in run.standings)


def test_an_operation_lists_where_and_by_what_it_is_measured(connection: DuckDBPyConnection) -> None:
    _, answer = dossier(connection, GEMM)
    assert isinstance(answer, OperationDossier)
    assert answer.workloads == 2
    assert [(each.hardware, each.measured, each.passing) for each in answer.coverage] == [
        ("NVIDIA B200", 2, 2),
        ("NVIDIA H100 80GB HBM3", 1, 1),
    ]
    assert [(each.name, each.runs, each.eligible_runs, each.cohorts_led) for each in answer.implementations] == [
        (HOSTILE, 2, 1, 1),
        ("cublas_n128", 3, 3, 2),
    ]


def test_an_implementation_lists_its_runs(house: House, connection: DuckDBPyConnection) -> None:
    _, answer = dossier(connection, HOSTILE)
    assert isinstance(answer, ImplementationDossier)
    assert [(run.run_digest, run.rank) for run in answer.runs] == [
        (house.digests["failed"], None),
        (house.digests["winner"], 1),
    ]


@pytest.mark.parametrize(("limit", "shown"), [(None, ["failed", "winner"]), (1, ["failed"]), (2, ["failed", "winner"])])
def test_a_limit_keeps_the_newest_runs_and_their_count(
    house: House, connection: DuckDBPyConnection, limit: int | None, shown: list[str]
) -> None:
    _, answer = dossier(connection, HOSTILE, run_limit=limit)
    assert isinstance(answer, ImplementationDossier)
    assert (answer.run_count, [run.run_digest for run in answer.runs]) == (2, [house.digests[each] for each in shown])


@pytest.mark.parametrize(
    ("short", "runs", "manifest"),
    [("wide", 2, True), ("b200", 6, True), ("protocol", 7, True), ("log", 1, False)],
)
def test_other_objects_list_their_runs(
    house: House, connection: DuckDBPyConnection, short: str, runs: int, manifest: bool
) -> None:
    _, answer = dossier(connection, house.digests[short])
    assert isinstance(answer, ObjectDossier)
    assert (len(answer.runs), answer.run_count, answer.manifest is not None) == (runs, runs, manifest)
    assert house.digests[short] in answer.row.values()
