from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from pipeline.store.ledger import Ledger

Row = tuple[str, str, str]
NAMES = ("observation_sha256", "implementation_digest", "run_digest")

# The first three begin with the same eight bytes: what is remembered of a digest does not tell them apart.
DIGESTS = ["sha256:" + ("0" * 16 if digit < 3 else f"{digit:x}" * 16) + f"{digit:x}" * 48 for digit in range(8)]

observations = st.lists(st.tuples(*[st.sampled_from(DIGESTS[:6])] * 3), max_size=6)


def ledger(folder: Path, parts: list[list[Row]]) -> Ledger:
    paths = []
    for number, rows in enumerate(parts):
        columns = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(NAMES)}
        paths.append(folder / f"{number}.parquet")
        pq.write_table(pa.table(columns | {"more": pa.array([1] * len(rows), pa.int64())}), paths[-1])
    return Ledger(paths)


@given(st.lists(observations, max_size=3), st.lists(st.sampled_from(DIGESTS), max_size=5))
def test_lookups_over_all_parts(tmp_path: Path, parts: list[list[Row]], asked: list[str]) -> None:
    book = ledger(tmp_path, parts)
    expected: dict[str, set[str]] = {}
    for sha256, implementation, _ in (row for rows in parts for row in rows):
        if sha256 in asked:
            expected.setdefault(sha256, set()).add(implementation)
    assert book.implementations(asked) == expected
    assert book.known_runs(asked) == {row[2] for rows in parts for row in rows} & set(asked)


def test_without_parts_nothing_is_known() -> None:
    assert Ledger([]).implementations(DIGESTS) == {}
    assert Ledger([]).known_runs(DIGESTS) == set()
