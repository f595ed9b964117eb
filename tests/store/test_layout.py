from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.errors import DataDirectoryError, UsageError
from pipeline.store.layout import FORMAT_VERSION, DataDirectory, chosen_directory
from tests.trace_set import tree


def test_a_new_folder_is_prepared_and_stays_as_it_is(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "a" / "data")
    data.check()
    assert not data.root.parent.exists()
    data.prepare()
    assert data.exists()
    before = tree(data.root)
    data.prepare()
    data.check()
    assert tree(data.root) == before


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    DataDirectory(tmp_path).prepare()
    assert DataDirectory(tmp_path).exists()


@pytest.mark.parametrize("name", ["notes.txt", ".git/config", "traces/x.jsonl", "warehouse.duckdb"])
def test_a_foreign_folder_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    before = tree(tmp_path)
    for use in (DataDirectory(tmp_path).check, DataDirectory(tmp_path).prepare):
        with pytest.raises(DataDirectoryError, match=r"not empty.*give an empty or new folder"):
            use()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, FORMAT_VERSION + 100])
def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    DataDirectory(tmp_path).prepare()
    DataDirectory(tmp_path).format_file.write_text(f'{{"format": {version}}}')
    before = tree(tmp_path)
    for use in (DataDirectory(tmp_path).check, DataDirectory(tmp_path).check_format, DataDirectory(tmp_path).prepare):
        with pytest.raises(DataDirectoryError, match=f"format {version}.*upgrade"):
            use()
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        "7",
        '{"format": "1"}',
        '{"format": null}',
        '{"format": 1.5}',
        '{"format": true}',
        '{"format": 0}',
        "\udcff",
    ],
)
def test_a_damaged_format_is_told(tmp_path: Path, content: str) -> None:
    DataDirectory(tmp_path).prepare()
    DataDirectory(tmp_path).format_file.write_text(content, "utf-8", "surrogateescape")
    with pytest.raises(DataDirectoryError) as caught:
        DataDirectory(tmp_path).check()
    assert "\n" not in str(caught.value)


def test_a_file_and_a_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(DataDirectoryError, match="file"):
            DataDirectory(place).prepare()


def test_killed_before_the_format_was_written(tmp_path: Path) -> None:
    """Every file appears by a rename, so a kill may leave its temporary name beside the folders that were made."""
    data = DataDirectory(tmp_path)
    data.prepare()
    data.format_file.rename(tmp_path / ".tmp-4711-format.json")
    DataDirectory(tmp_path).prepare()
    assert DataDirectory(tmp_path).exists()


def test_evidence_without_a_format_is_told(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.prepare()
    (data.snapshots / "0.json").touch()
    data.format_file.unlink()
    for use in (data.check, data.check_format, data.prepare):
        with pytest.raises(DataDirectoryError, match=r"format\.json is missing: restore it"):
            use()


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_a_format_that_is_no_file_is_damaged(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(DataDirectory(tmp_path).format_file)
    for use in (DataDirectory(tmp_path).check, DataDirectory(tmp_path).check_format, DataDirectory(tmp_path).prepare):
        with pytest.raises(DataDirectoryError, match=r"format\.json is damaged"):
            use()


@pytest.mark.parametrize(
    ("given", "variable", "place"),
    [
        (None, None, "here/data"),
        (None, "", "here/data"),
        (None, "other", "here/other"),
        ("x", "other", "here/x"),
        ("~", None, "home"),
        ("~/x", None, "home/x"),
        (None, "~/x", "home/x"),
        ("./~", None, "here/~"),
        ("./~x", None, "here/~x"),
        ("x~", None, "here/x~"),
        ("./s3:x", None, "here/s3:x"),
        ("a*[b]{c}", None, "here/a*[b]{c}"),
        ("../x", None, "here/../x"),
    ],
)
def test_the_chosen_directory_is_one_absolute_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, variable: str | None, place: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KERNELHOUSE_DATA", raising=False)
    if variable is not None:
        monkeypatch.setenv("KERNELHOUSE_DATA", variable)
    assert chosen_directory(given).root == tmp_path / place


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("s3://bucket/x", "s3://bucket/x is no folder of this machine"),
        ("http://host/x", "no folder of this machine"),
        ("md:x", "no folder of this machine"),
        ("file:///tmp/x", "no folder of this machine"),
        ("~nobody-of-that-name/x", "no folder of this machine"),
        ("a?b", "a ? or what is no UTF-8"),
        ("\udcff", "a ? or what is no UTF-8"),
    ],
)
def test_a_place_that_python_and_duckdb_would_see_differently_is_refused(
    monkeypatch: pytest.MonkeyPatch, given: str, sentence: str
) -> None:
    monkeypatch.setenv("KERNELHOUSE_DATA", given)
    for choose in (chosen_directory, lambda: chosen_directory(given)):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            choose()
