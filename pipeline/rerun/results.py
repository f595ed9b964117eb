"""Result files of the runner: an adapter and a source, so that reruns are pulled and replayed like any trace set.

A result carries its job, and the job every manifest that it rests on, each under its digest. So a result is read
without looking anything up, and reading it again gives the same rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from pipeline.errors import CheckFailure, ManifestError, SourceError
from pipeline.manifests import (
    BenchmarkRun,
    ExecutionEnvironment,
    ImplementationRevision,
    parse_manifest,
    sha256_of,
)
from pipeline.manifests.canonical import API_VERSION
from pipeline.manifests.documents import explain
from pipeline.manifests.keys import comparison_key, metric_key
from pipeline.manifests.measurement import (
    EnvironmentBody,
    Evidence,
    Framework,
    Hardware,
    LatencyNs,
    OtherMeasurement,
    RunBody,
    RunCorrectness,
    Software,
    SourceNative,
    Timing,
)
from pipeline.manifests.scalars import Artifact, Metadata
from pipeline.normalize import words
from pipeline.normalize.adapter import (
    Catalog,
    Document,
    Held,
    NormalizedDefinition,
    OneByOne,
    ReadRun,
    ReadWorkload,
    Rerun,
    RunReader,
)
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.normalize.implementation import LICENSE, NormalizedSolution
from pipeline.normalize.measures import instant, nanoseconds
from pipeline.normalize.operation import Project
from pipeline.normalize.workload import NormalizedWorkload
from pipeline.rerun.protocol import COMPARATOR, RERUN_PROTOCOL
from pipeline.rerun.runner import SAMPLES
from pipeline.rerun.runner.job import Job
from pipeline.rerun.runner.result import ResultError, canonical, parse_result
from pipeline.rerun.runner.statistics import summarize, timers_disagree
from pipeline.rerun.verdict import Timed, judge
from pipeline.sources.listing import Blobs, Kind, ListedFile, Listing, Progress, Pull
from pipeline.store.files import read_plain
from pipeline.upstream import documents as upstream
from pipeline.upstream.framing import Record, RemovedText, frame
from pipeline.upstream.held import HeldBackError, Reason

ADAPTER = "kernelhouse-rerun"
SOURCE = "rerun"


@dataclass(frozen=True)
class RerunSource:
    """A folder of result files, as ``rerun run --out`` leaves it."""

    root: Path

    def pull(self, blobs: Blobs, listing: Listing, progress: Progress, earlier: Sequence[Pull] = ()) -> Pull:
        """Keep every result file; all of them must be sound, or none is taken.

        Raises:
            SourceError: no such folder, or no result in it.
            CheckFailure: a file was altered, or is no result.
        """
        if not self.root.is_dir():
            raise SourceError(f"no folder {self.root}: give the folder that rerun run wrote to")
        paths = result_files(self.root)
        if not paths:
            raise SourceError(f"{self.root} holds no result: give the folder that rerun run wrote to")
        for path in paths:
            _read_whole(path)
        listed = []
        for done, path in enumerate(paths):
            progress("fetch", done, len(paths))
            sha256, size = blobs.add_file(path)
            listed.append(ListedFile(path.name, listing.kind_of(path.name), size, sha256, fetched=True))
        progress("fetch", len(paths), len(paths))
        return Pull(
            source=SOURCE, adapter=listing.name, repository=None, revision=None, authors=(), files=tuple(listed)
        )


def read_results(folder: Path) -> list[tuple[Job, dict[str, Any]]]:
    """Return the jobs and results of a folder.

    Raises:
        CheckFailure: a file was altered, or is no result.
    """
    return [_read_whole(path) for path in result_files(folder)]


def result_files(folder: Path) -> list[Path]:
    """Return the result files of a folder, in order; a hidden one is what a killed process left half written."""
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def _read_whole(path: Path) -> tuple[Job, dict[str, Any]]:
    try:
        job, result = parse_result(read_plain(path).decode("utf-8"))
        read_result(job, result)
    except (ResultError, HeldBackError, UnicodeDecodeError) as error:
        raise CheckFailure(f"{path} is refused: {getattr(error, 'detail', error)}") from error
    except OSError as error:
        raise CheckFailure(f"{path} cannot be read ({error.strerror}): put the result there or take it away") from error
    return job, result


class KernelhouseRerun:
    """Reads result files."""

    name = ADAPTER
    license = LICENSE

    def kind_of(self, path: str) -> Kind:
        """Every JSON file is a result."""
        return Kind.TRACE if path.endswith(".json") else Kind.OTHER

    def author_of(self, path: str) -> str | None:
        """A result lies in no author's folder."""
        return None

    def frame(self, blob: Path, path: str) -> Iterable[Record]:
        """Return the one record of a result file."""
        return frame(blob, document=True)

    def read_definition(self, raw: bytes, project: Project) -> Document[NormalizedDefinition]:
        """Refuse: a bundle of results has no definitions of its own."""
        _refuse("definitions")

    def read_solution(
        self, raw: bytes, path: str, project: Project, catalog: Catalog, removed: Sequence[RemovedText] = ()
    ) -> Document[NormalizedSolution]:
        """Refuse: a bundle of results has no solutions of its own."""
        _refuse("solutions")

    def read_workloads(self, records: Sequence[Record], catalog: Catalog) -> list[ReadWorkload | Held]:
        """Refuse: a bundle of results has no workload files."""
        _refuse("workload files")

    def columns(self, catalog: Catalog) -> RunReader:
        """Return a reader that leaves every record to the one-by-one path: reruns are few."""
        return OneByOne()

    def read_runs(self, records: Sequence[Record], catalog: Catalog) -> list[ReadRun | Held]:
        """Read results one by one; what they rest on travels with them, so the catalog is not asked."""
        return [_guarded(record) for record in records]


def _refuse(what: str) -> NoReturn:
    raise HeldBackError(Reason.SCHEMA_VIOLATION, f"results of reruns come without {what}")


def _guarded(record: Record) -> ReadRun | Held:
    if record.raw is None:
        return Held(record, Reason.LINE_TOO_LONG, f"the result has {record.size} bytes; 16 MiB are the limit")
    try:
        job, result = parse_result(record.raw.decode())
        return replace(read_result(job, result), record=record)
    except HeldBackError as error:
        return Held(record, error.reason, error.detail)
    except (ResultError, UnicodeDecodeError) as error:
        return Held(record, Reason.SCHEMA_VIOLATION, str(error))


_NO_RECORD = Record(line=1, offset=0, size=0, sha256="", raw=None)


def read_result(job: Job, result: dict[str, Any]) -> ReadRun:
    """Return the run of a result whose digests fit, with its verdict; everything that can be is computed again.

    Raises:
        HeldBackError: SCHEMA_VIOLATION: what it says does not follow from what it holds.
    """
    try:
        return _read(job, result)
    except (
        ValidationError,
        ManifestError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
    ) as error:
        what = explain(error) if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
        raise HeldBackError(Reason.SCHEMA_VIOLATION, f"no canonical document can hold it: {what}") from error


def _read(job: Job, result: dict[str, Any]) -> ReadRun:
    document = job.document
    workload = _workload(job)
    implementation = _certified(document["implementation"], "ImplementationRevision")
    assert isinstance(implementation, ImplementationRevision)  # noqa: S101 - the kind was asked for
    environment = _environment(result)
    timed = _check_measurement(result)
    correct = result["status"] == "passed"
    status = "incomplete_evidence" if correct and timed is None else result["status"]
    run = _run(job, result, status, workload, environment, timed)
    log = result["log"].encode(errors="replace")
    return ReadRun(
        record=_NO_RECORD,
        benchmark=document["definition"]["name"],
        run=run,
        comparison_key=comparison_key(
            operation=document["operation"]["digest"],
            workload=workload.manifest.digest,
            protocol=RERUN_PROTOCOL.digest,
            environment=environment.digest,
            correctness=workload.correctness_key,
            metric=metric_key(run),
        ),
        workload=workload,
        implementation_digest=document["implementation"]["digest"],
        protocol=RERUN_PROTOCOL,
        environment=environment,
        latency_ns=nanoseconds(timed["median"] / 1e6) if timed else None,
        reference_latency_ms=None,
        speedup_factor=None,
        log_size_bytes=len(log),
        timezone_assumed=False,
        error_not_finite=False,
        legacy_forms=(),
        drift=Counter(),
        log_pointer="/log",
        rerun=_rerun(job, result, environment, timed, correct=correct, status=status),
    )


def _workload(job: Job) -> NormalizedWorkload:
    """Return the workload of a job, made again from the upstream documents that it carries."""
    document = job.document
    raw = json.dumps(document["definition"]).encode()
    operation = FlashInferBench().read_definition(raw, Project(None, None)).value.operation
    if operation.digest != document["operation"]["digest"]:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its definition is not the operation that the job names")
    workload = operation.normalize(upstream.Workload.model_validate(document["workload_record"]))
    if workload.manifest.digest != document["workload"]["digest"]:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its workload record is not the workload that the job names")
    if (
        operation.bind({name.lower(): int(value) for name, value in document["workload_record"]["axes"].items()})
        != (document["axes"])
    ):
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its axes are not those of its workload: it was altered")
    if document["protocol"]["digest"] != RERUN_PROTOCOL.digest:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its protocol is of another version; run the job again")
    return workload


def _certified(manifest: dict[str, str], kind: str) -> Any:
    value = json.loads(manifest["text"]) | {"metadata": {"name": "job"}}
    if value.get("kind") != kind or value.get("apiVersion") != API_VERSION:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, f"the job names a {value.get('kind')} where a {kind} belongs")
    return parse_manifest(value)


def _environment(result: dict[str, Any]) -> ExecutionEnvironment:
    """Return what stays the same about the host; clocks and the like are evidence of the run alone."""
    facts = result["environment"]
    if not facts:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its judge failed and it names no machine; run the job again")
    libraries = {name: facts[name] for name in ("triton", "python") if facts.get(name)}
    return ExecutionEnvironment(
        metadata=Metadata(name=words.document_name("rerun", facts["product"], facts["torch"])),
        spec=EnvironmentBody(
            hardware=Hardware(
                vendor=facts["vendor"],
                product=facts["product"],
                architecture=facts["architecture"],
                memory_bytes=facts.get("memory_bytes"),
                count=1,
            ),
            software=Software(
                cuda_toolkit=facts.get("cuda"),
                framework=Framework(name="pytorch", version=facts["torch"]),
                libraries=libraries or None,
                operating_system=facts["system"],
                driver=facts.get("driver"),
            ),
        ),
    )


def _check_measurement(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the statistics of a measurement, computed again from its samples; None where nothing was timed."""
    measurement = result["measurement"]
    if measurement is None:
        return None
    if result["status"] != "passed" or result["violations"]:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "it has a measurement though it did not pass")
    samples = measurement["samples_ns"]
    if len(samples) != SAMPLES or any(type(sample) is not int or sample <= 0 for sample in samples):
        raise HeldBackError(Reason.SCHEMA_VIOLATION, f"it must have {SAMPLES} samples, whole numbers of nanoseconds")
    statistics: dict[str, Any] = summarize(samples)
    if statistics != measurement["statistics"]:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its statistics do not follow from its samples: it was altered")
    busy, call = measurement["profiler"]["busy_ns"], measurement["wall"]["call_ns"]
    disagreement = timers_disagree(statistics["median"], busy, call)
    if disagreement is not None:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, f"it has a measurement though its timers disagree: {disagreement}")
    return statistics


def _run(
    job: Job,
    result: dict[str, Any],
    status: str,
    workload: NormalizedWorkload,
    environment: ExecutionEnvironment,
    timed: dict[str, Any] | None,
) -> BenchmarkRun:
    document = job.document
    log = result["log"].encode(errors="replace")
    log_artifact = _artifact(sha256_of(log)) if log else None
    samples = _artifact(sha256_of(canonical(result["measurement"]["samples_ns"]))) if timed else None
    observed = instant(result["observed_at"])
    if observed is None or observed.zone_assumed:
        raise HeldBackError(Reason.SCHEMA_VIOLATION, "its time is no moment in UTC")
    found = result["correctness"]
    return BenchmarkRun(
        metadata=Metadata(
            name=words.document_name("rerun", document["definition"]["name"], job.short),
            title=f"{document['solution']['name']} · {document['definition']['name']}",
        ),
        spec=RunBody(
            implementation_digest=document["implementation"]["digest"],
            workload_digest=workload.manifest.digest,
            protocol_digest=RERUN_PROTOCOL.digest,
            environment_digest=environment.digest,
            status=status,  # type: ignore[arg-type]  # the model refuses any other
            correctness=RunCorrectness(
                comparator=COMPARATOR,
                maximum_absolute_error=found["max_absolute_error"],
                maximum_relative_error=found["max_relative_error"],
                matched_ratio=found["matched_ratio"],
            )
            if found
            else None,
            timing=Timing(
                primary_statistic="median",
                latency_ns=LatencyNs(**timed | {"confidence95": tuple(timed["confidence95"])}),
                samples=SAMPLES,
                raw_samples=samples,
            )
            if timed
            else None,
            measurements=_other_timers(result["measurement"]) if timed else None,
            source_native=SourceNative(
                source=ADAPTER, benchmark=document["definition"]["name"], external_id=job.digest
            ),
            evidence=Evidence(logs=log_artifact, raw_samples=samples) if log_artifact or samples else None,
            observed_at=observed.text,
        ),
    )


def _other_timers(measurement: dict[str, Any]) -> tuple[OtherMeasurement, ...]:
    """Return what the independent timers say of a call."""
    return (
        OtherMeasurement(
            metric="profiler_busy",
            unit="ns",
            statistic="median",
            value=measurement["profiler"]["busy_ns"],
            sample_count=measurement["profiler"]["calls"],
        ),
        OtherMeasurement(
            metric="wall_clock",
            unit="ns",
            statistic="mean",
            value=measurement["wall"]["call_ns"],
            sample_count=measurement["wall"]["count"],
        ),
    )


def _rerun(
    job: Job,
    result: dict[str, Any],
    environment: ExecutionEnvironment,
    timed: dict[str, Any] | None,
    *,
    correct: bool,
    status: str,
) -> Rerun:
    """Return what a rerun says of its target."""
    cause = result["cause"]["code"] if result["cause"] else None
    codes = [violation["code"] for violation in result["violations"]]
    interval = (timed["confidence95"][0], timed["confidence95"][1]) if timed else None
    raw = canonical(result["measurement"]["samples_ns"]) if timed else b""
    known = Rerun(
        job_digest=job.digest,
        target_run_digest=None,
        verdict=None,
        reasons=tuple(sorted(set(codes))) or ((cause,) if cause else ()),
        ratio=None,
        host_identity=result["identity"].get("host"),
        gpu_identity=result["identity"].get("gpu"),
        median_ns=timed["median"] if timed else None,
        low_ns=interval[0] if interval else None,
        high_ns=interval[1] if interval else None,
        isolation=result["isolation"],
        telemetry=result["telemetry"],
        samples_digest=sha256_of(raw) if timed else None,
        samples_size_bytes=len(raw),
    )
    target = job.document.get("target")
    if target is None:
        return known
    run = _certified(target, "BenchmarkRun").spec
    reported = _certified(target["environment"], "ExecutionEnvironment").spec.hardware
    judgement = judge(
        correct=correct,
        status=status,
        cause=cause,
        violations=codes,
        rerun=Timed(environment.spec.hardware.product, known.median_ns, interval),
        target=_timed(reported.product, run.timing),
    )
    return replace(
        known,
        target_run_digest=target["digest"],
        verdict=judgement.verdict.value,
        reasons=judgement.reasons,
        ratio=judgement.ratio,
    )


def _timed(product: str, timing: Timing | None) -> Timed:
    if timing is None:
        return Timed(product, None)
    latency = getattr(timing.latency_ns, timing.primary_statistic)
    return Timed(product, latency, timing.latency_ns.confidence95)


def _artifact(digest: str) -> Artifact:
    return Artifact(uri=f"kernelindex:artifact/{digest}", digest=digest)
