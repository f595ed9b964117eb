"""Reviewed corrections, end to end: from the file to standing, history and blobs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.cli import main
from pipeline.errors import CorrectionError
from pipeline.ingest import IngestReport, IngestRequest, ingest
from pipeline.ingest.pull import publish
from pipeline.query.changes import changes
from pipeline.store.blobs import BlobStore
from tests.fake_hub.pulls import pull as pull_hub
from tests.fake_hub.server import FakeHub
from tests.trace_set import (
    REPOSITORY,
    REVISIONS,
    RIVAL,
    RIVAL_TRACES,
    SOLUTION,
    Files,
    Warehouse,
    encode,
    lines,
    small_set,
    solution,
    trace,
    tree,
    write_files,
)

PINNED = {"repository": REPOSITORY, "revision": REVISIONS[0]}
LOG = "compiled\nran"
CODE = "@triton.jit\n"


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Ingested once; only what leaves it as it was may use it."""
    warehouse = Warehouse(tmp_path_factory.mktemp("corrections"))
    warehouse.ingest(small_set(), **PINNED)
    return warehouse


@pytest.fixture
def warehouse(shared: Warehouse, tmp_path: Path) -> Warehouse:
    shutil.copytree(shared.root, tmp_path, dirs_exist_ok=True)
    return Warehouse(tmp_path)


def pull(warehouse: Warehouse, files: Files, **request: Any) -> IngestReport:
    """Ingest without checking that every text lies where it was."""
    folder = write_files(warehouse.root / f"again-{len(list(warehouse.root.iterdir()))}", files)
    return ingest(warehouse.data, IngestRequest(source=str(folder), **request))


def record(warehouse: Warehouse) -> str:
    """The run that holds the record on 8 rows, by the rival, with a log."""
    return str(warehouse.value("SELECT run_digest FROM runs WHERE log_digest IS NOT NULL"))


def baseline(warehouse: Warehouse) -> str:
    return str(warehouse.value("SELECT run_digest FROM runs WHERE latency_ns = 11000"))


def entry(run: str, action: str, **more: Any) -> str:
    fields: dict[str, Any] = {"run": run, "action": action, "reason": "measured warm", "author": "reviewer", **more}
    dated = {"date": "2026-05-01"} | {name: value for name, value in fields.items() if name == "date"}
    texts = [f"{name} = {json.dumps(value)}" for name, value in fields.items() if name != "date"]
    return "\n".join(["[[correction]]", *texts, f"date = {dated['date']}", ""])


def correct(warehouse: Warehouse, *entries: str) -> None:
    warehouse.data.corrections.write_text("\n".join(entries))
    publish(warehouse.data)


@pytest.mark.parametrize(
    ("action", "cause", "more"),
    [
        ("retract", "retracted", {}),
        ("supersede", "superseded", {"successor": baseline}),
        ("takedown", "taken_down", {"removes": [digest(LOG)]}),
    ],
)
def test_a_corrected_run_stays_and_loses_its_standing(
    warehouse: Warehouse, action: str, cause: str, more: dict[str, Any]
) -> None:
    run = record(warehouse)
    filled = {name: value(warehouse) if callable(value) else value for name, value in more.items()}
    before = warehouse.rows("SELECT DISTINCT run_digest FROM leaderboard")
    correct(warehouse, entry(run, action, **filled))
    assert warehouse.rows(f"SELECT eligible, reasons FROM runs WHERE run_digest = '{run}'") == [
        (False, [cause.upper()])
    ]
    assert set(before) - set(warehouse.rows("SELECT DISTINCT run_digest FROM leaderboard")) == {(run,)}
    events = f"""
        SELECT profile, cause, run_digest, previous_run_digest, "at"::VARCHAR FROM record_history
        WHERE previous_run_digest = '{run}' ORDER BY profile
    """
    expected = [
        (profile, cause, baseline(warehouse), run, "2026-05-01 00:00:00")
        for profile in ("source_native", "strict_exact")
    ]
    assert warehouse.rows(events) == expected
    shown = CliRunner().invoke(main, ["show", run, "--data", str(warehouse.data.root)]).stdout
    assert f"Correction: {action} by reviewer on 2026-05-01" in shown
    assert f"No standing: {cause} since 2026-05-01, still" in shown
    assert f"Not eligible: {cause.upper()}" in shown
    assert ("taken down" in shown) == (action == "takedown")
    (held,) = warehouse.rows("SELECT DISTINCT run_digest FROM current_records WHERE latency_ns < 15000")
    assert held == (baseline(warehouse),)


def test_without_its_entry_a_run_stands_again(warehouse: Warehouse) -> None:
    before = warehouse.contents()
    correct(warehouse, entry(record(warehouse), "retract"))
    assert warehouse.contents() != before
    warehouse.data.corrections.unlink()
    warehouse.publish()
    assert warehouse.contents() == before


def test_a_takedown_removes_the_bytes_and_changes_no_digest(warehouse: Warehouse) -> None:
    run = record(warehouse)
    implementation, *others = warehouse.rows(
        f"SELECT implementation_digest, workload_digest, comparison_key FROM runs WHERE run_digest = '{run}'"
    )[0]
    correct(warehouse, entry(run, "takedown", removes=[digest(LOG), digest(CODE)]))
    blobs = b"".join(path.read_bytes() for path in warehouse.data.blobs.rglob("*") if path.is_file())
    for text in (LOG, CODE):
        assert encode(text)[1:-1] not in blobs
    verified = CliRunner().invoke(main, ["verify", "--data", str(warehouse.data.root)])
    assert verified.exit_code == 0, verified.stdout
    # The same pull adds nothing: neither the texts nor a run.
    report = pull(warehouse, small_set(), **PINNED)
    assert (report.new_snapshot, report.added) == (False, 0)
    # A replay of the evidence makes the same parts and rows, though the texts are gone.
    before, parts = warehouse.contents(), tree(warehouse.data.tables)
    pull(warehouse, small_set(), rebuild=True, **PINNED)
    assert (warehouse.contents(), tree(warehouse.data.tables)) == (before, parts)
    assert warehouse.rows(
        f"SELECT implementation_digest, workload_digest, comparison_key FROM runs WHERE run_digest = '{run}'"
    ) == [(implementation, *others)]


def test_a_takedown_reaches_what_comes_later(warehouse: Warehouse) -> None:
    correct(warehouse, entry(record(warehouse), "takedown", removes=[digest(CODE)]))
    again = small_set() | {RIVAL: encode(solution("scale_triton", code=CODE, author="gpt-5", description="edited"))}
    pull(warehouse, again, repository=REPOSITORY, revision=REVISIONS[1])
    blobs = b"".join(path.read_bytes() for path in warehouse.data.blobs.rglob("*") if path.is_file())
    assert encode(CODE)[1:-1] not in blobs
    assert len(list((warehouse.data.blobs.parent / "tombstones").iterdir())) == 2


def test_a_takedown_withdraws_nothing(tmp_path: Path) -> None:
    """A later pull is compared with what the records were, also where their file changed."""
    warehouse = Warehouse(tmp_path)
    first = small_set()[RIVAL_TRACES]
    more = lines(trace(8, 0.5, by="scale_triton", timestamp="2026-03-09T10:00:00Z"))
    with FakeHub() as hub:
        hub.commit(small_set())
        pull_hub(warehouse.data, hub)
        taken = record(warehouse)
        correct(warehouse, entry(taken, "takedown", removes=[digest(LOG)]))
        hub.commit(small_set() | {RIVAL_TRACES: first + more})
        pull_hub(warehouse.data, hub)
        assert warehouse.rows("SELECT event FROM presence") == []
        hub.commit(small_set() | {RIVAL_TRACES: more})
        pull_hub(warehouse.data, hub, accept_shrink=True)
    assert warehouse.rows("SELECT DISTINCT event FROM presence") == [("withdrawn",)]
    assert warehouse.value(f"SELECT reasons FROM runs WHERE run_digest = '{taken}'") == ["TAKEN_DOWN", "WITHDRAWN"]


def test_a_blob_that_comes_again_stays_redacted(warehouse: Warehouse, tmp_path: Path) -> None:
    correct(warehouse, entry(record(warehouse), "takedown", removes=[digest(LOG)]))
    blobs = BlobStore(warehouse.data.blobs)
    whole = small_set()[RIVAL_TRACES]
    sha256, _ = blobs.add_stream([whole])
    assert blobs.tombstone(sha256) is not None
    assert encode(LOG)[1:-1] not in blobs.read(sha256)


def test_two_takedowns_of_one_record(warehouse: Warehouse) -> None:
    files = small_set() | {
        SOLUTION: encode(solution(sources=[{"path": "main.py", "content": "one"}, {"path": "b", "content": "three"}]))
    }
    other = Warehouse(warehouse.root / "other")
    other.ingest(files, **PINNED)
    run = record(other)
    correct(other, entry(run, "takedown", removes=[digest("one")]))
    correct(other, entry(run, "takedown", removes=[digest("one"), digest("three")]))
    before = other.contents()
    pull(other, files, rebuild=True, **PINNED)
    assert other.contents() == before
    sha256 = "sha256:" + hashlib.sha256(files[SOLUTION]).hexdigest()
    tombstone = BlobStore(other.data.blobs).tombstone(sha256)
    assert tombstone is not None
    assert [(each.pointer, each.digest) for each in tombstone.removals] == [
        ("/sources/0/content", digest("one")),
        ("/sources/1/content", digest("three")),
    ]


Fields = Callable[[Warehouse], list[str]]
UNKNOWN = "sha256:" + "0" * 64


WRONG: dict[str, tuple[Fields, str]] = {
    "no TOML": (lambda w: ["[[correction"], "corrections.toml is no TOML"),
    "unknown table": (lambda w: ["[[retraction]]"], "corrections.toml: "),
    "unknown action": (lambda w: [entry(record(w), "erase")], "entry 1"),
    "cut digest": (lambda w: [entry(record(w)[:20], "retract")], "entry 1"),
    "unknown field": (lambda w: [entry(record(w), "retract", note="x")], "note"),
    "no reason": (lambda w: [entry(record(w), "retract", reason=" ")], "reason"),
    "no date": (lambda w: [entry(record(w), "retract", date='"soon"')], "date"),
    "no such instant": (
        lambda w: [entry(record(w), "retract", date="9999-12-31T23:59:59-23:00")],
        "the date lies beyond",
    ),
    "no successor": (lambda w: [entry(record(w), "supersede")], "names a successor"),
    "needless successor": (lambda w: [entry(record(w), "retract", successor=baseline(w))], "names a successor"),
    "no text": (lambda w: [entry(record(w), "takedown")], "names in removes"),
    "needless text": (lambda w: [entry(record(w), "retract", removes=[digest(LOG)])], "names in removes"),
    "unknown run": (lambda w: [entry(record(w), "retract"), entry(UNKNOWN, "retract")], f"entry 2 (run {UNKNOWN})"),
    "unknown successor": (lambda w: [entry(record(w), "supersede", successor=UNKNOWN)], f"no run {UNKNOWN}"),
    "unknown text": (lambda w: [entry(record(w), "takedown", removes=[UNKNOWN])], f"no log or source {UNKNOWN}"),
    "said twice": (lambda w: [entry(record(w), "retract")] * 2, "entry 2"),
    "circle": (
        lambda w: [
            entry(record(w), "supersede", successor=baseline(w)),
            entry(baseline(w), "supersede", successor=record(w)),
        ],
        "in a circle",
    ),
    "itself": (lambda w: [entry(record(w), "supersede", successor=record(w))], "in a circle"),
}


@pytest.mark.parametrize(("entries", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_entry_changes_nothing(shared: Warehouse, entries: Fields, sentence: str) -> None:
    shared.data.corrections.write_text("\n".join(entries(shared)))
    before = tree(shared.data.root)
    with pytest.raises(CorrectionError) as caught:
        shared.ingest(small_set(), repository=REPOSITORY, revision=REVISIONS[1])
    message = str(caught.value)
    assert sentence in message
    assert "\n" not in message
    assert tree(shared.data.root) == before
    shared.data.corrections.unlink()


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere.toml")


def _circular(path: Path) -> None:
    path.symlink_to(path.name)


UNREADABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a link to nothing": (_dangling, "No such file or directory"),
    "a link to itself": (_circular, "Too many levels of symbolic links"),
    "a pipe": (os.mkfifo, "it is no plain file"),
    "a folder": (Path.mkdir, "it is no plain file"),
}


@pytest.mark.parametrize(("put", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_corrections_that_cannot_be_read_change_nothing(
    warehouse: Warehouse, put: Callable[[Path], None], why: str
) -> None:
    put(warehouse.data.corrections)
    before = sorted(warehouse.data.root.rglob("*"))
    for ask in (
        lambda: pull(warehouse, small_set(), repository=REPOSITORY, revision=REVISIONS[1]),
        lambda: publish(warehouse.data),
        lambda: changes(warehouse.data),
    ):
        with pytest.raises(CorrectionError) as caught:
            ask()
        sentence = f"{warehouse.data.corrections} cannot be read ({why}): put a readable file there or take it away"
        assert str(caught.value) == f"{sentence}, nothing was changed"
    assert sorted(warehouse.data.root.rglob("*")) == before


def test_corrections_may_lie_elsewhere(warehouse: Warehouse) -> None:
    (warehouse.root / "reviewed.toml").write_text(entry(record(warehouse), "retract"))
    warehouse.data.corrections.symlink_to(warehouse.root / "reviewed.toml")
    publish(warehouse.data)
    assert warehouse.value("SELECT count(*) FROM corrections") == 1
