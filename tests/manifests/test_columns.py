"""Canonical text in columns is, byte for byte, what the library writes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from pipeline.manifests.columns import create_macros

_BITS = st.builds(
    lambda sign, exponent, fraction: struct.unpack("<d", struct.pack("<Q", sign << 63 | exponent << 52 | fraction))[0],
    st.integers(0, 1),
    st.integers(0, 2046),  # every exponent of a finite double, 0 among them: the subnormals
    st.integers(0, 2**52 - 1),
)
_DOUBLES = _BITS | st.integers(-(2**60), 2**60).map(float) | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\x00\x0b\x1f\x7f"\\/u01Ff\b\n\u2028😀'))

KNOWN_NUMBERS = [0.0, -0.0, 1e-6, 1e-7, 1e20, 1e21, -1e21, 137343.0, 5e-324, 1.7976931348623157e308, 2.0**53, 0.1]
KNOWN_TEXTS = ["", "\x00", "\x1f", "\\u001F", "\\\x1f", "\\\\u001f", '"', "\x7f", "\u2028", "😀", "\ue000", "a/b\\"]


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    create_macros(connection)
    return connection


def _column(connection: duckdb.DuckDBPyConnection, expression: str, values: Sequence[object]) -> list[str]:
    connection.register("given", pa.table({"value": values}))
    return [text for (text,) in connection.execute(f"SELECT {expression} FROM given").fetchall()]


@given(numbers=st.lists(_DOUBLES, min_size=1))
def test_numbers(connection: duckdb.DuckDBPyConnection, numbers: list[float]) -> None:
    numbers = [*numbers, *KNOWN_NUMBERS]
    assert _column(connection, "jcs_number(value)", numbers) == [rfc8785.dumps(each).decode() for each in numbers]


def test_every_exponent(connection: duckdb.DuckDBPyConnection) -> None:
    numbers = [
        struct.unpack("<d", struct.pack("<Q", exponent << 52 | fraction))[0]
        for exponent in range(2047)
        for fraction in (0, 1, 0x5555555555555, 2**52 - 1)
    ]
    assert _column(connection, "jcs_number(value)", numbers) == [rfc8785.dumps(each).decode() for each in numbers]


@given(texts=st.lists(_TEXTS, min_size=1))
def test_texts(connection: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    texts = [*texts, *KNOWN_TEXTS]
    written = _column(connection, "jcs_characters(value)", texts)
    assert [f'"{text}"' for text in written] == [rfc8785.dumps(each).decode() for each in texts]
