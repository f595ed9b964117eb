"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"
"""Begins the name of every file that is not finished; such a file may be removed when no ingest runs."""


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Give a temporary path beside a target; when the block ends well, sync it and rename it onto the target.

    On an error the temporary file is removed and the target stays as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f"{TEMPORARY}{os.getpid()}-{target.name}"
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(target: Path, content: bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    with appearing(target) as temporary:
        temporary.write_bytes(content)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove what a killed process left unfinished in a folder."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        leftover.unlink(missing_ok=True)
