"""A judge's hold on a worker: start it in its sandbox, talk to it under a deadline, watch its memory, end it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .channel import Channel, ChannelClosed, Malformed, TimedOut
from .processes import descendants, end_descendants, group_members, resident_bytes

LAUNCH = (
    "import sys, importlib; sys.path.insert(0, sys.argv.pop(1)); "
    "main = importlib.import_module(sys.argv.pop(1)).main; sys.path.pop(0); main()"
)
"""Starts a module of the runner by path, so that the folder may lie anywhere; its neighbours cannot be imported."""

_PASSED = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CC", "CXX", "LANG")
_GRACE_SECONDS = 5.0
_SWEEP_SECONDS = 1.0


class Ended(Exception):
    """The worker's part is over: a cause and a sentence."""

    def __init__(self, cause: str, detail: str, trace: str = "") -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail
        self.trace = trace


def launcher(module: str) -> list[str]:
    """Return the command that starts a module of this runner with this Python, isolated from user settings."""
    package = __package__ or "runner"
    folder = Path(__file__).resolve().parents[package.count(".") + 1]
    return [sys.executable, "-I", "-B", "-c", LAUNCH, str(folder), f"{package}.{module}"]


class WorkerHandle:
    """One worker process."""

    def __init__(
        self, role: str, scratch: Path, config: dict[str, Any], *, descriptors: tuple[int, int], memory_bytes: int
    ) -> None:
        """Start the worker; it begins to load torch at once."""
        self.role = role
        self.descriptors = descriptors
        self._memory_bytes = memory_bytes
        ours, theirs = socket.socketpair()
        self._violations, violations = os.pipe()
        os.set_blocking(self._violations, False)
        given = config | {
            "scratch": str(scratch), "input_descriptor": descriptors[0], "output_descriptor": descriptors[1]
        }  # fmt: skip
        # Read through this descriptor alone: foreign code could put anything in the place of the file.
        self._log = os.open(scratch / "log", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._process = subprocess.Popen(  # noqa: S603
            [*launcher("launch"), str(theirs.fileno()), str(violations), json.dumps(given)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(theirs.fileno(), violations, *descriptors),
            start_new_session=True,
            cwd=scratch,
            env=_environment(scratch),
        )
        theirs.close()
        os.close(violations)
        self._channel = Channel(ours)
        self._end_of_line = ours
        self.isolation: dict[str, str] = {}

    def greet(self, deadline: float) -> None:
        """Wait until the worker is ready; keep what holds of its sandbox."""
        self.isolation = {str(k): str(v) for k, v in self._receive(deadline)["isolation"].items()}

    def ask(self, do: str, deadline: float, **arguments: Any) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises:
            Ended: the worker failed, died, took too long or too much memory, or said what makes no sense.
        """
        try:
            self._channel.send({"do": do, **arguments})
        except ChannelClosed:
            raise self._died() from None
        answer = self._receive(deadline)
        if answer.get("ok") is not True:
            raise Ended(
                str(answer.get("cause", "RUNTIME_ERROR")), str(answer.get("error", ""))[:2000],
                str(answer.get("trace", "")),
            )  # fmt: skip
        return answer

    def finish(self) -> dict[int, str]:
        """Let the worker end; return the processes that it left behind, which are ended too."""
        with contextlib.suppress(ChannelClosed, Malformed, TimedOut, Ended):
            self._channel.send({"do": "finish"})
            self._receive(time.monotonic() + _GRACE_SECONDS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)
        patience = time.monotonic() + _SWEEP_SECONDS
        while (left := group_members(self._process.pid)) and time.monotonic() < patience:
            time.sleep(0.02)
        return left | self._clear()

    def kill(self) -> None:
        """End the worker and all of its processes now."""
        self._clear()

    def violations(self) -> list[dict[str, str]]:
        """Return what the sandbox reported so far; foreign code can add to it and take nothing away."""
        raw = b""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._violations, 65536):
                raw += chunk
        found = []
        for line in raw.splitlines()[:100]:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                found.append({"code": str(entry["code"])[:60], "detail": str(entry["detail"])[:300]})
        return found

    def log(self, limit: int = 16_384) -> str:
        """Return the end of what the worker printed."""
        size = os.fstat(self._log).st_size
        return os.pread(self._log, limit, max(0, size - limit)).decode(errors="replace")

    def _clear(self) -> dict[int, str]:
        """Kill what is left of the worker; the worker itself, where it had ended, is not among what is returned."""
        ended = self._process.poll() is not None
        mine = descendants(self._process.pid) if not ended else {}
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in mine:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._end_of_line.close()
        return mine

    def _receive(self, deadline: float) -> dict[str, Any]:
        try:
            return self._channel.receive(deadline, self._check_memory)
        except TimedOut:
            self.kill()
            raise Ended("TIMEOUT", f"the {self.role} did not answer within its time") from None
        except Malformed as error:
            self.kill()
            raise Ended("RUNTIME_ERROR", f"the {self.role} sent {error}") from None
        except ChannelClosed:
            raise self._died() from None

    def _check_memory(self) -> None:
        pids = {self._process.pid, *descendants(self._process.pid)}
        if (used := resident_bytes(pids)) > self._memory_bytes:
            self.kill()
            raise Ended("MEMORY_LIMIT", f"the {self.role} took {used} bytes of {self._memory_bytes} allowed")

    def _died(self) -> Ended:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)
        code = self._process.poll()
        self.kill()
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        cause = "OUTPUT_LIMIT" if code == -signal.SIGXFSZ else "RUNTIME_ERROR"
        return Ended(cause, f"the {self.role}'s process ended with {how}")


def sweep() -> dict[int, str]:
    """End every process that still descends from this one after a moment's grace, and return those ended."""
    patience = time.monotonic() + _SWEEP_SECONDS
    while descendants(os.getpid()) and time.monotonic() < patience:
        time.sleep(0.02)
    return end_descendants(os.getpid())


def _environment(scratch: Path) -> dict[str, str]:
    """Return a small environment: nothing of the verifier's own, and every cache inside the scratch folder."""
    kept = {name: os.environ[name] for name in _PASSED if name in os.environ}
    nvcc = shutil.which("nvcc")
    if "CUDA_HOME" not in kept and nvcc is not None:
        kept["CUDA_HOME"] = str(Path(nvcc).resolve().parents[1])
    caches = {
        "HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "cache", "TRITON_CACHE_DIR": "triton",
        "TORCH_EXTENSIONS_DIR": "extensions", "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "cuda",
        "TRITON_HOME": "home",
    }  # fmt: skip
    for name, folder in caches.items():
        (scratch / folder).mkdir(exist_ok=True)
        kept[name] = str(scratch / folder)
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}
