"""The leaderboard of an operation as text."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.query.leaderboard import Board, Cohort, Entry, Floor, Leaderboard
from pipeline.query.operations import Argument, Axis, Operation
from pipeline.render import text as words
from pipeline.render.screen import Screen

_PROFILES = {"source_native": "Source-native comparison", "strict_exact": "Strict comparison"}
_MODELS = {
    "headroom-v1": "an estimate from declared tensors and datasheet peaks",
    "headroom-v2": "a lower bound from what must be read and computed and datasheet peaks",
}
_TERMS = {"dram": "bandwidth-bound", "compute": "compute-bound"}


def render(screen: Screen, answer: Leaderboard) -> None:
    """Write each operation, then its cohorts with floors and ranks."""
    for board in answer.boards:
        operation(screen, board.operation)
        _cohorts(screen, board, answer.profile)
    screen.blank()
    screen.prose(
        f"Ranked by {answer.policy_version} ({answer.profile}): dense ranks by latency, each cohort for itself. "
        "Results are as reported by their source unless the evidence says otherwise."
    )


def operation(screen: Screen, answer: Operation, more: Sequence[tuple[str, str]] = ()) -> None:
    """Write what an operation is: title, family, description, semantics, identity with ``more`` lines, sources."""
    screen.heading(words.title(answer.name))
    screen.prose(words.SEPARATOR.join([answer.family, words.count(answer.eligible_runs, "eligible run")]))
    if answer.description:
        screen.blank()
        screen.prose(answer.description)
    screen.heading("Semantics")
    screen.prose("Inputs and outputs")
    screen.table(
        ("name", "dtype", "shape", "role"),
        [
            *(_argument(argument, "input") for argument in answer.inputs),
            *(_argument(argument, "output") for argument in answer.outputs),
        ],
    )
    screen.prose("Axes and behaviour")
    behaviour = "No mutation or aliasing" if answer.mutation == "none" else f"Mutation: {answer.mutation}"
    screen.pairs(
        [
            *((axis.name, _axis(axis)) for axis in answer.axes),
            ("determinism", answer.determinism),
            ("constraints", behaviour),
        ]
    )
    screen.heading("Identity")
    screen.pairs(
        [
            ("alias", answer.name),
            ("digest", answer.operation_digest),
            ("tags", ", ".join(answer.tags)),
            *(
                (
                    "source",
                    words.SEPARATOR.join(
                        [f"{words.source(use.source)} ({words.day(use.last_observed_at)})", *use.licenses]
                    ),
                )
                for use in answer.sources
            ),
            *more,
        ]
    )


def _argument(argument: Argument, role: str) -> tuple[str, str, str, str]:
    return argument.name, argument.dtype, words.shape(argument.shape), role


def _axis(axis: Axis) -> str:
    bound = axis.expression if axis.value is None else str(axis.value)
    return f"{axis.role} = {bound}" if bound is not None else axis.role


def _cohorts(screen: Screen, board: Board, profile: str) -> None:
    if not board.cohorts:
        screen.heading("Not measured yet")
        return
    for cohort in board.cohorts:
        screen.heading(_title(cohort, profile))
        if cohort.entries:
            _record(screen, cohort)
            _baseline(screen, cohort)
            floors(screen, cohort.floors, cohort.record.latency_ns if cohort.record else None, "record")
            screen.table(
                ("#", "implementation", "by", "runtime", "latency", "vs #1", "evidence", "flags", "observed", "run"),
                [_entry(entry) for entry in cohort.entries],
                right=("#", "latency", "vs #1"),
            )
        if hidden := cohort.results - len(cohort.entries):
            screen.prose(f"... and {words.count(hidden, 'more result')}", "  ")
        if cohort.not_ranked:
            reasons = ", ".join(f"{amount} {reason}" for reason, amount in cohort.not_ranked.items())
            screen.prose(f"Not ranked: {reasons}", "  ")
        for run in cohort.shut_out:
            screen.prose(
                words.SEPARATOR.join(
                    [
                        f"Shown, not ranked: {run.implementation}",
                        words.latency(run.latency_ns),
                        ", ".join(run.flags),
                        f"run {words.short(run.run_digest)}",
                    ]
                ),
                "  ",
            )
    _left_out(screen, board)


def _left_out(screen: Screen, board: Board) -> None:
    shown = len(board.cohorts)
    if shown < board.fitting:
        screen.blank()
        screen.prose(
            f"{shown:,} of {words.count(board.fitting, 'comparison group')} shown, those with the most results; "
            "--all for all, or narrow with --axes / --gpu"
        )
    elif any(len(cohort.entries) < cohort.results for cohort in board.cohorts):
        screen.blank()
        screen.prose("Only the first results of a comparison group are shown; --limit N for more, --all alone for all")


def _title(cohort: Cohort, profile: str) -> str:
    return words.SEPARATOR.join(
        [
            _PROFILES.get(profile, profile),
            f"GPU {cohort.hardware}",
            f"Workload {words.workload(cohort.shape_summary, cohort.dtypes)}",
            *words.environment(cohort.environment_manifest),
            words.protocol(cohort.protocol_manifest),
            *([f"timed by {cohort.protocol_era} (inferred)"] if cohort.protocol_era else []),
            *([f"inputs of {cohort.input_identity}"] if cohort.input_identity else []),
            words.count(cohort.results, "result"),
            f"last observed {words.day(cohort.last_observed_at)}",
        ]
    )


def _record(screen: Screen, cohort: Cohort) -> None:
    if record := cohort.record:
        parts = [
            f"Record {words.latency(record.latency_ns)} {cohort.metric.split(':')[1]}",
            f"run {words.short(record.run_digest)}",
            f"held since {words.day(record.held_since)}",
        ]
        if record.fastest_run_digest != record.run_digest:
            fastest = words.latency(record.fastest_latency_ns)
            parts.append(f"fastest {fastest}, run {words.short(record.fastest_run_digest)}, inside the tie band")
        screen.prose(words.SEPARATOR.join(parts), "  ")


def floors(screen: Screen, answer: Sequence[Floor], latency_ns: int | None, subject: str) -> None:
    """Write each floor estimate with its derivation and how far the latency of ``subject`` is above it."""
    for floor in answer:
        if floor.floor_ns is None:
            screen.prose(f"No floor estimate by {floor.model}", "  ")
        else:
            screen.prose(_headroom(floor.floor_ns, latency_ns, subject), "  ")
            terms = [
                f"{name} {words.latency(term)}"
                for name, term in (("DRAM", floor.dram_ns), ("compute", floor.compute_ns))
                if term is not None
            ]
            bound = _TERMS.get(floor.bound_by or "", floor.bound_by or "")
            screen.prose(words.SEPARATOR.join([*terms, f"{bound} on {floor.gpu or floor.hardware}"]), "  ")
        for assumption in floor.assumptions:
            screen.prose(assumption, "    ")
        screen.prose(
            f"{floor.model}, peaks {floor.peaks}: {_MODELS.get(floor.model, 'an estimate')}, not evidence; "
            "a kernel can sit well above it for good reasons.",
            "    ",
        )


def _headroom(floor_ns: float, latency_ns: int | None, subject: str) -> str:
    said = f"Estimated floor {words.latency(floor_ns)}"
    if latency_ns is None or floor_ns <= 0:
        return said
    times = latency_ns / floor_ns
    place = "above it" if times >= 1 else "the estimate: faster than it allows"
    return f"{said}{words.SEPARATOR}{subject} {words.ratio(times)} {place}"


def _baseline(screen: Screen, cohort: Cohort) -> None:
    match cohort.baseline_state:
        case "unbeaten":
            said = f"Source baseline{words.SEPARATOR}unbeaten"
        case "beaten" if cohort.baseline_latency_ns and cohort.best_latency_ns:
            times = words.ratio(cohort.baseline_latency_ns / cohort.best_latency_ns)
            said = (
                f"Source baseline{words.SEPARATOR}beaten by {times}"
                f"{words.SEPARATOR}baseline {words.latency(cohort.baseline_latency_ns)}"
            )
        case state:
            said = f"Source baseline{words.SEPARATOR}{state}"
    screen.prose(said, "  ")


def _entry(entry: Entry) -> Sequence[str]:
    return (
        f"{entry.rank}{'=' if entry.tied else ''}",
        entry.implementation + (" (baseline)" if entry.role == "baseline" else ""),
        words.project(entry.source, entry.role, entry.author),
        entry.language,
        words.latency(entry.latency_ns),
        words.ratio(entry.vs_best),
        words.trust(entry.evidence_level, entry.license, entry.source_available),
        ", ".join(entry.flags),
        words.day(entry.observed_at),
        words.short(entry.run_digest),
    )
