"""Plans: which runs get a job, and what the jobs say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from duckdb import DuckDBPyConnection

from pipeline.errors import UsageError
from pipeline.ingest import IngestRequest, ingest
from pipeline.manifests import sha256_of
from pipeline.rerun.plan import Selection, plan, write_jobs
from pipeline.rerun.runner.job import read_job
from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory

GEMM = "gemm_bf16_n4096_k4096"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataDirectory:
    directory = DataDirectory(tmp_path_factory.mktemp("plan") / "data")
    ingest(directory, IngestRequest())
    return directory


@pytest.fixture
def connection(data: DataDirectory) -> Iterator[DuckDBPyConnection]:
    with closing(connect(data.database)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("selection", "jobs"),
    [
        (Selection(operation=GEMM), 6),
        (Selection(operation=GEMM, author="kernelhouse"), 3),
        (Selection(operation=GEMM, records=True), 3),
        (Selection(solution="triton_softmax_n8192"), 3),
        (Selection(author="kernelhouse"), 24),
        (Selection(operation=GEMM, sql="SELECT run_digest FROM runs WHERE latency_ns > 100000"), 2),
        (Selection(sql="SELECT run_digest FROM runs WHERE benchmark LIKE 'rope%';"), 6),
        (Selection(sql="FROM runs WHERE benchmark LIKE 'rope%' -- all of them"), 6),
    ],
)
def test_selection(connection: DuckDBPyConnection, data: DataDirectory, selection: Selection, jobs: int) -> None:
    planned = plan(connection, data, selection)
    assert (len(planned.jobs), planned.left_out) == (jobs, {})


def test_a_run_is_chosen_by_a_prefix_and_its_job_targets_it(
    connection: DuckDBPyConnection, data: DataDirectory
) -> None:
    [[digest, uuid]] = connection.execute(
        "SELECT run_digest, workload_uuid FROM runs WHERE benchmark = 'softmax_bf16_n8192' ORDER BY 1 LIMIT 1"
    ).fetchall()
    [job] = plan(connection, data, Selection(runs=(digest[7:17],)), device="NVIDIA H200").jobs
    assert job.document["target"]["digest"] == digest
    assert job.document["device"] == "NVIDIA H200"
    assert job.document["workload_record"]["uuid"] == uuid
    by_workload = plan(connection, data, Selection(workload=uuid)).jobs
    assert digest in {each.document["target"]["digest"] for each in by_workload}


def test_files_are_what_the_runner_reads(connection: DuckDBPyConnection, data: DataDirectory, tmp_path: Path) -> None:
    jobs = plan(connection, data, Selection(operation=GEMM), limit=3).jobs
    paths = write_jobs(jobs, tmp_path / "jobs")
    assert [read_job(path) for path in paths] == jobs
    assert len(paths) == 3


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(), "name runs"),
        (Selection(operation="nothing of the kind"), "no run fits"),
        (Selection(sql="SELEC"), "correct --sql"),
        (Selection(sql="SELECT 1"), "no column run_digest"),
        (Selection(sql=""), "no column run_digest"),
        (Selection(sql="SELECT 1 AS run_digest"), "no run fits"),
    ],
)
def test_what_chooses_nothing_is_refused(
    connection: DuckDBPyConnection, data: DataDirectory, selection: Selection, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        plan(connection, data, selection)


def test_runs_that_did_not_pass_have_no_job_and_the_reason_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    here = Path(__file__).parent / "data" / "verdicts" / "trace-set"
    for path in here.rglob("*.json*"):
        target = folder / path.relative_to(here)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    file = next(folder.glob("traces/*/*/*.jsonl"))
    record = json.loads(file.read_text().splitlines()[0])
    record["evaluation"]["status"] = "RUNTIME_ERROR"
    file.write_text(json.dumps(record) + "\n")
    directory = DataDirectory(tmp_path / "data")
    ingest(directory, IngestRequest(source=str(folder)))
    with closing(connect(directory.database)) as connection:
        planned = plan(connection, directory, Selection(operation="scaled_add_fp32"))
    assert planned.jobs == []
    assert list(planned.left_out.values()) == ["its status is runtime_error: there is no latency to compare with"]


def test_a_run_whose_sources_were_taken_down_has_no_job_and_the_reason_is_told(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    ingest(directory, IngestRequest())
    chosen = Selection(solution="triton_softmax_n8192", workload="84669ad6-5bae-581a-b8df-64e6e1d6507f")
    with closing(connect(directory.database)) as connection:
        [job] = plan(connection, directory, chosen).jobs
    run, [source] = job.document["target"]["digest"], job.document["sources"].values()
    (directory.root / "corrections.toml").write_text(
        f"""[[correction]]
run = "{run}"
action = "takedown"
removes = ["{source}"]
reason = "the author asked for it"
author = "reviewer"
date = 2026-12-01
"""
    )
    ingest(directory, IngestRequest())
    with closing(connect(directory.database)) as connection:
        planned = plan(connection, directory, chosen)
    assert (planned.jobs, planned.left_out) == ([], {run: "a takedown removed sources of its solution"})


def test_a_tensor_file_is_that_of_the_records_own_trace_set(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    blob = "blob/workloads/x.safetensors"
    for repository, content in (("https://example.org/one", b"one"), ("https://example.org/two", b"two")):
        folder = tmp_path / repository[-3:]
        shutil.copytree(Path(__file__).parent / "data" / "verdicts" / "trace-set", folder)
        (folder / blob).parent.mkdir(parents=True)
        (folder / blob).write_bytes(content)
        file = next(folder.glob("traces/*/*/*.jsonl"))
        record = json.loads(file.read_text().splitlines()[0])
        record["workload"]["inputs"] = {"x": {"type": "safetensors", "path": f"./{blob}"}}
        record["evaluation"]["log"] = repository
        file.write_text(json.dumps(record) + "\n")
        ingest(directory, IngestRequest(source=str(folder), repository=repository))
    with closing(connect(directory.database)) as connection:
        jobs = plan(connection, directory, Selection(operation="scaled_add_fp32")).jobs
        rows = connection.execute(
            "SELECT run_digest, repository FROM observations JOIN snapshots USING (snapshot_id)"
        ).fetchall()
    expected = {run: {f"./{blob}": sha256_of(repository[-3:].encode())} for run, repository in rows}
    assert {job.document["target"]["digest"]: job.document["tensor_files"] for job in jobs} == expected
    assert len(jobs) == 2
