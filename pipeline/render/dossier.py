"""Dossiers as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.query.dossier import (
    Artifact,
    Correction,
    Dossier,
    ImplementationDossier,
    ObjectDossier,
    OperationDossier,
    Rerun,
    RunDossier,
    RunLine,
    Standing,
)
from pipeline.query.find import Found
from pipeline.query.plain import plain
from pipeline.render import text as words
from pipeline.render.leaderboard import floors as render_floors
from pipeline.render.leaderboard import operation as render_operation
from pipeline.render.screen import Screen

_PROFILES = {"source_native": "source-native comparison", "strict_exact": "strict comparison"}


def render(screen: Screen, found: Found, answer: Dossier) -> None:
    """Write the dossier of what was found."""
    match answer:
        case RunDossier():
            _run(screen, answer)
        case OperationDossier():
            _operation(screen, answer)
        case ImplementationDossier():
            _implementation(screen, answer)
        case ObjectDossier():
            _object(screen, found, answer)


def _run(screen: Screen, run: RunDossier) -> None:
    screen.heading(f"Run {words.short(run.run_digest)}")
    screen.prose(f"{run.implementation}{words.SEPARATOR}{words.title(run.operation)}")
    primary = f"{words.latency(run.latency_ns)} {run.primary_statistic}" if run.latency_ns is not None else "no latency"
    screen.heading(f"Primary measurement: {primary}")
    for standing in run.standings:
        screen.prose(_standing(standing, run), "  ")
    if run.reference_ratio is not None:
        screen.prose(f"{words.ratio(run.reference_ratio)} reference", "  ")
    screen.prose(words.trust(run.evidence_level, run.license, run.source_available), "  ")
    if not run.eligible:
        screen.prose(f"Not eligible: {', '.join(run.reasons)}", "  ")
    for rerun in run.reruns:
        screen.prose(_rerun(rerun, run), "  ")
    for correction in run.corrections:
        screen.prose(_correction(correction), "  ")
    for suspension in run.suspensions:
        until = f"until {words.day(suspension.until)}" if suspension.until else "still"
        screen.prose(f"No standing: {suspension.cause} since {words.day(suspension.since)}, {until}", "  ")
    if run.flag_details:
        screen.heading("Flags")
        screen.pairs((each.flag, each.detail) for each in run.flag_details)
    if run.floors:
        screen.heading("Floors")
        render_floors(screen, run.floors, run.latency_ns, "run")
    screen.heading("Identity")
    screen.pairs(
        [
            ("implementation", run.implementation),
            ("project", words.project(run.source, run.role, run.author)),
            ("revision", run.revision or "unknown"),
            ("workload", words.workload(run.shape_summary, run.dtypes)),
            ("comparison key", run.comparison_key),
            ("source", words.source(run.source)),
            ("run", run.run_digest),
            ("operation digest", run.operation_digest),
            ("workload digest", run.workload_digest),
            ("implementation digest", run.implementation_digest),
            ("protocol digest", run.protocol_digest),
            ("environment digest", run.environment_digest),
        ]
    )
    protocol = run.manifests["protocol"]["spec"]
    screen.heading("Correctness")
    screen.pairs(
        [
            ("comparator", protocol["correctness"].get("comparator", "")),
            ("max absolute error", words.number(run.max_absolute_error)),
            ("max relative error", words.number(run.max_relative_error)),
            ("result", run.status),
        ]
    )
    _workload(screen, run)
    screen.heading("Measurements")
    screen.pairs(
        [
            *(
                (
                    f"{each.metric}{words.SEPARATOR}{each.statistic}",
                    words.latency(each.value) if each.unit == "ns" else f"{words.number(each.value)} {each.unit}",
                )
                for each in run.measurements
            ),
            ("reference, as reported", _milliseconds(run.reference_latency_ms)),
            ("speed-up, as reported", words.ratio(run.speedup_factor)),
        ]
    )
    screen.heading("Protocol")
    screen.pairs(
        [
            ("harness", protocol["harness"].get("name", "")),
            *_flat(protocol["measurement"]),
            ("correctnessReference", protocol["correctness"].get("reference", "")),
            ("comparabilityFamily", protocol.get("comparability", {}).get("family", "")),
        ]
    )
    environment = run.manifests["environment"]["spec"]
    hardware, software = environment["hardware"], environment["software"]
    framework = software.get("framework", {})
    screen.heading("Environment")
    screen.pairs(
        [
            ("gpu", f"{hardware['product']} ({hardware['architecture']})"),
            ("cudaToolkit", software.get("cudaToolkit", "")),
            ("framework", " ".join(filter(None, (framework.get("name"), framework.get("version"))))),
            *software.get("libraries", {}).items(),
        ]
    )
    _artifacts(screen, run.artifacts, "No artifacts published with this run.")
    screen.heading("Observations")
    for seen in run.observations:
        at = f"{seen.source_file} record {seen.source_line}, byte {seen.byte_offset}"
        screen.prose(f"{at}, snapshot {words.short(seen.snapshot_id)}", "  ")
    screen.heading("Canonical manifests")
    _json(screen, run.manifests)


def _correction(correction: Correction) -> str:
    parts = [f"Correction: {correction.action} by {correction.author} on {words.day(correction.at)}", correction.reason]
    if correction.successor:
        parts.append(f"run {words.short(correction.successor)} counts in its place")
    return words.SEPARATOR.join(parts)


def _workload(screen: Screen, run: RunDossier) -> None:
    screen.heading("Workload")
    rule = dict(run.correctness)
    screen.pairs(
        [
            *((axis, str(value)) for axis, value in run.axes.items()),
            *(
                (tensor.name, f"{tensor.dtype} {words.shape(tensor.shape)}")
                for tensor in run.tensors
                if tensor.role == "input"
            ),
            *((name, f"{scalar['dtype']} {words.number(scalar['value'])}") for name, scalar in run.scalars.items()),
            ("definition comparator", rule.pop("comparator", "")),
            *_flat(rule),
        ]
    )


def _rerun(rerun: Rerun, run: RunDossier) -> str:
    """Return a controlled rerun in one line, as seen from the run that it repeats or from itself."""
    if rerun.run_digest != run.run_digest:
        parts = [f"Rerun {words.short(rerun.run_digest)} on {rerun.hardware}: {rerun.verdict}"]
    elif rerun.target_run_digest is not None:
        parts = [f"Controlled rerun of {words.short(rerun.target_run_digest)}: {rerun.verdict}"]
    else:
        parts = ["Controlled run; nothing was reported before"]
    parts += rerun.reasons
    if rerun.median_ns is not None:
        between = f"{words.latency(rerun.low_ns)} to {words.latency(rerun.high_ns)}"
        parts.append(f"median {words.latency(rerun.median_ns)} (95 % {between})")
    if rerun.ratio is not None:
        parts.append(f"{words.ratio(rerun.ratio)} the reported latency")
    return words.SEPARATOR.join(parts)


def _standing(standing: Standing, run: RunDossier) -> str:
    group = _PROFILES.get(standing.profile, standing.profile)
    observed = f"observed {words.day(run.observed_at)}"
    if standing.rank is None:
        shut_out = [f"shown only, for {', '.join(standing.shut_out)}"] if standing.shut_out else []
        return words.SEPARATOR.join(["Not ranked in its comparison group", group, observed, *shut_out])
    parts = [
        f"Rank {standing.rank}{' (tied)' if standing.tied else ''} in its comparison group",
        group,
        observed,
        words.count(standing.results, "result"),
    ]
    if standing.record:
        parts.append("holds the record")
    elif standing.vs_best is not None and standing.best_run_digest:
        parts.append(f"{words.ratio(standing.vs_best)} of #1 {words.short(standing.best_run_digest)}")
    if standing.vs_floor is not None:
        parts.append(f"{words.ratio(standing.vs_floor)} the estimated floor {words.latency(standing.floor_ns)}")
    return words.SEPARATOR.join(parts)


def _operation(screen: Screen, answer: OperationDossier) -> None:
    definition = f"{answer.operation.source_path} ({words.short(answer.operation.definition_sha256)})"
    render_operation(screen, answer.operation, [("definition", definition), ("workloads", f"{answer.workloads:,}")])
    screen.heading("Coverage")
    screen.table(
        ("GPU", "workloads", "measured", "passing", "last observed"),
        [
            (
                each.hardware,
                f"{each.workloads:,}",
                f"{each.measured:,}",
                f"{each.passing:,}",
                words.day(each.last_observed_at),
            )
            for each in answer.coverage
        ],
        right=("workloads", "measured", "passing"),
    )
    screen.heading("Implementations")
    screen.table(
        (
            "implementation",
            "by",
            "runtime",
            "runs",
            "led",
            "best latency",
            "vs #1",
            "evidence",
            "availability",
            "digest",
        ),
        [
            (
                each.name,
                words.project(each.source or "", each.role, each.author) if each.source else each.author,
                each.language,
                f"{each.runs:,}",
                f"{each.cohorts_led:,}",
                words.latency(each.best_latency_ns),
                words.ratio(each.vs_best),
                ", ".join(map(words.evidence, each.evidence_levels)),
                words.availability(each.license, each.source_available),
                words.short(each.implementation_digest),
            )
            for each in answer.implementations
        ],
        right=("runs", "led", "best latency", "vs #1"),
    )
    screen.heading("Canonical manifest")
    _json(screen, answer.operation.manifest)


def _implementation(screen: Screen, answer: ImplementationDossier) -> None:
    screen.heading(f"Implementation {answer.name}")
    spec = answer.manifest["spec"]
    callable_ = spec["callable"]
    support = spec.get("support", {})
    screen.pairs(
        [
            ("digest", answer.implementation_digest),
            ("operation", f"{answer.operation} ({words.short(answer.operation_digest)})"),
            ("author", answer.author),
            ("role", answer.role),
            ("language", answer.language),
            ("entry point", "::".join(filter(None, (callable_.get("path"), callable_.get("symbol"))))),
            ("availability", words.availability(answer.license, answer.source_available)),
            ("repository", answer.repository or "unknown"),
            ("revision", answer.first_revision or "unknown"),
            ("file", answer.source_path),
            ("all sources", answer.sources_sha256),
            ("tested on", ", ".join(support.get("productsTested", []))),
            ("architectures", ", ".join(support.get("hardwareArchitectures", []))),
        ]
    )
    _artifacts(screen, answer.artifacts, "No source published with this implementation.")
    _runs(screen, answer.run_count, answer.runs)
    screen.heading("Canonical manifest")
    _json(screen, answer.manifest)


def _object(screen: Screen, found: Found, answer: ObjectDossier) -> None:
    screen.heading(f"{found.kind.capitalize()} {found.name or ''}".rstrip())
    screen.pairs((name, _value(value)) for name, value in answer.row.items())
    _runs(screen, answer.run_count, answer.runs)
    if answer.manifest is not None:
        screen.heading("Canonical manifest")
        _json(screen, answer.manifest)


def _artifacts(screen: Screen, artifacts: Sequence[Artifact], none: str) -> None:
    screen.heading("Artifacts")
    if not artifacts:
        screen.prose(none, "  ")
    for artifact in artifacts:
        screen.pairs(
            [
                (
                    artifact.kind,
                    words.SEPARATOR.join(
                        filter(
                            None,
                            (artifact.digest, artifact.media_type, words.size(artifact.size_bytes), artifact.license),
                        )
                    ),
                ),
                ("taken down", artifact.taken_down)
                if artifact.taken_down
                else ("kept in", f"blob {artifact.blob_sha256}, byte {artifact.byte_offset}, {artifact.pointer}"),
            ]
        )


def _runs(screen: Screen, count: int, runs: Sequence[RunLine]) -> None:
    screen.heading(words.count(count, "run"))
    screen.table(
        ("operation", "workload", "GPU", "status", "latency", "rank", "vs #1", "evidence", "flags", "observed", "run"),
        [
            (
                run.operation,
                words.workload(run.shape_summary, run.dtypes),
                run.hardware,
                run.status,
                words.latency(run.latency_ns),
                str(run.rank or "-"),
                words.ratio(run.vs_best),
                words.evidence(run.evidence_level),
                ", ".join(run.flags),
                words.day(run.observed_at),
                words.short(run.run_digest),
            )
            for run in runs
        ],
        right=("latency", "rank", "vs #1"),
    )
    if len(runs) < count:
        screen.prose(f"{len(runs):,} of {count:,} runs shown, the newest; --all for all", "  ")


def _milliseconds(value: float | None) -> str:
    return "none" if value is None else f"{words.latency(value * 1e6)} ({words.number(value)} ms)"


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _value(value)) for name, value in values.items()]


def _value(value: object) -> str:
    match value:
        case None:
            return "-"
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return words.number(value)
        case list():
            return ", ".join(map(_value, value))
    return json.dumps(plain(value), ensure_ascii=False)


def _json(screen: Screen, value: object) -> None:
    screen.verbatim(json.dumps(value, indent=2, ensure_ascii=False))
