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

    A link is followed: what it points to is replaced. UsageError where the folder does not exist, or ``target`` is
    anything but a plain file, or one of a data directory's own.
    """
    target = target.resolve()
    if not target.parent.is_dir():
        raise UsageError(f"the folder {target.parent} does not exist: make it first, or name another file")
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file")
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is no plain file: name another one")
    if owner := owning_directory(target):
        raise UsageError(f"{target} belongs to the data directory {owner.root}: name a file outside it")
    with appearing(target) as aside:
        yield aside
