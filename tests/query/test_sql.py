from __future__ import annotations

import concurrent.futures
import itertools
import signal
import sys
import threading
from decimal import Decimal
from types import CodeType, FrameType
from typing import Any

import pytest
from duckdb import DuckDBPyConnection

from pipeline.errors import KernelhouseError, UsageError
from pipeline.query.shell import HELP, PROMPT, Shell
from pipeline.query.sql import Result, execute, interruptible, statements, unique


def rows(connection: DuckDBPyConnection, text: str) -> list[list[tuple[object, ...]]]:
    return [list(execute(connection, statement).rows) for statement in statements(connection, text)]


def test_statements_run_in_their_order(connection: DuckDBPyConnection) -> None:
    assert rows(connection, "CREATE TEMP TABLE t AS SELECT 1 AS a; SELECT a + 1 FROM t; SELECT ';'") == [
        [(1,)],
        [(2,)],
        [(";",)],
    ]


def test_results_longer_than_a_batch_come_whole(connection: DuckDBPyConnection) -> None:
    [result] = rows(connection, "SELECT range FROM range(25000)")
    assert result == [(number,) for number in range(25_000)]


def test_columns_have_types_and_names_of_their_own(connection: DuckDBPyConnection) -> None:
    [statement] = statements(connection, "SELECT 1::BIGINT AS a, 'x' AS a, [1] AS b")
    assert [(column.name, column.type) for column in execute(connection, statement).columns] == [
        ("a", "BIGINT"),
        ("a_1", "VARCHAR"),
        ("b", "INTEGER[]"),
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("INTERVAL '1 month 2 days 3.5 seconds'", "1 month 2 days 00:00:03.5"),
        ("TIMESTAMP 'infinity'", "infinity"),
        ("TIMESTAMP '9999-12-31 23:59:59.999999'", "9999-12-31T23:59:59.999999Z"),
        ("TIMESTAMPTZ '-infinity'", "-infinity"),
        ("TIMESTAMPTZ '2026-06-06 23:33:43.5+02'", "2026-06-06T21:33:43.500Z"),
        ("'2026-06-06 21:33:43.123456789'::TIMESTAMP_NS", "2026-06-06T21:33:43.123456789Z"),
        ("'2026-06-06 21:33:43'::TIMESTAMP_S", "2026-06-06T21:33:43.000Z"),
        ("TIMESTAMP '290000-01-01'", "290000-01-01 00:00:00"),
        ("DATE 'infinity'", "infinity"),
        ("DATE '2026-06-06'", "2026-06-06"),
        ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"),
        ("'10:00:00.123456789'::TIME_NS", "10:00:00.123456789"),
        ("TIME '24:00:00'", "24:00:00"),
        ("12345678901234567890.123456789::DECIMAL(38,9)", Decimal("12345678901234567890.123456789")),
        ("170141183460469231731687303715884105727", 2**127 - 1),
        ("340282366920938463463374607431768211455::UHUGEINT", 2**128 - 1),
        ("[DATE 'infinity', NULL]", ["infinity", None]),
        ("[TIMESTAMP '2026-06-06']::TIMESTAMP[1]", ["2026-06-06T00:00:00.000Z"]),
        ("{'a \"b': TIMESTAMP '2026-06-06', 'c': NULL}", {'a "b': "2026-06-06T00:00:00.000Z", "c": None}),
        ("NULL::STRUCT(a DATE)", None),
        ("row(DATE '2026-06-06', 1)", ["2026-06-06", 1]),
        ("MAP{DATE '2026-06-06': INTERVAL 1 MONTH}", {"2026-06-06": "1 month"}),
        ("MAP{[true]: 1}", {"[true]": 1}),
        ("MAP{true: [DATE 'infinity']}", {"true": ["infinity"]}),
        ("DATE 'infinity'::UNION(a INTEGER, b DATE)", "infinity"),
        ("INTERVAL 1 MONTH::VARIANT", '"1 month"'),
        ("'a'::ENUM('a', 'b')", "a"),
        ("'{\"a\": 1}'::JSON", '{"a": 1}'),
    ],
)
def test_values_are_exact(connection: DuckDBPyConnection, value: str, shown: object) -> None:
    assert rows(connection, f"SELECT {value} AS x") == [[(shown,)]]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ';' AS a; -- an ü; and more",
        "-- first\nSELECT ';' AS a /* ; */;;",
        "PREPARE p AS SELECT ';'; EXECUTE p;",
    ],
)
def test_comments_and_semicolons_change_nothing(connection: DuckDBPyConnection, text: str) -> None:
    assert rows(connection, text)[-1] == [(";",)]


@pytest.mark.parametrize(
    "text",
    ["SHOW TABLES", "DESCRIBE runs", "SUMMARIZE runs", "EXPLAIN FROM runs", "PIVOT runs ON status", "VALUES (1)"],
)
def test_whatever_gives_rows_gives_them(connection: DuckDBPyConnection, text: str) -> None:
    assert rows(connection, text) != [[]]


def test_rows_keep_their_order(connection: DuckDBPyConnection) -> None:
    [result] = rows(
        connection, "SELECT DATE '2026-01-01' + range::INTEGER, range FROM range(25000) ORDER BY range DESC"
    )
    assert [number for _, number in result] == list(range(24_999, -1, -1))


class Query:
    """Stands for a connection and its endless query, which an interrupt ends."""

    def __init__(self) -> None:
        self.begun = False
        self.interrupted = threading.Event()

    def interrupt(self) -> None:
        if self.begun:
            self.interrupted.set()

    def run(self) -> None:
        self.begun = True
        self.interrupted.wait(2)


class CtrlC:
    """Comes at so many lines of what the main thread runs."""

    def __init__(self, moment: int) -> None:
        self.lines_left = moment
        self.place: CodeType | None = None

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and frame.f_code.co_filename != __file__:
            self.lines_left -= 1
            if self.lines_left == 0:
                self.place = frame.f_code
                signal.raise_signal(signal.SIGINT)
        return self


def traced(trace: CtrlC, query: Query) -> None:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        interruptible(query, query.run)  # type: ignore[arg-type]
    finally:
        sys.settrace(before)


def test_ctrl_c_is_never_lost() -> None:
    for moment in itertools.count(1):
        query, ctrl_c = Query(), CtrlC(moment)
        with pytest.raises(KeyboardInterrupt):
            traced(ctrl_c, query)
        assert query.interrupted.is_set() or not query.begun, f"lost in {ctrl_c.place}"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ctrl_c.place is concurrent.futures.wait.__code__:
            break


@pytest.mark.parametrize(
    ("names", "own"),
    [(["a", "a", "a"], ["a", "a_1", "a_2"]), (["a", "a", "a_1"], ["a", "a_2", "a_1"]), ([], [])],
)
def test_unique(names: list[str], own: list[str]) -> None:
    assert unique(names) == own


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no SQL statement"),
        ("-- nothing", "no SQL statement"),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT abx FROM runs", "Candidate bindings"),
        ("SELECT error('two\nlines')", "two lines"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("COPY runs TO '/tmp/kernelhouse-test.csv'", "disabled by configuration"),
        ("ATTACH '/tmp/kernelhouse-test.db'", "disabled by configuration"),
        ("DELETE FROM runs", "read-only"),
        ("SET enable_external_access = true", "locked"),
        ("INSTALL httpfs", "disabled by configuration"),
    ],
)
def test_what_cannot_run_is_one_line(connection: DuckDBPyConnection, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        rows(connection, text)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


class Terminal:
    """Someone who types the lines given, then ends the input; KeyboardInterrupt among them is Ctrl-C."""

    def __init__(self, connection: DuckDBPyConnection, *lines: str | type[KeyboardInterrupt]) -> None:
        self._lines = list(lines)
        self.prompts: list[str] = []
        self.results: list[list[tuple[object, ...]]] = []
        self.said: list[str] = []
        self.complaints: list[str] = []
        Shell(connection, self._read, self._show, self.said.append, self._complain).run()

    def _read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self._lines:
            raise EOFError
        line = self._lines.pop(0)
        if isinstance(line, str):
            return line
        raise line

    def _show(self, result: Result) -> None:
        self.results.append(list(result.rows))

    def _complain(self, error: KernelhouseError) -> None:
        self.complaints.append(str(error))


def test_a_statement_may_span_lines_and_hold_semicolons(connection: DuckDBPyConnection) -> None:
    terminal = Terminal(connection, "", "SELECT", "  ';' AS a -- ; no end", "  , 2;", "SELECT 1; SELECT 2;")
    assert terminal.results == [[(";", 2)], [(1,)], [(2,)]]
    assert terminal.complaints == []
    assert terminal.prompts[:3] == [PROMPT, PROMPT, terminal.prompts[2]]
    assert terminal.prompts[2] != PROMPT


def test_an_error_or_ctrl_c_ends_the_statement_only(connection: DuckDBPyConnection) -> None:
    terminal = Terminal(connection, "SELEC;", "SELECT", KeyboardInterrupt, "SELECT 3;", ".nonsense", ".schema nothing")
    assert terminal.results == [[(3,)]]
    assert [complaint.split()[0] for complaint in terminal.complaints] == ["Parser", "there", "there"]


def test_dot_commands(connection: DuckDBPyConnection) -> None:
    terminal = Terminal(connection, ".tables", ".schema cohorts", ".help", ".quit", "SELECT 1;")
    help_at_start, tables, schema, help_again = terminal.said
    assert help_at_start == help_again == HELP
    assert {"runs", "leaderboard", "meta"} <= set(tables.split("\n"))
    assert "best_latency_ns" in schema
    assert "Its latency in nanoseconds" in schema
    assert terminal.results == []
