"""A reader that asks again and again until its stdin ends. Run as ``python -m tests.ingest.reader DATABASE``."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import closing
from pathlib import Path

from pipeline.store.database import connect

CONSISTENT = """
    SELECT (SELECT max(sequence) FROM snapshots), (SELECT count(*) FROM observations), (SELECT sum(added) FROM ingests),
    (SELECT count(*) FROM runs WHERE eligible), (SELECT sum(results) FROM cohorts WHERE profile = 'source_native'),
    (SELECT count(*) FROM leaderboard WHERE profile = 'source_native')
"""
"""A state of the warehouse by tables that must agree: observations are those added, ranked runs those eligible."""


def look(database: Path) -> tuple[int, ...]:
    """Open the warehouse and return its state, asked for twice."""
    with closing(connect(database)) as connection:
        first, second = (connection.sql(CONSISTENT).fetchall()[0] for _ in range(2))
    assert first == second
    sequence, observations, added, eligible, results, ranked = (int(value) for value in first)
    assert observations == added
    assert eligible == results == ranked
    return sequence, observations, eligible


if __name__ == "__main__":
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    states, looks = set(), 0
    while not over.is_set():
        states.add(look(Path(sys.argv[1])))
        looks += 1
        if looks == 1:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
    states.add(look(Path(sys.argv[1])))
    sys.stdout.write(json.dumps({"states": sorted(states), "looks": looks}) + "\n")
