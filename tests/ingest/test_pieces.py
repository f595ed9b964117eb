"""Pieces and revisions: whatever way a trace set arrives, it comes to the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.trace_set import (
    DEFINITION,
    REPOSITORY,
    REVISIONS,
    RIVAL,
    RIVAL_TRACES,
    SOLUTION,
    TRACES,
    WORKLOADS,
    Warehouse,
    definition,
    encode,
    lines,
    small_set,
    solution,
    trace,
    workload_line,
)

OTHER = "definitions/elementwise/other.json"
SECOND = "traces/baseline/elementwise/second.jsonl"

# Places in time, which differ by arrival, and what follows from them.
BY_TIME = ("snapshot_id", "sequence", "ingested_at")
COMPARED = (
    "runs", "observations", "leaderboard", "cohorts", "record_history", "current_records", "coverage", "quarantine",
    "operations", "workloads", "workload_tensors", "workload_inputs", "implementations", "environments", "protocols",
    "artifacts", "measurements", "drift",
)  # fmt: skip


def rich_set() -> dict[str, bytes]:
    """The small set with what waits for documents, what never comes good, and every layout of files."""
    return small_set() | {
        OTHER: encode(definition("other", op_type="norm")),
        "definitions/elementwise/broken.json": b"{",
        "solutions/gpt-5/elementwise/other/other_triton.json": encode(
            solution("other_triton", definition="other", code="# of its own\n")
        ),
        "solutions/gpt-5/elementwise/other/orphan.json": encode(solution("orphan", definition="nobody")),
        SECOND: lines(
            trace(of="other"),  # measured with a solution for its sister
            trace(32, by="other_triton", of="other", log="other"),
            trace(by="nobody"),
            trace(of="nobody"),
            b"{",
            trace(-1),
            trace(40) | {"novel": 1},
        ),
        "traces/gpt-5/elementwise/array.json": b"[\n" + encode(trace(48)) + b",\n" + encode(trace(48, 0.010)) + b"]",
        "workloads/elementwise/other.jsonl": lines(
            workload_line(8) | {"definition": "other"}, b"{", {"definition": "x"}
        ),
    }


def outcome(warehouse: Warehouse, *without: str) -> dict[str, list[Any]]:
    hidden = f"lambda name: name NOT IN ({', '.join(repr(name) for name in (*BY_TIME, *without))})"
    return {name: warehouse.rows(f"SELECT COLUMNS({hidden}) FROM {name} ORDER BY ALL") for name in COMPARED}


@dataclass(frozen=True)
class Whole:
    """What the rich set comes to in one piece, by table."""

    rows: dict[str, list[Any]] = field(repr=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    warehouse = Warehouse(tmp_path_factory.mktemp("whole"))
    warehouse.ingest(rich_set())
    return Whole(outcome(warehouse))


def pick(*prefixes: str) -> dict[str, bytes]:
    return {path: content for path, content in rich_set().items() if path.startswith(prefixes)}


SPLITS: dict[str, list[Mapping[str, bytes]]] = {
    "documents first": [pick("definitions"), pick("solutions"), pick("workloads", "traces")],
    "traces first": [pick("traces"), pick("workloads"), pick("solutions"), pick("definitions")],
    "solutions last": [pick("traces", "definitions"), pick("workloads"), pick("solutions")],
    "file by file": [{path: content} for path, content in sorted(rich_set().items())],
    "file by file, backwards": [{path: content} for path, content in sorted(rich_set().items(), reverse=True)],
    "overlapping": [pick("traces", "solutions"), pick("definitions", "traces/gpt-5"), rich_set(), pick("traces")],
}


@pytest.mark.parametrize("pieces", SPLITS.values(), ids=SPLITS)
def test_pieces_come_to_the_same(warehouse_at: Warehouse, whole: Whole, pieces: list[dict[str, bytes]]) -> None:
    for piece in pieces:
        warehouse_at.take(piece)
    warehouse_at.publish()
    assert outcome(warehouse_at) == whole.rows


@pytest.mark.slow
@settings(
    max_examples=6, phases=[Phase.explicit, Phase.generate]
)  # an example takes too long to look for a smaller one
@given(st.permutations(sorted(rich_set())), st.lists(st.integers(1, 12), max_size=3), st.integers(0, 2))
def test_any_pieces_in_any_order_come_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, whole: Whole, order: list[str], cuts: list[int], overlap: int
) -> None:
    warehouse = Warehouse(tmp_path_factory.mktemp("pieces"))
    places = [0, *sorted(set(cuts)), len(order)]
    for start, end in pairwise(places):
        warehouse.take({path: rich_set()[path] for path in order[max(0, start - overlap) : end]})
    warehouse.publish()
    assert outcome(warehouse) == whole.rows


def test_lines_of_a_file_one_at_a_time(warehouse_at: Warehouse, whole: Whole) -> None:
    kept = rich_set()[SECOND].splitlines(keepends=True)
    for count in range(len(kept)):
        warehouse_at.take({SECOND: b"".join(kept[: count + 1])})
    warehouse_at.take(rich_set())
    warehouse_at.publish()
    # Which version of the file a record was first read from is a matter of time, and so is how often it was read.
    for name, rows in outcome(warehouse_at, "blob_sha256", "occurrences").items():
        assert len(rows) == len(whole.rows[name])
    assert {row[0] for row in outcome(warehouse_at)["runs"]} == {row[0] for row in whole.rows["runs"]}
    assert outcome(warehouse_at)["leaderboard"] == whole.rows["leaderboard"]
    assert outcome(warehouse_at)["record_history"] == whole.rows["record_history"]


def test_records_wait_for_definition_and_solution(warehouse_at: Warehouse) -> None:
    traces = {TRACES: small_set()[TRACES]}
    held = warehouse_at.ingest(traces)
    assert (held.added, held.quarantined, held.quarantine_reasons) == (0, 3, {"UNKNOWN_DEFINITION": 3})
    defined = warehouse_at.ingest({DEFINITION: small_set()[DEFINITION]})
    assert (defined.freed, defined.quarantine_reasons) == (0, {"UNKNOWN_SOLUTION": 3})
    solved = warehouse_at.ingest({SOLUTION: small_set()[SOLUTION]})
    assert (solved.freed, solved.runs_added, solved.quarantine_reasons) == (3, 3, {})
    again = warehouse_at.ingest(traces)
    assert (again.added, again.already_known, again.quarantined) == (0, 3, 0)
    assert warehouse_at.held() == []
    assert warehouse_at.value("SELECT count(*) FROM leaderboard WHERE profile = 'source_native'") == 3


def test_a_solution_waits_for_its_definition(warehouse_at: Warehouse) -> None:
    first = warehouse_at.ingest({SOLUTION: small_set()[SOLUTION], TRACES: small_set()[TRACES]}, revision=REVISIONS[0])
    assert first.quarantine_reasons == {"INVALID_SOLUTION": 1, "UNKNOWN_DEFINITION": 3}
    second = warehouse_at.ingest({DEFINITION: small_set()[DEFINITION]}, revision=REVISIONS[1])
    assert (second.freed, second.implementations_added, second.quarantine_reasons) == (3, 1, {})
    # It keeps the revision at which this warehouse first saw it, not the one that brought its definition.
    assert warehouse_at.rows("SELECT first_revision FROM implementations") == [(REVISIONS[0],)]


def test_of_two_solutions_that_wait_the_later_counts_as_it_would_without_waiting(warehouse_at: Warehouse) -> None:
    """The latest document of a name wins; that its definition came last of all does not matter."""
    moved = "solutions/baseline/elementwise/scale_rows/moved.json"
    pieces = [
        {DEFINITION: small_set()[DEFINITION]},
        {SOLUTION: encode(solution(code="first"))},
        {moved: encode(solution(code="second"))},
    ]
    waiting = Warehouse(warehouse_at.root / "waiting")
    for piece in pieces:
        warehouse_at.take(piece)
    for piece in (*pieces[1:], pieces[0]):
        waiting.take(piece)
    for warehouse in (warehouse_at, waiting):
        warehouse.ingest({TRACES: lines(trace())})
    measured = "SELECT source_path FROM runs JOIN implementations USING (implementation_digest)"
    assert warehouse_at.rows(measured.replace("source_path", "implementations.source_path")) == [(moved,)]
    assert waiting.rows(measured.replace("source_path", "implementations.source_path")) == [(moved,)]
    assert waiting.held() == warehouse_at.held() == []


def test_appended_lines_alone_are_new(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set())
    grown = small_set()[TRACES] + lines(trace(24, 0.5), trace(by="nobody"))
    report = warehouse_at.ingest(small_set() | {TRACES: grown})
    assert (report.files_read, report.files_unchanged) == (1, 5)
    assert (report.added, report.already_known, report.quarantined) == (1, 5, 1)
    again = warehouse_at.ingest(small_set() | {TRACES: grown + lines(trace(32, 0.5))})
    assert (again.added, again.already_known, again.quarantined) == (1, 6, 1)
    assert warehouse_at.value("SELECT count(*) FROM quarantine") == 1


def test_a_line_put_in_front_does_not_move_the_others(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set() | {TRACES: lines(trace(8), trace(by="nobody"))})
    report = warehouse_at.ingest(small_set() | {TRACES: lines(trace(16, 0.5), trace(8), trace(by="nobody"))})
    assert (report.added, report.already_known, report.quarantined) == (1, 3, 1)


def test_a_renamed_file_is_nothing_new(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(rich_set())
    before = outcome(warehouse_at)
    files = rich_set()
    files["traces/elementwise/renamed.jsonl"] = files.pop(SECOND)
    files["traces/gpt-5/elementwise/renamed.json"] = files.pop("traces/gpt-5/elementwise/array.json")
    files["definitions/renamed/renamed.json"] = files.pop(OTHER)
    files["solutions/baseline/elementwise/scale_rows/renamed.json"] = files.pop(SOLUTION)
    report = warehouse_at.ingest(files)
    assert (report.added, report.runs_added, report.implementations_added) == (0, 0, 0)
    assert outcome(warehouse_at) == before


def test_an_edited_solution_does_not_move_old_measurements(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set(), revision=REVISIONS[0])
    before = warehouse_at.rows("SELECT run_digest, implementation_digest FROM runs ORDER BY ALL")
    edited = small_set() | {SOLUTION: encode(solution(code="faster"))}
    report = warehouse_at.ingest(edited, revision=REVISIONS[1])
    assert (report.added, report.implementations_added) == (0, 1)
    grown = edited | {TRACES: small_set()[TRACES] + lines(trace(8, 0.001))}
    report = warehouse_at.ingest(grown, revision=REVISIONS[2])
    assert (report.added, report.already_known) == (1, 5)
    after = warehouse_at.rows("SELECT run_digest, implementation_digest FROM runs ORDER BY ALL")
    assert set(before) < set(after)
    new = warehouse_at.rows(
        "SELECT first_revision, latency_ns FROM runs JOIN implementations USING (implementation_digest) "
        "WHERE latency_ns = 1000"
    )
    assert new == [(REVISIONS[1], 1000)]


def test_an_unchanged_solution_keeps_its_first_manifest(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set(), repository=REPOSITORY, revision=REVISIONS[0])
    before = warehouse_at.rows("SELECT implementation_digest, manifest FROM implementations ORDER BY ALL")
    grown = small_set() | {TRACES: small_set()[TRACES] + lines(trace(24, 0.5))}
    report = warehouse_at.ingest(grown, repository=REPOSITORY, revision=REVISIONS[1])
    assert (report.added, report.implementations_added) == (1, 0)
    assert warehouse_at.rows("SELECT implementation_digest, manifest FROM implementations ORDER BY ALL") == before
    assert warehouse_at.rows("SELECT DISTINCT first_revision FROM implementations") == [(REVISIONS[0],)]
    assert warehouse_at.value("SELECT count(DISTINCT implementation_digest) FROM runs") == 2


def test_an_edit_taken_back_is_the_first_implementation_again(warehouse_at: Warehouse) -> None:
    edited = small_set() | {SOLUTION: encode(solution(code="edited"))}
    warehouse_at.take(small_set(), revision=REVISIONS[0])
    warehouse_at.take(edited, revision=REVISIONS[1])
    report = warehouse_at.ingest(small_set() | {SECOND: lines(trace(8, 0.5))}, revision=REVISIONS[2])
    assert (report.added, report.implementations_added) == (1, 0)
    bound = (
        "SELECT first_revision FROM runs JOIN implementations USING (implementation_digest) WHERE latency_ns = 500000"
    )
    assert warehouse_at.rows(bound) == [(REVISIONS[0],)]


def test_a_definition_taken_back_in_another_layout_counts_as_the_latest(warehouse_at: Warehouse) -> None:
    """The same document in other bytes is a new file of the name, so it wins over the edit before it."""
    first, edited = definition(), definition(axes=definition()["axes"] | {"extra": {"type": "const", "value": 1}})
    warehouse_at.take(small_set())
    warehouse_at.take({DEFINITION: encode(edited)})
    warehouse_at.take({DEFINITION: encode(first).replace(b": ", b":  ")})
    warehouse_at.ingest({SECOND: lines(trace(8, 0.5))})
    measured = "SELECT operation_digest FROM runs WHERE latency_ns"
    assert warehouse_at.rows(f"{measured} = 500000") == warehouse_at.rows(f"{measured} = 11000")


def test_a_definition_in_another_layout_is_read_once(warehouse_at: Warehouse) -> None:
    files = small_set() | {DEFINITION: small_set()[DEFINITION].replace(b": ", b":  ")}
    warehouse_at.take(small_set())
    warehouse_at.take(files)
    report = warehouse_at.ingest(files | {SECOND: lines(trace(24))})
    assert (report.files_read, report.files_unchanged) == (1, 6)


def test_one_record_of_two_repositories_with_different_code_is_two_observations(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set(), repository=REPOSITORY, revision=REVISIONS[0])
    fork = small_set() | {SOLUTION: encode(solution(code="fork"))}
    report = warehouse_at.ingest(fork, repository=REPOSITORY + "-fork", revision=REVISIONS[1])
    assert (report.added, report.already_known) == (3, 2)  # the rival's code is the same in both
    assert warehouse_at.value("SELECT count(*) FROM observations") == 8
    assert warehouse_at.value("SELECT count(DISTINCT observation_sha256) FROM observations") == 5
    assert warehouse_at.value("SELECT count(*) FROM cohorts WHERE profile = 'source_native'") == 2


def test_repositories_do_not_lend_each_other_documents(warehouse_at: Warehouse) -> None:
    warehouse_at.ingest(small_set(), repository=REPOSITORY)
    report = warehouse_at.ingest({TRACES: lines(trace(24))}, repository=REPOSITORY + "-fork")
    assert report.quarantine_reasons == {"UNKNOWN_DEFINITION": 1}


def test_the_same_file_good_here_and_held_back_there_is_counted_where_it_is(warehouse_at: Warehouse) -> None:
    """What a file came to in one trace set says nothing about another."""
    bare = {path: content for path, content in small_set().items() if path not in (SOLUTION, RIVAL)}
    here, there = {"repository": REPOSITORY}, {"repository": REPOSITORY + "-fork"}
    warehouse_at.ingest(bare, **here)
    warehouse_at.ingest(small_set(), **there)
    report = warehouse_at.ingest(bare | {SECOND: lines(trace(24, by="nobody"))}, **here)
    assert (report.quarantined, report.already_known) == (6, 0)
    report = warehouse_at.ingest(small_set() | {SECOND: lines(trace(24))}, **there)
    assert (report.quarantined, report.already_known, report.added) == (0, 5, 1)


LINES = {"measured": lines(trace(8, 0.5)), "not measured": lines(workload_line(8), workload_line(16))}
DOCUMENTS = pick(DEFINITION, SOLUTION)


def ways(content: bytes) -> dict[str, list[dict[str, bytes]]]:
    """The same content as workloads and as traces, together or apart, with its documents before, beside or after."""
    workloads, traces = {"workloads/elementwise/x.jsonl": content}, {SECOND: content}
    return {
        "together": [DOCUMENTS | workloads | traces],
        "workloads, traces": [DOCUMENTS, workloads, traces],
        "traces, workloads": [DOCUMENTS, traces, workloads],
        "workloads, the rest": [workloads, DOCUMENTS | traces],
        "traces, the rest": [traces, DOCUMENTS | workloads],
        "documents last": [workloads | traces, DOCUMENTS],
    }


@pytest.mark.parametrize("way", ways(b""))
@pytest.mark.parametrize("name", LINES)
def test_the_same_lines_as_workloads_and_as_traces(warehouse_at: Warehouse, name: str, way: str) -> None:
    """Each folder gives its lines their meaning, whichever comes first."""
    for piece in ways(LINES[name])[way]:
        warehouse_at.take(piece)
    warehouse_at.publish()
    counts = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM workloads)"
    if name == "measured":
        assert warehouse_at.held() == []
        assert warehouse_at.rows(counts) == [(1, 1)]
    else:
        assert warehouse_at.held() == [(SECOND, 1, "NO_EVALUATION"), (SECOND, 2, "NO_EVALUATION")]
        assert warehouse_at.rows(counts) == [(0, 2)]


def test_held_back_files_come_good(warehouse_at: Warehouse) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 1\n"
    held = small_set() | {TRACES: pointer, RIVAL: b"{", WORKLOADS: pointer}
    first = warehouse_at.ingest(held)
    assert first.quarantine_reasons == {"INVALID_SOLUTION": 1, "LFS_POINTER": 2, "UNKNOWN_SOLUTION": 2}
    second = warehouse_at.ingest(small_set())
    assert (second.added, second.freed, second.quarantine_reasons) == (3, 2, {})
    assert warehouse_at.held() == []
    assert warehouse_at.value("SELECT count(*) FROM runs") == 5


def test_a_pull_that_failed_in_part_is_completed_later(warehouse_at: Warehouse) -> None:
    root = warehouse_at._folder({path: small_set()[path] for path in (DEFINITION, SOLUTION, RIVAL, RIVAL_TRACES)})
    (root / TRACES).parent.mkdir(parents=True)
    (root / TRACES).symlink_to(root / "nowhere")
    first = warehouse_at.ingest(root)
    assert (first.complete, first.files_quarantined, first.added) == (False, 1, 2)
    assert warehouse_at.held() == [(TRACES, None, "FETCH_FAILED")]
    second = warehouse_at.ingest(small_set())
    assert (second.complete, second.added) == (True, 3)
    assert warehouse_at.held() == []


def test_a_repaired_definition_frees_its_records(warehouse_at: Warehouse) -> None:
    lacking = definition(
        axes={"hidden": {"type": "const", "value": 64}}, inputs={"x": {"shape": ["n"], "dtype": "int8"}}
    )
    first = warehouse_at.ingest(small_set() | {DEFINITION: encode(lacking)})
    assert first.quarantine_reasons == {"UNBOUND_AXIS": 7}
    second = warehouse_at.ingest({DEFINITION: small_set()[DEFINITION]})
    assert (second.freed, second.runs_added, second.quarantine_reasons) == (7, 5, {})
