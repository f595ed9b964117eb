"""Files that people name: checked, then written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.store.files import appearing
from pipeline.store.layout import owning_directory


@contextmanager
def exporting(target: Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; when the block ends well it is synced and renamed onto ``target``.

    A link is followed: what it points to is replaced. UsageError as of :func:`check_target`.
    """
    check_target(target)
    with appearing(target.resolve()) as aside:
        yield aside


def check_target(target: Path) -> None:
    """Check that a file can be written: its folder is there, and nothing but a plain file would be replaced.

    Raises:
        UsageError: it cannot, or ``target`` is a part of a data directory.
    """
    refuse_own(target)
    target = target.resolve()
    if not target.parent.is_dir():
        raise UsageError(f"the folder {target.parent} does not exist: make it first, or name another file")
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file")
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is no plain file: name another one")


def refuse_own(target: Path) -> None:
    """Refuse to write to what a data directory consists of: a file, or a folder for files.

    Raises:
        UsageError: naming the data directory.
    """
    if owner := owning_directory(target):
        raise UsageError(f"{target} belongs to the data directory {owner.root}: write to {owner.exports} or outside it")
