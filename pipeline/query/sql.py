"""SQL over the warehouse: statements run on the sandboxed connection, their rows as a stream."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from pipeline.errors import UsageError
from pipeline.query.exact import Exact, for_python, projection

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation, Statement

Answer = TypeVar("Answer")

_BATCH = 10_000
TOO_LARGE = "the result does not fit into memory: ask for fewer rows or shorter values"

_LOOK_S = 0.05
"""Between two looks whether Ctrl-C came."""


@dataclass(frozen=True)
class Column:
    """A column of a result: its name, made unique, and DuckDB type."""

    name: str
    type: str


@dataclass(frozen=True)
class Result:
    """A result: its columns, and its rows, which can be read once and before the next statement runs."""

    columns: list[Column]
    rows: Iterator[tuple[Any, ...]]

    def finish(self) -> None:
        """Read the rows to their end, as DuckDB wants it before the next statement."""
        for _ in self.rows:
            pass


def statements(connection: DuckDBPyConnection, text: str) -> list[Statement]:
    """Return the statements of a script; UsageError where it cannot be parsed or holds none."""
    with spoken():
        found = connection.extract_statements(text)
    if not found:
        raise UsageError("there is no SQL statement to run")
    return found


def execute(connection: DuckDBPyConnection, statement: Statement) -> Result:
    """Run one statement; its values are exact, as :func:`pipeline.query.exact.for_python` reads them.

    UsageError with DuckDB's sentence where it fails or the sandbox forbids it.
    """
    relation = bind(connection, statement)
    columns = [Column(name, str(kind)) for name, kind in zip(unique(relation.columns), relation.types, strict=True)]
    read = [for_python(kind) for kind in relation.types]
    # A relation has no stream of rows: its text has.
    text = relation.project(projection(relation.types, read)).sql_query()
    interruptible(connection, lambda: connection.execute(text))
    return Result(columns, _rows(connection, read))


def bind(connection: DuckDBPyConnection, statement: Statement) -> DuckDBPyRelation:
    """Return a statement as a relation: a query is not run yet, anything else is run, and its rows are kept."""
    with spoken():
        text = _without_end(statement.query)
    return interruptible(connection, lambda: connection.sql(text))


def _without_end(text: str) -> str:
    """Return a statement without the semicolon that ends it and the comments behind that."""
    raw = text.encode()
    places = (place for place, kind in duckdb.tokenize(text) if kind is duckdb.token_type.operator)
    return next((raw[:place].decode() for place in places if raw[place:].startswith(b";")), text)


def unique(names: Sequence[str]) -> list[str]:
    """Return the names with a number after those that stood before: a, a_1, a_2."""
    taken: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 0
        while candidate in taken or (number and candidate in names):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        result.append(candidate)
    return result


def interruptible(connection: DuckDBPyConnection, call: Callable[[], Answer]) -> Answer:
    """Return what ``call`` returns; Ctrl-C ends its query and is raised here.

    It runs in a thread of its own: DuckDB looks for signals between steps only, and one that comes at the wrong
    moment can leave it waiting for good.
    """
    with spoken(), _noted_interrupts() as noted, ThreadPoolExecutor(1) as worker:
        running = worker.submit(call)
        while not running.done():
            if noted:
                connection.interrupt()  # again and again: an interrupt before the query has begun is lost
            wait([running], timeout=_LOOK_S)
        return running.result()


@contextmanager
def _noted_interrupts() -> Iterator[list[int]]:
    """Give a list that Ctrl-C adds to, and raise KeyboardInterrupt at the end of the block where it did.

    Raised at once it could come between any two instructions, also where nobody is there to end the query, and the
    wait for its thread would never end. Signals reach the main thread alone, and a handler that is not Python's own
    stays.
    """
    noted: list[int] = []
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield noted
        return
    signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if noted:
            raise KeyboardInterrupt


@contextmanager
def spoken() -> Iterator[None]:
    """Turn what DuckDB raises, also through Arrow, into a UsageError of one line."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # What follows is a picture of the statement.
        said = " ".join(str(error).split("\n\nLINE ")[0].split())
        raise UsageError(TOO_LARGE if said.startswith("Out of Memory Error") else said) from error
    except MemoryError as error:
        raise UsageError(TOO_LARGE) from error
    except OverflowError as error:
        raise UsageError(f"a value of the result is beyond what can be shown ({error}): cast it to VARCHAR") from error


def _rows(connection: DuckDBPyConnection, read: Sequence[Exact]) -> Iterator[tuple[Any, ...]]:
    while True:
        batch = interruptible(connection, lambda: connection.fetchmany(_BATCH))
        if not batch:
            return
        for row in batch:
            yield tuple(of(value) for of, value in zip(read, row, strict=True))
