"""When a run has no standing: observations that a trace set lost and had again, and reviewed corrections."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.rows import Bench, Rows
from tests.warehouse.test_leaderboard import PROPERTY, START


def at(hour: int) -> dt.datetime:
    return START + dt.timedelta(hours=hour)


def _rows(observations: dict[str, tuple[str, int]], presence: dict[tuple[str, int], str]) -> Rows:
    """Return rows from observation → (its run, the pull that first read it) and (observation, pull) → event."""
    runs = {digest for digest, _ in observations.values()}
    return {
        "snapshots": [{"snapshot_id": str(pull), "sequence": pull, "fetched_at": at(pull)} for pull in range(12)],
        "runs": [{"run_digest": digest, "observed_at": at(0)} for digest in sorted(runs)],
        "observations": [
            {"observation_sha256": name, "run_digest": digest, "snapshot_id": str(pull)}
            for name, (digest, pull) in observations.items()
        ],
        "presence": [
            {"observation_sha256": name, "event": event, "sequence": pull, "at": at(pull)}
            for (name, pull), event in presence.items()
        ],
    }


def _spans(bench: Bench, rows: Rows) -> list[tuple[Any, ...]]:
    columns = ("run_digest", "cause", "since", "until")
    return sorted(tuple(row[column] for column in columns) for row in bench.answer("suspensions", rows))


GONE, BACK = "withdrawn", "reinstated"


@pytest.mark.parametrize(
    ("observations", "presence", "spans"),
    [
        ({"x": ("r", 1)}, {}, []),
        ({"x": ("r", 1)}, {("x", 3): GONE}, [(3, None)]),
        ({"x": ("r", 1)}, {("x", 3): GONE, ("x", 5): BACK}, [(3, 5)]),
        ({"x": ("r", 1)}, {("x", 3): GONE, ("x", 5): BACK, ("x", 6): GONE}, [(3, 5), (6, None)]),
        # A run stands while one of its observations does, also one that comes later.
        ({"x": ("r", 1), "y": ("r", 1)}, {("x", 3): GONE}, []),
        ({"x": ("r", 1), "y": ("r", 1)}, {("x", 3): GONE, ("y", 4): GONE, ("x", 6): BACK}, [(4, 6)]),
        ({"x": ("r", 1), "y": ("r", 1)}, {("x", 3): GONE, ("x", 4): BACK, ("y", 4): GONE}, []),
        ({"x": ("r", 1), "y": ("r", 5)}, {("x", 3): GONE}, [(3, 5)]),
        ({"x": ("r", 1), "y": ("r", 5)}, {("x", 3): GONE, ("y", 7): GONE}, [(3, 5), (7, None)]),
        ({"x": ("r", 1), "y": ("other", 1)}, {("y", 3): GONE}, [("other", 3, None)]),
    ],
)
def test_a_run_is_withdrawn_while_none_of_its_observations_is_there(
    bench: Bench, observations: dict[str, Any], presence: dict[Any, str], spans: list[Any]
) -> None:
    expected = [
        (*(rest or ("r",)), "withdrawn", at(since), None if until is None else at(until))
        for *rest, since, until in spans
    ]
    assert _spans(bench, _rows(observations, presence)) == expected


@PROPERTY
@given(
    first=st.lists(st.tuples(st.sampled_from("rs"), st.integers(1, 4)), min_size=1, max_size=4),
    turns=st.lists(st.tuples(st.integers(0, 3), st.integers(5, 11)), unique=True, max_size=8),
    random=st.randoms(use_true_random=False),
)
def test_spans_are_those_of_the_count_of_present_observations(
    bench: Bench, first: list[tuple[str, int]], turns: list[tuple[int, int]], random: Any
) -> None:
    observations = {str(number): each for number, each in enumerate(first)}
    presence: dict[tuple[str, int], str] = {}
    there = dict.fromkeys(observations, True)
    for number, pull in sorted(turns, key=lambda turn: turn[1]):
        if (name := str(number)) in observations:
            presence[name, pull] = GONE if there[name] else BACK
            there[name] = not there[name]
    expected = []
    for digest in {digest for digest, _ in first}:
        mine = {name: pull for name, (owner, pull) in observations.items() if owner == digest}
        state, since, seen = dict.fromkeys(mine, False), None, False
        for pull in range(12):
            for name in mine:
                state[name] = (
                    (state[name] or mine[name] == pull)
                    if (name, pull) not in presence
                    else (presence[name, pull] == BACK)
                )
            stands = any(state.values())
            seen = seen or stands
            if seen and not stands and since is None:
                since = pull
            elif stands and since is not None:
                expected.append((digest, "withdrawn", at(since), at(pull)))
                since = None
        if since is not None:
            expected.append((digest, "withdrawn", at(since), None))
    rows = _rows(observations, presence)
    for each in rows.values():
        random.shuffle(each)  # type: ignore[arg-type]
    found = _spans(bench, rows)
    assert found == sorted(expected, key=lambda span: span[:3])


@pytest.mark.parametrize(
    ("action", "cause"),
    [("retract", "retracted"), ("supersede", "superseded"), ("takedown", "taken_down")],
)
def test_a_correction_suspends_from_its_date_on(bench: Bench, action: str, cause: str) -> None:
    rows = _rows({"x": ("r", 1)}, {})
    correction = {"run_digest": "r", "action": action, "at": at(4)}
    assert _spans(bench, {**rows, "corrections": [correction]}) == [("r", cause, at(4), None)]
    early = [{"run_digest": "r", "observed_at": at(9)}]
    assert _spans(bench, {**rows, "runs": early, "corrections": [correction]}) == [("r", cause, at(9), None)]
