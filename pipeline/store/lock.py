"""One writer at a time in a data directory; readers need no lock."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import RawIOBase

from pipeline.errors import DataDirectoryError
from pipeline.store.files import refusal
from pipeline.store.layout import DataDirectory


class LockedError(DataDirectoryError):
    """Another process writes to the data directory."""


@contextmanager
def writing(data: DataDirectory, *, wait: bool = False) -> Iterator[None]:
    """Be the one writer of a data directory until the block ends.

    The kernel holds the lock and drops it with its process, however that ends: so a lock whose owner is gone is free.
    The file only says who the owner is.

    Raises:
        LockedError: another process is the writer, and ``wait`` is false.
        DataDirectoryError: the folder cannot be used or written.
    """
    data.check()
    try:
        data.root.mkdir(parents=True, exist_ok=True)
        stream = data.lock_file.open("a+b", buffering=0)
    except OSError as error:
        raise DataDirectoryError(refusal(error, data.root)) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise LockedError(f"{_owner(stream)} is writing to {data.root}: try later, or wait with --wait") from None
        try:
            with suppress(OSError):  # a full disk: who holds the lock is a courtesy, the lock is the kernel's
                _sign(stream)
            yield
        finally:
            stream.truncate(0)


def _sign(stream: RawIOBase) -> None:
    owner = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    stream.truncate(0)
    stream.write(json.dumps(owner).encode() + b"\n")


def _owner(stream: RawIOBase) -> str:
    """Say who holds the lock; between taking it and signing, an owner is not known yet."""
    stream.seek(0)
    try:
        owner = json.loads(stream.read())
        return f"process {owner['pid']} on {owner['host']}, started {owner['started']},"
    except (ValueError, KeyError, TypeError):
        return "another process"
