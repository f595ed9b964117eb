"""Who held a record when: the SQL against a plain walk, with and without runs that lose their standing."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.rows import Bench
from tests.warehouse.test_leaderboard import BANDS, PROPERTY, RUNS, START, tables

CAUSES = ("withdrawn", "retracted", "superseded", "taken_down")

# Of a run, by its place: the cause, the minute from which it has no standing, and for how long (None: for good).
SUSPENSIONS = st.lists(
    st.tuples(st.integers(0, 24), st.sampled_from(CAUSES), st.integers(0, 12), st.none() | st.integers(1, 6)),
    max_size=6,
    unique_by=lambda suspension: suspension[:3],
)


def at(minute: int) -> dt.datetime:
    return START + dt.timedelta(minutes=minute)


def walk(band: str, runs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the holder after all of these runs: the record rule of the ranking policies."""
    holder: dict[str, Any] | None = None
    for run in sorted(runs, key=lambda r: (r["minute"], r["digest"])):
        if holder is None or holder["latency_ns"] > Fraction(band) * run["latency_ns"]:
            holder = run
    return holder


def timeline(
    band: str, members: list[dict[str, Any]], spans: list[tuple[str, str, int, int | None]]
) -> list[tuple[Any, ...]]:
    """Live through the history of a cohort: (holder, holder before, minute, cause) of each change."""
    events: list[tuple[Any, ...]] = []
    holder: dict[str, Any] | None = None

    def stands(run: dict[str, Any], minute: int) -> bool:
        """Tell whether a run has standing after all that changes in a minute."""
        return not any(
            digest == run["digest"] and since <= minute and (until is None or until > minute)
            for digest, _, since, until in spans
        )

    def change(new: dict[str, Any] | None, minute: int, cause: str) -> None:
        nonlocal holder
        if new is not holder:
            events.append((new, holder, minute, cause))
            holder = new

    for minute in range(20):
        # First what is measured then, one run after the other, under the standing of the time before ...
        there = [run for run in members if run["minute"] < minute and stands(run, minute - 1)]
        for run in sorted((r for r in members if r["minute"] == minute), key=lambda r: r["digest"]):
            if stands(run, minute - 1):
                there.append(run)
                change(walk(band, there), minute, "new_run")
        # ... then all changes of standing of that minute at once.
        changed = [(digest, cause) for digest, cause, since, _ in spans if since == minute]
        changed += [(digest, "reinstated") for digest, _, _, until in spans if until == minute]
        if changed:
            new = walk(band, [run for run in members if run["minute"] <= minute and stands(run, minute)])
            for concerned in (holder, new):
                causes = [cause for digest, cause in changed if concerned and digest == concerned["digest"]]
                if causes:
                    break
            change(new, minute, min(causes or [cause for _, cause in changed]))
    return events


def oracle(band: str, runs: list[dict[str, Any]], spans: list[tuple[str, str, int, int | None]]) -> set[Any]:
    """Return the rows that the history of all cohorts must have."""
    rows = set()
    for cohort in "ab":
        members = [run for run in runs if run["cohort"] == cohort and run["ranked"]]
        mine = [span for span in spans if any(run["digest"] == span[0] for run in members)]
        for position, (new, old, minute, cause) in enumerate(timeline(band, members, mine), start=1):
            improvement = old["latency_ns"] / new["latency_ns"] if old and new else None
            holders = [each and each[key] for key in ("digest", "latency_ns") for each in (new, old)]
            rows.add((cohort, position, *holders, improvement, at(minute), cause))
    return rows


COLUMNS = (
    "cohort_key",
    "position",
    "run_digest",
    "previous_run_digest",
    "latency_ns",
    "previous_latency_ns",
    "improvement",
    "at",
    "cause",
)


@PROPERTY
@given(band=BANDS, runs=RUNS, suspensions=SUSPENSIONS, random=st.randoms(use_true_random=False))
def test_events_are_those_of_the_walk_in_any_order_of_arrival(
    bench: Bench, band: str, runs: list[dict[str, Any]], suspensions: list[Any], random: Any
) -> None:
    for number, run in enumerate(runs):
        run["digest"] = f"{number:02}"
    spans = [
        (f"{number:02}", cause, since, None if length is None else since + length)
        for number, cause, since, length in suspensions
    ]
    expected = oracle(band, runs, spans)
    given_rows = tables(band, runs)
    given_rows["suspensions"] = [
        {"run_digest": digest, "cause": cause, "since": at(since), "until": None if until is None else at(until)}
        for digest, cause, since, until in spans
    ]
    for rows in given_rows.values():
        random.shuffle(rows)
    rows = bench.answer("record_history", given_rows)
    events = [tuple(row[column] for column in COLUMNS) for row in rows]
    assert len(events) == len(set(events))
    assert set(events) == expected
    assert all(row["policy_version"] == "v" for row in rows)


def run(digest: str, latency: int, minute: int) -> dict[str, Any]:
    return {"digest": digest, "cohort": "a", "latency_ns": latency, "minute": minute, "evidence_level": "reported"} | {
        "baseline": False,
        "ranked": True,
    }


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
    runs = [run(f"{n:02}", latency, n) for n, latency in enumerate(latencies)]
    rows = sorted(bench.answer("record_history", tables(band, runs)), key=lambda row: row["position"])
    assert [row["latency_ns"] for row in rows] == holders


@pytest.mark.parametrize(
    ("suspensions", "events"),
    [
        ([], [("a", 1, "new_run"), ("b", 2, "new_run")]),
        # The holder goes: the record falls back to the one before it, and returns with it.
        ([("b", "withdrawn", 5, None)], [("a", 1, "new_run"), ("b", 2, "new_run"), ("a", 5, "withdrawn")]),
        (
            [("b", "withdrawn", 5, 7)],
            [("a", 1, "new_run"), ("b", 2, "new_run"), ("a", 5, "withdrawn"), ("b", 7, "reinstated")],
        ),
        # One that does not hold the record goes without an event.
        ([("c", "retracted", 5, None)], [("a", 1, "new_run"), ("b", 2, "new_run")]),
        # All that are left go at once, then one of them comes back.
        (
            [("a", "withdrawn", 5, 8), ("b", "superseded", 5, None), ("c", "withdrawn", 5, None)],
            [("a", 1, "new_run"), ("b", 2, "new_run"), (None, 5, "superseded"), ("a", 8, "reinstated")],
        ),
        # A run that is suspended twice comes back when the last suspension ends.
        (
            [("b", "withdrawn", 5, 7), ("b", "taken_down", 6, None)],
            [("a", 1, "new_run"), ("b", 2, "new_run"), ("a", 5, "withdrawn")],
        ),
        # A correction counts from the measurement on where its date is earlier: it was a record for no time.
        ([("b", "retracted", 2, None)], [("a", 1, "new_run"), ("b", 2, "new_run"), ("a", 2, "retracted")]),
        # A new run takes the record while the faster one is away.
        (
            [("a", "withdrawn", 2, None), ("b", "withdrawn", 2, 9)],
            [
                ("a", 1, "new_run"),
                ("b", 2, "new_run"),
                (None, 2, "withdrawn"),
                ("c", 3, "new_run"),
                ("b", 9, "reinstated"),
            ],
        ),
    ],
)
def test_a_change_of_standing_changes_the_holder(
    bench: Bench, suspensions: list[Any], events: list[tuple[str | None, int, str]]
) -> None:
    given_rows = tables("1.0", [run("a", 100, 1), run("b", 90, 2), run("c", 105, 3)])
    given_rows["suspensions"] = [
        {"run_digest": digest, "cause": cause, "since": at(since), "until": None if until is None else at(until)}
        for digest, cause, since, until in suspensions
    ]
    rows = sorted(bench.answer("record_history", given_rows), key=lambda row: row["position"])
    assert [(row["run_digest"], row["at"], row["cause"]) for row in rows] == [
        (digest, at(minute), cause) for digest, minute, cause in events
    ]
    assert [row["previous_run_digest"] for row in rows] == [None, *(row["run_digest"] for row in rows[:-1])]
