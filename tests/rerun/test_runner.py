"""The runner on a CPU: it checks correctness and catches most cheats; needs torch."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.rerun.runner.batch import run_batch
from pipeline.rerun.runner.job import Job, JobError
from tests.rerun.making import CHEATS, QUICK, cheat, make_job

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")

RUNNER = Path(__file__).parents[2] / "pipeline" / "rerun" / "runner"

GPU_ONLY = {"side_stream", "persisting_l2"}

CAUGHT = {
    "cached_by_pointer": "STALE_OUTPUT",
    "cached_output": "STALE_OUTPUT",
    "calls_home": "NETWORK_ACCESS",
    "endless_loop": "TIMEOUT",
    "freed_memory": ("OUTPUT_NOT_WRITTEN", "NUMERICAL_MISMATCH"),
    "late_thread": "THREAD_LEFT_RUNNING",
    "lazy_tensor": "NOT_A_PLAIN_TENSOR",
    "left_behind": "PROCESS_LEFT_BEHIND",
    "memory_hog": "MEMORY_LIMIT",
    "mutated_input": "INPUT_MUTATED",
    "patched_clock": "HARNESS_TAMPERED",
    "patched_event": "HARNESS_TAMPERED",
    "patched_event_method": "HARNESS_TAMPERED",
    "same_buffer": "OUTPUT_ALIASES",
    "skips_after_warm_up": "WRONG_AFTER_WARM_UP",
    "view_of_input": "OUTPUT_ALIASES",
    "writes_outside": "WRITE_OUTSIDE_SCRATCH",
    "zeros": "NUMERICAL_MISMATCH",
}
"""The reason for which each cheat is caught on a CPU."""


def judged(job: Job, folder: Path) -> dict[str, Any]:
    (folder / "jobs").mkdir()
    (folder / "jobs" / "job.json").write_text(job.text)
    run_batch([folder / "jobs"], folder / "results", device="cpu", tensors=None, report=lambda event: None)
    [result] = (folder / "results").glob("*.json")
    document: dict[str, Any] = json.loads(result.read_text())
    return document


def codes(result: dict[str, Any]) -> list[str]:
    found = [violation["code"] for violation in result["violations"]]
    return found + ([result["cause"]["code"]] if result["cause"] else [])


def test_every_cheat_has_its_reason() -> None:
    assert {path.stem for path in CHEATS.glob("*.py")} == {*CAUGHT, *GPU_ONLY, "honest"}


def test_an_honest_solution_passes_and_nothing_is_timed(tmp_path: Path) -> None:
    result = judged(cheat("honest"), tmp_path)
    assert (result["status"], codes(result)) == ("passed", [])
    assert result["measurement"] is None
    assert result["reference"] == "float64"
    assert result["inputs"]["sets"] == 4
    assert result["correctness"]["matched_ratio"] == 1
    assert len(result["hidden_shapes"]) == 1


@pytest.mark.parametrize(
    "name", [name if name == "cached_by_pointer" else pytest.param(name, marks=pytest.mark.slow) for name in CAUGHT]
)
def test_cheat(name: str, tmp_path: Path) -> None:
    limits = QUICK
    if name == "endless_loop":
        limits = dataclasses.replace(QUICK, run_seconds=8)
    if name == "memory_hog":
        limits = dataclasses.replace(QUICK, memory_bytes=2**31)
    result = judged(cheat(name, limits=limits), tmp_path)
    expected = CAUGHT[name]
    assert set(codes(result)) & set([expected] if isinstance(expected, str) else expected), codes(result)
    assert result["status"] != "passed"
    assert result["measurement"] is None
    assert not Path("/tmp/kernelhouse-was-here").exists()  # noqa: S108


CPP = """#include <torch/extension.h>

void run(torch::Tensor x, torch::Tensor y, torch::Tensor out) { out.copy_(x + 2 * y); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ninja") is None or shutil.which("c++") is None, reason="needs ninja and a compiler")
@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (CPP, ("passed", [])),
        (CPP.replace("out.copy_(x", "out.copy(x"), ("compile_error", ["COMPILE_ERROR"])),
    ],
    ids=["good", "bad"],
)
def test_extensions_in_cpp(source: str, outcome: tuple[str, list[str]], tmp_path: Path) -> None:
    job = make_job({"main.cpp": source}, language="cpp", destination_passing_style=True)
    result = judged(job, tmp_path)
    assert (result["status"], codes(result)) == outcome, result["log"]


HONEST = "def run(x, y):\n    return x + 2 * y\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sources", "given", "outcome"),
    [
        ({"main.py": "import nothing_like_this\n" + HONEST}, {}, ("incomplete_evidence", ["MISSING_DEPENDENCY"])),
        ({"main.py": "def other():\n    pass\n"}, {}, ("incomplete_evidence", ["MISSING_ENTRY_POINT"])),
        ({"main.py": ""}, {}, ("incomplete_evidence", ["MISSING_SOURCE"])),
        ({"main.py": "def run(\n"}, {}, ("compile_error", ["COMPILE_ERROR"])),
        ({"main.py": "def run(x, y):\n    raise ValueError('no')\n"}, {}, ("runtime_error", ["RUNTIME_ERROR"])),
        ({"main.py": "import os\n\n\ndef run(x, y):\n    os._exit(3)\n"}, {}, ("runtime_error", ["RUNTIME_ERROR"])),
        ({"main.py": "def run(x, y):\n    return (x + 2 * y)[1:]\n"}, {}, ("incorrect_shape", ["INCORRECT_SHAPE"])),
        ({"main.py": "def run(x, y):\n    return x.double()\n"}, {}, ("incorrect_dtype", ["INCORRECT_DTYPE"])),
        (
            {"main.py": "def run(x, y):\n    return x + 2 * y if len(x) == 4096 else x * 0\n"},
            {},
            ("incorrect_numerical", ["HIDDEN_SHAPE_MISMATCH"]),
        ),
        ({"main.py": HONEST}, {"device": "NVIDIA B200"}, ("incomplete_evidence", ["DEVICE_NOT_PRESENT"])),
        (
            {"main.py": "def run(x, y, out):\n    out.copy_(x + 2 * y)\n"},
            {"destination_passing_style": True},
            ("passed", []),
        ),
        ({"main.py": "from helper import run\n", "helper.py": HONEST}, {}, ("passed", [])),
    ],
    ids=[
        "dependency", "entry", "source", "syntax", "raises", "exits", "shape", "dtype", "hidden", "device",
        "destination", "two-files",
    ],
)  # fmt: skip
def test_outcome(
    sources: dict[str, str], given: dict[str, Any], outcome: tuple[str, list[str]], tmp_path: Path
) -> None:
    result = judged(make_job(sources, **given), tmp_path)
    assert (result["status"], codes(result)) == outcome, result["log"]


@pytest.mark.slow
def test_a_batch_resumes_and_a_crashed_job_spoils_no_other(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "a.json").write_text(make_job({"main.py": "import os\nos._exit(3)\n"}, name="a").text)
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
