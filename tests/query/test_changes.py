from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli import main
from pipeline.errors import DataDirectoryError, UsageError
from pipeline.query.changes import RULES, Changes, broken, changes
from pipeline.store.layout import DataDirectory
from tests.fake_hub.pulls import pull
from tests.fake_hub.revisions import ONE, THREE, TWO
from tests.fake_hub.server import FakeHub, Fault
from tests.fake_hub.sets import definition, solution, trace

DEFINITION = "definitions/elementwise/scale.json"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as hub:
        yield hub


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data")


def ingest(data: DataDirectory, hub: FakeHub, files: dict[str, bytes]) -> str:
    """Pull another revision; return the id of its snapshot."""
    hub.commit(files)
    return pull(data, hub, accept_shrink=True).snapshot_id


def holders(found: Changes) -> list[tuple[object, ...]]:
    return [
        (record.cause, record.latency_ns, record.previous_latency_ns, record.previous_reasons)
        for record in found.records
        if record.profile == "source_native"
    ]


def test_three_revisions(data: DataDirectory, hub: FakeHub) -> None:
    first = ingest(data, hub, ONE)
    found = changes(data)
    assert (found.since, [pulled.sequence for pulled in found.pulls]) == (None, [1])
    assert holders(found) == [("new_run", 1_000_000, None, [])]
    assert [(each.operation, each.runs, each.eligible) for each in found.runs_added] == [("scale", 3, 3)]
    assert (found.runs_withdrawn, found.definitions, found.quarantine_added) == ([], [], [])

    second = ingest(data, hub, TWO)
    found = changes(data)
    assert (found.since, [pulled.snapshot_id for pulled in found.pulls]) == (first, [second])
    assert holders(found) == [("withdrawn", 2_000_000, 1_000_000, ["WITHDRAWN"])]
    assert [(each.runs, each.eligible) for each in found.runs_added] == [(1, 1)]
    assert [(run.implementation, run.latency_ns) for run in found.runs_withdrawn] == [("b", 1_000_000)]

    third = ingest(data, hub, THREE)
    found = changes(data)
    assert holders(found) == [("new_run", 900_000, 2_000_000, [])]
    assert [(run.implementation, run.latency_ns) for run in found.runs_reinstated] == [("b", 1_000_000)]
    assert found.runs_withdrawn == []

    since_first = changes(data, first[7:19])
    assert [pulled.snapshot_id for pulled in since_first.pulls] == [second, third]
    assert holders(since_first) == [("new_run", 900_000, 1_000_000, [])]
    assert [each.runs for each in since_first.runs_added] == [2]
    assert (since_first.runs_withdrawn, since_first.runs_reinstated) == ([], [])

    nothing = changes(data, third)
    assert nothing == Changes(third, [], [], [], [], [], [], [], [])


def test_a_cohort_that_lost_all_its_runs_has_no_holder(data: DataDirectory, hub: FakeHub) -> None:
    ingest(data, hub, ONE)
    ingest(data, hub, {path: content for path, content in ONE.items() if not path.startswith("traces/")})
    found = changes(data)
    assert holders(found) == [("withdrawn", None, 1_000_000, ["WITHDRAWN"])]
    assert len(found.runs_withdrawn) == 3


def test_definitions_whose_document_changed(data: DataDirectory, hub: FakeHub) -> None:
    beside = {"definitions/elementwise/other.json": definition("other")}
    ingest(data, hub, ONE | beside)
    retold = ONE | beside | {DEFINITION: definition(description="told better")}
    ingest(data, hub, retold)
    [changed] = changes(data).definitions
    assert changed.name == "scale"
    assert changed.operation_digest == changed.previous_operation_digest
    assert broken(changes(data), ["operation-changed", "definition-changed"]) == [
        "definition-changed: the document of a definition changed (1)"
    ]
    since = ingest(data, hub, retold | {DEFINITION: definition(op_type="other")})
    [changed] = changes(data).definitions
    assert changed.operation_digest != changed.previous_operation_digest
    ingest(data, hub, ONE | beside | {"README.md": b"back to the first document"})
    [changed] = changes(data).definitions
    assert changed.operation_digest != changed.previous_operation_digest
    assert changes(data, since).definitions == [changed]


def test_quarantine_added_and_freed(data: DataDirectory, hub: FakeHub) -> None:
    late = "solutions/alice/elementwise/scale/late.json"
    more = ONE | {"traces/alice/elementwise/more.jsonl": trace("late", 0.5, 6), late: solution("late", content="late")}
    ingest(data, hub, ONE)
    hub.commit(more)
    hub.switch(Fault.ERROR_500, path="late.json")
    pull(data, hub)
    found = changes(data)
    assert [(each.reason, each.source_line) for each in found.quarantine_added] == [
        ("FETCH_FAILED", None),
        ("UNKNOWN_SOLUTION", 1),
    ]
    assert broken(found, list(RULES)) == [
        "quarantine: something more is held back (2)",
        "incomplete: the last pull is incomplete (1)",
    ]
    hub.calm()
    pull(data, hub)
    found = changes(data)
    assert ([each.reason for each in found.quarantine_freed], found.quarantine_added) == (
        ["FETCH_FAILED", "UNKNOWN_SOLUTION"],
        [],
    )
    assert holders(found) == [("new_run", 500_000, 1_000_000, [])]


@pytest.mark.parametrize(
    ("since", "message"),
    [("f" * 12, "no snapshot begins"), ("0a1b", "names no snapshot"), ("latest", "names no snapshot")],
)
def test_an_unknown_snapshot_is_refused(data: DataDirectory, hub: FakeHub, since: str, message: str) -> None:
    ingest(data, hub, ONE)
    with pytest.raises(UsageError, match=message):
        changes(data, since)


def test_without_a_warehouse_there_is_nothing_to_tell(data: DataDirectory) -> None:
    with pytest.raises(DataDirectoryError, match="run kernelhouse ingest first"):
        changes(data)


def test_the_command_tells_and_fails_on_a_rule(data: DataDirectory, hub: FakeHub) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(main, ["--data", str(data.root), *arguments], prog_name="kernelhouse")
        return result.exit_code, result.stdout, result.stderr

    hub.commit(ONE)
    ingested = ("ingest", "hub:owner/kernels", "--endpoint", hub.endpoint, "--jobs", "2", "--wait")
    assert run(*ingested)[0] == 0
    hub.commit(TWO)
    status, out, errors = run(*ingested, "--accept-shrink")
    assert (status, errors) == (0, "")
    assert "withdrawn   1 record" in out
    status, out, errors = run("changes", "--fail-on", "withdrawn", "--fail-on", "quarantine")
    assert (status, errors) == (1, "kernelhouse: withdrawn: a run was withdrawn (1)\n")
    for expected in ("1 run withdrawn", "1 run added", "2.00 ms", "1.00 ms", "hub:owner/kernels"):
        assert expected in out
    status, out, _ = run("changes", "--json")
    answer = json.loads(out)
    assert (status, answer["broken_rules"], len(answer["changes"]["runs_withdrawn"])) == (0, [], 1)
    status, _, errors = run("changes", "--fail-on", "weather")
    assert (status, errors.count("\n")) == (2, 1)
    assert "there are withdrawn, lost-record" in errors
    hub.commit({path: content for path, content in TWO.items() if not path.startswith("traces/")})
    status, _, errors = run(*ingested)
    assert status == 1
    assert "--accept-shrink" in errors
