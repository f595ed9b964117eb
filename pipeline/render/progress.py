"""A progress bar on stderr, for people only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Report(Protocol):
    """Told of every step: what is done, how far, of how much (None: unknown)."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Take note."""


@contextmanager
def progress(shown: bool) -> Iterator[Report]:
    """Give a function to report progress to (stage, done, total); ``shown`` False: it does nothing.

    The bar is gone when the block ends, so that the answer stands alone.
    """
    if not shown:
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(stage: str, done: int, total: int | None) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        yield report


def _silent(stage: str, done: int, total: int | None) -> None:
    """Report to nobody."""
