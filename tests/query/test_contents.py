from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from pipeline.query.contents import PREVIEW, digest, preview, rows


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', [1.5]), (2, NULL, []), (3, 'c', NULL)) t(k, x, y)"
        )
        yield connection


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("FROM t ORDER BY k DESC", True),
        ("SELECT * REPLACE ('b' AS x) FROM t", False),
        ("FROM t WHERE k < 3", False),
        ("FROM t WHERE false", False),
        ("FROM t UNION ALL FROM t", False),
        ("SELECT k, x AS z, y FROM t", False),
        ("SELECT * REPLACE (coalesce(x, 'NULL') AS x) FROM t", False),
        ("SELECT x, k, y FROM t", False),
    ],
)
def test_a_digest_is_of_the_rows(other: str, same: bool, connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"CREATE TABLE other AS {other}")
    assert (digest(connection, "t") == digest(connection, "other")) is same


def test_a_preview_is_short(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("INSERT INTO t SELECT k, repeat('x', 100), [0.5] FROM range(4, 50) r(k)")
    shown = preview(connection, "t", ("k",))
    assert rows(connection, "t") == 49
    assert len(shown) == PREVIEW
    assert shown[0] == {"k": 1, "x": "a", "y": "[1.5]"}
    assert shown[1] == {"k": 2, "x": None, "y": "[]"}
    assert shown[4]["x"] == "x" * 31 + "…"
