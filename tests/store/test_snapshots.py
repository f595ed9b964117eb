from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DataDirectoryError
from pipeline.sources.listing import Failure, Kind, ListedFile, Pull
from pipeline.store.files import TEMPORARY
from pipeline.store.layout import DataDirectory
from pipeline.store.snapshots import identify, read_snapshots, record_snapshot, remove_leftovers

NOW = datetime(2026, 3, 2, 10, 0, 0, 123_999, tzinfo=UTC)
SHA256 = "sha256:" + "ab" * 32
PULL = Pull(
    source="hub:a/b",
    adapter="flashinfer-bench",
    repository="https://example.org/a/b",
    revision="1" * 40,
    authors=("gpt-5",),
    files=(
        ListedFile("traces/é 漢\u2011/x.jsonl", Kind.TRACE, 7, SHA256, fetched=True, locator="https://example.org/x"),
        ListedFile("blob/t.safetensors", Kind.TENSOR, 2**40, SHA256),
        ListedFile("definitions/x.json", Kind.DEFINITION, 0, None, failure=Failure("FETCH_FAILED", "gone")),
    ),
)
OTHERS = [
    dataclasses.replace(PULL, source="directory"),
    dataclasses.replace(PULL, repository=None),
    dataclasses.replace(PULL, revision=None),
    dataclasses.replace(PULL, authors=()),
    dataclasses.replace(PULL, files=PULL.files[:2]),
    dataclasses.replace(
        PULL, files=(dataclasses.replace(PULL.files[0], sha256="sha256:" + "cd" * 32), *PULL.files[1:])
    ),
    dataclasses.replace(PULL, files=(dataclasses.replace(PULL.files[0], path="other"), *PULL.files[1:])),
]


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data")


def test_a_record_comes_back_as_it_was(data: DataDirectory) -> None:
    snapshot = record_snapshot(data, PULL, [], NOW)
    assert read_snapshots(data) == [snapshot]
    assert snapshot.pull == PULL
    assert not snapshot.pull.complete
    assert snapshot.sequence == 1
    assert snapshot.fetched_at == datetime(2026, 3, 2, 10, 0, 0, 123_000)  # noqa: DTZ001 - without zone by contract
    assert snapshot.snapshot_id == identify(PULL)
    assert [path.name for path in data.snapshots.iterdir()] == [snapshot.snapshot_id.removeprefix("sha256:") + ".json"]


def test_the_same_pull_is_the_same_snapshot(data: DataDirectory) -> None:
    first = record_snapshot(data, PULL, [], NOW)
    again = record_snapshot(data, PULL, read_snapshots(data), NOW + timedelta(days=1))
    assert again == first
    assert len(read_snapshots(data)) == 1


@pytest.mark.parametrize(
    "other", OTHERS, ids=["source", "repository", "revision", "authors", "fewer", "content", "path"]
)
def test_another_pull_is_another_snapshot(data: DataDirectory, other: Pull) -> None:
    first = record_snapshot(data, PULL, [], NOW)
    second = record_snapshot(data, other, [first], NOW)
    assert second.snapshot_id != first.snapshot_id
    assert [snapshot.sequence for snapshot in read_snapshots(data)] == [1, 2]


def test_the_id_does_not_know_the_time(data: DataDirectory, tmp_path: Path) -> None:
    later = DataDirectory(tmp_path / "later")
    record_snapshot(later, OTHERS[0], [], NOW)
    there = record_snapshot(later, PULL, read_snapshots(later), NOW + timedelta(days=9))
    here = record_snapshot(data, PULL, [], NOW)
    assert (there.snapshot_id, there.sequence, here.sequence) == (here.snapshot_id, 2, 1)


def _edited(text: bytes, **changes: Any) -> bytes:
    return json.dumps(json.loads(text) | changes).encode()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: b"", id="empty"),
        pytest.param(lambda text: text[: len(text) // 2], id="half"),
        pytest.param(lambda text: b"[]", id="array"),
        pytest.param(lambda text: b"{}", id="nothing"),
        pytest.param(lambda text: b"\xff", id="not text"),
        pytest.param(lambda text: _edited(text, revision="2" * 40), id="another revision"),
        pytest.param(lambda text: _edited(text, files=[]), id="no files"),
        pytest.param(lambda text: _edited(text, files=None), id="null files"),
        pytest.param(lambda text: _edited(text, fetched_at="yesterday"), id="no time"),
        pytest.param(lambda text: _edited(text, sequence=2), id="another place"),
        pytest.param(lambda text: _edited(text, complete=True), id="another completeness"),
    ],
)
def test_a_damaged_record_is_told(data: DataDirectory, damage: Callable[[bytes], bytes]) -> None:
    record_snapshot(data, PULL, [], NOW)
    (path,) = data.snapshots.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataDirectoryError) as caught:
        read_snapshots(data)
    assert "\n" not in str(caught.value)


def test_a_record_that_is_no_plain_file_is_told(data: DataDirectory) -> None:
    record_snapshot(data, PULL, [], NOW)
    (path,) = data.snapshots.iterdir()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataDirectoryError, match="it is no plain file"):
        read_snapshots(data)


def test_a_missing_record_is_told(data: DataDirectory) -> None:
    first = record_snapshot(data, PULL, [], NOW)
    record_snapshot(data, OTHERS[0], [first], NOW)
    (data.snapshots / f"{first.snapshot_id.removeprefix('sha256:')}.json").unlink()
    with pytest.raises(DataDirectoryError, match="pull 1"):
        read_snapshots(data)


def test_leftovers_are_no_snapshots(data: DataDirectory) -> None:
    first = record_snapshot(data, PULL, [], NOW)
    leftover = data.snapshots / f"{TEMPORARY}7-{'a' * 64}.json"
    leftover.write_bytes(b"{")
    assert read_snapshots(data) == [first]
    remove_leftovers(data)
    assert not leftover.exists()
    assert read_snapshots(data) == [first]


def test_no_folder_holds_no_snapshots(tmp_path: Path) -> None:
    assert read_snapshots(DataDirectory(tmp_path / "missing")) == []


def test_its_documents_belong_to_its_repository_else_to_its_source(data: DataDirectory) -> None:
    first = record_snapshot(data, PULL, [], NOW)
    second = record_snapshot(data, dataclasses.replace(PULL, repository=None), [first], NOW)
    assert (first.scope, second.scope) == ("https://example.org/a/b", "hub:a/b")
