"""Every SQL file keeps the form that a newcomer may rely on."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import duckdb
import pytest

from pipeline.store.database import policy_views, warehouse_folder
from pipeline.store.tables import META, TABLES, table
from tests.warehouse.rows import Bench

POLICIES = sorted(warehouse_folder().glob("*.sql"))
FILLING = [path for path in POLICIES if path not in policy_views().values()]


def _name(path: Path) -> str:
    """Return ``<table>`` or ``<table>.<part>``."""
    return re.fullmatch(r"\d\d_([a-z_]+(\.[a-z0-9_]+)?)\.sql", path.name)[1]  # type: ignore[index]


def _table(path: Path) -> str:
    return _name(path).partition(".")[0]


def test_every_derived_table_has_its_file() -> None:
    derived = {declared.name for declared in TABLES if declared.stage == "derived"} - {META.name}
    assert derived <= {_table(path) for path in FILLING} <= {declared.name for declared in TABLES}


@pytest.mark.parametrize("path", POLICIES, ids=_name)
def test_a_policy_is_one_select_below_its_rule_and_version(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    (statement,) = duckdb.extract_statements(text)
    assert statement.type == duckdb.StatementType.SELECT
    header = text[: re.search(r"^(?!--)", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    assert re.search(r"[a-z]-v\d", header)
    assert "\t" not in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("path", FILLING, ids=_name)
def test_a_policy_makes_exactly_the_declared_columns(path: Path, bench: Bench) -> None:
    declared = {column.name for column in table(_table(path)).columns}
    assert set(bench.columns(_name(path))) == declared


def test_published_peaks_are_frozen(bench: Bench) -> None:
    content = (warehouse_folder() / "peaks" / "published-v1.csv").read_bytes()
    assert hashlib.sha256(content).hexdigest() == "6e0fd9821d003bb01178179126f13a2c75289e39c626bab84565923784588256"
    peaks = {row["match"]: row for row in bench.answer("peaks", {}) if row["peaks"] == "published-v1"}
    assert len(peaks) == 15
    values = ("label", "hbm_gb_s", "fp4_tflops", "fp8_tflops", "bf16_tflops", "tf32_tflops", "fp32_tflops")
    assert [peaks["t4"][value] for value in values] == ["T4", 320.0, None, None, 65.0, None, 8.1]
