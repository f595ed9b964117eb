"""The sandbox of a worker: no network, a read-only file system but for its scratch folder, no privileges, limits.

What the kernel here does not allow is left out and said in the result, never passed over. Beside what prevents
stands what tells: an audit hook reports attempts, so that a violation has its reason. The hook sees what goes through
Python alone; native code meets the kernel's walls and is not told on.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .processes import descendants, die_with_parent, hide_memory

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 0x1
_SYS_MOUNT_SETATTR = 442
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = 64
_CAPSET_VERSION_3 = 0x20080522
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}

_CLOSED_IN_PROC = ("/proc/sys", "/proc/driver", "/proc/irq", "/proc/sysrq-trigger")
"""Parts of /proc that stay read-only: what they change is the host's, not the process's."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.chmod": 1, "os.chown": 1, "os.link": 2, "os.mkdir": 1, "os.remove": 1, "os.rename": 2, "os.rmdir": 1,
    "os.symlink": 2, "os.truncate": 1,
}  # fmt: skip
"""Audit events that change the file system, and how many of their first arguments are paths."""

_NETWORK = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind")


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def enter(scratch: Path, *, file_bytes: int) -> dict[str, str]:
    """Shut this process in, once and for all; it must have one thread. Return what holds, by name.

    ``network`` is none or shared, ``files`` read_only or watched, ``privileges`` dropped or kept.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    die_with_parent()
    hide_memory()
    namespaces = _unshare(libc)
    files = namespaces and _only_scratch_writable(libc, scratch)
    os.chdir(scratch)
    dropped = _drop_privileges(libc)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    return {
        "network": "none" if namespaces else "shared",
        "files": "read_only" if files else "watched",
        "privileges": "dropped" if dropped else "kept",
    }


def _unshare(libc: ctypes.CDLL) -> bool:
    """Take namespaces of mounts and network of our own; as an ordinary user with a user namespace."""
    wanted = _CLONE_NEWNS | _CLONE_NEWNET
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(wanted) == 0:
        return True
    if libc.unshare(wanted | _CLONE_NEWUSER) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            Path(f"/proc/self/{name}").write_text(text)
        except OSError:
            continue
    return True


def _only_scratch_writable(libc: ctypes.CDLL, scratch: Path) -> bool:
    """Make every mount read-only but the scratch folder and /proc, where CUDA must name its threads."""
    if libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return False
    closed = [place for place in _CLOSED_IN_PROC if Path(place).exists()]
    for place in (str(scratch), *closed):
        if libc.mount(os.fsencode(place), os.fsencode(place), None, _MS_BIND, None) != 0:
            return False
    return (
        _set_read_only(libc, "/", True, _AT_RECURSIVE)
        and _set_read_only(libc, str(scratch), False, 0)
        and _set_read_only(libc, "/proc", False, 0)
    )


def _set_read_only(libc: ctypes.CDLL, place: str, closed: bool, flags: int) -> bool:
    wanted = _MountAttr(attr_set=_MOUNT_ATTR_RDONLY) if closed else _MountAttr(attr_clr=_MOUNT_ATTR_RDONLY)
    size = ctypes.c_size_t(ctypes.sizeof(_MountAttr))
    path = os.fsencode(place)
    return bool(libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path, flags, ctypes.byref(wanted), size) == 0)


def _drop_privileges(libc: ctypes.CDLL) -> bool:
    """Give up every capability, also for programs started later: even root may then neither trace nor mount."""
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    locked = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None:
        return False
    header = (ctypes.c_uint32 * 2)(_CAPSET_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    return bool(libc.syscall(number, header, nothing) == 0 and locked)


def watch(scratch: Path, report: Callable[[str, str], None]) -> None:
    """Refuse and report what foreign code must not do, from here on: no Python code can take the hook away.

    ``report`` gets a violation code and a sentence.
    """
    inside = os.path.realpath(scratch)
    realpath, fsdecode, is_file = os.path.realpath, os.fsdecode, os.path.exists
    path_types = (str, bytes, os.PathLike)

    def refuse(code: str, detail: str) -> None:
        report(code, detail)
        raise PermissionError(f"{code}: {detail}")

    def check_path(path: Any, action: str) -> None:
        if not isinstance(path, path_types):
            return
        place = realpath(fsdecode(path))
        if place == inside or place.startswith((inside + "/", "/proc/self/")):
            return
        if place.startswith(f"/proc/{os.getpid()}/") or (place.startswith("/dev/") and not _in_memory_disk(place)):
            return
        if action == "os.mkdir" and is_file(place):
            return  # asked for a folder that is there: nothing changes
        refuse("WRITE_OUTSIDE_SCRATCH", f"{action} of {place}")

    def check_signal(target: Any, signal: Any) -> None:
        own = os.getpid()
        if signal != 0 and target not in (0, own, os.getpgid(0)) and target not in descendants(own):
            refuse("SIGNAL_SENT", f"signal {signal} to process {target}")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                check_path(path, "open for writing")
        elif event in _CHANGES:
            for path in arguments[: _CHANGES[event]]:
                check_path(path, event)
        elif event in _NETWORK and isinstance(arguments[1], tuple):
            refuse("NETWORK_ACCESS", f"{event} {arguments[1][:2]}")
        elif event in ("os.kill", "os.killpg"):
            check_signal(*arguments)
        elif event == "socket.getaddrinfo":
            refuse("NETWORK_ACCESS", f"{event} {arguments[0]!r}")

    sys.addaudithook(hook)


def _in_memory_disk(place: str) -> bool:
    return place.startswith(("/dev/shm/", "/dev/mqueue/"))  # noqa: S108 - a place to refuse, not to use
