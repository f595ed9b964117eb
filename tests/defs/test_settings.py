from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.defs.__main__ import main
from pipeline.defs.resources import DataResource
from pipeline.defs.settings import Settings
from pipeline.errors import UsageError


def test_a_value_that_cannot_be_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELHOUSE_RETRIES", "often")
    with pytest.raises(UsageError, match=r"^KERNELHOUSE_RETRIES cannot be 'often' \(Input should .+\): set it right$"):
        Settings.from_environment()


def test_a_run_that_cannot_begin_ends_with_the_sentence_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("KERNELHOUSE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KERNELHOUSE_SOURCE", "hub:nobody")
    assert main() == 2
    said = capsys.readouterr().err
    assert said.startswith("kernelhouse: hub:nobody names no dataset: write hub:OWNER/NAME")
    assert said.count("\n") == 1


def test_a_data_directory_elsewhere_is_refused_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("KERNELHOUSE_DATA", "s3://bucket/data")
    assert main() == 2
    assert capsys.readouterr().err.startswith("kernelhouse: s3://bucket/data is no folder of this machine: give one")


def test_the_data_directory_is_chosen_as_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DataResource(path="~/data").directory.root == tmp_path / "data"
    monkeypatch.setenv("KERNELHOUSE_DATA", "~/other")
    assert DataResource().directory.root == tmp_path / "other"
