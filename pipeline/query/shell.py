"""The interactive SQL prompt: statements that may span lines, and a few dot commands."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import KernelhouseError, UsageError
from pipeline.query.find import near
from pipeline.query.rows import values
from pipeline.query.sql import Result, execute, statements

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PROMPT = "kernelhouse> "
CONTINUED = "        ...> "
HELP = "End a statement with ; (it may span lines). .tables  .schema NAME  .help  .quit"


@dataclass(frozen=True)
class Shell:
    """A session: ``read`` gives the next line for a prompt (EOFError ends it), the others show what comes of it."""

    connection: DuckDBPyConnection
    read: Callable[[str], str]
    show: Callable[[Result], None]
    say: Callable[[str], None]
    complain: Callable[[KernelhouseError], object]

    def run(self) -> None:
        """Read and answer until ``.quit`` or the end of input; an error or Ctrl-C drops the statement only."""
        self.say(HELP)
        while True:
            try:
                text = self._statement()
                if text == ".quit":
                    return
                self._answer(text)
            except KernelhouseError as error:
                self.complain(error)
            except KeyboardInterrupt:
                self.say("")
            except EOFError:
                self.say("")
                return

    def _statement(self) -> str:
        """Return a dot command, or lines up to one that ends a statement."""
        text = ""
        while True:
            line = self.read(CONTINUED if text else PROMPT)
            if not text and line.strip().startswith("."):
                return line.strip()
            text += line + "\n"
            # sqlite3 knows quotes and comments, so that a ; inside of them ends nothing.
            if not text.strip():
                text = ""
            elif sqlite3.complete_statement(text):
                return text

    def _answer(self, text: str) -> None:
        if not text.startswith("."):
            for statement in statements(self.connection, text):
                self.show(execute(self.connection, statement))
            return
        command, _, argument = text.partition(" ")
        match command:
            case ".tables":
                self.say("\n".join(table_names(self.connection)))
            case ".schema":
                self.say(schema(self.connection, argument.strip()))
            case ".help":
                self.say(HELP)
            case _:
                raise UsageError(f"there is no command {command}: .help lists them")


def table_names(connection: DuckDBPyConnection) -> list[str]:
    """Return the names of the warehouse's tables and views, sorted."""
    return values(
        connection, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
    )


def schema(connection: DuckDBPyConnection, name: str) -> str:
    """Return the columns of a table, one a line: name, type, meaning; UsageError for an unknown table."""
    columns = connection.execute(
        "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE schema_name = 'main' AND table_name = ?"
        " ORDER BY column_index",
        [name],
    ).fetchall()
    if not columns:
        close = near(name, table_names(connection))
        hint = f"did you mean {' or '.join(close)}?" if close else ".tables lists them"
        raise UsageError(f'there is no table "{name}": {hint}')
    width = max(len(column) for column, _, _ in columns)
    return "\n".join(f"{column:<{width}}  {type_:<9}  {comment or ''}".rstrip() for column, type_, comment in columns)
