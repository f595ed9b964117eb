"""Three revisions of one set, in sequence: histories and standing as worked out by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.errors import CheckFailure
from pipeline.ingest import IngestRequest, ingest
from pipeline.store.layout import DataDirectory
from tests.fake_hub.pulls import pull, query, tables
from tests.fake_hub.revisions import AFTER, DOCUMENTS, EDITED, FAST, MOVED, ONE, SLOW, THREE, TRACES, TWO, A, B
from tests.fake_hub.server import REPOSITORY, FakeHub, Fault
from tests.fake_hub.sets import definition, solution, trace

RUNS = "SELECT latency_ns, eligible, reasons FROM runs ORDER BY latency_ns DESC"
HISTORY = """
    SELECT latency_ns, previous_latency_ns, cause FROM record_history WHERE profile = 'source_native' ORDER BY position
"""


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data")


def test_three_revisions_in_sequence(data: DataDirectory) -> None:
    with FakeHub() as hub:
        hub.commit(ONE)
        pull(data, hub)
        new = [(3_000_000, None, "new_run"), (2_000_000, 3_000_000, "new_run"), (1_000_000, 2_000_000, "new_run")]
        assert query(data, HISTORY) == new

        hub.commit(TWO)
        report = pull(data, hub)
        assert (report.records, report.added, report.already_known) == (3, 1, 2)
        assert (report.records_withdrawn, report.records_reinstated) == (1, 0)
        assert query(data, RUNS) == [
            (3_000_000, True, []),
            (2_800_000, True, []),
            (2_000_000, True, []),
            (1_000_000, False, ["WITHDRAWN"]),
        ]
        withdrawn = [*new, (2_000_000, 1_000_000, "withdrawn")]
        assert query(data, HISTORY) == withdrawn
        assert query(data, "SELECT latency_ns FROM current_records WHERE profile = 'source_native'") == [(2_000_000,)]
        assert query(data, "SELECT max(rank) FROM leaderboard WHERE profile = 'source_native'") == [(3,)]

        hub.commit(THREE)
        report = pull(data, hub)
        assert (report.records, report.added, report.already_known) == (5, 1, 4)
        assert (report.records_withdrawn, report.records_reinstated) == (0, 1)
        assert [eligible for _, eligible, _ in query(data, RUNS)] == [True] * 5
        # Measured (January) before the withdrawal (now): the record of 0.9 ms was there when FAST was withdrawn.
        assert query(data, HISTORY) == [*new, (900_000, 1_000_000, "new_run")]
        kept = query(
            data,
            "SELECT first_revision = revision FROM runs JOIN implementations USING (implementation_digest) "
            "JOIN snapshots ON sequence = 1 ORDER BY latency_ns DESC",
        )
        assert kept == [(True,), (False,), (True,), (True,), (False,)], "old runs stay with the old code"


def test_a_replay_of_the_snapshots_brings_back_the_same_parts(data: DataDirectory) -> None:
    with FakeHub() as hub:
        for files in (ONE, TWO, THREE):
            hub.commit(files)
            pull(data, hub)
        parts = {path: path.read_bytes() for path in data.tables.rglob("*.*")}
        before = tables(data)
        shutil.rmtree(data.tables)
        data.database.unlink()
        pull(data, hub)
    assert {path: path.read_bytes() for path in data.tables.rglob("*.*")} == parts
    assert tables(data) == before


@pytest.mark.parametrize(
    "again",
    [ONE, DOCUMENTS | EDITED | {MOVED: A + B + SLOW, TRACES: FAST}],
    ids=["in its file", "in a file beside the others"],
)
def test_a_record_that_returns_is_reinstated(data: DataDirectory, again: dict[str, bytes]) -> None:
    with FakeHub() as hub:
        for files in (ONE, TWO, again | {"README.md": b"again"}):
            hub.commit(files)
            pull(data, hub)
    fast = "(SELECT observation_sha256 FROM observations JOIN runs USING (run_digest) WHERE latency_ns = 1000000)"
    events = query(data, f"SELECT event, sequence FROM presence WHERE observation_sha256 IN {fast} ORDER BY sequence")
    assert events == [("withdrawn", 2), ("reinstated", 3)]
    assert query(data, HISTORY)[2:] == [
        (1_000_000, 2_000_000, "new_run"),
        (2_000_000, 1_000_000, "withdrawn"),
        (1_000_000, 2_000_000, "reinstated"),
    ]


def test_only_a_complete_unfiltered_pull_of_another_commit_withdraws(data: DataDirectory, tmp_path: Path) -> None:
    with FakeHub() as hub:
        first = hub.commit(ONE | {"traces/bob/elementwise/scale.jsonl": trace("b", 5.0, 9)})
        pull(data, hub)
        hub.commit(TWO | {"solutions/bob/elementwise/scale/c.json": solution("c", author="bob", content="c")})
        pull(data, hub, authors=("alice",))
        hub.switch(Fault.ERROR_500, path="solutions/")
        assert not pull(data, hub).complete
        for name, content in TWO.items():
            place = tmp_path / "set" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        repository = f"https://huggingface.co/datasets/{REPOSITORY}"
        ingest(data, IngestRequest(source=str(tmp_path / "set"), repository=repository))
        ingest(data, IngestRequest(source=str(tmp_path / "set"), repository=repository, revision=first))
        assert query(data, "SELECT count(*) FROM presence") == [(0,)]
        hub.calm()
        assert pull(data, hub, accept_shrink=True).records_withdrawn == 2


def test_what_an_incomplete_pull_brought_can_be_withdrawn_too(data: DataDirectory) -> None:
    with FakeHub() as hub:
        hub.commit(ONE)
        pull(data, hub)
        hub.commit(ONE | {MOVED: AFTER, "solutions/alice/elementwise/scale/c.json": solution("c", content="c")})
        hub.switch(Fault.VANISHED, path="scale/c.json")
        assert not pull(data, hub).complete
        hub.calm()
        hub.commit(ONE | {"README.md": b"without AFTER"})
        assert pull(data, hub).records_withdrawn == 1
        assert query(data, "SELECT count(*) FROM quarantine") == [(0,)], "the file that never came is gone upstream"


def test_a_record_that_was_held_back_and_withdrawn_is_not_ranked_when_freed(data: DataDirectory) -> None:
    late = "solutions/alice/elementwise/scale/late.json"
    with FakeHub() as hub:
        hub.commit(ONE | {MOVED: trace("late", 0.5, 6)})
        assert pull(data, hub).quarantined == 1
        hub.commit(ONE)
        pull(data, hub, accept_shrink=True)
        hub.commit(ONE | {late: solution("late", content="late")})
        assert pull(data, hub).freed == 1
    assert query(data, "SELECT reasons FROM runs WHERE latency_ns = 500000") == [(["WITHDRAWN"],)]


def test_a_new_record_is_not_bound_to_old_code_while_the_edited_solution_is_missing(data: DataDirectory) -> None:
    with FakeHub() as hub:
        hub.commit(ONE)
        pull(data, hub)
        hub.commit(DOCUMENTS | EDITED | {TRACES: A + B + FAST + SLOW})
        hub.switch(Fault.ERROR_500, path="scale/a.json")
        report = pull(data, hub)
        assert (report.added, report.quarantine_reasons) == (0, {"FETCH_FAILED": 1, "UNKNOWN_SOLUTION": 1})
        hub.calm()
        report = pull(data, hub)
        assert (report.freed, report.quarantine_reasons) == (1, {})
    codes = query(data, "SELECT latency_ns, count(DISTINCT implementation_digest) OVER () FROM runs ORDER BY 1 DESC")
    assert codes == [(3_000_000, 3), (2_800_000, 3), (2_000_000, 3), (1_000_000, 3)]


def test_an_operation_that_changes_its_meaning_is_reported_and_old_runs_stay_with_the_old_one(
    data: DataDirectory,
) -> None:
    with FakeHub() as hub:
        hub.commit(ONE)
        assert pull(data, hub).operations_changed == ()
        hub.commit(ONE | {"definitions/elementwise/scale.json": definition(description="told better")})
        assert pull(data, hub).operations_changed == ()
        hub.commit(
            ONE | {"definitions/elementwise/scale.json": definition(op_type="other"), TRACES: A + B + FAST + SLOW}
        )
        assert pull(data, hub).operations_changed == ("scale",)
    bound = query(data, "SELECT family, latency_ns FROM runs JOIN operations USING (operation_digest) ORDER BY 2 DESC")
    families = ["elementwise", "other", "elementwise", "elementwise"]
    assert bound == list(zip(families, [3_000_000, 2_800_000, 2_000_000, 1_000_000], strict=True))


def test_a_pull_that_lost_too_much_changes_nothing_until_a_person_agrees(data: DataDirectory) -> None:
    five = A + B + SLOW + FAST + AFTER
    with FakeHub() as hub:
        hub.commit(DOCUMENTS | {TRACES: five})
        pull(data, hub)
        hub.commit(DOCUMENTS | {TRACES: A + B + SLOW + FAST})
        assert pull(data, hub).records_withdrawn == 1, "a fifth is no alarm"
        hub.commit(DOCUMENTS | {TRACES: A + B + SLOW})
        before = {path: path.read_bytes() for path in data.root.rglob("*") if path.is_file()}
        for _ in range(2):
            with pytest.raises(CheckFailure, match=r"has 3 records where .* had 4: .* --accept-shrink") as caught:
                pull(data, hub)
            assert caught.value.exit_code == 1
        after = {path: path.read_bytes() for path in data.root.rglob("*") if path.is_file()}
        blobs = {path for path in after if "blobs" in path.parts}
        assert {path: content for path, content in after.items() if path not in blobs} == {
            path: content for path, content in before.items() if "blobs" not in path.parts
        }
        assert pull(data, hub, accept_shrink=True).records_withdrawn == 1
        hub.commit(DOCUMENTS | {TRACES: A + B + SLOW, "README.md": b"new"})
        assert pull(data, hub).records == 3


def test_an_unchanged_revision_costs_one_request_and_nothing_else(data: DataDirectory) -> None:
    with FakeHub() as hub:
        hub.commit(ONE)
        first = pull(data, hub)
        before, files = len(hub.seen), sorted(data.root.rglob("*"))
        again = pull(data, hub)
        assert (again.snapshot_id, again.new_snapshot, again.published) == (first.snapshot_id, False, False)
        assert [seen.target for seen in hub.seen[before:]] == ["/api/datasets/owner/kernels/revision/main"]
        assert sorted(data.root.rglob("*")) == files


def test_a_new_revision_costs_its_new_content(data: DataDirectory) -> None:
    with FakeHub() as hub:
        hub.commit(ONE)
        pull(data, hub)
        hub.commit(ONE | {TRACES: A + B + FAST + AFTER})
        before = len(hub.seen)
        report = pull(data, hub)
        assert [
            seen.target.rpartition("/resolve/")[2][41:] for seen in hub.seen[before:] if "resolve" in seen.target
        ] == [TRACES]
        assert (report.files_read, report.files_unchanged, report.added) == (1, 3, 1)


def test_what_a_killed_pull_left_in_the_blob_store_is_not_fetched_again(data: DataDirectory, tmp_path: Path) -> None:
    lfs = {TRACES}
    with FakeHub() as hub:
        hub.commit(ONE, lfs)
        pull(data, hub)
        shutil.copytree(data.blobs, tmp_path / "killed" / "blobs" / "sha256")
        killed = DataDirectory(tmp_path / "killed")
        torn = next(killed.blobs.rglob("??/*"))
        torn.write_bytes(bytes(torn.stat().st_size))
        (killed.blobs / ".tmp-1").write_bytes(b"half of a")
        hub.seen.clear()
        pull(killed, hub)
        assert len(hub.asked("/resolve/")) == 1, "the torn one alone"
        assert not list(killed.blobs.glob(".tmp-*"))
    assert tables(killed) == tables(data)


def test_authors_limit_a_pull(data: DataDirectory) -> None:
    with FakeHub() as hub:
        hub.commit(ONE | {"traces/bob/elementwise/scale.jsonl": trace("b", 5.0, 9)})
        report = pull(data, hub, authors=("bob",))
        assert (report.files, report.records) == (2, 1)
        with pytest.raises(Exception, match=r"no author folder 'eve' in hub:owner/kernels: there are alice, bob"):
            pull(data, hub, authors=("eve",))
