"""Definitions load by themselves, and nothing but them needs Dagster."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},  # nothing of Dagster or of this project is set
        capture_output=True,
        text=True,
    )


def test_definitions_load_without_a_word() -> None:
    done = python(
        "import time; start = time.monotonic()\n"
        "from pipeline.defs.definitions import defs\n"
        "import dagster\n"
        "dagster.Definitions.validate_loadable(defs())\n"
        "print(f'{time.monotonic() - start:.2f} s')"
    )
    assert (done.returncode, done.stderr) == (0, "")
    print(f"definitions load in {done.stdout}")  # noqa: T201  (for pytest -s: time is no promise of a test)


def test_dagster_finds_them() -> None:
    from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module

    [target] = loadable_targets_from_python_module("pipeline.defs.definitions", working_directory=str(ROOT))
    assert target.attribute == "defs"


@pytest.mark.parametrize("arguments", [["--help"], ["ingest", "sample"], ["status"], ["verify"]])
def test_the_command_line_runs_without_dagster(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('dagster', 'dagster_webserver', 'pipeline.defs'): sys.modules[name] = None\n"
        "from pipeline.cli import main\n"
        "main()"
    )
    data = ["--data", str(tmp_path / "data")]
    if arguments[0] in ("status", "verify"):
        assert python(code, "ingest", *data).returncode == 0
    done = python(code, *arguments, *(data if arguments != ["--help"] else []))
    assert (done.returncode, done.stderr) == (0, "")
