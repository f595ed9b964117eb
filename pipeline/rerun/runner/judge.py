"""The judge of one job: makes the inputs, decides what is measured and checked, compares, and writes the result.

It runs no foreign code, keeps its own copy of every input and every expected output, and reads its own clock.
"""

from __future__ import annotations

import fcntl
import os
import random
import secrets
import statistics as python_statistics
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from . import CHECKED_SAMPLES, FLUSH_BYTES, INPUT_SETS, PROTOCOL_VERSION, SAMPLES, WARMUP_CALLS, host
from .compare import Comparison, Tolerance, compare, is_right, tolerance_for
from .handle import Ended, WorkerHandle, sweep
from .job import Job, read_job
from .processes import adopt_orphans, die_with_parent, hide_memory
from .result import JUDGE_FAILED, seal, write_result
from .statistics import summarize, timers_disagree
from .tensors import (
    DTYPES,
    Arguments,
    CannotMake,
    Region,
    TensorSpec,
    bind_arguments,
    load_tensor,
    make_input,
    region_bytes,
    seed_for,
)

PROFILED_CALLS = 20
BLOCK_ROUNDS = 5

_BLOCK_NS = 60e6
_FLUSHED_BYTES_PER_NS = 3000
"""About what the memory of a large GPU takes in; only how many calls a block has depends on it."""

CPU_CALLS = 24
"""Calls on a CPU, where nothing is timed: past any warm-up that a solution could count."""

MAX_CHECKED_BYTES = 2**30
"""Bytes of outputs and inputs that are brought back to be compared in one run."""

_MARGINAL_RATIO = 0.5
"""After right outputs, an output with fewer right elements is no matter of rounding."""

_NOT_HANDED_OVER = 0x5A
"""Fills the shared memory before outputs are asked for, so that nothing left there can pass for them."""

_SECONDS_TO_START = 180.0
_STATUS = {
    "TIMEOUT": "timeout", "MEMORY_LIMIT": "resource_exceeded", "OUTPUT_LIMIT": "resource_exceeded",
    "COMPILE_ERROR": "compile_error", "MISSING_DEPENDENCY": "incomplete_evidence",
    "MISSING_ENTRY_POINT": "incomplete_evidence", "MISSING_SOURCE": "incomplete_evidence",
    "MISSING_TENSOR_FILE": "incomplete_evidence", "TENSOR_FILE_MISMATCH": "incomplete_evidence",
    "UNSUPPORTED_DTYPE": "incomplete_evidence", "UNSUPPORTED_LANGUAGE": "incomplete_evidence",
    "UNBOUND_INPUT": "incomplete_evidence", "DEVICE_NOT_PRESENT": "incomplete_evidence",
    "INVALID_REFERENCE": "invalid_reference", "INPUTS_NOT_DISCRIMINATING": "invalid_reference",
    "INCORRECT_SHAPE": "incorrect_shape", "INCORRECT_DTYPE": "incorrect_dtype",
    "NUMERICAL_MISMATCH": "incorrect_numerical", "OUTPUT_NOT_WRITTEN": "incorrect_numerical",
    "HIDDEN_SHAPE_MISMATCH": "incorrect_numerical",
}  # fmt: skip
"""Cause of an outcome to status of the run; any other cause is a runtime_error."""

_POLICY = ("WRITE_OUTSIDE_SCRATCH", "NETWORK_ACCESS", "PROCESS_LEFT_BEHIND", "SIGNAL_SENT")
"""Violations of what a job may do to its host; any other violation is suspicion about the measurement."""

_LANGUAGES = ("python", "triton", "cuda", "cuda_cpp", "cpp", "c++")


class Violation(Exception):
    """The solution did what no honest one does: a code and a sentence."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass
class Findings:
    """What is known of a run so far; written out whatever happens."""

    isolation: dict[str, str] = field(default_factory=dict)
    reference: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    correctness: dict[str, Any] | None = None
    hidden_shapes: list[dict[str, int]] = field(default_factory=list)
    measurement: dict[str, Any] | None = None
    log: str = ""


@dataclass
class Problem:
    """A set of inputs with the expected outputs, all of them in the judge's own memory."""

    arguments: Arguments
    contents: list[list[torch.Tensor]]
    expected: list[list[torch.Tensor]]


class Judge:
    """Runs one job."""

    def __init__(self, job: Job, *, device: str, tensors: Path | None, scratch: Path) -> None:
        self._job = job
        self._document = job.document
        self._device = device
        self._tensors = tensors
        self._scratch = scratch
        self._limits: Mapping[str, int] = self._document["limits"]
        self._definition = self._document["definition"]
        self._workload = self._document["workload_record"]
        self._secret = secrets.token_hex(16)
        self._random = random.Random(self._secret)  # noqa: S311 - seeded by the secret, so that a run can be retold
        self._workers: list[WorkerHandle] = []
        self._checked = 0
        self._entry_file, self._symbol, self._language = "", "", ""
        self.found = Findings()

    def run(self) -> dict[str, Any]:
        """Run the job and return its result; foreign code cannot make this raise."""
        started = time.monotonic()
        observed = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        before = host.telemetry(self._device)
        environment = host.environment(self._device)
        status, cause, violations = "passed", None, []
        try:
            self._check_runnable(environment)
            self._judge()
        except Violation as violation:
            violations.append({"code": violation.code, "detail": violation.detail})
        except (Ended, CannotMake) as end:
            status = _STATUS.get(end.cause, "runtime_error")
            cause = {"code": end.cause, "detail": end.detail}
            self.found.log = getattr(end, "trace", "")
        except Exception as error:  # noqa: BLE001 - what a worker said made no sense, or the host lacks something
            status, cause = "incomplete_evidence", {"code": JUDGE_FAILED, "detail": f"stopped at {error!r}"[:2000]}
            self.found.log = traceback.format_exc()
        violations += self._close()
        if violations:
            policy = any(violation["code"] in _POLICY for violation in violations)
            status = "policy_violation" if policy else "suspected_reward_hack"
        if status != "passed":
            self.found.measurement = None
        found = self.found
        return seal(
            self._job,
            {
                "observed_at": observed,
                "seconds": round(time.monotonic() - started, 3),
                "device": self._device,
                "runner": {"version": PROTOCOL_VERSION, "digest": host.runner_digest()},
                "environment": environment,
                "identity": host.identity(self._device),
                "isolation": found.isolation,
                "status": status,
                "cause": cause,
                "violations": violations,
                "reference": found.reference,
                "inputs": found.inputs | {"secret": self._secret},
                "correctness": found.correctness,
                "hidden_shapes": found.hidden_shapes,
                "measurement": found.measurement,
                "telemetry": {"before": before, "after": host.telemetry(self._device)},
                "log": found.log,
            },
        )

    def _check_runnable(self, environment: Mapping[str, Any]) -> None:
        wanted = self._document["device"]
        if wanted not in ("any", environment["product"]):
            raise Ended("DEVICE_NOT_PRESENT", f"the job wants {wanted} and this is {environment['product']}")
        solution = self._document["solution"]
        sources = {source["path"]: source["content"] for source in solution.get("sources", [])}
        self._entry_file, _, symbol = (solution["spec"].get("entry_point") or "").partition("::")
        self._symbol = symbol or "run"
        if not sources.get(self._entry_file):
            raise Ended("MISSING_SOURCE", f"the solution carries no source for {self._entry_file or 'its entry point'}")
        self._language = str(solution["spec"].get("language") or solution["spec"].get("languages", [""])[0]).lower()
        binding = solution["spec"].get("binding") or "torch"
        if self._language not in _LANGUAGES or (self._language not in _LANGUAGES[:2] and binding != "torch"):
            raise Ended("UNSUPPORTED_LANGUAGE", f"{self._language} with binding {binding} cannot be built here")
        if not self._definition.get("reference"):
            raise Ended("INVALID_REFERENCE", "the definition carries no reference to compare with")

    # The course of a job

    def _judge(self) -> None:
        reference = self._start("reference", {"main.py": self._definition["reference"]}, destination_passing=False)
        sources = {source["path"]: source["content"] for source in self._document["solution"]["sources"]}
        solution = self._start("solution", sources, destination_passing=self._job.destination_passing)
        problem = self._make_problem(self._document["axes"], self._input_sets())
        self.found.inputs = {"recipe": 1, "seed": self._document["seed"], "sets": len(problem.contents)}
        hidden = self._hidden_problem()
        deadline = time.monotonic() + _SECONDS_TO_START
        for worker in (reference, solution):
            worker.greet(deadline)
        self.found.isolation = dict(solution.isolation)
        self._expect(reference, [problem, *([hidden] if hidden else [])])
        solution.ask(
            "load",
            time.monotonic() + self._limits["build_seconds"],
            language=self._language,
            entry_file=self._entry_file,
            symbol=self._symbol,
        )
        self._check_integrity(solution)
        self._deadline = time.monotonic() + self._limits["run_seconds"]
        self._give(solution, problem)
        if self._device == "cuda":
            self._measure(solution, problem)
        else:
            for _ in range(CPU_CALLS):
                _, content = self._one_call(solution, problem)
                self._check_outputs(solution, problem, content)
        if hidden is not None:
            self._judge_hidden(solution, hidden)
        self._check_integrity(solution)

    def _start(self, role: str, sources: Mapping[str, str], *, destination_passing: bool) -> WorkerHandle:
        scratch = self._scratch / role
        for path, content in sources.items():
            place = scratch / "src" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, encoding="utf-8")
        config = {
            "device": self._device,
            "destination_passing": destination_passing,
            "flush_bytes": FLUSH_BYTES,
            "device_memory_fraction": self._memory_share(),
            "file_bytes": self._limits["output_bytes"],
        }
        worker = WorkerHandle(
            role, scratch, config, descriptors=_shared_memory(), memory_bytes=self._limits["memory_bytes"]
        )
        self._workers.append(worker)
        return worker

    def _memory_share(self) -> float:
        total = host.stable().get("memory_bytes", 0) if self._device == "cuda" else 0
        return min(1.0, (self._limits["memory_bytes"] + FLUSH_BYTES) / total) if total else 1.0

    def _expect(self, reference: WorkerHandle, problems: list[Problem]) -> None:
        """Have the reference compute what is right, then end it: its memory is gone before the solution runs."""
        deadline = time.monotonic() + self._limits["run_seconds"]
        try:
            reference.ask("load", deadline, language="python", entry_file="main.py", symbol="run")
            for problem in problems:
                try:
                    self._expect_one(reference, problem, deadline, upcast=True)
                    mode = "float64"
                except Ended as error:
                    if error.cause in ("TIMEOUT", "MEMORY_LIMIT"):
                        raise
                    self._expect_one(reference, problem, deadline, upcast=False)
                    mode = "declared dtypes"
                self.found.reference = mode
        except Ended as error:
            raise Ended("INVALID_REFERENCE", f"the reference failed: {error.detail}", error.trace) from None
        reference.finish()
        self._workers.remove(reference)
        self._check_discriminating(problems[0])

    def _expect_one(self, reference: WorkerHandle, problem: Problem, deadline: float, *, upcast: bool) -> None:
        outputs = [
            TensorSpec(spec.name, "float64" if upcast and spec.is_float else spec.dtype, spec.shape)
            for spec in problem.arguments.outputs
        ]
        self._share(reference, problem, outputs, deadline, upcast=upcast)
        problem.expected = []
        for content in range(len(problem.contents)):
            answer = reference.ask("call", deadline, slot=0, content=content)
            described = answer["outputs"]
            if len(described) != len(outputs):
                raise Ended("INVALID_REFERENCE", f"it gives {len(described)} outputs of {len(outputs)}")
            for spec, seen in zip(outputs, described):
                if not seen.get("plain") or tuple(seen["shape"]) != spec.shape or seen["dtype"] != spec.dtype:
                    raise Ended("INVALID_REFERENCE", f"{spec.name} should be {spec.dtype} {list(spec.shape)}: {seen}")
            reference.ask("fetch", deadline, with_inputs=False)
            region = Region(reference.descriptors[1], outputs)
            problem.expected.append([region.tensor_at(index).clone() for index in range(len(outputs))])

    def _check_discriminating(self, problem: Problem) -> None:
        """Refuse a workload whose tolerance lets zeros pass, or the outputs of other inputs."""
        for index, spec in enumerate(problem.arguments.outputs):
            tolerance = self._tolerance(spec)
            right = problem.expected[0][index]
            if right.numel() == 0:
                continue
            others = [torch.zeros_like(right)] if bool((right != 0).any()) else []
            if len(problem.expected) > 1:
                others.append(problem.expected[1][index])
            if others and not any(is_right(compare(other, right, tolerance), tolerance) for other in others):
                return
        detail = "its tolerance passes zeros or the outputs of other inputs, so nothing could be told from it"
        raise Ended("INPUTS_NOT_DISCRIMINATING", detail)

    # Inputs

    def _input_sets(self) -> int:
        """Return how many different contents fit: each lies twice on the device and once in shared memory."""
        arguments = bind_arguments(self._definition, self._workload, self._document["axes"])
        if not any(self._is_random(spec) for spec in arguments.inputs):
            return 1
        one = sum(spec.nbytes for spec in arguments.inputs)
        fitting = self._limits["memory_bytes"] // max(1, 4 * one)
        return max(1, min(INPUT_SETS, fitting))

    def _is_random(self, spec: TensorSpec) -> bool:
        described = self._workload.get("inputs", {}).get(spec.name) or {}
        return bool(described.get("type", "random") != "safetensors")

    def _make_problem(self, axes: Mapping[str, int], sets: int) -> Problem:
        arguments = bind_arguments(self._definition, self._workload, axes)
        contents = []
        for content in range(sets):
            made = []
            for spec in arguments.inputs:
                if self._is_random(spec):
                    seed = seed_for(self._secret, self._document["seed"], content, spec.name, *spec.shape)
                    made.append(make_input(spec, seed))
                else:
                    described = self._workload["inputs"][spec.name]
                    path = str(described.get("path", ""))
                    made.append(load_tensor(spec, self._tensors, described, self._document["tensor_files"].get(path)))
            contents.append(made)
        return Problem(arguments, contents, [])

    def _hidden_problem(self) -> Problem | None:
        """Return the operation at other values of its free axes, where its inputs have a recipe and no constraint."""
        free = [name for name, axis in self._definition["axes"].items() if axis["type"] == "var"]
        derived = any(axis["type"] == "expr" for axis in self._definition["axes"].values())
        arguments = bind_arguments(self._definition, self._workload, self._document["axes"])
        recipe = all(self._is_random(spec) and spec.is_float for spec in arguments.inputs) and not arguments.scalars
        if not free or derived or not recipe or self._definition.get("constraints"):
            return None
        axes = dict(self._document["axes"])
        for name in map(str.lower, free):
            value = axes[name]
            axes[name] = value - self._random.randint(1, max(1, value // 2)) if value > 1 else 2
        self.found.hidden_shapes.append({name.lower(): axes[name.lower()] for name in free})
        return self._make_problem(axes, 1)

    def _share(
        self,
        worker: WorkerHandle,
        problem: Problem,
        outputs: list[TensorSpec],
        deadline: float,
        *,
        upcast: bool = False,
    ) -> None:
        """Lay the contents of a problem into shared memory and have the worker take them."""
        arguments = problem.arguments
        specs = list(arguments.inputs) * len(problem.contents)
        returned = outputs if upcast else [*outputs, *arguments.inputs]
        for descriptor, size in zip(worker.descriptors, (region_bytes(specs), region_bytes(returned))):
            if size > os.fstat(descriptor).st_size:
                os.ftruncate(descriptor, size)
        region = Region(worker.descriptors[0], specs)
        for index, tensor in enumerate(tensor for content in problem.contents for tensor in content):
            region.bytes_at(index).copy_(tensor.contiguous().reshape(-1).view(torch.uint8))
        worker.ask(
            "inputs",
            deadline,
            inputs=[asdict(spec) for spec in arguments.inputs],
            outputs=[asdict(spec) for spec in outputs],
            returned=[asdict(spec) for spec in returned],
            order=list(arguments.order),
            scalars=dict(arguments.scalars),
            sets=len(problem.contents),
            upcast=upcast,
        )

    def _give(self, worker: WorkerHandle, problem: Problem) -> None:
        self._share(worker, problem, list(problem.arguments.outputs), self._deadline)

    # Calls

    def _one_call(self, worker: WorkerHandle, problem: Problem) -> tuple[int | None, int]:
        """Have one call made, its inputs and their place drawn now; return its time in ns and which inputs it had.

        Whether its outputs are looked at is decided afterwards: the worker learns of a check by being asked for them.
        """
        sets = len(problem.contents)
        content, slot = self._random.randrange(sets), self._random.randrange(sets)
        answer = worker.ask("call", self._deadline, slot=slot, content=content)
        self._check_described(answer, problem)
        elapsed = answer.get("elapsed_ns")
        return (elapsed if isinstance(elapsed, int) and not isinstance(elapsed, bool) else None), content

    def _check_described(self, answer: Mapping[str, Any], problem: Problem) -> None:
        """Check what a worker says of its outputs: kind, shape, dtype, and whose memory they lie in."""
        described, specs = answer["outputs"], problem.arguments.outputs
        for seen in described:
            if not seen.get("plain"):
                if seen.get("tensor") is False:
                    raise Ended("OUTPUT_NOT_WRITTEN", f"an output is a {str(seen.get('type'))[:60]} and no tensor")
                raise Violation("NOT_A_PLAIN_TENSOR", f"an output is a {str(seen.get('type'))[:60]}")
        if len(described) != len(specs):
            raise Ended("INCORRECT_SHAPE", f"{len(described)} outputs and not {len(specs)}")
        for spec, seen in zip(specs, described):
            if tuple(seen["shape"]) != spec.shape:
                raise Ended("INCORRECT_SHAPE", f"{spec.name} is {seen['shape']} and not {list(spec.shape)}")
            if seen["dtype"] != spec.dtype:
                raise Ended("INCORRECT_DTYPE", f"{spec.name} is {seen['dtype']} and not {spec.dtype}")
            if seen["alias"]:
                raise Violation("OUTPUT_ALIASES", f"{spec.name} lies in the memory of an {seen['alias']}")
        if int(answer.get("threads") or 0) > 0:
            raise Violation("THREAD_LEFT_RUNNING", "a thread that the call started goes on after its return")

    def _check_outputs(self, worker: WorkerHandle, problem: Problem, content: int) -> None:
        """Compare the outputs of the last call, and its inputs, with the judge's own copies."""
        arguments = problem.arguments
        specs = [*arguments.outputs, *arguments.inputs]
        region = Region(worker.descriptors[1], specs)
        for index in range(len(specs)):
            region.bytes_at(index).fill_(_NOT_HANDED_OVER)
        worker.ask("fetch", self._deadline, with_inputs=True)
        for index, pristine in enumerate(problem.contents[content]):
            raw = region.bytes_at(len(arguments.outputs) + index)
            if not torch.equal(raw, pristine.contiguous().reshape(-1).view(torch.uint8)):
                raise Violation("INPUT_MUTATED", f"{arguments.inputs[index].name} is not what it was before the call")
        for index, spec in enumerate(arguments.outputs):
            self._check_output(region, index, spec, problem, content)
        self._checked += 1

    def _check_output(self, region: Region, index: int, spec: TensorSpec, problem: Problem, content: int) -> None:
        tolerance = self._tolerance(spec)
        output = region.tensor_at(index)
        found = compare(output, problem.expected[content][index], tolerance)
        self._note(found)
        if is_right(found, tolerance):
            return
        for other, expected in enumerate(problem.expected):
            if other != content and is_right(compare(output, expected[index], tolerance), tolerance):
                raise Violation("STALE_OUTPUT", f"{spec.name} is right for other inputs: an earlier output was kept")
        poisoned = bool((region.bytes_at(index) == 0xFF).all())
        detail = f"{spec.name}: {found.matched_ratio:.6f} of the elements within tolerance, " + (
            f"largest error {found.max_absolute:.3g}" if found.finite else "some not finite"
        )
        if self._checked and found.matched_ratio < _MARGINAL_RATIO:
            raise Violation("WRONG_AFTER_WARM_UP", detail + f", after {self._checked} right outputs")
        if poisoned:
            raise Ended("OUTPUT_NOT_WRITTEN", f"{spec.name} was not written")
        raise Ended("NUMERICAL_MISMATCH", detail)

    def _tolerance(self, spec: TensorSpec) -> Tolerance:
        return tolerance_for(DTYPES[spec.dtype], self._workload)

    def _note(self, found: Comparison) -> None:
        worst = self.found.correctness or {
            "max_absolute_error": 0.0,
            "max_relative_error": 0.0,
            "matched_ratio": 1.0,
            "checked": 0,
        }
        self.found.correctness = {
            "max_absolute_error": max(worst["max_absolute_error"], found.max_absolute),
            "max_relative_error": max(worst["max_relative_error"], found.max_relative),
            "matched_ratio": min(worst["matched_ratio"], found.matched_ratio),
            "checked": worst["checked"] + 1,
        }

    def _judge_hidden(self, worker: WorkerHandle, hidden: Problem) -> None:
        """Check one call at shapes that the solution could not know of."""
        self._checked = 0
        self._give(worker, hidden)
        try:
            _, content = self._one_call(worker, hidden)
            self._check_outputs(worker, hidden, content)
        except Ended as error:
            axes = ", ".join(f"{name}={value}" for name, value in self.found.hidden_shapes[-1].items())
            wrong = _STATUS.get(error.cause, "").startswith("incorrect")
            cause = "HIDDEN_SHAPE_MISMATCH" if wrong else error.cause
            raise Ended(cause, f"at another shape, {axes}: {error.detail}", error.trace) from None

    # Time

    def _measure(self, worker: WorkerHandle, problem: Problem) -> None:
        for index in range(WARMUP_CALLS):
            _, content = self._one_call(worker, problem)
            if index in (0, WARMUP_CALLS - 1):
                self._check_outputs(worker, problem, content)
        self._check_integrity(worker)
        size = sum(spec.nbytes for spec in (*problem.arguments.inputs, *problem.arguments.outputs))
        wanted = max(3, min(CHECKED_SAMPLES, MAX_CHECKED_BYTES // max(1, size)))
        samples: list[int] = []
        checked: list[int] = []
        for index in range(SAMPLES):
            elapsed, content = self._one_call(worker, problem)
            if elapsed is None or elapsed <= 0:
                raise Violation("TIMER_TAMPERED", f"a call is said to have taken {elapsed} ns")
            samples.append(elapsed)
            if self._random.random() < wanted / SAMPLES or (index == SAMPLES - 1 and not checked):
                self._check_outputs(worker, problem, content)
                checked.append(index)
        self._check_integrity(worker)
        summary = summarize(samples)
        median = float(python_statistics.median(samples))
        wall = self._wall(worker, problem, median)
        profiler = self._profiler(worker, problem)
        self._check_integrity(worker)
        self.found.measurement = {
            "samples_ns": samples,
            "checked_samples": checked,
            "statistics": summary,
            "wall": wall,
            "profiler": profiler,
            "flush_bytes": FLUSH_BYTES,
            "warmup_calls": WARMUP_CALLS,
        }
        disagreement = timers_disagree(median, profiler["busy_ns"], wall["call_ns"])
        if disagreement is not None:
            raise Violation("TIMERS_DISAGREE", disagreement)

    def _wall(self, worker: WorkerHandle, problem: Problem, median: float) -> dict[str, float]:
        """Time long blocks by the judge's own clock: with calls, and with flushes alone; the difference is a call."""
        clock = time.perf_counter_ns
        count = calls_of_block(median)
        full: list[int] = []
        empty: list[int] = []
        for _ in range(BLOCK_ROUNDS):
            for call, times in ((True, full), (False, empty)):
                start = clock()
                answer = worker.ask("block", self._deadline, count=count, call=call)
                times.append(clock() - start)
                if call:
                    self._check_described(answer, problem)
        worker.ask("block", self._deadline, count=count, call=True)
        self._check_outputs(worker, problem, (count - 1) % len(problem.contents))
        middle = python_statistics.median
        return {
            "count": count,
            "block_ns": middle(full),
            "flush_block_ns": middle(empty),
            "call_ns": (middle(full) - middle(empty)) / count,
        }

    def _profiler(self, worker: WorkerHandle, problem: Problem) -> dict[str, Any]:
        """Return the device's busy time a call, over all streams, by the profiler's activities."""
        answer = worker.ask("profile", self._deadline, count=PROFILED_CALLS)
        activities = sorted(
            (
                (float(start), float(end), str(name), int(stream))
                for name, stream, start, end in answer["activities"]
            )
        )  # fmt: skip
        if not activities:
            raise Violation("TIMERS_DISAGREE", "the profiler saw nothing happen on the device")
        flush_name, flush_length = activities[0][2], activities[0][1] - activities[0][0]
        calls: list[list[tuple[float, float]]] = []
        streams: set[int] = set()
        for start, end, name, stream in activities:
            if name == flush_name and end - start > flush_length / 2 and len(calls) < PROFILED_CALLS:
                calls.append([])
            else:
                calls[-1].append((start, end))
                streams.add(stream)
        if len(calls) != PROFILED_CALLS:
            raise Violation("TIMERS_DISAGREE", f"the profiler saw {len(calls)} calls of {PROFILED_CALLS}")
        busy = [_union(call) * 1000 for call in calls]
        span = [(max(e for _, e in call) - min(s for s, _ in call)) * 1000 if call else 0.0 for call in calls]
        return {
            "calls": PROFILED_CALLS,
            "busy_ns": python_statistics.median(busy),
            "span_ns": python_statistics.median(span),
            "kernels": python_statistics.median(len(call) for call in calls),
            "streams": len(streams),
        }

    # The end

    def _check_integrity(self, worker: WorkerHandle) -> None:
        answer = worker.ask("integrity", time.monotonic() + 60)
        if answer["changed"]:
            raise Violation("HARNESS_TAMPERED", "replaced: " + ", ".join(map(str, answer["changed"]))[:300])
        if answer["device"]:
            raise Violation("DEVICE_SETUP_CHANGED", str(answer["device"])[:300])

    def _close(self) -> list[dict[str, str]]:
        """End the workers; return the violations that their end brings to light."""
        violations = []
        for worker in self._workers:
            left = worker.finish()
            if worker.role == "solution":
                violations += worker.violations()
                self.found.log = (worker.log() + self.found.log)[-16_384:]
                orphans = sweep()
                if orphans or left:
                    names = ", ".join(sorted({*orphans.values(), *left.values()}))
                    violations.append({"code": "PROCESS_LEFT_BEHIND", "detail": f"still running: {names}"[:300]})
        sweep()
        unique = {(v["code"], v["detail"]): v for v in violations}
        return list(unique.values())[:20]


def _shared_memory() -> tuple[int, int]:
    """Return two memory files, for inputs and for outputs, that nobody can shrink under a reader."""
    made = []
    for name in ("inputs", "outputs"):
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
        made.append(descriptor)
    return made[0], made[1]


def calls_of_block(call_ns: float) -> int:
    """Return how many calls, each after a flush, make a block beside which a message to the worker is short."""
    return int(min(1000, max(20, _BLOCK_NS / (call_ns + FLUSH_BYTES / _FLUSHED_BYTES_PER_NS))))


def _union(intervals: list[tuple[float, float]]) -> float:
    """Return how long at least one of some intervals lasts."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def main() -> None:
    """Judge one job: job file, result file, scratch folder, device, folder of tensor files or an empty text."""
    job_file, result_file, scratch, device, tensors = sys.argv[1:6]
    die_with_parent()
    adopt_orphans()
    hide_memory()
    job = read_job(Path(job_file))
    judge = Judge(job, device=device, tensors=Path(tensors) if tensors else None, scratch=Path(scratch))
    write_result(Path(result_file), judge.run())
