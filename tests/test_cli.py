from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from pipeline import __version__
from pipeline.cli import WithExample, main
from pipeline.sources.hub import JOBS
from pipeline.store.tables import TABLES
from tests.conftest import House
from tests.fake_hub.server import REPOSITORY, FakeHub, Fault
from tests.fake_hub.sets import sample_files
from tests.query.warehouse_fixture import GEMM, GROUPED, UNMEASURED
from tests.trace_set import tree

COMMANDS = sorted(main.commands)
ROOT = Path(__file__).parents[1]
KERNELHOUSE = [sys.executable, "-m", "pipeline"]

Run = Callable[..., Result]


@pytest.fixture
def run(house: House, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line on the small house."""
    monkeypatch.delenv("KERNELHOUSE_DEBUG", raising=False)
    monkeypatch.setenv("KERNELHOUSE_DATA", str(house.data.root))

    def invoke(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, arguments, input=stdin, prog_name="kernelhouse")

    return invoke


def lines_of_failure(result: Result, status: int = 2) -> str:
    """Return the one line that a failed command says."""
    assert result.exit_code == status
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("kernelhouse: ")
    return line


# Help and documentation


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example_and_its_json(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "JSON: {schema_version" in result.stdout
    assert "--json" in result.stdout
    example = result.stdout.split("Example:\n")[1].splitlines()
    assert any(line.startswith(f"  kernelhouse {name}") for line in example)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name: str) -> None:
    readme = ROOT / "README.md"
    if not readme.is_file():
        pytest.skip("an sdist without its README")
    assert f"kernelhouse {name}" in readme.read_text(encoding="utf-8")


def test_help_needs_no_heavy_library() -> None:
    heavy = ("duckdb", "polars", "pyarrow", "pydantic", "rich")
    script = (
        "import sys; from pipeline.cli import main\n"
        "try: main(['sql', '--help'])\n"
        f"except SystemExit: print([name for name in {heavy} if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "[]"


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"kernelhouse {__version__}\n"


def test_examples_of_questions_work_on_the_sample(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["--data", str(tmp_path), "ingest", "sample"]).exit_code == 0
    asked = 0
    for name in ("leaderboard", "records", "show", "sql"):
        command = main.commands[name]
        assert isinstance(command, WithExample)
        for line in command.example:
            if "--file" not in line:
                arguments = [word.strip('"') for word in _words(line)[1:]]
                result = CliRunner().invoke(main, ["--data", str(tmp_path), *arguments])
                assert (result.exit_code, result.stderr) == (0, "")
                asked += 1
    assert asked >= 4


def _words(line: str) -> list[str]:
    return shlex.split(line)


# The sample against the public pages


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("sample")
    result = CliRunner().invoke(main, ["ingest", "--data", str(data), "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)["report"]
    assert report["published"] is True
    assert report["records"] == report["added"] == 49
    return data


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            GROUPED,
            [
                "Grouped GEMM FP8 fp4 m masked g4 n2048 k2048",
                "gemm · 2 eligible runs",
                "expected_m  int32     scalar",
                "a_scale     fp32      [g, max_m, k_a_blocks]",
                "k_a_blocks   constant = 16",
                "max_m        variable",
                "No mutation or aliasing",
                "sha256:67a497131590",
                "Source-native comparison · GPU NVIDIA B200 · Workload max_m = 512 · fp32/fp8_e4m3 · CUDA 13.0 · "
                "Framework pytorch 2.11.0+cu130 · Protocol flashinfer-bench · mean · 2 results · "
                "last observed 2026-06-06",
                "Source baseline · unbeaten",
                "Estimated floor 1.85 µs · record 79.54× above it",
                "DRAM 1.85 µs · compute 477 ns · bandwidth-bound on B200",
                "every declared tensor crosses HBM exactly once (8,000 GB/s, B200 datasheet)",
                "2·M·N·K with M=512, N=1024, K=2048 at the dense fp8 peak (4,500 TFLOP/s)",
                "147.3 µs  1.00×  Reported",
                "153.2 µs  1.04×  Reported",
                "FlashInfer-Bench (2026-06-06) · Apache-2.0",
            ],
        ),
        (
            "sparse_gemm_nvfp4_n2048_k2048",
            [
                "Sparse GEMM NVFP4 n2048 k2048",
                "Workload m = 64 · int8 · CUDA 13.0",
                "1 result · last observed 2026-06-06",
                "Estimated floor 304 ns · record 5063.3× above it",
                "DRAM 304 ns · bandwidth-bound on B200",
                "1.54 ms  1.00×",
                "cuda_sparse_nvfp4_naive_n2048_k2048 (baseline)",
                "sha256:5ccea92f1de0",
            ],
        ),
    ],
)
def test_a_leaderboard_states_what_its_page_states(sample: Path, name: str, expected: list[str]) -> None:
    output = CliRunner().invoke(main, ["leaderboard", name, "--data", str(sample)]).stdout
    assert [line for line in expected if line not in output] == []


def test_a_run_states_what_its_page_states(sample: Path) -> None:
    query = "SELECT run_digest FROM runs WHERE benchmark = 'gemm_nvfp4_n4096_k4096'"
    [[digest]] = duckdb.connect(str(sample / "warehouse.duckdb"), read_only=True).execute(query).fetchall()
    output = CliRunner().invoke(main, ["show", digest[:15], "--data", str(sample)]).stdout
    flat = " ".join(output.split())
    expected = [
        "137.3 µs mean",
        "in its comparison group · source-native comparison · observed 2026-06-06",
        "9.74× reference",
        "implementation mm_fp4_nvfp4_cudnn_n4096_k4096",
        "project FlashInfer-Bench baselines",
        "workload m = 1024 · int8",
        "comparison key sha256:591c3fc4454e829574e6f2565623d5a108451021a8fe8f22b160a4ace6f9f747",
        "comparator flashinfer_bench_eval max absolute error 0 max relative error 0 result passed",
        "a_fp4 int8 [1024, 2048]",
        "b_scale int8 [4096, 256]",
        "definition comparator sol_execbench_eval",
        "latency · mean 137.3 µs",
        "harness flashinfer-bench",
        "timer harness_reported",
        "primaryStatistic mean",
        "correctnessReference definition reference implementation",
        "comparabilityFamily flashinfer_bench_trace",
        "gpu NVIDIA B200 (unknown) cudaToolkit 13.0 framework pytorch 2.11.0+cu130",
        "No artifacts published with this run.",
        '"kind": "BenchmarkRun"',
        '"kind": "BenchmarkProtocol"',
        '"kind": "ExecutionEnvironment"',
        '"reference_latency_ms": 1.337605',
    ]
    assert [line for line in expected if line not in flat] == []


# Answers


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["leaderboard", GROUPED],
        ["leaderboard", GEMM, "--axes", "M=64", "--gpu", "b200", "--limit", "1"],
        ["leaderboard", UNMEASURED],
        ["records"],
        ["records", GEMM, "--limit", "1"],
        ["records", UNMEASURED],
        ["show", GEMM],
        ["show", "cublas_n128"],
        ["show", "83c9b6e7"],
        ["sql", "SELECT 1"],
        ["verify"],
    ],
)
def test_every_answer_is_text_or_one_json_document(run: Run, arguments: list[str]) -> None:
    text, document = run(*arguments), run(*arguments, "--json")
    assert (text.exit_code, document.exit_code) == (0, 0)
    assert json.loads(document.stdout)["schema_version"] == 1
    assert text.stdout.strip()
    assert "\x1b" not in text.stdout + document.stdout
    assert "\u202e" not in text.stdout + document.stdout
    assert text.stderr == document.stderr == ""


@pytest.mark.parametrize("arguments", [["--json", "records"], ["records", "--json"]])
def test_json_may_stand_before_or_after_the_command(run: Run, arguments: list[str]) -> None:
    assert len(json.loads(run(*arguments).stdout)["records"]) == 6


@pytest.mark.parametrize("arguments", [["--data", "DIR", "status"], ["status", "--data", "DIR"]])
def test_the_option_wins_over_the_environment(
    house: House, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("KERNELHOUSE_DATA", "/nowhere")
    given = [str(house.data.root) if word == "DIR" else word for word in arguments]
    assert CliRunner().invoke(main, given).exit_code == 0


def test_without_option_and_environment_it_is_the_folder_data(
    own_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELHOUSE_DATA", raising=False)
    monkeypatch.chdir(own_house.data.root.parent)
    assert CliRunner().invoke(main, ["status"]).exit_code == 0


def test_a_beaten_baseline_and_a_hostile_name(run: Run) -> None:
    output = run("leaderboard", GEMM, "--axes", "m=64", "--gpu", "B200").stdout
    assert "Source baseline · beaten by 2.00× · baseline 20.0 µs" in output
    assert "evil\\x1b[31m\\u202ekernel" in output
    assert "Not ranked: 1 MISSING_PRIMARY_METRIC, 1 STATUS_RUNTIME_ERROR" in output


def test_axes_given_twice_are_all_meant(run: Run) -> None:
    twice = run("leaderboard", GEMM, "--axes", "m=64", "--axes", "m=64", "--json")
    assert twice.exit_code == 0
    assert twice.stdout == run("leaderboard", GEMM, "--axes", "m=64", "--json").stdout


@pytest.mark.parametrize("arguments", [["records"], ["leaderboard", GEMM]])
def test_a_limit_beyond_64_bits_leaves_nothing_out(run: Run, arguments: list[str]) -> None:
    limited = run(*arguments, "--json", "--limit", "9" * 20)
    assert limited.exit_code == 0
    assert limited.stdout == run(*arguments, "--json").stdout


def test_limit_tells_what_it_leaves_out(run: Run) -> None:
    assert "... and 1 more result" in run("leaderboard", GROUPED, "--limit", "1").stdout


@pytest.mark.parametrize(
    ("arguments", "groups", "left_out"),
    [
        ([], 2, ["2 of 4 comparison groups shown", "... and 1 more result"]),
        (["--limit", "2"], 2, ["2 of 4 comparison groups shown"]),
        (["--axes", "m=1024"], 1, []),
        (["--gpu", "H100"], 1, []),
        (["--all"], 4, []),
        (["--all", "--limit", "1"], 4, ["Only the first results", "... and 1 more result"]),
    ],
)
def test_a_leaderboard_tells_what_it_leaves_out(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], groups: int, left_out: list[str]
) -> None:
    monkeypatch.setattr("pipeline.cli.SHOWN_COHORTS", 2)
    monkeypatch.setattr("pipeline.cli.SHOWN_RESULTS", 1)
    output = run("leaderboard", GEMM, *arguments).stdout
    assert output.count("Source-native comparison") == groups
    said = ("2 of 4 comparison groups shown", "Only the first results", "... and 1 more result")
    assert [each for each in said if each in output] == left_out


def test_a_dossier_tells_what_it_leaves_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.cli.SHOWN_RUNS", 2)
    short, whole = run("show", "cublas_n128").stdout, run("show", "cublas_n128", "--all").stdout
    assert "\n3 runs\n" in short
    assert "\n3 runs\n" in whole
    assert "2 of 3 runs shown, the newest; --all for all" in short
    assert "runs shown" not in whole


@pytest.mark.parametrize("arguments", [["leaderboard", GEMM], ["show", "cublas_n128"]])
def test_json_leaves_nothing_out(run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    whole = run(*arguments, "--all", "--json").stdout
    for limit in ("SHOWN_COHORTS", "SHOWN_RESULTS", "SHOWN_RUNS"):
        monkeypatch.setattr(f"pipeline.cli.{limit}", 1)
    assert run(*arguments, "--json").stdout == whole


def test_a_failed_run_tells_why_it_is_not_ranked(run: Run, house: House) -> None:
    output = run("show", house.digests["failed"]).stdout
    assert "Not ranked in its comparison group" in output
    assert "Not eligible: " in output
    assert house.digests["log"] in output


# sql


def test_sql_shows_every_result_as_a_table(run: Run) -> None:
    assert run("sql", "SELECT 1 AS a; SELECT 'x' AS b, NULL AS c").stdout == "a\n1\n\nb  c\nx  NULL\n"


@pytest.mark.parametrize("arguments", [["--json"], ["--format", "json"]])
def test_sql_answers_in_json_with_its_last_result(run: Run, arguments: list[str]) -> None:
    answer = json.loads(run("sql", "SELECT 1; SELECT 'nan'::DOUBLE AS x", *arguments).stdout)
    assert (answer["columns"], answer["rows"]) == ([{"name": "x", "type": "DOUBLE"}], [{"x": "NaN"}])


@pytest.mark.parametrize("query", ["-- why\nSELECT 1 AS a", "--a = b\nSELECT 1 AS a", "-- b = c\n\nSELECT 1 AS a"])
def test_sql_may_begin_with_a_comment(run: Run, query: str) -> None:
    assert run("sql", query, "--format=csv").stdout == "a\n1\n"


def test_json_of_no_rows_and_of_many_is_one_document(run: Run) -> None:
    for amount in (0, 1, 3):
        answer = run("sql", f"SELECT NULL AS a, [range] AS b FROM range({amount})", "--json").stdout
        columns = [{"name": "a", "type": '"NULL"'}, {"name": "b", "type": "BIGINT[]"}]
        rows = [{"a": None, "b": [number]} for number in range(amount)]
        document = {"schema_version": 1, "columns": columns, "rows": rows}
        assert answer == json.dumps(document, indent=2) + "\n"


def test_a_plan_is_a_drawing(run: Run) -> None:
    drawn = run("sql", "EXPLAIN SELECT 42 AS answer").stdout
    assert "Projection" in drawn
    assert "\\x0a" not in drawn
    assert len(drawn.splitlines()) > 3


def test_a_table_that_is_too_long_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.render.sql.MOST_CHARACTERS", 10)
    assert run("sql", "SELECT 1 AS a FROM range(10)").exit_code == 0
    assert "--format csv" in lines_of_failure(run("sql", "SELECT 1 AS a FROM range(11)"))


def test_sql_answers_in_csv(run: Run) -> None:
    assert run("sql", "SELECT 1 AS a, 'b,c' AS d", "--format", "csv").stdout == 'a,d\n1,"b,c"\n'


def test_sql_writes_the_last_result_of_a_script(run: Run, tmp_path: Path) -> None:
    script = "CREATE TEMP TABLE t AS SELECT 7 AS a; SELECT 1; SELECT a FROM t"
    assert run("sql", script, "--out", str(tmp_path / "out.parquet")).exit_code == 0
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"a": 7}]


@pytest.mark.parametrize("arguments", [[], ["--file", "-"]])
def test_sql_reads_a_script_from_stdin(run: Run, arguments: list[str]) -> None:
    assert run("sql", *arguments, stdin="SELECT\n 1 AS a;\n").stdout == "a\n1\n"


def test_sql_reads_and_writes_files(run: Run, tmp_path: Path) -> None:
    script, out = tmp_path / "query.sql", tmp_path / "out.parquet"
    script.write_text("SELECT rank FROM leaderboard WHERE profile = 'source_native'")
    answer = json.loads(run("sql", "--file", str(script), "--out", str(out), "--json").stdout)
    assert (answer["rows"], answer["format"], answer["bytes"]) == (6, "parquet", out.stat().st_size)
    assert pq.read_table(out).num_rows == 6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["SELECT 1", "--file", "x"], "not both"),
        (["--file", "missing.sql"], "there is no file missing.sql"),
        (["SELECT 1", "--format", "parquet"], "add --out"),
        (["SELECT 1", "--out", "x"], "add --format"),
        (["SELECT 1", "--json", "--format", "csv"], "contradict"),
        (["SELECT * FROM read_csv('/etc/passwd')"], "disabled by configuration"),
        (["SELECT 1", "--out", "missing/x.csv"], "does not exist"),
        (["SELECT '\x1b[31m'::INTEGER"], "\\x1b[31m"),
    ],
)
def test_sql_refuses_in_one_line(run: Run, arguments: list[str], sentence: str) -> None:
    assert sentence in lines_of_failure(run("sql", *arguments))


# digest


def test_digest_of_a_manifest(run: Run, sample: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "environment.json"
    with duckdb.connect(str(sample / "warehouse.duckdb"), read_only=True) as connection:
        [[text]] = connection.execute("SELECT manifest FROM environments WHERE hardware = 'NVIDIA B200'").fetchall()
    manifest.write_text(json.dumps(json.loads(text), indent=4))
    digest = "sha256:83c9b6e78d493927f18878d57448d9a0d2221a70840b562455b2665a2897ba19"
    assert run("digest", str(manifest)).stdout == f"{digest}\n"
    assert run("digest", "-", stdin=text).stdout == f"{digest}\n"
    answer = json.loads(run("digest", str(manifest), "--json").stdout)
    assert (answer["digest"], answer["kind"]) == (digest, "ExecutionEnvironment")


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1, "a": 2}', '{"kind": "Nothing"}', "NaN"])
def test_digest_refuses_what_is_no_manifest(run: Run, text: str) -> None:
    assert lines_of_failure(run("digest", "-", stdin=text)).startswith("kernelhouse: -: ")


# Failures


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "No such command"),
        (["statu"], "Did you mean 'status'"),
        (["sql", "--nonsense"], "kernelhouse sql --help"),
        (["leaderboard"], "Missing argument"),
        (["leaderboard", "gemm_n128_k204"], f"did you mean {GEMM}"),
        (["leaderboard", GEMM, "--axes", "m"], "write it as m=1024,n=2048"),
        (["leaderboard", GEMM, "--axes", "m=1,m=2"], "two values"),
        (["leaderboard", GEMM, "--axes", "m=-1"], "write it as"),
        (["leaderboard", GEMM, "--axes", ""], "write it as"),
        (["leaderboard", GEMM, "--axes", "m=1,"], "write it as"),
        (["leaderboard", GEMM, "--axes", "m=" + "9" * 5000], "write it as"),
        (["leaderboard", GEMM, "--axes", "m=1", "--axes", "M=2"], "two values"),
        (["show", "gemm\udcff"], "an argument is not UTF-8 text: b'gemm\\xff'"),
        (["sql", "SELECT '\udcff'"], "is not UTF-8"),
        (["export", "runs", "--out", "x\udcff"], "is not UTF-8"),
        (["rerun", "plan", "--records", "--out", "x", "--run-seconds", "9" * 20], "--run-seconds"),
        (["leaderboard", GEMM, "--gpu", "B300"], "not measured on"),
        (["leaderboard", GEMM, "--profile", "fastest"], "it has source_native"),
        (["leaderboard", GEMM, "--limit", "0"], "--limit"),
        (["records", "gemm_n1"], "did you mean"),
        (["show", "deadbeef"], "SELECT run_digest FROM runs"),
        (["show", "bad\x1b[31m\nname"], "bad\\x1b[31m name"),
        (["export", "leaderbord", "--out", "x"], "did you mean leaderboard"),
        (["export", "leaderboard"], "Missing option"),
        (["digest", "missing.json"], "there is no file missing.json"),
        (["status", "--data", "/nowhere"], "run kernelhouse ingest first"),
        (["ingest", "/nowhere"], "/nowhere"),
        (["ingest", "~nobody-of-that-name"], "no folder ~nobody-of-that-name"),
        (["status", "--data", "s3://bucket/x"], "s3://bucket/x is no folder of this machine"),
        (["ingest", "--data", "md:x"], "or write ./md:x if it is"),
    ],
)
def test_a_failure_is_one_line_that_says_what_to_do(run: Run, arguments: list[str], sentence: str) -> None:
    assert sentence in lines_of_failure(run(*arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "runs", "--out", "corrections.toml"],
        ["sql", "SELECT 1", "--out", "dagster/x.csv"],
        ["rerun", "plan", "--records", "--out", "snapshots"],
        ["rerun", "run", ".", "--allow-code", "--out", "tables/commits"],
        ["rerun", "import", ".", "--traces", "format.json"],
    ],
)
def test_nothing_is_written_to_what_a_data_directory_consists_of(
    own_house: House, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(own_house.data.root)
    before = tree(own_house.data.root)
    result = CliRunner().invoke(main, ["--data", ".", *arguments])
    assert "belongs to the data directory" in lines_of_failure(result)
    assert tree(own_house.data.root) == before


READING = [
    ["status"],
    ["changes"],
    ["sql", "SELECT 1"],
    ["leaderboard", GEMM],
    ["records"],
    ["floors"],
    ["show", GEMM],
    ["verify"],
    ["export", "runs", "--out", "runs.parquet"],
    ["rerun", "plan", "--records", "--out", "jobs"],
]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [('{"format": 99}', "has format 99 and this kernelhouse knows 1: upgrade kernelhouse"), ("{", "is damaged")],
)
def test_every_command_refuses_a_directory_of_another_format(
    own_house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    own_house.data.format_file.write_text(content)
    said = {
        lines_of_failure(CliRunner().invoke(main, ["--data", "data", *arguments]))
        for arguments in (["ingest"], ["ingest", "--dry-run"], *READING)
    }
    [line] = said
    assert sentence in line
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_every_command_refuses_a_warehouse_of_another_policy(
    own_house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(own_house.data.database)) as writer:
        writer.execute("UPDATE meta SET value = 'another' WHERE key = 'policy_digest'")
    said = {lines_of_failure(CliRunner().invoke(main, ["--data", "data", *arguments])) for arguments in READING}
    where = own_house.data.database
    assert said == {f"kernelhouse: {where} follows another version's policy: run kernelhouse ingest --rebuild"}


@pytest.mark.parametrize("name", ["~", "a*b", "[x]", "s3:x", "a'b"])
def test_a_data_directory_may_have_any_name_that_duckdb_would_interpret(
    own_house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    own_house.data.root.rename(tmp_path / name)
    for arguments in (["status"], ["changes"], ["verify"]):
        result = CliRunner().invoke(main, ["--data", f"./{name}", *arguments])
        assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("out", ["-", "pipe", "/dev/null"])
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["export", "runs", "--out"], "plain file"),
        (["sql", "SELECT 1", "--format", "csv", "--out"], "plain file"),
        (["rerun", "plan", "--records", "--out"], "folder"),
        (["rerun", "run", ".", "--allow-code", "--out"], "folder"),
        (["rerun", "import", ".", "--traces"], "plain file"),
    ],
)
def test_what_is_no_place_for_output_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], place: str, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    why = "place for files, which are written whole or not at all: name" if out == "-" else f"{place}: name another"
    assert lines_of_failure(run(*arguments, out)) == f"kernelhouse: {out} is no {why} one"
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_failed_check_is_status_1_and_names_the_row(own_house: House) -> None:
    with duckdb.connect(str(own_house.data.database)) as writer:
        writer.execute("DELETE FROM protocols")
    arguments = ["--data", str(own_house.data.root), "verify"]
    result, document = CliRunner().invoke(main, arguments), CliRunner().invoke(main, [*arguments, "--json"])
    assert (result.exit_code, document.exit_code) == (1, 1)
    assert "FAILED  references" in result.stdout
    assert "runs.protocol_digest sha256:7d44d206" in result.stdout
    assert result.stderr.startswith("kernelhouse: verify failed in references")
    answer = json.loads(document.stdout)
    assert answer["ok"] is False
    assert [check["name"] for check in answer["checks"] if not check["ok"]] == ["references", "recomputation"]


def test_a_fault_of_the_program_is_one_line_unless_debugging(own_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect(str(own_house.data.database)) as writer:
        writer.execute("DROP TABLE drift")
    arguments = ["--data", str(own_house.data.root), "status"]
    monkeypatch.delenv("KERNELHOUSE_DEBUG", raising=False)
    line = lines_of_failure(CliRunner().invoke(main, arguments))
    assert "internal error: CatalogException" in line
    assert "KERNELHOUSE_DEBUG" in line
    monkeypatch.setenv("KERNELHOUSE_DEBUG", "1")
    assert isinstance(CliRunner().invoke(main, arguments).exception, duckdb.CatalogException)


# Real processes


def environment(house: House, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**kept, "KERNELHOUSE_DATA": str(house.data.root), "PYTHONPATH": str(ROOT), **more}


def test_a_closed_pipe_ends_silently(house: House) -> None:
    query = "SELECT range FROM range(1000000)"
    process = subprocess.Popen(
        [*KERNELHOUSE, "sql", query, "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(house),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"range\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_the_output_does_not_replace_what_stdout_is_redirected_to(house: House, tmp_path: Path) -> None:
    with (tmp_path / "out.parquet").open("w") as stdout:
        done = subprocess.run(
            [*KERNELHOUSE, "export", "runs", "--out", "/dev/stdout"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(house),
            check=False,
        )
        assert os.path.samestat(os.fstat(stdout.fileno()), (tmp_path / "out.parquet").stat())
    assert done.returncode == 2
    assert done.stderr.startswith("kernelhouse: /dev/stdout is open in this command already, as stdout may be: name a")
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_answer_that_finds_no_room_is_told(house: House) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*KERNELHOUSE, "sql", "SELECT 1"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(house)
        )
    said = "kernelhouse: stdout cannot be used (No space left on device): free disk space\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("status >&-", 2, b"kernelhouse: stdout is closed: send the answer to a file, or to /dev/null\n"),
        ("--help >&-", 2, b"kernelhouse: stdout is closed: send the answer to a file, or to /dev/null\n"),
        ("status >&- 2>&-", 2, b""),
        ("status 2>&- >/dev/null", 0, b""),
        ("show nothing 2>&-", 2, b""),
        ("sql --json <&-", 2, b"kernelhouse: there is no SQL statement to run\n"),
    ],
)
def test_closed_streams(house: House, command: str, status: int, said: bytes) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join(KERNELHOUSE)} {command}"], capture_output=True, env=environment(house)
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", said)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory holds on Linux alone")
@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("SELECT repeat('x', 1000000000)", ["--format", "csv"]),
        ("SELECT repeat('x', 1000000000)", ["--format", "parquet", "--out", "out"]),
        ("SELECT list(a.range) FROM range(1000000) a, range(1000) b", ["--json"]),
    ],
)
def test_a_result_that_does_not_fit_into_memory_is_one_sentence(
    house: House, tmp_path: Path, query: str, arguments: list[str]
) -> None:
    limited = f"ulimit -v 1500000; exec {shlex.join([*KERNELHOUSE, 'sql', query, *arguments])}"
    done = subprocess.run(["/bin/sh", "-c", limited], capture_output=True, env=environment(house), cwd=tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert done.stderr.startswith(b"kernelhouse: the result does not fit into memory: ")
    assert list(tmp_path.iterdir()) == []


def assert_ctrl_c_ends(process: subprocess.Popen[bytes], *, within_s: float) -> None:
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=within_s)
    finally:
        process.kill()
    assert said == b"kernelhouse: interrupted\n"
    assert process.returncode == 130


def test_ctrl_c_ends_with_one_line(house: House) -> None:
    # The first statement's table on stdout tells that the second one runs, or is about to.
    query = "SELECT 'started'; SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    process = subprocess.Popen(
        [*KERNELHOUSE, "sql", query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(house)
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"'started'\n"
    assert process.stdout.readline() == b"started\n"
    assert_ctrl_c_ends(process, within_s=60)


def test_ctrl_c_ends_a_pull_that_waits(tmp_path: Path) -> None:
    all_wait = threading.Event()
    asked: list[str] = []

    def busy(target: str, on_files: bool) -> Fault | None:
        if not on_files:
            return None
        asked.append(target)
        if len(asked) < JOBS:
            return Fault.ERROR_503
        all_wait.set()
        return Fault.RETRY_AFTER

    with FakeHub(chance=busy) as hub:
        hub.commit(sample_files())
        process = subprocess.Popen(
            [*KERNELHOUSE, "--data", str(tmp_path), "ingest", f"hub:{REPOSITORY}", "--endpoint", hub.endpoint],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert all_wait.wait(60)
        assert_ctrl_c_ends(process, within_s=20)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_fits_the_encoding(house: House, encoding: str) -> None:
    output = subprocess.run(
        [*KERNELHOUSE, "leaderboard", GROUPED],
        capture_output=True,
        check=True,
        env=environment(house, PYTHONIOENCODING=encoding, PYTHONUTF8="0"),
    ).stdout.decode(encoding)
    assert {"ascii": "147.3 us  1.00x", "latin-1": "147.3 µs  1.00×", "utf-8": "147.3 µs  1.00×"}[encoding] in output


@pytest.mark.parametrize(
    ("format_name", "expected"), [("csv", "a\nµ×漢\n".encode()), ("table", b"a\n\\xb5\\xd7\\u6f22\n")]
)
def test_no_encoding_alters_data(house: House, format_name: str, expected: bytes) -> None:
    output = subprocess.run(
        [*KERNELHOUSE, "sql", "SELECT 'µ×漢' AS a", "--format", format_name],
        capture_output=True,
        check=True,
        env=environment(house, PYTHONIOENCODING="ascii"),
    ).stdout
    assert output == expected


def on_a_terminal(arguments: list[str], env: dict[str, str], typed: bytes = b"") -> tuple[int, str]:
    """Run a command on a pseudo-terminal and return its status and what the terminal shows."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.ONLCR
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        [*KERNELHOUSE, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    return process.wait(), shown.decode()


@pytest.mark.parametrize(
    "arguments", [["leaderboard", GROUPED], ["records"], ["status"], ["verify"], ["show", "cublas_n128"]]
)
def test_a_narrow_terminal_stays_readable(house: House, arguments: list[str]) -> None:
    status, shown = on_a_terminal(arguments, environment(house, COLUMNS="40", NO_COLOR="1", TERM="xterm"))
    assert status == 0
    shown = shown.split("Canonical manifest")[0]
    # A word that is longer than the line stays whole; nothing else leaves the line.
    over = [line for line in shown.splitlines() if len(line) > 40 and len(line.split()) > 1]
    assert [line for line in over if "\x1b" not in line] == []


def test_a_terminal_gets_bold_headings_and_a_pipe_does_not(house: House, run: Run) -> None:
    _, shown = on_a_terminal(["status"], environment(house, TERM="xterm", COLUMNS="80"))
    assert "\x1b[1mQuarantine\x1b[0m" in shown
    assert "\nQuarantine\n" in run("status").stdout


def test_the_prompt_answers_and_ends(house: House) -> None:
    typed = b"SELECT 6 *\n7 AS answer;\nSELEC;\n.quit\n"
    status, shown = on_a_terminal(["sql"], environment(house, TERM="dumb"), typed)
    assert status == 0
    assert "answer\n    42\n" in shown
    assert "kernelhouse: Parser Error" in shown


def test_every_table_can_be_asked(run: Run) -> None:
    for declared in TABLES:
        assert run("sql", f"SELECT * FROM {declared.name} LIMIT 1", "--format", "csv").exit_code == 0
