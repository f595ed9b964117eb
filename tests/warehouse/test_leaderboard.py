from __future__ import annotations

import datetime as dt
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.warehouse.rows import Bench, Rows

LEVELS = ("reported", "reproducible", "verified", "replicated")
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - the tables hold UTC without a zone

# Two cohorts, so that a walk must stop at its cohort's end; steps of a few nanoseconds, so that bands have edges.
RUNS = st.lists(
    st.fixed_dictionaries(
        {
            "cohort": st.sampled_from("ab"),
            "latency_ns": st.integers(1, 30) | st.integers(95, 115) | st.just(10**12),
            "minute": st.integers(0, 9),
            "evidence_level": st.sampled_from(LEVELS),
            "baseline": st.booleans(),
            "ranked": st.booleans() | st.just(True),
        }
    ),
    max_size=25,
)
BANDS = st.sampled_from(["1.0", "1.02", "1.5"])
PROPERTY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tables(band: str, runs: list[dict[str, Any]]) -> Rows:
    """Return the rows that the ranks and the history are made of, in the order of the runs."""
    return {
        "profiles": [{"profile": "p", "tie_band": float(band), "record_band": float(band), "policy_version": "v"}],
        "implementations": [
            {"implementation_digest": role, "name": role, "author": role, "role": role}
            for role in ("baseline", "llm-generated")
        ],
        "operations": [{"name": "operation"}],
        "workloads": [{"axes": "{}"}],
        "runs": [{"run_digest": run["digest"]} for run in runs],
        "cohort_runs": [
            {
                "profile": "p",
                "cohort_key": run["cohort"],
                "run_digest": run["digest"],
                "implementation_digest": "baseline" if run["baseline"] else "llm-generated",
                "latency_ns": run["latency_ns"],
                "observed_at": START + dt.timedelta(minutes=run["minute"]),
                "evidence_level": run["evidence_level"],
                "ranked": run["ranked"],
                "qualified": run["ranked"],
            }
            for run in runs
        ],
    }


def oracle_ranks(band: str, runs: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """The tie rule walked by hand: digest to (rank, tied, position, latency over best, latency over best baseline)."""
    expected = {}
    for cohort in "ab":
        walk = sorted((run for run in runs if run["cohort"] == cohort and run["ranked"]), key=lambda r: r["latency_ns"])
        ranks, start, rank = {}, None, 0
        for run in walk:
            if start is None or run["latency_ns"] > Fraction(band) * start:
                start, rank = run["latency_ns"], rank + 1
            ranks[run["digest"]] = rank
        shared = Counter(ranks.values())
        baselines = [run["latency_ns"] for run in walk if run["baseline"]]
        display = sorted(
            walk, key=lambda r: (ranks[r["digest"]], -LEVELS.index(r["evidence_level"]), -r["minute"], r["digest"])
        )
        for position, run in enumerate(display, start=1):
            digest, latency = run["digest"], run["latency_ns"]
            expected[digest] = (
                ranks[digest],
                shared[ranks[digest]] > 1,
                position,
                latency / walk[0]["latency_ns"],
                latency / min(baselines) if baselines else None,
            )
    return expected


@PROPERTY
@given(band=BANDS, runs=RUNS, random=st.randoms(use_true_random=False))
def test_ranks_are_those_of_the_walk_in_any_row_order(
    bench: Bench, band: str, runs: list[dict[str, Any]], random: Any
) -> None:
    for number, run in enumerate(runs):
        run["digest"] = f"{number:02}"
    random.shuffle(runs)
    rows = bench.answer("leaderboard", tables(band, runs))
    columns = ("rank", "tied", "position", "vs_best", "vs_baseline")
    assert {row["run_digest"]: tuple(row[column] for column in columns) for row in rows} == oracle_ranks(band, runs)
    assert len(rows) == sum(run["ranked"] for run in runs)


@pytest.mark.parametrize(
    ("band", "latencies", "ranks"),
    [
        ("1.0", [100, 100, 101], [1, 1, 2]),
        ("1.02", [100, 102, 103], [1, 1, 2]),
        # A chain of small steps does not stretch a group: it ends at 1.02 times its fastest run.
        ("1.02", [1000, 1010, 1020, 1030, 1040, 1050, 1060], [1, 1, 1, 2, 2, 2, 3]),
    ],
)
def test_a_rank_group_starts_at_its_fastest_run(
    bench: Bench, band: str, latencies: list[int], ranks: list[int]
) -> None:
    runs = [
        {"digest": f"{n:02}", "cohort": "a", "latency_ns": latency, "minute": n, "evidence_level": "reported"}
        | {"baseline": False, "ranked": True}
        for n, latency in enumerate(latencies)
    ]
    rows = sorted(bench.answer("leaderboard", tables(band, runs)), key=lambda row: row["run_digest"])
    assert [row["rank"] for row in rows] == ranks
