from __future__ import annotations

import pytest
from duckdb import DuckDBPyConnection

from pipeline.errors import UsageError
from pipeline.query.hardware import means
from pipeline.query.leaderboard import Cohort, leaderboard
from tests.conftest import House
from tests.query.warehouse_fixture import GEMM, GROUPED, HOSTILE, UNMEASURED


def cohorts(connection: DuckDBPyConnection, name: str, **filters: object) -> list[Cohort]:
    [board] = leaderboard(connection, name, **filters).boards  # type: ignore[arg-type]
    return board.cohorts


def test_ranks_and_record_of_a_cohort(house: House, connection: DuckDBPyConnection) -> None:
    [cohort] = cohorts(connection, GROUPED)
    assert [(each.rank, each.run_digest, each.latency_ns) for each in cohort.entries] == [
        (1, house.digests["grouped_fast"], 147_300),
        (2, house.digests["grouped_slow"], 153_200),
    ]
    assert cohort.record is not None
    assert cohort.record.run_digest == house.digests["grouped_fast"]
    assert cohort.baseline_state == "unbeaten"
    assert cohort.entries[1].vs_best == pytest.approx(153_200 / 147_300)


def test_the_floor_comes_with_its_derivation(connection: DuckDBPyConnection) -> None:
    [cohort] = cohorts(connection, GROUPED)
    floor, bound = cohort.floors
    assert (floor.model, bound.model) == ("headroom-v1", "headroom-v2")
    # fp8 a, fp32 a_scale, int8 b, fp32 b_scale, int32 masked_m
    moved = 4 * 512 * 2048 + 4 * 512 * 16 * 4 + 4 * 2048 * 1024 + 4 * 2048 * 64 * 4 + 4 * 4
    assert floor.bytes_moved == moved
    assert floor.floor_ns == pytest.approx(moved / 8000)
    assert floor.bound_by == "dram"
    assert floor.assumptions


def test_cohorts_are_ordered_by_hardware_and_axes(connection: DuckDBPyConnection) -> None:
    ranked = [cohort for cohort in cohorts(connection, GEMM) if cohort.results]
    assert [(cohort.hardware, cohort.axes) for cohort in ranked] == [
        ("NVIDIA B200", {"m": 64}),
        ("NVIDIA B200", {"m": 1024}),
        ("NVIDIA H100 80GB HBM3", {"m": 64}),
    ]


def test_what_is_not_ranked_is_counted_by_reason(connection: DuckDBPyConnection) -> None:
    [cohort] = [cohort for cohort in cohorts(connection, GEMM) if not cohort.results]
    assert cohort.not_ranked == {"MISSING_PRIMARY_METRIC": 1, "STATUS_RUNTIME_ERROR": 1}
    assert cohort.record is None


@pytest.mark.parametrize(
    ("filters", "best"),
    [
        ({"axes": {"m": 1024}}, [1_539_891]),
        ({"axes": {"m": 64, "n": 128}, "gpu": "B200"}, [10_000]),
        ({"gpu": "h100"}, [30_000]),
        ({"gpu": "nvidia b200"}, [10_000, 1_539_891]),
    ],
)
def test_filters(connection: DuckDBPyConnection, filters: dict[str, object], best: list[int]) -> None:
    found = [cohort.best_latency_ns for cohort in cohorts(connection, GEMM, **filters)]
    assert [latency for latency in found if latency is not None] == best


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"axes": {"m": 65}}, "m near 65: 64, 1024"),
        ({"axes": {"n": 256}}, "not measured with n=256"),
        ({"axes": {"z": 1}}, 'no axis "z"; it has m, n'),
        ({"gpu": "B300"}, "it is on NVIDIA B200, NVIDIA H100 80GB HBM3"),
        ({"gpu": "H100", "axes": {"m": 1024}}, "not measured with m=1024"),
        ({"profile": "fastest"}, "it has "),
    ],
)
def test_filters_that_leave_nothing(connection: DuckDBPyConnection, filters: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        cohorts(connection, GEMM, **filters)
    assert sentence in str(error.value)


def test_limit_cuts_each_cohort_and_keeps_its_count(connection: DuckDBPyConnection) -> None:
    [cohort] = cohorts(connection, GROUPED, limit=1)
    assert (len(cohort.entries), cohort.results) == (1, 2)


@pytest.mark.parametrize(
    ("filters", "fitting", "shown"),
    [
        ({}, 4, [("NVIDIA B200", 64), ("NVIDIA B200", 1024), ("NVIDIA H100 80GB HBM3", 64)]),
        ({"cohort_limit": 4}, 4, [("NVIDIA B200", 64), ("NVIDIA B200", 1024), ("NVIDIA H100 80GB HBM3", 64)]),
        ({"cohort_limit": 1}, 4, [("NVIDIA B200", 64)]),
        ({"cohort_limit": 1, "axes": {"m": 1024, "n": 128}}, 1, [("NVIDIA B200", 1024)]),
        ({"cohort_limit": 1, "axes": {"m": 64}}, 3, [("NVIDIA B200", 64)]),
        ({"cohort_limit": 1, "gpu": "H100"}, 1, [("NVIDIA H100 80GB HBM3", 64)]),
    ],
)
def test_a_limit_keeps_the_cohorts_with_the_most_results(
    connection: DuckDBPyConnection, filters: dict[str, object], fitting: int, shown: list[tuple[str, int]]
) -> None:
    [board] = leaderboard(connection, GEMM, **filters).boards  # type: ignore[arg-type]
    assert board.fitting == fitting
    assert [(cohort.hardware, cohort.axes["m"]) for cohort in board.cohorts if cohort.results] == shown


@pytest.mark.parametrize("profile", ["source_native", "strict_exact"])
def test_a_limit_changes_no_cohort_that_it_keeps(connection: DuckDBPyConnection, profile: str) -> None:
    whole = cohorts(connection, GEMM, profile=profile)
    for limit in range(1, len(whole) + 1):
        kept = cohorts(connection, GEMM, profile=profile, cohort_limit=limit)
        assert len(kept) == limit
        assert kept == [cohort for cohort in whole if cohort.cohort_key in {each.cohort_key for each in kept}]


def test_an_operation_without_runs_has_no_cohort(connection: DuckDBPyConnection) -> None:
    assert cohorts(connection, UNMEASURED) == []


def test_a_beaten_baseline(connection: DuckDBPyConnection) -> None:
    cohort = cohorts(connection, GEMM, axes={"m": 64}, gpu="B200")[0]
    assert (cohort.baseline_state, cohort.baseline_latency_ns, cohort.best_latency_ns) == ("beaten", 20_000, 10_000)
    assert cohort.entries[0].implementation == HOSTILE


def test_the_operation_states_its_semantics(connection: DuckDBPyConnection) -> None:
    [board] = leaderboard(connection, GROUPED).boards
    operation = board.operation
    assert [(each.name, each.dtype, each.shape) for each in operation.inputs] == [
        ("a_fp8", "fp8_e4m3", ["g", "max_m", "k"]),
        ("b_fp4", "int8", ["g", "n", "k_half"]),
        ("m", "int32", None),
    ]
    assert {axis.name: (axis.role, axis.value, axis.expression) for axis in operation.axes} == {
        "g": ("constant", 4, None),
        "k": ("constant", 2048, None),
        "n": ("constant", 2048, None),
        "max_m": ("variable", None, None),
        "k_half": ("derived", None, "k // 2"),
    }
    assert operation.eligible_runs == 2
    assert [(use.source, use.licenses) for use in operation.sources] == [("flashinfer-bench", ["Apache-2.0"])]


@pytest.mark.parametrize(
    ("gpu", "hardware", "meant"),
    [
        ("B200", "NVIDIA B200", True),
        ("b200", "NVIDIA B200", True),
        ("B200", "NVIDIA GB200", False),
        ("B20", "NVIDIA B200", False),
        ("200", "NVIDIA B200", False),
        ("NVIDIA_B200", "NVIDIA B200", True),
        ("h100 80GB", "NVIDIA H100 80GB HBM3", True),
        ("MI300X", "AMD Instinct MI300X-OAM", True),
        (".*", "NVIDIA B200", False),
        (" ", "NVIDIA B200", False),
    ],
)
def test_a_gpu_is_a_word_of_the_hardware(gpu: str, hardware: str, meant: bool) -> None:
    assert means(gpu, hardware) is meant
