from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.rows import Bench
from tests.warehouse.test_leaderboard import BANDS, PROPERTY, RUNS, tables


def oracle_events(band: str, runs: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """The record rule walked by hand: (cohort, holder, holder before, latency, latency before, improvement)."""
    events = set()
    for cohort in "ab":
        holder: dict[str, Any] | None = None
        for run in sorted(runs, key=lambda r: (r["minute"], r["digest"])):
            if run["cohort"] != cohort or not run["ranked"]:
                continue
            latency = run["latency_ns"]
            if holder is None:
                events.add((cohort, run["digest"], None, latency, None, None))
            elif holder["latency_ns"] > Fraction(band) * latency:
                before = holder["latency_ns"]
                events.add((cohort, run["digest"], holder["digest"], latency, before, before / latency))
            else:
                continue
            holder = run
    return events


COLUMNS = (
    "cohort_key",
    "run_digest",
    "previous_run_digest",
    "latency_ns",
    "previous_latency_ns",
    "improvement",
)


@PROPERTY
@given(band=BANDS, runs=RUNS, random=st.randoms(use_true_random=False))
def test_events_are_those_of_the_walk_in_any_order_of_arrival(
    bench: Bench, band: str, runs: list[dict[str, Any]], random: Any
) -> None:
    for number, run in enumerate(runs):
        run["digest"] = f"{number:02}"
    random.shuffle(runs)
    rows = bench.answer("record_history", tables(band, runs))
    events = [tuple(row[column] for column in COLUMNS) for row in rows]
    assert len(events) == len(set(events))
    assert set(events) == oracle_events(band, runs)
    assert all((row["cause"], row["policy_version"]) == ("new_run", "v") for row in rows)


@pytest.mark.parametrize(
    ("band", "latencies", "holders"),
    [
        ("1.0", [100, 100, 99], [100, 99]),
        # The holder stays while a run is not clearly faster, and it is the holder that is compared with.
        ("1.02", [102, 101, 100, 99], [102, 99]),
        ("1.02", [1000, 990, 981, 980, 970], [1000, 980]),
    ],
)
def test_a_record_falls_only_to_a_clearly_faster_run(
    bench: Bench, band: str, latencies: list[int], holders: list[int]
) -> None:
    runs = [
        {"digest": f"{n:02}", "cohort": "a", "latency_ns": latency, "minute": n, "evidence_level": "reported"}
        | {"baseline": False, "ranked": True}
        for n, latency in enumerate(latencies)
    ]
    rows = sorted(bench.answer("record_history", tables(band, runs)), key=lambda row: row["at"])
    assert [row["latency_ns"] for row in rows] == holders
