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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CRON", "never"),
        ("CRON", "0 5 * *"),
        ("TIME_ZONE", "Mars/Olympus"),
        ("TIME_ZONE", "../etc"),
        ("RETRIES", "-1"),
        ("RETRIES", "9" * 20),
        ("RETRY_SECONDS", "-1"),
        ("RETRY_SECONDS", "nan"),
        ("RETRY_SECONDS", "inf"),
        ("REPOSITORY", "ftp://example.org"),
    ],
)
def test_nonsense_is_one_sentence_with_its_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"KERNELHOUSE_{name}", value)
    with pytest.raises(UsageError) as error:
        Settings.from_environment()
    assert str(error.value).startswith(f"KERNELHOUSE_{name} cannot be {value!r} (")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"DAGSTER_HOME": ""}, "DAGSTER_HOME cannot be ''"),
        ({"DAGSTER_HOME": "relative"}, "DAGSTER_HOME cannot be 'relative'"),
        ({"DAGSTER_HOME": __file__}, "DAGSTER_HOME cannot be"),
        ({"KERNELHOUSE_DATA": __file__}, "is a file"),
        ({"KERNELHOUSE_SOURCE": "/nowhere"}, "no folder /nowhere"),
        ({"KERNELHOUSE_REVISION": "a" * 40}, "the bundled sample takes no"),
        ({"KERNELHOUSE_REVISION": "main"}, "main"),
    ],
)
def test_what_cannot_succeed_begins_no_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, str],
    sentence: str,
) -> None:
    folders = {"DAGSTER_HOME": str(tmp_path), "KERNELHOUSE_DATA": str(tmp_path / "data")}
    for name, value in {**folders, **given}.items():
        monkeypatch.setenv(name, value)
    assert main() == 2
    said = capsys.readouterr().err
    assert said.startswith("kernelhouse: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


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
