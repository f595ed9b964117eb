"""Files and folders that people name with ``--out``: checked, then written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.store.files import appearing, is_utf8, refusal
from pipeline.store.layout import owning_directory


@contextmanager
def exporting(target: Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; when the block ends well it is synced and renamed onto ``target``.

    A link is followed: what it points to is replaced.

    Raises:
        UsageError: as of :func:`check_target`, or the file system refuses it.
    """
    check_target(target)
    try:
        with appearing(target.resolve()) as aside:
            yield aside
    except OSError as error:
        raise UsageError(refusal(error, target)) from error


def check_target(target: Path) -> None:
    """Check that a file can be written: its folder is there, and nothing but a plain file would be replaced.

    Raises:
        UsageError: it cannot, ``target`` is a part of a data directory, or what is open here, such as stdout.
    """
    found = _found(target)
    if not (folder := target.resolve().parent).is_dir():
        raise UsageError(f"the folder {folder} does not exist: make it first, or name another file")
    if found is None:
        return
    if stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{target} is a folder: name a file")
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{target} is no plain file: name another one")
    if _is_open_here(found):
        raise UsageError(f"{target} is open in this command already, as stdout may be: name a file of its own")


def check_folder(target: Path) -> None:
    """Check that files can be written to a folder: it is one, or can be made.

    Raises:
        UsageError: it is none, or a part of a data directory.
    """
    found = _found(target)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{target} is no folder: name another one")


def _found(target: Path) -> os.stat_result | None:
    """Return what is there now, in the end of all links; refuse what is nobody's to write to."""
    if str(target) == "-":
        raise UsageError("- is no place for files, which are written whole or not at all: name one")
    if not is_utf8(str(target)):
        raise UsageError(f"{target} is no UTF-8, which Parquet wants of a name: name another")
    try:
        found = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        found = None
    except OSError as error:
        raise UsageError(refusal(error, target)) from error
    _refuse_own(target)
    return found


def _is_open_here(found: os.stat_result) -> bool:
    """Tell whether this process has a file open: renaming another onto its name would part the two."""
    for number in os.listdir("/dev/fd"):  # noqa: PTH208 - not of files
        with suppress(OSError):  # the folder itself, closed by now
            if os.path.samestat(os.fstat(int(number)), found):
                return True
    return False


def _refuse_own(target: Path) -> None:
    if owner := owning_directory(target):
        raise UsageError(f"{target} belongs to the data directory {owner.root}: write to {owner.exports} or outside it")
