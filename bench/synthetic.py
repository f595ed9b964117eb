"""Synthetic trace sets whose shapes follow the published ones: definitions, authors, statuses, logs, variants, faults.

The shares are those of the FlashInfer-Bench trace set of 2026 (1,550 traces of 58 definitions): four of five on one
GPU, 84 % passed, one log in five; one record in a hundred is bad. Names, numbers and texts are made up. The same seed
makes the same files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Fault = Callable[[random.Random, dict[str, Any]], bytes]

_AUTHORS = ("baseline", "model-a", "model-b", "model c", "model/d".replace("/", "\N{NON-BREAKING HYPHEN}"))
_WORKLOADS = 20
_SOLUTIONS = 3
_HARDWARE = (("NVIDIA B200", 80), ("NVIDIA GB200", 6), ("NVIDIA A800-SXM4-80GB", 14))
_LIBRARIES = (
    {"torch": "2.8.0+cu128", "triton": "3.4.0", "cuda": "12.8"},
    {"torch": "2.11.0+cu130", "triton": "3.6.0", "cuda": "13.0"},
)
_STATUSES = (("PASSED", 841), ("COMPILE_ERROR", 85), ("RUNTIME_ERROR", 64), ("INCORRECT_NUMERICAL", 10))
_START = datetime(2025, 10, 21, tzinfo=UTC)
_SPAN_S = 300 * 86_400
_BAD_SHARE = 0.01
_REPEATED_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class _Task:
    """A definition with its workloads, as JSON."""

    family: str
    name: str
    document: dict[str, Any]
    workloads: tuple[dict[str, Any], ...]
    scale_ms: float


def write_trace_set(root: Path, records: int, *, seed: int = 0) -> int:
    """Write a trace set of so many trace records below a folder; return its bytes of traces."""
    rng = random.Random(seed)  # noqa: S311 - made-up data
    tasks = [_task(rng, place) for place in range(60)]
    for task in tasks:
        _write_json(root / "definitions" / task.family / f"{task.name}.json", task.document)
        lines = (json.dumps({"definition": task.name, "workload": workload}) for workload in task.workloads)
        _write(root / "workloads" / task.family / f"{task.name}.jsonl", "".join(f"{line}\n" for line in lines).encode())
        for author in _AUTHORS:
            for number in range(_SOLUTIONS):
                solution = _solution(task, author, number)
                _write_json(
                    root / "solutions" / author / task.family / task.name / f"{solution['name']}.json", solution
                )
    return write_traces(root, records, rng, tasks)


def write_traces(root: Path, records: int, rng: random.Random, tasks: list[_Task]) -> int:
    """Write trace files of the tasks, as even in size as can be."""
    places = [(author, task) for author in _AUTHORS for task in tasks]
    written = 0
    for number, (author, task) in enumerate(places):
        share = records * (number + 1) // len(places) - records * number // len(places)
        path = root / "traces" / author / task.family / f"{task.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            for line in _lines(rng, task, author, share):
                written += stream.write(line + b"\n")
    return written


def write_one_more(root: Path, records: int, *, seed: int = 1) -> None:
    """Write a trace set of one file more: so many further records of the first definition and its baselines."""
    task = _task(random.Random(0), 0)  # noqa: S311 - made-up data
    rng = random.Random(seed)  # noqa: S311 - made-up data
    _write(
        root / "traces" / "baseline" / task.family / f"{task.name}.jsonl",
        b"".join(line + b"\n" for line in _lines(rng, task, "baseline", records)),
    )


def _task(rng: random.Random, place: int) -> _Task:
    family = ("gemm", "rmsnorm", "gqa_paged")[place % 3]
    n, k = 1024 + 128 * place, rng.choice((2048, 4096))
    name = f"{family}_n{n}_k{k}_v{place}"
    axes: dict[str, Any] = {
        "M": {"type": "var"},
        "N": {"type": "const", "value": n},
        "K": {"type": "const", "value": k},
    }
    inputs: dict[str, Any] = {
        "A": {"shape": ["M", "K"], "dtype": "bfloat16"},
        "B": {"shape": ["N", "K"], "dtype": "bfloat16"},
    }
    given: dict[str, Any] = {"A": {"type": "random"}, "B": {"type": "random"}}
    if family == "gqa_paged":
        inputs |= {"scale": {"shape": None, "dtype": "float32"}, "indptr": {"shape": ["M"], "dtype": "int32"}}
        blob = f"./blob/workloads/{family}/{name}/{rng.getrandbits(128):032x}.safetensors"
        given |= {
            "scale": {"type": "scalar", "value": 1 / 128**0.5},
            "indptr": {"type": "safetensors", "path": blob, "tensor_key": "indptr"},
        }
    workloads = tuple(
        {"axes": {"M": 2 ** (number % 12) + number}, "inputs": given, "uuid": _uuid(rng)}
        for number in range(_WORKLOADS)
    )
    document = {
        "name": name,
        "op_type": family,
        "axes": axes,
        "inputs": inputs,
        "outputs": {"C": {"shape": ["M", "N"], "dtype": "bfloat16"}},
        "tags": ["synthetic"],
        "description": f"Made up: {family}.",
        "reference": "def run(A, B):\n    return A @ B.T\n",
    }
    return _Task(family, name, document, workloads, 0.01 * (1 + place % 7))


def _solution(task: _Task, author: str, number: int) -> dict[str, Any]:
    name = _solution_name(task, author, number)
    return {
        "name": name,
        "definition": task.name,
        "author": author,
        "description": "Made up.",
        "spec": {"language": "triton", "target_hardware": ["B200"], "entry_point": "main.py::run", "dependencies": []},
        "sources": [{"path": "main.py", "content": f"def run(A, B):\n    return A @ B.T  # {name}\n"}],
    }


def _solution_name(task: _Task, author: str, number: int) -> str:
    return f"{author.replace(' ', '_')}_{task.name}_{number}"


def _lines(rng: random.Random, task: _Task, author: str, records: int) -> Iterator[bytes]:
    workloads = [_text(workload) for workload in task.workloads]
    solutions = [_text(_solution_name(task, author, number)) for number in range(_SOLUTIONS)]
    environments = {
        hardware: [_text({"hardware": hardware, "libs": libraries}) for libraries in _LIBRARIES]
        for hardware, _ in _HARDWARE
    }
    logs = [_text(_log(rng)) for _ in range(50)]
    last = b""
    for _ in range(records):
        if last and rng.random() < _REPEATED_SHARE:
            yield last
            continue
        (hardware,) = rng.choices(*zip(*_HARDWARE, strict=True))
        (status,) = rng.choices(*zip(*_STATUSES, strict=True))
        log = '""' if rng.random() < 0.8 else rng.choice(logs) if rng.random() < 0.9 else _text(_log(rng))
        last = (
            f'{{"definition":{_text(task.name)},"workload":{rng.choice(workloads)},"solution":{rng.choice(solutions)},'
            f'"evaluation":{{"status":"{status}","environment":{rng.choice(environments[hardware])},'
            f'"timestamp":"{_timestamp(rng)}","log":{log},{_results(rng, task, status)}}}}}'
        ).encode()
        yield _spoilt(rng, last) if rng.random() < _BAD_SHARE else last


def _results(rng: random.Random, task: _Task, status: str) -> str:
    if status in ("COMPILE_ERROR", "RUNTIME_ERROR"):
        return '"correctness":null,"performance":null'
    absolute, relative = rng.choice((0.0, 0.015625, rng.random() / 100)), rng.choice((0.0, rng.lognormvariate(0, 3)))
    if status != "PASSED":
        absolute, relative = rng.choice(('"Infinity"', '"NaN"', 17.25)), '"Infinity"'
    correctness = f'"correctness":{{"max_relative_error":{relative},"max_absolute_error":{absolute},"extra":null}}'
    if status != "PASSED":
        return correctness + ',"performance":null'
    latency = task.scale_ms * rng.lognormvariate(0, 0.5)
    reference = latency * rng.lognormvariate(1, 0.7)
    return (
        f'{correctness},"performance":{{"latency_ms":{latency!r},"reference_latency_ms":{reference!r},'
        f'"speedup_factor":{reference / latency!r}}}'
    )


def _spoilt(rng: random.Random, line: bytes) -> bytes:
    """Return a record with one fault, or in a form that is accepted but must be looked at."""
    document = json.loads(line)
    evaluation = document["evaluation"]
    match rng.randrange(11):
        case 0:
            return line[: rng.randrange(1, len(line))]
        case 1:
            return line.replace(b'"status"', b'"st\xffatus"', 1)
        case 2:
            evaluation["status"] = "SKIPPED"
        case 3:
            evaluation["timestamp"] = "yesterday"
        case 4:
            document["evaluation"] = None
        case 5:
            document["solution"] = "nobody_wrote_this"
        case 6:
            document["workload"] = {"axes": {"M": -1}, "inputs": {}, "uuid": _uuid(rng)}
        case 7:
            evaluation |= {"status": "PASSED", "performance": {"latency_ms": rng.choice((None, 0.0, -1.5))}}
        case 8:  # drift, no fault
            evaluation["environment"] = evaluation["environment"] | {"driver": "580.1"}
        case 9:  # legacy forms, no fault
            environment = evaluation["environment"]
            evaluation["environment"] = {"device": environment["hardware"], "libs": environment["libs"]}
            evaluation["timestamp"] += "+02:00"
        case _:  # another way to write the same, no fault
            return json.dumps(document, indent=None, ensure_ascii=True).replace('": "', '":\t"').encode() + b" "
    return _text(document).encode()


def _log(rng: random.Random) -> str:
    lines = (
        f'/build/kernel_{rng.randrange(10**6)}.cu(12): error: "acc" is undefined' for _ in range(rng.randrange(1, 9))
    )
    return "\n".join(lines) + "\n\tninja: build stopped.\n"


def _timestamp(rng: random.Random) -> str:
    moment = _START + timedelta(microseconds=rng.randrange(_SPAN_S * 10**6))
    return moment.replace(tzinfo=None).isoformat()


def _uuid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _write_json(path: Path, document: dict[str, Any]) -> None:
    _write(path, json.dumps(document, indent=2).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
