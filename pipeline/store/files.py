"""Files that appear whole or not at all, and what to say where the file system refuses one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"
"""Begins the name of every file that is not finished; such a file may be removed when no ingest runs."""

_SPACE = "free disk space"
_RIGHTS = "change its permissions or choose another place"
_ADVICE = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.EISDIR: "take the folder away",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "allow more open files, see ulimit -n",
    errno.EIO: "check the disk",
}
_OTHER_ADVICE = "mend it or choose another place"


def refusal(error: Exception, place: Path | str) -> str:
    """Say that a place cannot be used, why, and what to do about it; an error that names a file is about that file.

    A file that is not finished yet is nothing to anybody: then it is the place itself. DuckDB and Arrow tell in their
    own words what the system said.
    """
    names = (error.filename2, error.filename) if isinstance(error, OSError) else ()
    place = next((name for name in names if isinstance(name, str) and not Path(name).name.startswith(TEMPORARY)), place)
    number = error.errno if isinstance(error, OSError) else None
    number = number or next((each for each in _ADVICE if os.strerror(each) in str(error)), None)
    why = os.strerror(number) if number else str(error).partition("\n")[0].rstrip(". ")
    return f"{place} cannot be used ({why}): {_ADVICE.get(number or 0, _OTHER_ADVICE)}"


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


def read_plain(path: Path) -> bytes:
    """Return the content of a plain file, which a link may lead to.

    Raises:
        OSError: it cannot be read, or is something else: a pipe, for example, may never come to an end.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return path.read_bytes()


def is_utf8(name: str) -> bool:
    """Tell whether a name is text: Python holds other bytes of it as halves of surrogate pairs."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


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
