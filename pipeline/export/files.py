"""Files that people name: checked, then written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.store.files import appearing


@contextmanager
def exporting(target: Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; when the block ends well it is synced and renamed onto ``target``.

    UsageError where the folder does not exist, or ``target`` is a folder.
    """
    if not target.parent.is_dir():
        raise UsageError(f"the folder {target.parent} does not exist: make it first, or name another file")
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file")
    with appearing(target) as aside:
        yield aside
