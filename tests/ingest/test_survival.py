"""Killed processes, a full disk, many readers: nobody sees a broken warehouse, and the next ingest mends all."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.errors import DataDirectoryError
from pipeline.store.layout import DataDirectory
from tests.fake_hub.pulls import pull, tables
from tests.fake_hub.server import REPOSITORY, FakeHub
from tests.fake_hub.sets import definition, solution, trace
from tests.ingest.reader import look

KILLS = 50
KILLS_IN_A_ROW = 5
PUBLISHES = 5
READERS = 10
ROOT = Path(__file__).parents[2]


def trace_set(revision: int) -> dict[str, bytes]:
    """Return a trace set that grows with its revision; from the third on its first record is withdrawn."""
    records = [trace("a", 10.0 - day / 10, day) for day in range(1, 4 + revision)]
    files = {
        "definitions/elementwise/scale.json": definition(),
        "solutions/alice/elementwise/scale/a.json": solution("a", content="a"),
        "traces/alice/elementwise/scale.jsonl": b"".join(records[1 if revision > 2 else 0 :]),
    }
    for number in range(1, revision + 1):
        files[f"solutions/alice/elementwise/scale/s{number}.json"] = solution(f"s{number}", content=f"s{number}")
        files[f"traces/bob/elementwise/part{number}.jsonl"] = b"".join(
            trace(f"s{number}", 5.0 + number / 10, day, n=2**day) for day in range(1, 9)
        )
    return files


LFS = frozenset({"traces/bob/elementwise/part1.jsonl"})


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as hub:
        hub.commit(trace_set(1), LFS)
        yield hub


@pytest.mark.slow
def test_an_ingest_killed_at_any_moment_leaves_no_trace_in_the_tables(hub: FakeHub, tmp_path: Path) -> None:
    calm, first = DataDirectory(tmp_path / "calm"), tmp_path / "first"
    pull(calm, hub)
    shutil.copytree(calm.root, first)
    hub.commit(trace_set(2), LFS)
    pull(calm, hub)
    expected, allowed = tables(calm), {look(DataDirectory(first).database), look(calm.database)}
    start = DataDirectory(tmp_path / "start")
    shutil.copytree(first, start.root)
    undisturbed = _victim(start, hub)
    began = time.monotonic()
    undisturbed.communicate("go\n")
    longest = time.monotonic() - began
    assert undisturbed.returncode == 0
    assert tables(start) == expected

    moments = random.Random(5)  # noqa: S311 - chance, not secrecy
    killed = 0
    for row in range(KILLS // KILLS_IN_A_ROW):
        data = DataDirectory(tmp_path / f"row{row}")
        shutil.copytree(first, data.root)
        for _ in range(KILLS_IN_A_ROW):
            victim = _victim(data, hub)
            assert victim.stdin is not None
            moment = time.monotonic() + moments.uniform(0, longest)
            victim.stdin.write("go\n")
            victim.stdin.flush()
            while time.monotonic() < moment:
                assert look(data.database) in allowed
            victim.kill()
            victim.communicate()
            killed += victim.returncode == -9
            assert look(data.database) in allowed
        assert pull(data, hub).complete
        assert tables(data) == expected
        assert not [path for path in data.root.rglob("*") if path.name.startswith(".tmp-")]
        shutil.rmtree(data.root)
    assert killed > KILLS / 2, "most of them were killed before they were done"


def _victim(data: DataDirectory, hub: FakeHub) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.ingest.victim", str(data.root), f"hub:{REPOSITORY}"]
    victim = subprocess.Popen(
        [*command, hub.endpoint, hub.store_host], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    assert victim.stdout.readline() == "ready\n"
    return victim


@pytest.mark.slow
def test_ten_readers_through_five_publishes_see_no_error_and_no_mixed_state(hub: FakeHub, tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    pull(data, hub)
    states = [look(data.database)]
    command = [sys.executable, "-m", "tests.ingest.reader", str(data.database)]
    readers = [
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(READERS)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    for revision in range(2, 2 + PUBLISHES):
        hub.commit(trace_set(revision), LFS)
        assert pull(data, hub).published
        states.append(look(data.database))
    assert len(set(states)) == 1 + PUBLISHES
    for reader in readers:
        out, errors = reader.communicate()
        assert (reader.returncode, errors) == (0, "")
        seen = json.loads(out)
        assert {tuple(state) for state in seen["states"]} <= set(states)
        assert list(states[-1]) in seen["states"]
        assert seen["looks"] > PUBLISHES


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB, where this process may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small tmpfs")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small tmpfs cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run([str(shutil.which("umount")), str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_a_clear_error_and_the_warehouse_stays(hub: FakeHub, small_disk: Path, tmp_path: Path) -> None:
    calm = DataDirectory(tmp_path / "calm")
    pull(calm, hub)
    shutil.copytree(calm.root, tmp_path / "first")
    hub.commit(trace_set(2), LFS)
    pull(calm, hub)
    expected = tables(calm)
    failures = 0
    for free_kib in (0, 4, 12, 28, 60, 124, 252, 1020, 4092, 16380):
        data = DataDirectory(small_disk / "data")
        shutil.copytree(tmp_path / "first", data.root)
        before = data.database.read_bytes()
        filler = small_disk / "filler"
        free = shutil.disk_usage(small_disk).free - free_kib * 1024
        with filler.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, free)
        with suppress(DataDirectoryError):
            pull(data, hub)
        if data.database.read_bytes() == before:
            failures += 1
            with pytest.raises(DataDirectoryError, match=r"^[^\n]*free disk space[^\n]*$"):
                pull(data, hub)
            assert data.database.read_bytes() == before
        filler.unlink()
        pull(data, hub)
        assert tables(data) == expected
        assert not [path for path in data.root.rglob("*") if path.name.startswith(".tmp-")]
        shutil.rmtree(data.root)
    assert failures >= 5
