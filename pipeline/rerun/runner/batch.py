"""A batch of jobs: one fresh judge a job, whatever becomes of it; what has a result already is not run again.

The batch runs no foreign code and does not load torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .handle import launcher
from .job import Job, read_job
from .processes import adopt_orphans, end_descendants
from .result import is_whole, parse_result, seal

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


def find_jobs(places: Sequence[Path]) -> list[Path]:
    """Return the job files of files and folders, in order; a folder gives its ``*.json``."""
    found: list[Path] = []
    for place in places:
        found.extend(sorted(place.glob("*.json")) if place.is_dir() else [place])
    return found


def run_batch(
    places: Sequence[Path], out: Path, *, device: str, tensors: Path | None, report: Callable[[Event], None]
) -> list[Event]:
    """Run every job that has no result in ``out`` yet; results are ``<job digest>.json``.

    Raises:
        JobError: a job that is refused; nothing has run then.
    """
    jobs = [(path, read_job(path)) for path in find_jobs(places)]
    out.mkdir(parents=True, exist_ok=True)
    adopt_orphans()
    events = []
    for number, (path, job) in enumerate(jobs, 1):
        target = out / f"{job.short}.json"
        resumed = is_whole(target, job)
        if not resumed:
            _judge(path, job, target, device, tensors)
        _, document = parse_result(target.read_text(encoding="utf-8"))
        event = Event(number, len(jobs), job.title, document["status"], _detail(document), resumed)
        events.append(event)
        report(event)
    return events


def _judge(path: Path, job: Job, target: Path, device: str, tensors: Path | None) -> None:
    limits = job.document["limits"]
    command = [*launcher("judge"), str(path.resolve()), str(target.resolve()), device]
    command.append(str(tensors.resolve()) if tensors else "")
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=limits["build_seconds"] + 2 * limits["run_seconds"] + _SPARE_SECONDS)
        ended = f"the judge ended with status {process.returncode}"
    except subprocess.TimeoutExpired:
        output, ended = b"", "the judge did not end in time"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        end_descendants(os.getpid())
    if not is_whole(target, job):
        _write_failure(target, job, device, ended, output.decode(errors="replace")[-8000:])


def _write_failure(target: Path, job: Job, device: str, ended: str, log: str) -> None:
    """Write the result of a job whose judge could not write one."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    result = seal(
        job,
        {
            "observed_at": now, "seconds": 0.0, "device": device, "runner": {}, "environment": {}, "identity": {},
            "isolation": {}, "status": "incomplete_evidence", "cause": {"code": "JUDGE_FAILED", "detail": ended},
            "violations": [], "reference": None, "inputs": {}, "correctness": None, "hidden_shapes": [],
            "measurement": None, "telemetry": {}, "log": log,
        },
    )  # fmt: skip
    target.write_text(json.dumps(result) + "\n", encoding="utf-8")


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
