"""The runner on a CPU: it checks correctness and catches most cheats; needs torch."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipeline.ingest import IngestRequest, ingest
from pipeline.ingest.reruns import import_reruns
from pipeline.manifests import sha256_of
from pipeline.rerun.plan import Selection, plan
from pipeline.rerun.results import read_result
from pipeline.rerun.runner.batch import CannotRun, _failure, _host_facts, _scratch, run_batch
from pipeline.rerun.runner.host import default_device
from pipeline.rerun.runner.job import Job, JobError
from pipeline.rerun.runner.result import parse_result, write_result
from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory
from tests.rerun.making import CHEATS, DEFINITION, QUICK, cheat, make_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
no_gpu = pytest.mark.skipif(default_device() == "cuda", reason="here is a GPU")

from pipeline.rerun.runner.judge import Judge, calls_of_block  # noqa: E402 - needs torch
from pipeline.rerun.runner.tensors import CannotMake, TensorSpec, bind_arguments, load_tensor  # noqa: E402 - needs torch

VERDICTS = Path(__file__).parent / "data" / "verdicts"
RUNNER = Path(__file__).parents[2] / "pipeline" / "rerun" / "runner"

GPU_ONLY = {"side_stream", "persisting_l2"}

CAUGHT = {
    "cached_by_pointer": {"STALE_OUTPUT"},
    "cached_output": {"STALE_OUTPUT"},
    "calls_home": {"NETWORK_ACCESS"},
    "endless_loop": {"TIMEOUT"},
    "freed_memory": {"OUTPUT_NOT_WRITTEN", "NUMERICAL_MISMATCH"},
    "late_thread": {"THREAD_LEFT_RUNNING"},
    "lazy_tensor": {"NOT_A_PLAIN_TENSOR"},
    "left_behind": {"PROCESS_LEFT_BEHIND"},
    "memory_hog": {"MEMORY_LIMIT"},
    "mutated_input": {"INPUT_MUTATED"},
    "patched_clock": {"HARNESS_TAMPERED"},
    "patched_event": {"HARNESS_TAMPERED"},
    "patched_event_method": {"HARNESS_TAMPERED"},
    "same_buffer": {"OUTPUT_ALIASES"},
    "skips_after_warm_up": {"WRONG_AFTER_WARM_UP"},
    "view_of_input": {"OUTPUT_ALIASES"},
    "writes_outside": {"WRITE_OUTSIDE_SCRATCH"},
    "zeros": {"NUMERICAL_MISMATCH"},
}
"""The reason for which each cheat is caught on a CPU: one of these."""

LIMITS = {
    "endless_loop": dataclasses.replace(QUICK, run_seconds=8),
    "memory_hog": dataclasses.replace(QUICK, memory_bytes=2**30),
}


def judged(jobs: dict[str, Job], folder: Path, tensors: Path | None = None) -> dict[str, dict[str, Any]]:
    """Run jobs as one batch, which loads torch once for all of them; return the result of each."""
    (folder / "jobs").mkdir()
    for name, job in jobs.items():
        (folder / "jobs" / f"{name}.json").write_text(job.text)
    run_batch([folder / "jobs"], folder / "results", device="cpu", tensors=tensors, report=lambda event: None)
    assert len(list((folder / "results").iterdir())) == len(jobs)
    return {name: json.loads((folder / "results" / f"{job.short}.json").read_text()) for name, job in jobs.items()}


def codes(result: dict[str, Any]) -> list[str]:
    found = [violation["code"] for violation in result["violations"]]
    return found + ([result["cause"]["code"]] if result["cause"] else [])


def check_outcomes(jobs: dict[str, Job], expected: dict[str, tuple[str, list[str]]], folder: Path) -> None:
    results = judged(jobs, folder)
    found = {name: (result["status"], codes(result)) for name, result in results.items()}
    assert found == expected, [results[name]["log"] for name in jobs if found[name] != expected[name]]


def test_every_cheat_has_its_reason() -> None:
    assert {path.stem for path in CHEATS.glob("*.py")} == {*CAUGHT, *GPU_ONLY, "honest"}


def test_an_honest_solution_passes_and_nothing_is_timed(tmp_path: Path) -> None:
    [result] = judged({"honest": cheat("honest")}, tmp_path).values()
    assert (result["status"], codes(result)) == ("passed", [])
    assert result["measurement"] is None
    assert result["reference"] == "float64"
    assert result["inputs"]["sets"] == 4
    assert result["correctness"]["matched_ratio"] == 1
    assert len(result["hidden_shapes"]) == 1


@pytest.mark.parametrize(
    "names",
    [
        ["cached_by_pointer"],
        pytest.param(list(CAUGHT)[1::2], marks=pytest.mark.slow),
        pytest.param(list(CAUGHT)[2::2], marks=pytest.mark.slow),
    ],
    ids=["one", "odd", "even"],
)
def test_cheats_are_caught(names: list[str], tmp_path: Path) -> None:
    results = judged({name: cheat(name, limits=LIMITS.get(name, QUICK)) for name in names}, tmp_path)
    assert {name: codes(result) for name, result in results.items() if not CAUGHT[name] & set(codes(result))} == {}
    assert [name for name, result in results.items() if result["status"] == "passed"] == []
    assert [name for name, result in results.items() if result["measurement"] is not None] == []
    assert not Path("/tmp/kernelhouse-was-here").exists()  # noqa: S108


CPP = """#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>

void run(at::Tensor x, at::Tensor y, at::Tensor out) { out.copy_(x.add(y, 2)); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""
"""With torch/extension.h, the compiler would take ten times as long."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ninja") is None or shutil.which("c++") is None, reason="needs ninja and a compiler")
def test_extensions_in_cpp(tmp_path: Path) -> None:
    sources = {"good": CPP, "bad": CPP.replace("out.copy_(x", "out.copy(x")}
    jobs = {
        name: make_job({"main.cpp": source}, language="cpp", destination_passing_style=True)
        for name, source in sources.items()
    }
    check_outcomes(jobs, {"good": ("passed", []), "bad": ("compile_error", ["COMPILE_ERROR"])}, tmp_path)


HONEST = "def run(x, y):\n    return x + 2 * y\n"

PRINTS = "import sys\n\n\ndef run(x, y):\n    sys.stdout.write('x' * 2**27)\n    return x + 2 * y\n"

FORKS = """import os, signal

def run(x, y):
    if os.fork() == 0:
        signal.pause()
    return x + 2 * y
"""

FORGES = """import socket, sys

def run(x, y):
    socket.socket(fileno=int(sys.argv[1])).sendall(b'{"ok": true}\\n')
    return x + 2 * y
"""

KILLS = """import contextlib, os

def run(x, y):
    with contextlib.suppress(PermissionError):
        os.kill(os.getppid(), 9)
    return x + 2 * y
"""

REPLACES_LOG = "import os\n\nos.remove('log')\nos.mkfifo('log')\n\n\n"
"""A judge that opened it by name would wait for ever, or read what the solution may not."""


def python(source: str, **given: Any) -> Job:
    return make_job({"main.py": source}, **given)


OUTCOMES = {
    "dependency": (python("import nothing_like_this\n" + HONEST), ("incomplete_evidence", ["MISSING_DEPENDENCY"])),
    "entry": (python("def other():\n    pass\n"), ("incomplete_evidence", ["MISSING_ENTRY_POINT"])),
    "source": (python(""), ("incomplete_evidence", ["MISSING_SOURCE"])),
    "late-dependency": (
        python("def run(x, y):\n    import nothing_like_this\n"),
        ("incomplete_evidence", ["MISSING_DEPENDENCY"]),
    ),
    "syntax": (python("def run(\n"), ("compile_error", ["COMPILE_ERROR"])),
    "raises": (python("def run(x, y):\n    raise ValueError('no')\n"), ("runtime_error", ["RUNTIME_ERROR"])),
    "exits": (python("import os\n\n\ndef run(x, y):\n    os._exit(3)\n"), ("runtime_error", ["RUNTIME_ERROR"])),
    "shape": (python("def run(x, y):\n    return (x + 2 * y)[1:]\n"), ("incorrect_shape", ["INCORRECT_SHAPE"])),
    "dtype": (python("def run(x, y):\n    return x.double()\n"), ("incorrect_dtype", ["INCORRECT_DTYPE"])),
    "hidden": (
        python("def run(x, y):\n    return x + 2 * y if len(x) == 4096 else x * 0\n"),
        ("incorrect_numerical", ["HIDDEN_SHAPE_MISMATCH"]),
    ),
    "hidden-raises": (
        python("def run(x, y):\n    assert len(x) == 4096\n    return x + 2 * y\n"),
        ("runtime_error", ["RUNTIME_ERROR"]),
    ),
    "one-element": (
        python("def run(x, y):\n    return (x + 2 * y).new_zeros(4096)[:len(x)] + x + 2 * y\n", axes={"N": 1}),
        ("passed", []),
    ),
    "nothing": (python("def run(x, y):\n    x + 2 * y\n"), ("incorrect_numerical", ["OUTPUT_NOT_WRITTEN"])),
    "prints": (python(PRINTS), ("resource_exceeded", ["OUTPUT_LIMIT"])),
    "forks": (python(FORKS), ("policy_violation", ["PROCESS_LEFT_BEHIND"])),
    "forges": (python(FORGES), ("incomplete_evidence", ["JUDGE_FAILED"])),
    "kills": (python(KILLS), ("policy_violation", ["SIGNAL_SENT"])),
    "log": (python(REPLACES_LOG + HONEST), ("passed", [])),
    "device": (python(HONEST, device="NVIDIA B200"), ("incomplete_evidence", ["DEVICE_NOT_PRESENT"])),
    "destination": (
        python("def run(x, y, out):\n    out.copy_(x + 2 * y)\n", destination_passing_style=True),
        ("passed", []),
    ),
    "two-files": (make_job({"main.py": "from helper import run\n", "helper.py": HONEST}), ("passed", [])),
}
"""Jobs, and what becomes of each: status of its run, and codes."""


@pytest.mark.slow
@pytest.mark.parametrize("names", [list(OUTCOMES)[::2], list(OUTCOMES)[1::2]], ids=["even", "odd"])
def test_outcomes(names: list[str], tmp_path: Path) -> None:
    check_outcomes({name: OUTCOMES[name][0] for name in names}, {name: OUTCOMES[name][1] for name in names}, tmp_path)


@pytest.mark.slow
def test_a_batch_resumes_and_a_crashed_job_spoils_no_other(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "a.json").write_text(python("import os\nos._exit(3)\n", name="a").text)
    (jobs / "b.json").write_text(cheat("honest").text)
    out = tmp_path / "results"
    first = run_batch([jobs], out, device="cpu", tensors=None, report=lambda event: None)
    assert [(event.status, event.resumed) for event in first] == [("runtime_error", False), ("passed", False)]
    kept = {path.name: path.read_bytes() for path in out.iterdir()}
    again = run_batch([jobs], out, device="cpu", tensors=None, report=lambda event: None)
    assert [event.resumed for event in again] == [True, True]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == kept


def test_a_batch_with_a_refused_job_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(cheat("honest").text)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(JobError, match="no job of format"):
        run_batch([tmp_path], tmp_path / "out", device="cpu", tensors=None, report=lambda event: None)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("prepare", "device", "said"),
    [
        (lambda folder: (folder / "a.json").unlink(), "cpu", "holds no job"),
        (lambda folder: (folder / "out").write_text("in the way"), "cpu", "out cannot be made .* name another folder"),
        pytest.param(lambda folder: None, "cuda", "torch finds no GPU", marks=no_gpu),
    ],
    ids=["no-job", "file-in-the-way", "no-gpu"],
)
def test_a_batch_that_cannot_begin_says_so_and_leaves_no_result(
    prepare: Callable[[Path], object], device: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(cheat("honest").text)
    prepare(tmp_path)
    with pytest.raises(CannotRun, match=said):
        run_batch([tmp_path], tmp_path / "out", device=device, tensors=None, report=lambda event: None)
    assert not (tmp_path / "out").is_dir()


def test_a_result_that_cannot_be_written_ends_the_batch_in_one_sentence(tmp_path: Path) -> None:
    job = python("")
    (tmp_path / "a.json").write_text(job.text)
    (tmp_path / "out" / f"{job.short}.json").mkdir(parents=True)
    with pytest.raises(CannotRun, match=r"cannot be written .*: make room and run the same again"):
        run_batch([tmp_path / "a.json"], tmp_path / "out", device="cpu", tensors=None, report=lambda event: None)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"{job.short}.json"]


def test_a_job_whose_judge_failed_can_be_imported_and_is_run_again(tmp_path: Path) -> None:
    job = python("")
    (tmp_path / "a.json").write_text(job.text)
    failed = _failure(job, "cpu", _host_facts("cpu"), "the judge ended with status -9", "")
    read = read_result(*parse_result(json.dumps(failed)))
    assert read.rerun is not None
    assert read.rerun.reasons == ("JUDGE_FAILED",)
    out = tmp_path / "out"
    out.mkdir()
    write_result(out / f"{job.short}.json", failed)
    [event] = run_batch([tmp_path / "a.json"], out, device="cpu", tensors=None, report=lambda event: None)
    assert (event.resumed, event.detail.partition(":")[0]) == (False, "MISSING_SOURCE")


def test_an_interrupted_batch_says_so_leaves_nothing_behind_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    for place, source in (("a", ""), ("b", "while True:\n    pass\n")):
        (tmp_path / "jobs" / f"{place}.json").write_text(python(source, name=place).text)
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "pipeline.rerun.runner", str(tmp_path / "jobs"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [*command, "--allow-code", "--device", "cpu"], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}, cwd=RUNNER.parents[2],
    ) as batch:  # fmt: skip
        assert batch.stderr is not None
        assert "MISSING_SOURCE" in batch.stderr.readline()
        batch.send_signal(signal.SIGINT)
        assert batch.stderr.read() == "runner: interrupted; the same command goes on from here\n"
    assert batch.returncode == 130
    assert list((tmp_path / "tmp").iterdir()) == []
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_an_interrupt_at_the_worst_moment_leaves_no_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prefix: str) -> str:
        (tmp_path / prefix).mkdir()
        signal.raise_signal(signal.SIGINT)
        return str(tmp_path / prefix)

    monkeypatch.setattr("tempfile.mkdtemp", interrupted)
    monkeypatch.setattr("pipeline.rerun.runner.batch.end_descendants", lambda pid: None)
    with pytest.raises(KeyboardInterrupt), _scratch():
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("call_ns", "calls"), [(1, 335), (10_000, 317), (200_000, 158), (10**7, 20)])
def test_a_block_is_long_beside_a_message_and_short_enough_to_repeat(call_ns: float, calls: int) -> None:
    assert calls_of_block(call_ns) == calls


# Hidden shapes

TWO_AXES = DEFINITION["axes"] | {"M": {"type": "var"}}


@pytest.mark.parametrize(
    ("definition", "axes", "inputs", "free"),
    [
        ({}, {"N": 4096}, {}, {"n"}),
        ({}, {"N": 1}, {}, {"n"}),
        ({"axes": TWO_AXES}, {"N": 8, "M": 3}, {}, {"n", "m"}),
        ({"axes": {"N": {"type": "const", "value": 4096}}}, {}, {}, set()),
        ({"axes": TWO_AXES | {"M": {"type": "expr", "expression": "N * 2"}}}, {"N": 8}, {}, set()),
        ({"constraints": ["N % 8 == 0"]}, {"N": 8}, {}, set()),
        ({"inputs": DEFINITION["inputs"] | {"y": {"shape": ["N"], "dtype": "int32"}}}, {"N": 8}, {}, set()),
        ({"inputs": DEFINITION["inputs"] | {"s": {"shape": None, "dtype": "float32"}}}, {"N": 8},
         {"s": {"type": "scalar", "value": 2}}, set()),
        ({}, {"N": 8}, {"x": {"type": "safetensors", "path": "x"}}, set()),
    ],
    ids=["random", "one", "two-axes", "no-free-axis", "derived", "constrained", "integers", "scalar", "tensor-file"],
)  # fmt: skip
def test_other_shapes_are_tried_where_every_input_has_a_recipe(
    definition: dict[str, Any], axes: dict[str, int], inputs: dict[str, Any], free: set[str], tmp_path: Path
) -> None:
    job = python(HONEST, definition=DEFINITION | definition, axes=axes, inputs=inputs)
    judge = Judge(job, device="cpu", tensors=None, scratch=tmp_path)
    problem = judge._hidden_problem()
    assert (problem is not None) == bool(free)
    assert len(judge.found.hidden_shapes) == bool(free)
    for shape in judge.found.hidden_shapes:
        assert set(shape) == free
        assert all(0 < value != job.document["axes"][name] for name, value in shape.items())
        assert problem is not None
        assert problem.arguments.outputs[0].shape == (shape["n"],)


# Tensor files


def safetensors(path: Path, **tensors: torch.Tensor) -> str:
    """Write a safetensors file and return its digest."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
        dtype = {torch.float32: "F32", torch.float64: "F64"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return sha256_of(path.read_bytes())


BLOB = "./blob/workloads/x.safetensors"
FROM_FILE = {"x": {"type": "safetensors", "path": BLOB, "tensor_key": "k"}, "y": {"type": "random"}}


def test_inputs_come_from_the_tensor_files_that_the_plan_found(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(VERDICTS / "trace-set", folder)
    file = next(folder.glob("traces/*/*/*.jsonl"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    record = next(line for line in lines if line["solution"] == "reported_fast")
    records, expected = [], {}
    for number, name in enumerate(("there", "gone", "another")):
        path, length = f"./blob/workloads/{name}.safetensors", 4096 + number
        inputs = FROM_FILE | {"x": FROM_FILE["x"] | {"path": path}}
        records.append(record | {"workload": {"axes": {"N": length}, "inputs": inputs, "uuid": name}})
        expected[name] = {path: safetensors(folder / path, k=torch.arange(length, dtype=torch.float32))}
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    data = DataDirectory(tmp_path / "data")
    ingest(data, IngestRequest(source=str(folder)))
    with closing(connect(data.database)) as connection:
        planned = plan(connection, data, Selection(solution="reported_fast")).jobs
    jobs = {job.document["workload_record"]["uuid"]: job for job in planned}
    assert {name: job.document["tensor_files"] for name, job in jobs.items()} == expected
    (folder / "blob/workloads/gone.safetensors").unlink()
    another = folder / "blob/workloads/another.safetensors"
    another.write_bytes(another.read_bytes()[:-1] + b"!")

    results = judged(jobs, tmp_path, tensors=folder)
    there = results.pop("there")
    assert there["status"] == "passed", there["cause"]
    assert (there["inputs"]["sets"], there["hidden_shapes"]) == (4, [])
    assert {name: result["status"] for name, result in results.items()} == dict.fromkeys(results, "incomplete_evidence")
    causes = {name: result["cause"]["code"] for name, result in results.items()}
    assert causes == {"gone": "MISSING_TENSOR_FILE", "another": "TENSOR_FILE_MISMATCH"}
    assert "is not in the folder of --tensors" in results["gone"]["cause"]["detail"]
    assert "and the job names" in results["another"]["cause"]["detail"]
    verdicts = import_reruns(data, tmp_path / "results", lambda *_: None)[1]
    failed = [verdict["reasons"] for verdict in verdicts if verdict["verdict"] == "FAILED"]
    assert sorted(failed) == [["MISSING_TENSOR_FILE"], ["TENSOR_FILE_MISMATCH"]]
    assert [verdict["verdict"] for verdict in verdicts if verdict["verdict"] != "FAILED"] == ["CORRECT_OTHER_HARDWARE"]


def test_a_tensor_is_what_its_file_says(tmp_path: Path) -> None:
    spec = TensorSpec("x", "float32", (2, 3))
    values = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    digest = safetensors(tmp_path / "kept", other=torch.zeros(5), k=values, nothing=torch.zeros(0, 3))
    (tmp_path / BLOB).parent.mkdir(parents=True)
    (tmp_path / BLOB).symlink_to(tmp_path / "kept")
    assert torch.equal(load_tensor(spec, tmp_path, FROM_FILE["x"], digest), values.float())
    nothing = load_tensor(TensorSpec("x", "float32", (0, 3)), tmp_path, {"path": BLOB, "tensor_key": "nothing"}, digest)
    assert nothing.shape == (0, 3)


@pytest.mark.parametrize(
    ("described", "digest", "cause", "said"),
    [
        ({}, None, "MISSING_TENSOR_FILE", "was in no pull"),
        ({"path": "../x"}, "right", "MISSING_TENSOR_FILE", "no path inside a trace set"),
        ({"path": "/etc/passwd"}, "right", "MISSING_TENSOR_FILE", "no path inside a trace set"),
        ({"path": "blob"}, "right", "MISSING_TENSOR_FILE", "is not in the folder"),
        ({"tensor_key": "z"}, "right", "TENSOR_FILE_MISMATCH", "holds no tensor for x"),
        ({"tensor_key": "long"}, "right", "TENSOR_FILE_MISMATCH", r"x is \(5,\) in .* and \(4,\) in the workload"),
        ({}, "sha256:0", "TENSOR_FILE_MISMATCH", "and the job names sha256:0"),
    ],
)
def test_a_tensor_file_that_does_not_fit_is_a_cause(
    described: dict[str, Any], digest: str | None, cause: str, said: str, tmp_path: Path
) -> None:
    right = safetensors(tmp_path / BLOB, k=torch.ones(4), long=torch.ones(5))
    with pytest.raises(CannotMake, match=said) as caught:
        load_tensor(
            TensorSpec("x", "float32", (4,)),
            tmp_path,
            FROM_FILE["x"] | described,
            right if digest == "right" else digest,
        )
    assert caught.value.cause == cause


def test_an_input_of_an_unknown_kind_is_not_made_up() -> None:
    with pytest.raises(CannotMake, match="x is 'custom', which this runner cannot make"):
        bind_arguments(DEFINITION, {"inputs": {"x": {"type": "custom"}}}, {"n": 4})


@pytest.mark.slow
def test_the_folder_runs_where_it_is_copied_to(tmp_path: Path) -> None:
    shutil.copytree(RUNNER, tmp_path / "elsewhere" / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "job.json").write_text(cheat("honest").text)
    command = [sys.executable, "-m", "runner", str(tmp_path / "job.json"), "--out", str(tmp_path / "out")]
    where = {"cwd": tmp_path / "elsewhere", "env": {"PATH": os.environ["PATH"]}}
    refused = subprocess.run(command, capture_output=True, text=True, check=False, **where)
    assert refused.returncode == 2
    assert "--allow-code" in refused.stderr
    done = subprocess.run(
        [*command, "--allow-code", "--device", "cpu"], capture_output=True, text=True, check=True, **where
    )
    assert "passed honest" in done.stderr
    assert len(list((tmp_path / "out").glob("*.json"))) == 1
