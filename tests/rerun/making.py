"""Jobs for the tests of the runner: one small operation, and solutions for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.normalize.operation import Project
from pipeline.rerun.jobs import Limits, build_job
from pipeline.rerun.runner.job import Job
from pipeline.upstream import documents as upstream

CHEATS = Path(__file__).parent / "cheats"

DEFINITION: dict[str, Any] = {
    "name": "scaled_add_fp32",
    "op_type": "elementwise",
    "axes": {"N": {"type": "var"}},
    "inputs": {"x": {"shape": ["N"], "dtype": "float32"}, "y": {"shape": ["N"], "dtype": "float32"}},
    "outputs": {"out": {"shape": ["N"], "dtype": "float32"}},
    "reference": "def run(x, y):\n    return x + 2 * y\n",
}

QUICK = Limits(build_seconds=120, run_seconds=60, memory_bytes=4 * 2**30, output_bytes=2**26)


class OneOperation:
    """A catalog that knows one operation."""

    def __init__(self, operation: Any) -> None:
        self._operation = operation

    def operation(self, name: str) -> Any:
        return self._operation

    def implementation(self, name: str) -> None:
        return None


def make_job(
    sources: dict[str, str],
    *,
    definition: dict[str, Any] = DEFINITION,
    axes: dict[str, int] | None = None,
    inputs: dict[str, Any] | None = None,
    entry_point: str | None = None,
    language: str = "python",
    destination_passing_style: bool = False,
    name: str = "solution",
    limits: Limits = QUICK,
    **given: Any,
) -> Job:
    adapter, project = FlashInferBench(), Project(None, None)
    operation = adapter.read_definition(json.dumps(definition).encode(), project).value.operation
    solution = {
        "name": name,
        "definition": definition["name"],
        "author": "kernelhouse",
        "spec": {
            "language": language,
            "target_hardware": ["H200"],
            "entry_point": entry_point or f"{next(iter(sources))}::run",
            "destination_passing_style": destination_passing_style,
        },
        "sources": [{"path": path, "content": content} for path, content in sources.items()],
    }
    raw = json.dumps(solution).encode()
    implementation = adapter.read_solution(raw, "solutions/kernelhouse/op/def/x.json", project, OneOperation(operation))
    record = {"axes": axes or {"N": 4096}, "inputs": inputs or {}, "uuid": "test"}
    workload = operation.normalize(upstream.Workload.model_validate(record))
    return build_job(
        operation=operation,
        workload=workload.manifest,
        implementation=implementation.value.manifest.document,
        definition=definition,
        solution=solution,
        workload_record=record,
        limits=limits,
        **given,
    )


def altered(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document with each of its values in turn put to each of a few others, and where that was."""
    for path in _paths(document):
        for value in (None, [], "\ud800", -1):
            copy = json.loads(json.dumps(document))
            inner = copy
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = value
            yield f"{path} = {value!r}", copy


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, each in inner:
        yield (*above, name)
        yield from _paths(each, (*above, name))


def cheat(name: str, **given: Any) -> Job:
    return make_job({"main.py": (CHEATS / f"{name}.py").read_text()}, name=name, **given)
