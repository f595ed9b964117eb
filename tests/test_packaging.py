"""What is shipped: the wheel and what it carries, the declared dependencies, the pinned requirements."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"(?P<name>[a-z0-9.-]+)==(?P<version>\S+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def build(source: Path, target: str, into: Path) -> Path:
    """Build the sdist or the wheel of a source tree, with the pinned build backend and no network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the sdist, as an index or a distributor builds it."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed, away from the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--target", str(folder), str(wheel)], check=True)
    return folder


def files_below(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if path.suffix != ".pyc"}


@pytest.mark.parametrize(
    ("folder", "inside"),
    [("pipeline", "pipeline"), ("schemas", "pipeline/_data/schemas"), ("warehouse", "pipeline/_data/warehouse")],
)
def test_the_wheel_carries_every_file(wheel: Path, folder: str, inside: str) -> None:
    expected = {f"{inside}/{path}" for path in files_below(ROOT / folder)}
    with zipfile.ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if name.startswith(f"{inside}/")}
    if folder == "pipeline":
        carried = {name for name in carried if not name.startswith("pipeline/_data/")}
    assert expected
    assert carried == expected


def test_the_wheel_holds_nothing_else_but_its_metadata_and_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    others = {name.split(".dist-info/", 1)[1] for name in names if not name.startswith("pipeline/")}
    assert others == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"}
    assert "License-Expression: Apache-2.0\n" in metadata


def test_an_installed_wheel_works_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "KERNELHOUSE_DATA": str(tmp_path / "data")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
        return done.stdout

    assert Path(run(sys.executable, "-c", "import pipeline; print(pipeline.__file__)").strip()).is_relative_to(
        installed
    )
    kernelhouse = installed / "bin" / "kernelhouse"
    run(kernelhouse, "ingest", "sample")
    assert run(kernelhouse, "sql", "--format", "csv", "SELECT count(*) AS runs FROM runs").split() == ["runs", "49"]


def distributions(modules: Iterable[Path]) -> set[str]:
    """The names of the packages that modules import."""
    imported = set()
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    imported -= {"pipeline", *sys.stdlib_module_names, "_typeshed"}  # the last is there for mypy only
    imported -= {"torch"}  # only the runner needs it, and only on a host that reruns kernels
    known = importlib.metadata.packages_distributions()
    return {canonicalize_name(name) for module in imported for name in known[module]}


def test_every_import_is_declared_and_every_dependency_is_imported() -> None:
    orchestrator = set((ROOT / "pipeline" / "defs").rglob("*.py"))
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}
    assert distributions(set((ROOT / "pipeline").rglob("*.py")) - orchestrator) == declared
    extra = PROJECT["project"]["optional-dependencies"]["dagster"]
    assert distributions(orchestrator) <= declared | {canonicalize_name(Requirement(line).name) for line in extra}


def pins(name: str) -> dict[str, str]:
    """Read a requirements file, every line of which is a comment, a pin or one of its hashes."""
    text = (ROOT / "requirements" / name).read_text()
    text = re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)
    found = {match["name"]: match["version"] for match in PIN.finditer(text)}
    assert PIN.sub("", text) == "", f"{name} holds more than pins with hashes"
    return found


def test_what_is_pinned_for_development_includes_what_is_pinned_to_run() -> None:
    assert pins("run.txt").items() < pins("dev.txt").items()


@pytest.mark.parametrize(
    ("requirements", "name"),
    [
        *((line, "run.txt") for line in PROJECT["build-system"]["requires"]),
        *((line, "run.txt") for line in PROJECT["project"]["dependencies"]),
        *((line, "dev.txt") for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra),
    ],
)
def test_every_declared_requirement_is_pinned_inside_its_bounds(requirements: str, name: str) -> None:
    requirement = Requirement(requirements)
    assert requirement.specifier
    assert requirement.specifier.contains(pins(name)[canonicalize_name(requirement.name)])
