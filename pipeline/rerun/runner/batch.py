"""A batch of jobs: one fresh judge a job, whatever becomes of it; what has a result already is not run again.

The batch runs no foreign code and does not load torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .handle import launcher
from .job import Job, read_job
from .processes import adopt_orphans, end_descendants
from .result import JUDGE_FAILED, result_of, seal, write_result

_SPARE_SECONDS = 600


@dataclass(frozen=True)
class Event:
    """The outcome of one job of a batch."""

    number: int
    total: int
    title: str
    status: str
    detail: str
    resumed: bool


class CannotRun(Exception):
    """The batch cannot begin or go on here: one sentence."""


def find_jobs(places: Sequence[Path]) -> list[Path]:
    """Return the job files of files and folders, in order; a folder gives its ``*.json``.

    Raises:
        CannotRun: a folder without one.
    """
    found: list[Path] = []
    for place in places:
        files = sorted(visible_json(place)) if place.is_dir() else [place]
        if not files:
            raise CannotRun(f"{place} holds no job: give what rerun plan wrote")
        found.extend(files)
    return found


def run_batch(
    places: Sequence[Path], out: Path, *, device: str, tensors: Path | None, report: Callable[[Event], None]
) -> list[Event]:
    """Run every job that has no result in ``out`` yet; results are ``<job digest>.json``.

    Raises:
        JobError: a job that is refused; nothing has run then.
        CannotRun: no job, no torch, no such device, or no room for a result; results that are there stay.
    """
    jobs = [(path, read_job(path)) for path in find_jobs(places)]
    results = [result_of(job, out / f"{job.short}.json") for _, job in jobs]
    facts = _host_facts(device) if any(map(_is_open, results)) else {}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRun(f"{out} cannot be made ({error.strerror}): name another folder with --out") from error
    adopt_orphans()
    events = []
    for number, (path, job) in enumerate(jobs, 1):
        target = out / f"{job.short}.json"
        document = result_of(job, target)
        resumed = not _is_open(document)
        if document is None or not resumed:
            document = _judge(path, job, target, device, tensors, facts)
        event = Event(number, len(jobs), job.title, document["status"], _detail(document), resumed)
        events.append(event)
        report(event)
    return events


def visible_json(folder: Path) -> list[Path]:
    """Return the JSON files of a folder but for hidden ones: those a killed process left half written."""
    return [path for path in folder.glob("*.json") if not path.name.startswith(".")]


def _is_open(document: dict[str, Any] | None) -> bool:
    """Tell whether a job has still to be run: it has no result, or one that says nothing about it."""
    return document is None or (document["cause"] or {}).get("code") == JUDGE_FAILED


def _host_facts(device: str) -> dict[str, Any]:
    """Return what each result says of this host, so that one whose judge fails can say it too."""
    command = [*launcher("host"), device]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise CannotRun(
            f"jobs cannot run with device {device} and {sys.executable} ({said}): see its torch, or --device"
        )
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def _judge(
    path: Path, job: Job, target: Path, device: str, tensors: Path | None, facts: dict[str, Any]
) -> dict[str, Any]:
    """Have a fresh judge run a job; return the result that then lies in ``target``."""
    limits = job.document["limits"]
    with _scratch() as scratch:
        command = [*launcher("judge"), str(path.resolve()), str(target.resolve()), scratch, device]
        command.append(str(tensors.resolve()) if tensors else "")
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            seconds = limits["build_seconds"] + 2 * limits["run_seconds"] + _SPARE_SECONDS
            output, _ = process.communicate(timeout=seconds)
            ended = f"the judge ended with status {process.returncode}"
        except subprocess.TimeoutExpired:
            output, ended = b"", "the judge did not end in time"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    document = result_of(job, target)
    if document is None or process.returncode != 0:
        document = _failure(job, device, facts, ended, output.decode(errors="replace")[-8000:])
        try:
            write_result(target, document)
        except OSError as error:
            said = f"{target} cannot be written ({error.strerror})"
            raise CannotRun(f"{said}: make room and run the same again, what is there stays") from error
    return document


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    """Make a folder for a job; in the end, no process of the job is left, and no file, even if the judge was killed."""
    folder = None
    try:
        with _uninterrupted():  # else Ctrl-C could come when the folder is there and nobody knows its name
            folder = tempfile.mkdtemp(prefix="rerun-")
        yield folder
    finally:
        with _uninterrupted():
            end_descendants(os.getpid())
            if folder is not None:
                # Foreign code may nest folders deeper than Python can remove.
                subprocess.run(["/bin/rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)  # noqa: S603


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _failure(job: Job, device: str, facts: dict[str, Any], ended: str, log: str) -> dict[str, Any]:
    """Return the result of a job whose judge could not write one."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return seal(
        job,
        {
            "observed_at": now, "seconds": 0.0, "device": device, "runner": {}, **facts,
            "isolation": {}, "status": "incomplete_evidence", "cause": {"code": JUDGE_FAILED, "detail": ended},
            "violations": [], "reference": None, "inputs": {}, "correctness": None, "hidden_shapes": [],
            "measurement": None, "telemetry": {}, "log": log,
        },
    )  # fmt: skip


def _detail(document: dict[str, Any]) -> str:
    if document["measurement"]:
        statistics = document["measurement"]["statistics"]
        low, high = statistics["confidence95"]
        return f"{statistics['median'] / 1000:.2f} us ({low / 1000:.2f} to {high / 1000:.2f})"
    if document["violations"]:
        return "; ".join(f"{v['code']}: {v['detail']}" for v in document["violations"])
    if document["cause"]:
        return f"{document['cause']['code']}: {document['cause']['detail']}"
    return "correct, not timed"
