"""How the reading of millions of records takes memory and turns.

What is freed is kept for the next batch, garbage waits, and threads get Python's lock soon.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""

_KEEP_BYTES = 2**30
_LARGEST_KEPT_BYTES = 2**25
_USUAL_BYTES = 2**17

_SWITCH_SECONDS = 1e-4


@contextmanager
def collecting_by_hand() -> Iterator[Callable[[], object]]:
    """Switch the search for reference cycles off and give a function for it to be called now and then.

    Batches are made of many small tuples and of no cycle. Left alone, Python looks through all of them again and again,
    for a third of the whole time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield lambda: gc.collect(1)
    finally:
        if was_on:
            gc.enable()


@contextmanager
def switching_often() -> Iterator[None]:
    """Let a thread that wants Python's lock have it soon.

    A thread that works in columns leaves the lock at every step. To have it again it waits as long as Python usually
    lets the other keep it, which is longer than most steps take.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def keeping_freed() -> Iterator[None]:
    """Keep what a batch frees for the next one; in the end, give all of it back.

    Every batch takes as much as the one before. Usually it would be given back each time and taken anew, and a fifth of
    the whole time goes into the pages that the system must clear for that. Where the C library is not glibc, all stays
    as it is.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
    try:
        yield
    finally:
        libc.mallopt(_M_TRIM_THRESHOLD, _USUAL_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, _USUAL_BYTES)
        pa.set_memory_pool(pool)
        libc.malloc_trim(0)
