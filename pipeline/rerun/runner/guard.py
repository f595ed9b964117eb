"""The harness's own references to what it measures with, taken before any foreign code is imported."""

from __future__ import annotations

import _thread
import builtins
import ctypes
import inspect
import json
import sys
import threading
import time
from typing import Any

import torch
import torch.profiler

_CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6

_WATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time")),
    (builtins, ("type", "isinstance", "len", "range", "getattr", "id", "open", "sorted", "print")),
    (threading, ("active_count", "enumerate")),
    (_thread, ("start_new_thread", "_count")),
    (json, ("dumps", "loads")),
    (sys, ("settrace", "setprofile", "addaudithook")),
    (
        torch,
        ("empty", "empty_like", "zeros", "ones", "full", "equal", "allclose", "clone", "frombuffer", "uint8"),
    ),
    (
        torch.Tensor,
        (
            "__torch_function__", "clone", "copy_", "data_ptr", "detach", "dtype", "fill_", "is_contiguous", "reshape",
            "shape", "to", "untyped_storage", "view", "zero_",
        ),
    ),
    (torch.UntypedStorage, ("data_ptr", "nbytes")),
    (
        torch.cuda,
        ("Event", "Stream", "current_stream", "default_stream", "set_stream", "stream", "synchronize", "CUDAGraph"),
    ),
    (torch.cuda.Event, ("__new__", "record", "elapsed_time", "synchronize", "query", "wait")),
    (torch.cuda.Stream, ("__new__", "synchronize", "record_event", "wait_event", "wait_stream", "query")),
    (torch.profiler, ("profile", "record_function")),
    (torch.profiler.profile, ("__enter__", "__exit__", "start", "stop", "events")),
)  # fmt: skip


class Guard:
    """What the watched names meant at the beginning, and which of them mean something else now."""

    def __init__(self) -> None:
        # getattr_static sees what lies in a class or module, without asking descriptors or __getattr__.
        self._lookup = inspect.getattr_static
        self._absent = object()
        self._kept = [
            (owner, name, found)
            for owner, names in _WATCHED
            for name in names
            if (found := self._lookup(owner, name, self._absent)) is not self._absent
        ]

    def changed(self) -> list[str]:
        """Return the dotted names of what was replaced since."""
        return [
            f"{owner.__module__ + '.' if isinstance(owner, type) else ''}{owner.__name__}.{name}"
            for owner, name, original in self._kept
            if self._lookup(owner, name, self._absent) is not original
        ]


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _persisting_l2_bytes(driver: ctypes.CDLL) -> int:
    value = ctypes.c_size_t()
    status = driver.cuCtxGetLimit(ctypes.byref(value), _CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
    return value.value if status == 0 else 0


class PersistingL2:
    """The part of the L2 that a process has set aside for data that a flush would not push out."""

    def __init__(self) -> None:
        """Read it as it is; the device must be in use already."""
        self._driver = _driver()
        self._before = _persisting_l2_bytes(self._driver) if self._driver else 0

    def changed(self) -> str | None:
        """Return what changed, in words, or None."""
        if self._driver is None:
            return None
        now = _persisting_l2_bytes(self._driver)
        return None if now == self._before else f"persisting L2 went from {self._before} to {now} bytes"

    def reset(self) -> None:
        """Give every persisting line back to normal use."""
        if self._driver is not None:
            self._driver.cuCtxResetPersistingL2Cache()
