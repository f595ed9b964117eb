from __future__ import annotations

from datetime import datetime

import pytest

from pipeline.render import text as words


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (None, "-"),
        (304, "304 ns"),
        (477.2, "477 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (1851.4, "1.85 µs"),
        (9994, "9.99 µs"),
        (9996, "10.0 µs"),
        (137_343, "137.3 µs"),
        (147_300, "147.3 µs"),
        (999_949, "999.9 µs"),
        (999_960, "1.00 ms"),
        (1_539_891, "1.54 ms"),
        (10_335_408, "10.3 ms"),
        (2_500_000_000, "2.50 s"),
        (7_200_000_000_000, "7200.0 s"),
    ],
)
def test_latency(nanoseconds: float | None, shown: str) -> None:
    assert words.latency(nanoseconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (1.0, "1.00×"), (1.0402, "1.04×"), (9.739133, "9.74×"), (79.5368, "79.54×"), (5063.3, "5063.3×")],
)
def test_ratio(value: float | None, shown: str) -> None:
    assert words.ratio(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "-"), (0.0, "0"), (3.0, "3"), (0.25, "0.25"), (1e-7, "1e-07"), (1e300, "1e+300")]
)
def test_number(value: float | None, shown: str) -> None:
    assert words.number(value) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (15_400, "15 kB"), (999_600, "1.0 MB"), (2_433_024, "2.4 MB")],
)
def test_size(count: int, shown: str) -> None:
    assert words.size(count) == shown


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("gemm_nvfp4_n4096_k4096", "GEMM NVFP4 n4096 k4096"),
        ("sparse_gemm_nvfp4_n2048_k2048", "Sparse GEMM NVFP4 n2048 k2048"),
        ("grouped_gemm_fp8_fp4_m_masked_g4_n2048_k2048", "Grouped GEMM FP8 fp4 m masked g4 n2048 k2048"),
        ("fused_add_rmsnorm_h2048", "Fused add RMSNorm h2048"),
        ("___", "___"),
        ("ünïcode_op", "Ünïcode op"),
    ],
)
def test_title(name: str, title: str) -> None:
    assert words.title(name) == title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("µs × 2, naïve, 核, 😀", "µs × 2, naïve, 核, 😀"),
        ("non\u2011breaking", "non\u2011breaking"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("tab\tline\nend\r", "tab\\x09line\\x0aend\\x0d"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("abc\u202ecba\u2066x", "abc\\u202ecba\\u2066x"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert words.visible(text) == shown


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "1.85 µs · 2.00× 核"),
        ("ascii", "1.85 us | 2.00x \\u6838"),
        ("latin-1", "1.85 us | 2.00x \\u6838"),
    ],
)
def test_encodable(encoding: str, shown: str) -> None:
    assert words.encodable("1.85 µs · 2.00× 核", encoding) == shown


@pytest.mark.parametrize(
    ("summary", "dtypes", "shown"),
    [
        ("max_m = 512", ["fp32", "fp8_e4m3", "int32", "int8"], "max_m = 512 · fp32/fp8_e4m3"),
        ("m = 64", ["int8"], "m = 64 · int8"),
        ("m = 64", ["int32", "int8"], "m = 64 · int32/int8"),
        ("", [], ""),
    ],
)
def test_workload(summary: str, dtypes: list[str], shown: str) -> None:
    assert words.workload(summary, dtypes) == shown


@pytest.mark.parametrize(
    ("level", "license_name", "source", "shown"),
    [
        ("reported", "Apache-2.0", True, "Reported · Apache-2.0 · source"),
        ("reproducible", None, True, "Reproduction-ready · source"),
        ("verified", "MIT", False, "Verified · MIT"),
        ("unheard_of", None, False, "unheard_of"),
    ],
)
def test_trust(level: str, license_name: str | None, source: bool, shown: str) -> None:
    assert words.trust(level, license_name, source) == shown


def test_instants_are_utc() -> None:
    at = datetime.fromisoformat("2026-06-06T21:33:43.574")
    assert (words.day(at), words.moment(at)) == ("2026-06-06", "2026-06-06 21:33:43Z")


def test_what_is_unknown_of_an_environment_is_left_out() -> None:
    assert words.environment({"spec": {"software": {}}}) == []
    assert words.environment({"spec": {"software": {"framework": {"name": "pytorch"}}}}) == ["Framework pytorch"]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("核核", 4), ("e\u0301", 1), ("naïve", 5)])
def test_cells(text: str, columns: int) -> None:
    assert words.cells(text) == columns
