"""Result files: what a run found, sealed by digests so that a later change of any part shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .job import Job, JobError, parse_job, sha256_of

FORMAT = "kernelhouse-rerun-result/1"

STATUSES = (
    "passed", "incorrect_shape", "incorrect_numerical", "incorrect_dtype", "runtime_error", "compile_error", "timeout",
    "invalid_reference", "suspected_reward_hack", "resource_exceeded", "policy_violation", "incomplete_evidence",
)  # fmt: skip


JUDGE_FAILED = "JUDGE_FAILED"
"""Cause of a result that says nothing about the job: the judge itself came to no end. Such a job is run again."""


class ResultError(Exception):
    """A result that must not be believed: one sentence."""


def canonical(value: Any) -> bytes:
    """Return the text of a JSON value that digests are taken over: sorted keys, no spaces, Python's numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def seal(job: Job, findings: dict[str, Any]) -> dict[str, Any]:
    """Return the result document of a job: the job itself, what was found, and the digests of all of it."""
    document = {"format": FORMAT, "job": job.text, "nonce": job.document["nonce"], **findings}
    measurement = findings.get("measurement")
    document["parts"] = {
        "job": job.digest,
        "samples": sha256_of(canonical(measurement["samples_ns"])) if measurement else None,
        "log": sha256_of(findings["log"].encode(errors="replace")),
    }
    document["digest"] = sha256_of(canonical(document))
    return document


def parse_result(text: str) -> tuple[Job, dict[str, Any]]:
    """Check a result's text and return its job and its document.

    Raises:
        ResultError: no result, or a digest that does not fit: it was altered.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResultError(f"no JSON ({error}): run the job again") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ResultError(f"no result of format {FORMAT}: run the job again with this version")
    try:
        body = {name: value for name, value in document.items() if name != "digest"}
        if sha256_of(canonical(body)) != document["digest"]:
            raise ResultError("its digest does not fit its content: it was altered; run the job again")
        job = parse_job(document["job"])
        parts, measurement = document["parts"], document["measurement"]
        wanted = {
            "job": job.digest,
            "samples": sha256_of(canonical(measurement["samples_ns"])) if measurement else None,
            "log": sha256_of(document["log"].encode(errors="replace")),
        }
        if document["nonce"] != job.document["nonce"]:
            raise ResultError("its nonce is not the job's: it answers another job")
        if document["status"] not in STATUSES:
            raise ResultError(f"status {document['status']!r} is none that the runner writes")
        for name, digest in wanted.items():
            if parts.get(name) != digest:
                raise ResultError(f"the digest of its {name} does not fit: it was altered; run the job again")
    except JobError as error:
        raise ResultError(f"its job is refused: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ResultError(f"it lacks a field ({error!r}): run the job again") from error
    return job, document


def result_of(job: Job, path: Path) -> dict[str, Any] | None:
    """Return the result of a job in a file, or None where the file is no sound result of this job."""
    try:
        found, document = parse_result(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ResultError):
        return None
    return document if found.digest == job.digest else None


def write_result(path: Path, document: dict[str, Any]) -> None:
    """Write a result whole or not at all.

    Raises:
        OSError: there is no room, or the folder is not there.
    """
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        temporary.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
