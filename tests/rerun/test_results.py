"""Results of reruns as evidence: what was run on an H200 on 2026-12-01, imported as it came back."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from duckdb import DuckDBPyConnection

from pipeline.cli import main
from pipeline.errors import CheckFailure, SourceError
from pipeline.ingest import IngestRequest, ingest
from pipeline.ingest.reruns import import_reruns
from pipeline.manifests import sha256_of
from pipeline.query.dossier import run_dossier
from pipeline.query.verify import verify
from pipeline.rerun.results import read_result, read_results, result_files
from pipeline.rerun.runner.result import ResultError, canonical, parse_result, seal
from pipeline.rerun.traces import trace_line, write_traces
from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory
from pipeline.upstream.held import HeldBackError
from tests.rerun.making import altered

DATA = Path(__file__).parent / "data"
H200 = DATA / "h200"
VERDICTS = DATA / "verdicts"
SAMPLE = Path(__file__).parents[2] / "pipeline" / "sample" / "trace-set"


def quiet(stage: str, done: int, total: int | None) -> None:
    return


def imported(root: Path, trace_set: str, *folders: Path) -> DataDirectory:
    data = DataDirectory(root)
    ingest(data, IngestRequest(source=trace_set))
    for folder in folders:
        import_reruns(data, folder, quiet)
    return data


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> DataDirectory:
    root = tmp_path_factory.mktemp("h200") / "data"
    return imported(root, "sample", H200 / "measured", H200 / "reruns", H200 / "repeat1", H200 / "repeat2")


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> DataDirectory:
    return imported(tmp_path_factory.mktemp("v") / "data", str(VERDICTS / "trace-set"), VERDICTS / "results")


@pytest.fixture(scope="module")
def reran(tmp_path_factory: pytest.TempPathFactory) -> DataDirectory:
    return imported(tmp_path_factory.mktemp("reran") / "data", "sample", H200 / "reruns")


@pytest.fixture
def own(reran: DataDirectory, tmp_path: Path) -> DataDirectory:
    """A data directory with the reruns on an H200 that a test may change."""
    shutil.copytree(reran.root, tmp_path / "data")
    return DataDirectory(tmp_path / "data")


@pytest.fixture
def connection(h200: DataDirectory) -> Iterator[DuckDBPyConnection]:
    with closing(connect(h200.database)) as opened:
        yield opened


def test_the_batch_gives_this_table(connection: DuckDBPyConnection) -> None:
    rows = connection.execute(
        "SELECT implementations.name, shape_summary, verdict, reruns.reasons, round(ratio, 3) FROM reruns"
        " JOIN runs USING (run_digest) JOIN implementations USING (implementation_digest)"
        " JOIN workloads USING (workload_digest) WHERE target_run_digest IS NOT NULL ORDER BY ALL"
    ).fetchall()
    assert rows == [
        ("cuda_sparse_nvfp4_naive_n2048_k2048", "m = 64", "FAILED", ["MISSING_SOURCE"], None),
        ("deepgemm_m_grouped_fp8_fp4_masked_g4_n2048_k2048", "max_m = 512", "FAILED", ["MISSING_SOURCE"], None),
        ("deepgemm_m_grouped_fp8_fp4_masked_g4_n2048_k2048", "max_m = 512", "FAILED", ["MISSING_SOURCE"], None),
        ("mm_fp4_nvfp4_cudnn_n4096_k4096", "m = 1024", "FAILED", ["MISSING_SOURCE"], None),
        ("torch_gemm_n4096_k4096", "m = 512", "REPRODUCED", [], 0.944),
        ("triton_rmsnorm_h4096", "batch_size = 512", "REPRODUCED", [], 0.993),
        ("triton_softmax_n8192", "rows = 512", "REPRODUCED", [], 0.984),
    ]


def test_each_verdict_has_its_fixture(fixtures: DataDirectory) -> None:
    with closing(connect(fixtures.database)) as connection:
        rows = connection.execute(
            "SELECT name, verdict, reruns.reasons, ratio IS NULL, target.evidence_level FROM reruns"
            " JOIN runs AS target ON target.run_digest = target_run_digest"
            " JOIN implementations USING (implementation_digest) ORDER BY ALL"
        ).fetchall()
    elsewhere = "measured on NVIDIA H200, reported on NVIDIA B200"
    assert rows == [
        ("cached_output", "SUSPECT", ["STALE_OUTPUT"], True, "reported"),
        ("missing_library", "FAILED", ["MISSING_DEPENDENCY"], True, "reported"),
        ("reported_elsewhere", "CORRECT_OTHER_HARDWARE", [elsewhere], True, "verified"),
        ("reported_fast", "SLOWER", [], False, "verified"),
        ("reported_slow", "FASTER", [], False, "verified"),
        ("zeros", "INCORRECT", ["NUMERICAL_MISMATCH"], True, "reported"),
    ]


@pytest.mark.parametrize("name", ["h200", "fixtures"])
def test_verify_finds_nothing_wrong(name: str, request: pytest.FixtureRequest) -> None:
    data = request.getfixturevalue(name)
    with closing(connect(data.database)) as connection:
        assert [check for check in verify(connection, data, quiet) if not check.ok] == []


def test_runs_of_one_machine_share_a_cohort(connection: DuckDBPyConnection) -> None:
    [[environments]] = connection.execute(
        "SELECT count(DISTINCT environment_digest) FROM runs WHERE source = 'kernelhouse-rerun'"
    ).fetchall()
    assert environments == 1


def test_repeated_runs_agree_within_three_percent_on_one_gpu_and_four_on_two() -> None:
    medians: dict[tuple[str, str], dict[str, list[float]]] = {}
    for folder in ("measured", "reruns", "repeat1", "repeat2"):
        for job, result in read_results(H200 / folder):
            if result["status"] == "passed":
                what = (job.document["implementation"]["digest"], job.document["workload"]["digest"])
                by_gpu = medians.setdefault(what, {}).setdefault(result["identity"]["gpu"], [])
                by_gpu.append(result["measurement"]["statistics"]["median"])
    repeated = [each for by_gpu in medians.values() for each in by_gpu.values() if len(each) > 1]
    assert sorted(map(len, repeated)) == [2, 2, 3, 3]
    assert all(max(each) <= 1.03 * min(each) for each in repeated)
    on_two = [[*chain(*by_gpu.values())] for by_gpu in medians.values() if len(by_gpu) > 1]
    assert len(on_two) == 14
    assert all(max(each) <= 1.04 * min(each) for each in on_two)


def test_the_second_timer_is_within_two_microseconds_of_the_events_since_its_blocks_are_long() -> None:
    for folder in ("reruns", "repeat1", "repeat2"):
        for _, result in read_results(H200 / folder):
            if (measured := result["measurement"]) is not None:
                assert measured["wall"]["count"] > 200
                assert abs(measured["wall"]["call_ns"] - measured["statistics"]["median"]) < 2_000


def test_the_other_gpu_agrees_but_is_no_second_verifier_on_the_same_host(tmp_path: Path) -> None:
    data = imported(tmp_path / "data", "sample", H200 / "reruns", H200 / "other_gpu")
    with closing(connect(data.database)) as connection:
        rows = connection.execute(
            "SELECT name, list(verdict ORDER BY reruns.reasons), any_value(target.evidence_level) FROM reruns"
            " JOIN runs AS target ON target.run_digest = target_run_digest"
            " JOIN implementations USING (implementation_digest)"
            " WHERE 'MISSING_SOURCE' NOT IN reruns.reasons GROUP BY name ORDER BY name"
        ).fetchall()
    assert rows == [
        ("torch_gemm_n4096_k4096", ["REPRODUCED", "REPRODUCED"], "verified"),
        ("triton_rmsnorm_h4096", ["REPRODUCED", "REPRODUCED"], "verified"),
        ("triton_softmax_n8192", ["REPRODUCED", "SUSPECT"], "verified"),
    ]


def test_both_timers_agree_for_every_honest_run(connection: DuckDBPyConnection) -> None:
    rows = connection.execute(
        "SELECT max(value) FILTER (metric = 'latency'), max(value) FILTER (metric = 'profiler_busy'),"
        " max(value) FILTER (metric = 'wall_clock') FROM measurements JOIN reruns USING (run_digest)"
        " WHERE statistic = 'median' OR metric = 'wall_clock' GROUP BY run_digest"
    ).fetchall()
    assert len(rows) == 65
    for events, profiler, wall in rows:
        assert profiler <= events * 1.15 + 2_500
        assert wall <= events * 1.25 + 6_000


def test_a_dossier_shows_what_reruns_it_and_where_its_samples_lie(
    h200: DataDirectory, connection: DuckDBPyConnection
) -> None:
    [[target, rerun]] = connection.execute(
        "SELECT target_run_digest, run_digest FROM reruns JOIN runs USING (run_digest)"
        " JOIN implementations USING (implementation_digest) WHERE name = 'triton_softmax_n8192' AND ratio IS NOT NULL"
    ).fetchall()
    reported, controlled = run_dossier(connection, target), run_dossier(connection, rerun)
    assert (reported.evidence_level, controlled.evidence_level) == ("verified", "verified")
    assert [each.verdict for each in reported.reruns] == ["REPRODUCED"]
    assert reported.reruns == controlled.reruns
    assert controlled.reruns[0].isolation == {"network": "none", "files": "read_only", "privileges": "dropped"}
    [samples] = [artifact for artifact in controlled.artifacts if artifact.kind == "samples"]
    digits = samples.blob_sha256.removeprefix("sha256:")
    document = json.loads((h200.blobs / digits[:2] / digits).read_bytes())
    text = canonical(document["measurement"]["samples_ns"])
    assert (sha256_of(text), len(text)) == (samples.digest, samples.size_bytes)


def test_rebuilding_gives_the_same_rows(own: DataDirectory) -> None:
    def rows() -> Any:
        with closing(connect(own.database)) as connection:
            return connection.execute("SELECT * FROM reruns ORDER BY run_digest").fetchall()

    before = rows()
    ingest(own, IngestRequest(source=None, rebuild=True))
    assert rows() == before
    assert len(before) == 7


def test_importing_again_adds_nothing(own: DataDirectory) -> None:
    report, verdicts = import_reruns(own, H200 / "reruns", quiet)
    assert (report.new_snapshot, report.added, len(verdicts)) == (False, 0, 7)


def test_the_traces_of_the_sample_are_the_results_written_back() -> None:
    written = {line for path in SAMPLE.glob("traces/*/*/*.jsonl") for line in path.read_text().splitlines()}
    lines = {trace_line(job, result) for job, result in read_results(H200 / "measured")}
    assert len(lines) == 45
    assert lines <= written


def test_trace_lines_are_read_by_the_reader_of_traces(tmp_path: Path) -> None:
    folder = tmp_path / "trace-set"
    shutil.copytree(VERDICTS / "trace-set", folder)
    file = next(folder.glob("traces/*/*/*.jsonl"))
    assert write_traces(read_results(VERDICTS / "results"), file) == 5
    report = ingest(DataDirectory(tmp_path / "data"), IngestRequest(source=str(folder)))
    assert (report.added, report.quarantined, report.drift) == (5, 0, 0)


# Tampering


def resealed(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """A change by somebody who computes the outer digest again."""

    @wraps(change)
    def alter(document: dict[str, Any]) -> None:
        change(document)
        document["digest"] = sha256_of(canonical({k: v for k, v in document.items() if k != "digest"}))

    return alter


def faster(document: dict[str, Any]) -> None:
    document["measurement"]["samples_ns"] = [sample // 2 for sample in document["measurement"]["samples_ns"]]


def faster_statistics(document: dict[str, Any]) -> None:
    document["measurement"]["statistics"]["median"] /= 2


def faster_with_its_digest(document: dict[str, Any]) -> None:
    faster(document)
    document["parts"]["samples"] = sha256_of(canonical(document["measurement"]["samples_ns"]))


def fewer(document: dict[str, Any]) -> None:
    document["measurement"]["samples_ns"] = document["measurement"]["samples_ns"][:100]
    document["parts"]["samples"] = sha256_of(canonical(document["measurement"]["samples_ns"]))


def other_nonce(document: dict[str, Any]) -> None:
    document["nonce"] = "0" * 32


def other_log(document: dict[str, Any]) -> None:
    document["log"] += "all is well"


def other_job(document: dict[str, Any]) -> None:
    document["job"] = document["job"].replace('"seed":0', '"seed":1')


def slower_by(timer: str, name: str) -> Callable[[dict[str, Any]], None]:
    def alter(document: dict[str, Any]) -> None:
        document["measurement"][timer][name] *= 2
        document["measurement"][timer][name] += 10_000

    return alter


def suspect_but_timed(document: dict[str, Any]) -> None:
    document["violations"] = [{"code": "STALE_OUTPUT", "detail": ""}]


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (faster, "its digest does not fit its content"),
        (resealed(faster), "the digest of its samples does not fit"),
        (resealed(faster_with_its_digest), "statistics do not follow from its samples"),
        (resealed(faster_statistics), "statistics do not follow from its samples"),
        (resealed(fewer), "must have 200 samples"),
        (resealed(other_nonce), "its nonce is not the job's"),
        (resealed(other_log), "the digest of its log does not fit"),
        (resealed(other_job), "the digest of its job does not fit"),
        (resealed(slower_by("wall", "call_ns")), "its timers disagree: .* the wall clock"),
        (resealed(slower_by("profiler", "busy_ns")), "its timers disagree: .* the profiler"),
        (resealed(suspect_but_timed), "has a measurement though it did not pass"),
        (resealed(lambda document: document.update(status="splendid")), "none that the runner writes"),
        (resealed(lambda document: document.pop("parts")), "it lacks a field"),
        (lambda document: document.update(format="other"), "no result of format"),
    ],
)
def test_a_tampered_file_is_refused_and_nothing_is_taken(
    alter: Callable[[dict[str, Any]], None], said: str, h200: DataDirectory, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(H200 / "repeat1", folder)
    file = sorted(folder.glob("*.json"))[0]
    document = json.loads(file.read_text())
    alter(document)
    file.write_text(json.dumps(document))
    with pytest.raises(CheckFailure, match=said):
        import_reruns(h200, folder, quiet)
    assert len(list(h200.snapshots.iterdir())) == 5


@pytest.mark.parametrize(
    ("put", "why"),
    [
        (os.mkfifo, "it is no plain file"),
        (Path.mkdir, "it is no plain file"),
        (lambda path: path.symlink_to("nowhere"), "No such file or directory"),
    ],
    ids=["pipe", "folder", "link to nothing"],
)
def test_what_is_no_file_is_refused(tmp_path: Path, put: Callable[[Path], None], why: str) -> None:
    put(tmp_path / "result.json")
    with pytest.raises(CheckFailure, match=rf"^{tmp_path}/result.json cannot be read \({why}\): put the result there"):
        read_results(tmp_path)


@pytest.mark.parametrize("folder", [VERDICTS / "results", H200 / "repeat1"], ids=["verdicts", "h200"])
def test_whatever_a_field_is_put_to_a_result_is_read_or_refused_in_one_sentence(folder: Path) -> None:
    path = result_files(folder)[0]
    refused = 0
    for _, document in altered(json.loads(path.read_text())):
        resealed(lambda _: None)(document)
        try:
            read_result(*parse_result(json.dumps(document)))
        except (ResultError, HeldBackError):
            refused += 1
    assert refused > 100


def rejobbed(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """A change of the job by somebody who makes every digest again, as the runner of an edited job would."""

    @wraps(change)
    def alter(document: dict[str, Any]) -> None:
        job = json.loads(document["job"])
        change(job)
        document["job"] = json.dumps(job)
        document["parts"]["job"] = sha256_of(document["job"].encode())

    return resealed(alter)


def easier_reference(job: dict[str, Any]) -> None:
    job["definition"]["reference"] = job["definition"]["reference"].replace("return", "return 0 *")


def easier_tolerance(job: dict[str, Any]) -> None:
    job["workload_record"]["tolerance"] = {"required_matched_ratio": 0.0}


def other_axes(job: dict[str, Any]) -> None:
    job["axes"] = dict.fromkeys(job["axes"], 1)


def other_entry(job: dict[str, Any]) -> None:
    job["solution"]["spec"]["entry_point"] += "_fast"


def other_helper(job: dict[str, Any]) -> None:
    job["solution"]["sources"].append({"path": "helper.py", "content": "fast = True"})
    job["sources"]["helper.py"] = sha256_of(b"fast = True")


def other_tensor_file(job: dict[str, Any]) -> None:
    job["tensor_files"] = {"./blob/x.safetensors": "sha256:" + "0" * 64}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (easier_reference, "carries a definition that is not the one"),
        (easier_tolerance, "carries a workload that is not the one"),
        (other_axes, "its axes are not those of its workload"),
        (other_entry, "carries a solution that is not the one"),
        (other_helper, "carries a solution that is not the one"),
        (other_tensor_file, "carries a tensor file that is not the one"),
    ],
)
def test_the_result_of_an_edited_job_is_refused(
    change: Callable[[dict[str, Any]], None], said: str, fixtures: DataDirectory, tmp_path: Path
) -> None:
    document = json.loads(result_files(VERDICTS / "results")[0].read_text())
    rejobbed(change)(document)
    (tmp_path / "result.json").write_text(json.dumps(document))
    with pytest.raises(CheckFailure, match=said):
        import_reruns(fixtures, tmp_path, quiet)


def test_what_a_killed_runner_left_half_written_is_passed_over(fixtures: DataDirectory, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(VERDICTS / "results", folder)
    (folder / ".tmp-0.json").write_text('{"format"')
    report, verdicts = import_reruns(fixtures, folder, quiet)
    assert (report.new_snapshot, len(verdicts)) == (False, 6)


def of_another_verifier(folder: Path, target: Path, **identity: str) -> None:
    """Write the results of a folder as another verifier would have sealed them: other host, other GPU, a day later."""
    target.mkdir()
    for job, result in read_results(folder):
        findings = {name: value for name, value in result.items() if name not in SEALED}
        findings["identity"] = result["identity"] | {name: sha256_of(text.encode()) for name, text in identity.items()}
        findings["observed_at"] = "2026-12-01T12:00:00.000Z"
        (target / f"{job.short}.json").write_text(json.dumps(seal(job, findings)))


SEALED = ("format", "job", "nonce", "parts", "digest")


@pytest.mark.parametrize(
    ("identity", "level"),
    [
        ({"host": "another host", "gpu": "another GPU"}, "Replicated"),
        ({"host": "another host"}, "Verified"),
        ({"gpu": "another GPU"}, "Verified"),
    ],
    ids=["other-verifier", "same-gpu", "same-host"],
)
def test_two_verifiers_who_agree_make_a_run_replicated(
    identity: dict[str, str], level: str, own: DataDirectory, tmp_path: Path
) -> None:
    of_another_verifier(H200 / "reruns", tmp_path / "other", **identity)
    import_reruns(own, tmp_path / "other", quiet)
    with closing(connect(own.database)) as connection:
        rows = connection.execute(
            "SELECT target_run_digest, list(run_digest) FROM reruns WHERE passed GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert [check for check in verify(connection, own, quiet) if not check.ok] == []
    assert [len(reruns) for _, reruns in rows] == [2, 2, 2]
    for target, reruns in rows:
        for run in (target, *reruns):
            shown = CliRunner().invoke(main, ["show", run, "--data", str(own.root)])
            assert f"  {level} · " in shown.output
            assert shown.output.count("  Rerun sha256:") == (2 if run == target else 0)
            assert shown.output.count("  Controlled rerun of ") == (0 if run == target else 1)
    failed = CliRunner().invoke(main, ["show", "mm_fp4_nvfp4_cudnn_n4096_k4096", "--data", str(own.root)])
    assert "Reported" in failed.output


def test_a_baseline_that_was_rerun_is_still_that_of_its_trace_set(h200: DataDirectory) -> None:
    for name in ("softmax_bf16_n8192", "rmsnorm_bf16_h4096"):
        shown = CliRunner().invoke(main, ["show", name, "--data", str(h200.root)])
        assert "FlashInfer-Bench baselines" in shown.output
        assert "rerun baselines" not in shown.output


def test_results_of_an_unknown_trace_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckFailure, match="first ingest the trace set"):
        imported(tmp_path / "data", "sample", VERDICTS / "results")


def test_an_empty_folder_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="holds no result"):
        imported(tmp_path / "data", "sample", tmp_path / "empty")


CAUGHT_ON_THE_H200 = {
    "cached_by_pointer": "STALE_OUTPUT",
    "cached_output": "STALE_OUTPUT",
    "calls_home": "NETWORK_ACCESS",
    "endless_loop": "TIMEOUT",
    "freed_memory": "OUTPUT_NOT_WRITTEN",
    "late_thread": "THREAD_LEFT_RUNNING",
    "lazy_tensor": "NOT_A_PLAIN_TENSOR",
    "left_behind": "PROCESS_LEFT_BEHIND",
    "memory_hog": "MEMORY_LIMIT",
    "mutated_input": "INPUT_MUTATED",
    "patched_clock": "HARNESS_TAMPERED",
    "patched_event": "HARNESS_TAMPERED",
    "patched_event_method": "HARNESS_TAMPERED",
    "persisting_l2": "DEVICE_SETUP_CHANGED",
    "same_buffer": "OUTPUT_ALIASES",
    "side_stream": "STALE_OUTPUT",
    "skips_after_warm_up": "WRONG_AFTER_WARM_UP",
    "view_of_input": "OUTPUT_ALIASES",
    "writes_outside": "WRITE_OUTSIDE_SCRATCH",
    "zeros": "NUMERICAL_MISMATCH",
}


def test_every_cheat_was_caught_on_the_h200_and_the_honest_one_passed() -> None:
    found = {}
    for job, result in read_results(H200 / "cheats"):
        codes = {violation["code"] for violation in result["violations"]}
        codes |= {result["cause"]["code"]} if result["cause"] else set()
        found[job.document["solution"]["name"]] = (codes, result["measurement"] is None)
    codes, untimed = found.pop("honest")
    assert (codes, untimed) == (set(), False)
    assert {name: codes - {"TIMERS_DISAGREE"} or codes for name, (codes, _) in found.items()} == {
        name: {code} for name, code in CAUGHT_ON_THE_H200.items()
    }
    assert all(untimed for _, untimed in found.values())
