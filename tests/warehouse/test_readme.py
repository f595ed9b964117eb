"""The documentation of the policy is in step with its files, and with the rows that it takes its examples from."""

from __future__ import annotations

import re

import pytest

from pipeline.store.database import warehouse_folder

README = (warehouse_folder() / "README.md").read_text(encoding="utf-8")
POLICIES = sorted(path.name for path in warehouse_folder().glob("*.sql"))
VERSION = re.compile(r"\b[a-z]+(?:-[a-z]+)*-v\d+\b")


def _rows(header: str) -> list[list[str]]:
    """Return the cells of the table that begins with this header."""
    table = README[README.index(f"| {header} |") :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_every_file_has_its_row_in_their_order() -> None:
    assert [row[0].strip("`") for row in _rows("file")] == POLICIES


@pytest.mark.parametrize("row", _rows("file"), ids=lambda row: row[0].strip("`"))
def test_a_row_names_the_versions_of_its_file(row: list[str]) -> None:
    text = (warehouse_folder() / row[0].strip("`")).read_text(encoding="utf-8")
    header = text[: re.search(r"^(?!--)", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    named = set(VERSION.findall(row[2]))
    assert named
    assert named <= set(VERSION.findall(header))


def test_every_flag_and_formula_is_told() -> None:
    flags = (warehouse_folder() / "32_flagged_runs.view.sql").read_text(encoding="utf-8")
    assert [row[0].strip("`") for row in _rows("flag")] == sorted(set(re.findall(r"'([A-Z]+_[A-Z_]+)'", flags)))
    formulas = {name.split(".")[1] for name in POLICIES if name.startswith("26_")}
    absent = {"moe", "gdn", "sampling", "elementwise"}  # families that the public set does not have
    assert {row[0] for row in _rows("formula")} == formulas - absent


@pytest.mark.parametrize("code", ["WITHDRAWN", "RETRACTED", "SUPERSEDED", "TAKEN_DOWN", "MISSING_PRIMARY_METRIC"])
def test_reason_codes_are_told(code: str) -> None:
    assert f"`{code}`" in README


def cited() -> list[str]:
    """Return the digests of runs that the examples cite."""
    return sorted(set(re.findall(r"`([0-9a-f]{12})`", README)))


def told_flags() -> list[tuple[str, str, str]]:
    """Return flag, run and detail of every example."""
    return [(row[0].strip("`"), row[2].strip("`"), row[3]) for row in _rows("flag") if row[2] != "none"]


def told_floors() -> list[tuple[str, str, str, str, str, str]]:
    """Return formula, operation, bytes, operations, floor and binding term of every example."""
    return [(row[0], row[1].partition(",")[0], *row[2:]) for row in _rows("formula")]  # type: ignore[misc]
