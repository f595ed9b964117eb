"""Each fault of network and upstream, and a storm of them, ends in the tables of a pull without faults."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.errors import KernelhouseError, SourceError
from pipeline.store.layout import DataDirectory
from tests.fake_hub.pulls import LIMITS, patient, pull, query, tables
from tests.fake_hub.server import FAULTS_OF_FILES, FAULTS_OF_LISTINGS, FILES_ONLY, FakeHub, Fault
from tests.fake_hub.sets import LFS, definition, sample_files, solution, trace

LFS_TRACES = "traces/bob/elementwise/scale.jsonl"

FIRST = {
    "README.md": b"A trace set.",
    "definitions/elementwise/scale.json": definition(),
    "solutions/alice/elementwise/scale/a.json": solution("a"),
    "traces/alice/elementwise/scale.jsonl": trace("a", 3.0, 1),
    "blob/tensor.safetensors": bytes(64),
}
"""What the warehouse has before the fault."""

SECOND = FIRST | {
    "solutions/alice/elementwise/scale/a.json": solution("a", content="v2"),
    "solutions/alice/elementwise/scale/b.json": solution("b", content="b"),
    "solutions/bob/elementwise/scale/c.json": solution("c", author="bob", content="c"),
    "definitions/elementwise/shift.json": definition("shift", op_type="shift"),
    "traces/alice/elementwise/scale.jsonl": trace("a", 3.0, 1) + trace("a", 2.5, 2) + trace("b", 2.0, 3),
    "traces/alice/elementwise/shift.jsonl": trace("b", 4.0, 4, of="shift"),
    LFS_TRACES: trace("c", 1.5, 5) + trace("nobody", 1.0, 6),
}
"""An edited solution with a new measurement, new documents, an LFS file, a record to be held back."""

THIRD = SECOND | {"traces/alice/elementwise/shift.jsonl": trace("b", 4.0, 4, of="shift") + trace("a", 3.9, 7)}
"""Where the branch moves: one more record."""

TRANSIENT = (
    Fault.RETRY_AFTER, Fault.RATE_LIMIT, Fault.ERROR_500, Fault.ERROR_502, Fault.ERROR_503, Fault.RESET,
    Fault.TRUNCATED, Fault.HTML, Fault.WRONG_BYTES, Fault.POINTER, Fault.STALLED,
)  # fmt: skip
REASONS = {Fault.POINTER: "LFS_POINTER", Fault.WRONG_BYTES: "DIGEST_MISMATCH"}
"""Why a file is held back; FETCH_FAILED for all other faults."""


@dataclass
class World:
    """A fake Hub whose branch is at SECOND, and a warehouse that has FIRST."""

    hub: FakeHub
    data: DataDirectory


@dataclass(frozen=True)
class Calm:
    """What pulls without faults lead to."""

    first: Path
    second: dict[str, list[tuple[object, ...]]]
    third: dict[str, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    folder = tmp_path_factory.mktemp("calm")
    data = DataDirectory(folder / "data")
    with FakeHub() as hub:
        hub.commit(FIRST, LFS)
        pull(data, hub)
        shutil.copytree(data.root, folder / "first")
        hub.commit(SECOND, {*LFS, LFS_TRACES})
        assert pull(data, hub).complete
        second = tables(data)
        hub.commit(THIRD, {*LFS, LFS_TRACES})
        pull(data, hub)
    return Calm(folder / "first", second, tables(data))


@pytest.fixture
def world(calm: Calm, tmp_path: Path) -> Iterator[World]:
    shutil.copytree(calm.first, tmp_path / "data")
    with FakeHub() as hub:
        hub.commit(FIRST, LFS)
        hub.commit(SECOND, {*LFS, LFS_TRACES})
        yield World(hub, DataDirectory(tmp_path / "data"))


def test_the_fixture_has_what_the_faults_are_to_be_seen_in(calm: Calm) -> None:
    assert [len(calm.second[name]) for name in ("runs", "implementations", "quarantine")] == [5, 4, 1]
    assert len(calm.third["runs"]) == 6


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_fault_that_passes_costs_nothing(world: World, calm: Calm, fault: Fault) -> None:
    world.hub.switch(fault, 2)
    if fault not in FILES_ONLY:
        world.hub.switch(fault, 2, on_files=False)
    assert pull(world.data, world.hub).complete
    assert tables(world.data) == calm.second
    assert {switch.times for switch in world.hub.switches} == {0}


@pytest.mark.parametrize("fault", FAULTS_OF_FILES)
def test_a_fault_of_the_files_that_stays_leaves_the_rest_and_the_next_pull_brings_them(
    world: World, calm: Calm, fault: Fault
) -> None:
    world.hub.switch(fault, path="solutions/alice")
    world.hub.switch(fault, path="traces/bob")
    report = pull(world.data, world.hub)
    reason = REASONS.get(fault, "FETCH_FAILED")
    assert not report.complete
    assert report.quarantine_reasons[reason] == 3
    held = query(world.data, f"SELECT source_file FROM quarantine WHERE reason = '{reason}' ORDER BY ALL")
    assert held == [(f"solutions/alice/elementwise/scale/{name}.json",) for name in "ab"] + [(LFS_TRACES,)]
    assert query(world.data, "SELECT name FROM operations ORDER BY 1") == [("scale",), ("shift",)]
    world.hub.calm()
    before = len(world.hub.seen)
    assert pull(world.data, world.hub).complete
    asked = [seen.target.partition("/resolve/")[2] for seen in world.hub.seen[before:] if "/resolve/" in seen.target]
    assert len(asked) == 3, "only what is missing is fetched"
    assert tables(world.data) == calm.second


@pytest.mark.parametrize("fault", FAULTS_OF_LISTINGS)
def test_a_fault_of_the_listing_that_stays_changes_nothing_until_it_passes(
    world: World, calm: Calm, fault: Fault
) -> None:
    before = world.data.database.read_bytes()
    world.hub.switch(fault, on_files=False)
    if fault is Fault.BRANCH_MOVES:
        world.hub.next_head = world.hub.commit(THIRD, {*LFS, LFS_TRACES}, move=False)
        report = pull(world.data, world.hub)
        assert (report.complete, tables(world.data)) == (True, calm.second)
        world.hub.calm()
        pull(world.data, world.hub)
        assert tables(world.data) == calm.third
        return
    if fault is Fault.UNSAFE_PATH:
        assert pull(world.data, world.hub).quarantine_reasons["UNSAFE_SOURCE_PATH"] == 1
        assert query(world.data, "SELECT source_file FROM quarantine WHERE reason LIKE 'UNSAFE%'") == [("../../x",)]
        assert world.hub.asked("%2E") == world.hub.asked("..") == []
    elif fault is Fault.OVER_CAP:
        report = pull(world.data, world.hub)
        assert (report.complete, report.quarantine_reasons["FETCH_FAILED"]) == (False, 3)
        assert world.hub.asked("/traces/") == []
    else:
        with pytest.raises(SourceError, match=r"hub:owner/kernels|shows no dataset owner/kernels") as caught:
            pull(world.data, world.hub)
        assert "\n" not in str(caught.value)
        assert world.data.database.read_bytes() == before
    world.hub.calm()
    pull(world.data, world.hub)
    assert tables(world.data) == calm.second


def test_a_listing_of_three_pages_is_one_listing(world: World, calm: Calm) -> None:
    world.hub.page_size = 4
    pull(world.data, world.hub)
    assert len(world.hub.asked("/tree/")) == 3
    assert tables(world.data) == calm.second


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_all_faults_ends_in_the_same_tables(world: World, calm: Calm, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - which fault comes when is no secret

    def draw(target: str, on_files: bool) -> Fault | None:
        return chance.choice(FAULTS_OF_FILES if on_files else FAULTS_OF_LISTINGS) if chance.random() < 0.4 else None

    world.hub.next_head = world.hub.commit(THIRD, {*LFS, LFS_TRACES}, move=False)
    world.hub.chance = draw
    world.hub.page_size = 6
    for _ in range(60):
        try:
            report = pull(world.data, world.hub)
        except KernelhouseError:
            continue
        if (
            report.complete
            and report.revision == world.hub.next_head
            and not report.quarantine_reasons.get("UNSAFE_SOURCE_PATH")
        ):
            break
        if report.complete:
            world.hub.head = world.hub.next_head
    else:
        pytest.fail("the storm never let a pull through")
    assert tables(world.data) == calm.third


def test_a_broken_network_ends_a_pull_soon(world: World) -> None:
    world.hub.switch(Fault.ERROR_503)
    report = pull(world.data, world.hub, limits=patient(failures_in_a_row=2))
    assert not report.complete
    asked = len(world.hub.asked("/resolve/"))
    assert asked <= (2 + 7) * LIMITS.attempts
    details = query(world.data, "SELECT detail FROM quarantine WHERE reason = 'FETCH_FAILED'")
    assert all("could not be fetched" in detail or "was not tried" in detail for (detail,) in details)


def test_a_listing_over_its_cap_is_refused(world: World) -> None:
    with pytest.raises(SourceError, match="lists over 3 files"):
        pull(world.data, world.hub, limits=patient(entries=3))
    world.hub.page_size = 2
    with pytest.raises(SourceError, match="does not end after 2 pages"):
        pull(world.data, world.hub, limits=patient(pages=2))


def test_the_token_is_seen_by_the_hub_alone(
    world: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    token = world.hub.token = "hf_not_for_you"
    caplog.set_level(0)
    world.hub.switch(Fault.FORBIDDEN_REDIRECT, 2)
    world.hub.switch(Fault.UNAUTHORIZED, 1)
    world.hub.switch(Fault.ERROR_500, 2)
    pull(world.data, world.hub)
    world.hub.calm()
    world.hub.switch(Fault.UNAUTHORIZED, on_files=False)
    with pytest.raises(SourceError) as caught:
        pull(world.data, world.hub)
    world.hub.calm()
    assert pull(world.data, world.hub).complete
    assert {seen.host for seen in world.hub.seen} == {"hub", "store"}
    assert {seen.token for seen in world.hub.seen if seen.host != "hub"} == {None}
    assert {seen.token for seen in world.hub.seen if seen.host == "hub"} == {f"Bearer {token}"}
    assert "/resolve/" in caplog.text, "the log was listened to"
    kept = b"".join(path.read_bytes() for path in world.data.root.rglob("*") if path.is_file())
    for text in (caplog.text, str(caught.value), repr(caught.value.__cause__), *capsys.readouterr()):
        assert token not in text
    assert token.encode() not in kept
    assert token not in repr(tables(world.data))
    assert "secret-signature" not in repr(query(world.data, "SELECT detail FROM quarantine"))


def test_the_sample_comes_the_same_from_a_folder_and_from_the_hub(tmp_path: Path) -> None:
    for name, content in sample_files().items():
        place = tmp_path / "set" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    from pipeline.ingest import IngestRequest, ingest

    with FakeHub() as hub:
        revision = hub.commit(sample_files())
        pull(DataDirectory(tmp_path / "hub"), hub)
    repository = "https://huggingface.co/datasets/owner/kernels"
    request = IngestRequest(source=str(tmp_path / "set"), revision=revision, repository=repository)
    ingest(DataDirectory(tmp_path / "folder"), request)
    assert tables(DataDirectory(tmp_path / "hub")) == tables(DataDirectory(tmp_path / "folder"))
