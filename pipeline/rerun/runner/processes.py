"""Processes that must not outlive their job: who descends from whom, and how all of them end."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none escapes by a double fork."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends, however that happens."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def hide_memory() -> None:
    """Let no other process of this user read or trace this one."""
    _prctl(_PR_SET_DUMPABLE, 0)


def descendants(root: int) -> dict[int, str]:
    """Return the living descendants of a process with their names; zombies do not live."""
    table = _table()
    found: set[int] = set()
    frontier = {root}
    while frontier:
        frontier = {pid for pid, each in table.items() if each.parent in frontier and pid not in found}
        found |= frontier
    return {pid: table[pid].name for pid in found if table[pid].lives}


def group_members(leader: int) -> dict[int, str]:
    """Return the living processes of a process group with their names, but for its leader."""
    return {pid: each.name for pid, each in _table().items() if each.group == leader != pid and each.lives}


class _Entry(NamedTuple):
    name: str
    parent: int
    group: int
    lives: bool


def _table() -> dict[int, _Entry]:
    table: dict[int, _Entry] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            head, _, rest = (entry / "stat").read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        state, parent, group = rest.split()[:3]
        table[int(entry.name)] = _Entry(head.partition("(")[2], int(parent), int(group), state not in "ZX")
    return table


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the private resident memory of some processes in bytes; what they share with others is not counted."""
    total = 0
    for pid in pids:
        try:
            resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
        except OSError:
            continue
        total += (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")
    return total


def end_descendants(root: int, *, spare: frozenset[int] = frozenset()) -> dict[int, str]:
    """Kill the descendants of a process until none is left; return those that were met."""
    met: dict[int, str] = {}
    for _ in range(200):
        living = {pid: name for pid, name in descendants(root).items() if pid not in spare}
        if not living:
            break
        met.update(living)
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        reap()
        time.sleep(0.01)
    return met


def reap() -> None:
    """Take note of the children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
