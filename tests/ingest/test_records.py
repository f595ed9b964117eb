"""One pull: what is added, held back, marked and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.errors import SourceError, UsageError
from pipeline.ingest import IngestRequest, ingest
from pipeline.upstream.framing import MAX_RECORD_BYTES
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
    workload,
    workload_line,
    write_files,
)

SECOND = "traces/baseline/elementwise/second.jsonl"


def test_a_small_set(warehouse_at: Warehouse) -> None:
    report = warehouse_at.ingest(small_set(), repository=REPOSITORY, revision=REVISIONS[0])
    assert (report.files, report.files_read, report.complete, report.published) == (6, 6, True, True)
    assert (report.records, report.added, report.workload_records) == (5, 5, 2)
    assert (report.operations_added, report.workloads_added, report.implementations_added, report.runs_added) == (
        1,
        2,
        2,
        5,
    )
    assert (report.duplicates, report.quarantined, report.freed, report.drift) == (0, 0, 0, 0)
    assert report.quarantine_reasons == {}
    ranked = warehouse_at.rows(
        "SELECT axes, rank, implementation, role, latency_ns FROM leaderboard "
        "WHERE profile = 'source_native' ORDER BY ALL"
    )
    assert ranked == [
        ('{"rows":16}', 1, "scale_torch", "baseline", 20000),
        ('{"rows":16}', 2, "scale_torch", "baseline", 21000),
        ('{"rows":16}', 3, "scale_triton", "llm-generated", 30000),
        ('{"rows":8}', 1, "scale_triton", "llm-generated", 9000),
        ('{"rows":8}', 2, "scale_torch", "baseline", 11000),
    ]
    records = "SELECT latency_ns, previous_latency_ns FROM record_history WHERE profile = 'source_native' ORDER BY ALL"
    assert warehouse_at.rows(records) == [(9000, 11000), (11000, None), (20000, 30000), (30000, None)]


def test_places_of_records_in_every_layout(warehouse_at: Warehouse) -> None:
    """Places and pointers are checked after every ingest: here there is something to point at."""
    files = small_set() | {
        "traces/a/elementwise/crlf.jsonl": lines(trace(24, log="é")).replace(b"\n", b"\r\n\r\n")
        + encode(trace(32, log="x")),
        "traces/b/elementwise/array.json": b'[\n "\xc3\xa9",\n ' + encode(trace(40, log="漢")) + b",\n 7]\n",
        "traces/c/elementwise/pretty.json": b"\n\n" + json.dumps(trace(48, log="\x1b[31m"), indent=2).encode(),
        "traces/d/elementwise/lone.jsonl": b"[" + encode(trace(56, log="lone")) + b"]\n",
    }
    report = warehouse_at.ingest(files)
    assert (report.added, report.quarantine_reasons) == (10, {"SCHEMA_VIOLATION": 2})
    places = warehouse_at.rows(
        "SELECT source_file, source_line, len(legacy_forms) FROM observations "
        "WHERE regexp_matches(source_file, '/[a-d]/') ORDER BY ALL"
    )
    assert places == [
        ("traces/a/elementwise/crlf.jsonl", 1, 0),
        ("traces/a/elementwise/crlf.jsonl", 3, 0),
        ("traces/b/elementwise/array.json", 2, 1),
        ("traces/c/elementwise/pretty.json", 1, 1),
        ("traces/d/elementwise/lone.jsonl", 1, 1),
    ]
    assert warehouse_at.value("SELECT count(*) FROM artifacts WHERE kind = 'log'") == 6


def test_a_record_repeated_byte_for_byte_is_a_duplicate_wherever_it_stands(warehouse_at: Warehouse) -> None:
    record = encode(trace(8, 0.5))
    files = small_set() | {
        TRACES: lines(record, record, trace(16)),
        RIVAL_TRACES: lines(record),
        SECOND: record + b"\r\n" + record,
    }
    report = warehouse_at.ingest(files)
    assert (report.records, report.added, report.duplicates) == (6, 2, 4)
    assert warehouse_at.value("SELECT count(*) FROM observations") == 2


def test_the_same_file_twice_is_all_duplicates(warehouse_at: Warehouse) -> None:
    files = small_set() | {SECOND: small_set()[TRACES], "traces/gpt-5/x.jsonl": small_set()[TRACES]}
    report = warehouse_at.ingest(files)
    assert (report.records, report.added, report.duplicates) == (11, 5, 6)


def test_a_record_held_back_and_repeated(warehouse_at: Warehouse) -> None:
    orphan = encode(trace(by="nobody"))
    report = warehouse_at.ingest(small_set() | {SECOND: lines(orphan, orphan, b"{", b"{")})
    assert (report.quarantined, report.duplicates) == (2, 2)
    assert warehouse_at.held() == [(SECOND, 1, "UNKNOWN_SOLUTION"), (SECOND, 3, "INVALID_JSON")]


def test_two_records_that_name_one_run(warehouse_at: Warehouse) -> None:
    one = encode(trace(8, 0.5))
    report = warehouse_at.ingest(small_set() | {SECOND: lines(one, one.replace(b": ", b":"))})
    assert (report.added, report.runs_added) == (7, 6)
    assert warehouse_at.value("SELECT max(n) FROM (SELECT count(*) AS n FROM observations GROUP BY run_digest)") == 2


LONG = b'{"log":"' + b"x" * MAX_RECORD_BYTES + b'"}'

RECORDS: list[tuple[str, Any]] = [
    ("LINE_TOO_LONG", LONG),
    ("INVALID_UTF8", b"\xff{}"),
    ("INVALID_JSON", b"{"),
    ("SCHEMA_VIOLATION", {}),
    ("NO_EVALUATION", workload_line()),
    ("UNKNOWN_STATUS", trace(status="MAYBE")),
    ("INVALID_TIMESTAMP", trace(timestamp="yesterday")),
    ("MISSING_PERFORMANCE", trace(performance=None)),
    ("NON_POSITIVE_LATENCY", trace(latency_ms=0)),
    ("UNKNOWN_DEFINITION", trace(of="nobody")),
    ("UNKNOWN_SOLUTION", trace(by="nobody")),
    ("AXIS_OUT_OF_RANGE", trace(-1)),
    ("UNBOUND_AXIS", trace(workload=workload(axes={}))),
]


def test_every_reason_of_a_record_is_kept_with_its_place(warehouse_at: Warehouse) -> None:
    report = warehouse_at.ingest(small_set() | {SECOND: lines(*(record for _, record in RECORDS))})
    assert warehouse_at.held() == [(SECOND, line, reason) for line, (reason, _) in enumerate(RECORDS, 1)]
    assert report.quarantine_reasons == {reason: 1 for reason, _ in RECORDS}
    assert (report.added, report.quarantined) == (5, len(RECORDS))
    details = warehouse_at.rows("SELECT detail FROM quarantine")
    assert all(detail and "\n" not in detail for (detail,) in details)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 1234\n"
OTHER = "definitions/elementwise/other.json"
THIRD = "solutions/gpt-5/elementwise/scale_rows/x.json"
LATER = "definitions/elementwise/twice.json"  # sorts after the definition of the small set


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        (OTHER, b"{", "INVALID_DEFINITION"),
        (OTHER, POINTER, "LFS_POINTER"),
        (LATER, encode(definition(description="another text")), "DUPLICATE_DEFINITION"),
        (LATER, encode(definition()), "DUPLICATE_DEFINITION"),
        (THIRD, b"[]", "INVALID_SOLUTION"),
        (THIRD, encode(solution("x", definition="nobody")), "INVALID_SOLUTION"),
        (THIRD, encode(solution(code="other")), "DUPLICATE_SOLUTION"),
        (THIRD, encode(solution()), "DUPLICATE_SOLUTION"),
        (THIRD, POINTER, "LFS_POINTER"),
        (
            THIRD,
            encode(solution("x", sources=[{"path": "../x", "content": ""}])),
            "UNSAFE_SOURCE_PATH",
        ),
        (SECOND, POINTER, "LFS_POINTER"),
        ("workloads/elementwise/x.jsonl", POINTER, "LFS_POINTER"),
    ],
)  # fmt: skip
def test_every_reason_of_a_file(warehouse_at: Warehouse, path: str, content: bytes, reason: str) -> None:
    report = warehouse_at.ingest(small_set() | {path: content})
    assert warehouse_at.held() == [(path, None, reason)]
    assert report.quarantine_reasons == {reason: 1}
    assert (report.files_quarantined, report.added, report.quarantined) == (1, 5, 0)
    # What is held back is nowhere else.
    counts = "SELECT (SELECT count(*) FROM operations), (SELECT count(*) FROM implementations)"
    assert warehouse_at.rows(counts) == [(1, 2)]
    artifacts = warehouse_at.value("SELECT count(*) FROM artifacts WHERE kind = 'source'")
    assert artifacts == 2


def test_unknown_fields_and_legacy_forms_are_drift(warehouse_at: Warehouse) -> None:
    novel = trace(8) | {"novel": 1}
    older = trace(16, status="INCORRECT")
    report = warehouse_at.ingest(small_set() | {SECOND: lines(novel, novel | {"more": 1}, older)})
    drift = dict(warehouse_at.rows(f"SELECT path, occurrences FROM drift WHERE source_file = '{SECOND}'"))
    assert (drift["novel"], drift["more"]) == (2, 1)
    assert sum(drift.values()) == report.drift == 4
    assert report.added == 8


@pytest.mark.parametrize(
    ("path", "kind"),
    [("blob/x.safetensors", "tensor"), ("workloads/notes.txt", "other"), ("traces/baseline/log.txt", "other")],
)
def test_other_files_are_listed_only(warehouse_at: Warehouse, path: str, kind: str) -> None:
    report = warehouse_at.ingest(small_set() | {path: b"content"})
    assert (report.files, report.files_not_fetched, report.complete) == (7, 1, True)
    assert warehouse_at.rows("SELECT path, kind, size_bytes FROM source_files WHERE NOT fetched") == [(path, kind, 7)]


def test_an_empty_file_has_no_records(warehouse_at: Warehouse) -> None:
    report = warehouse_at.ingest(small_set() | {SECOND: b"", "workloads/elementwise/empty.jsonl": b""})
    assert (report.files_read, report.records) == (8, 5)


def test_solutions_measured_on_another_definition(warehouse_at: Warehouse) -> None:
    files = small_set() | {OTHER: encode(definition("other", op_type="norm")), SECOND: lines(trace(of="other"))}
    assert warehouse_at.ingest(files).added == 6
    run, implementation = "run.operation_digest", "implementation.operation_digest"
    mismatched = warehouse_at.rows(
        "SELECT benchmark, definition FROM runs AS run "
        "JOIN implementations AS implementation USING (implementation_digest) "
        f"WHERE {run} != {implementation}"
    )
    assert mismatched == [("other", "scale_rows")]


@pytest.mark.parametrize(
    "request_",
    [
        {"revision": "main"},
        {"revision": "1" * 39},
        {"revision": "1" * 40 + "\n"},
        {"revision": "G" * 40},
        {"repository": "http://example.org/x"},
        {"repository": "https://"},
        {"repository": "https://example.org/a b"},
        {"repository": "example.org/x"},
        {"authors": ("nobody",)},
    ],
    ids=str,
)
def test_requests_that_make_no_sense(warehouse_at: Warehouse, request_: dict[str, Any]) -> None:
    root = write_files(warehouse_at.root / "set", small_set())
    with pytest.raises(UsageError) as caught:
        ingest(warehouse_at.data, IngestRequest(source=str(root), **request_))
    assert "\n" not in str(caught.value)


def test_sources_that_are_none(warehouse_at: Warehouse) -> None:
    warehouse_at.root.mkdir()
    missing = warehouse_at.root / "missing"
    for source, error in ((missing, UsageError), (warehouse_at.root, SourceError)):
        with pytest.raises(error):
            ingest(warehouse_at.data, IngestRequest(source=str(source)))


def test_authors_limit_a_pull(warehouse_at: Warehouse) -> None:
    report = warehouse_at.ingest(small_set(), authors=("gpt-5",))
    assert (report.files, report.added) == (4, 2)
    assert warehouse_at.rows("SELECT authors FROM snapshots") == [(["gpt-5"],)]
    assert {DEFINITION, WORKLOADS, RIVAL, RIVAL_TRACES} == {
        path for (path,) in warehouse_at.rows("SELECT path FROM source_files")
    }
    assert warehouse_at.ingest(small_set()).added == 3
    assert SOLUTION in {path for (path,) in warehouse_at.rows("SELECT path FROM source_files")}
