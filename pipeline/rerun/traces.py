"""Results as trace lines of the upstream format, so that other tools can read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import UsageError
from pipeline.normalize.run import STATUSES
from pipeline.rerun.runner import PROTOCOL, PROTOCOL_VERSION, SAMPLES
from pipeline.rerun.runner.job import Job
from pipeline.store.files import refusal, write_whole

_UPSTREAM = {canonical: written for written, canonical in STATUSES.items()}


def trace_line(job: Job, result: dict[str, Any]) -> str | None:
    """Return a result as one line, or None where upstream has no word for its outcome.

    ``latency_ms`` is the mean of the samples, since that is what upstream's readers take it for; the median and its
    neighbours stand in ``performance.profile``.
    """
    status = _UPSTREAM.get(result["status"])
    measurement = result["measurement"]
    if status is None or (status == "PASSED" and measurement is None):
        return None
    environment = result["environment"]
    libs = {name: environment[name] for name in ("torch", "triton", "cuda") if environment.get(name)}
    evaluation: dict[str, Any] = {
        "status": status,
        "environment": {"hardware": environment["product"], "libs": libs},
        "timestamp": result["observed_at"],
        "log": result["log"],
    }
    if result["correctness"]:
        found = result["correctness"]
        evaluation["correctness"] = {
            "max_relative_error": found["max_relative_error"],
            "max_absolute_error": found["max_absolute_error"],
            "extra": {"matched_ratio": found["matched_ratio"], "outputs_compared": found["checked"]},
        }
    if measurement:
        statistics = measurement["statistics"]
        profile: dict[str, Any] = {"harness": PROTOCOL, "version": PROTOCOL_VERSION, "samples": SAMPLES}
        for name in ("median", "p05", "p95", "minimum", "maximum"):
            profile[f"{name}_ms"] = statistics[name] / 1e6
        evaluation["performance"] = {"latency_ms": statistics["mean"] / 1e6, "profile": profile}
    document = job.document
    line = {
        "definition": document["definition"]["name"],
        "workload": document["workload_record"],
        "solution": document["solution"]["name"],
        "evaluation": evaluation,
    }
    return json.dumps(line, ensure_ascii=False)


def write_traces(results: Sequence[tuple[Job, dict[str, Any]]], target: Path) -> int:
    """Write results as a file of trace lines, in the order of their times; return how many there are.

    Raises:
        UsageError: the file cannot be written.
    """
    timed = sorted((result["observed_at"], line) for job, result in results if (line := trace_line(job, result)))
    try:
        write_whole(target.resolve(), "".join(f"{line}\n" for _, line in timed).encode())
    except OSError as error:
        raise UsageError(refusal(error, target)) from error
    return len(timed)
