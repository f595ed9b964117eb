from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.store import database, lineage
from pipeline.store.lineage import recipes
from pipeline.store.tables import EVIDENCE


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the policy as a copy that a test may change."""
    folder = tmp_path / "warehouse"
    shutil.copytree(database.warehouse_folder(), folder)
    for module in (database, lineage):
        monkeypatch.setattr(module, "warehouse_folder", lambda: folder)
    return folder


def versions() -> dict[str, str]:
    return {"/".join(place): recipe.version for place, recipe in recipes().items()}


def test_every_table_comes_after_what_it_reads() -> None:
    seen = set()
    for place, recipe in recipes().items():
        assert seen >= set(recipe.reads)
        seen.add(place)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT 1 AS x", ()),
        ("FROM parts_runs", (("evidence", "runs"),)),
        ("FROM runs", (("warehouse", "runs"),)),
        ("FROM workloads", (("evidence", "workloads"),)),
        ("WITH known AS (FROM drift) FROM known, known AS other", (("warehouse", "drift"),)),
        (
            "FROM parts_runs WHERE EXISTS (FROM runs) AND 'FROM drift' <> '' -- FROM peaks",
            (("evidence", "runs"), ("warehouse", "runs")),
        ),
    ],
)
def test_a_policy_reads_what_its_sql_names(sql: str, reads: tuple[tuple[str, str], ...], policy: Path) -> None:
    (policy / "55_coverage.sql").write_text(sql)
    assert recipes()["warehouse", "coverage"].reads == reads


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("55_coverage.sql", {"coverage", "meta"}),
        ("52_cohorts.sql", {"cohorts", "current_records", "meta"}),
        (
            "31_judged_runs.view.sql",
            {"runs", "flags", "cohort_runs", "leaderboard", "cohorts", "record_history"}
            | {"current_records", "coverage", "meta"},
        ),
        (
            "peaks/published-v1.csv",
            {"peaks", "floor_estimates", "flags", "runs", "cohort_runs", "leaderboard", "cohorts", "record_history"}
            | {"current_records", "coverage", "meta"},
        ),
    ],
)
def test_a_change_gives_new_versions_to_all_that_follows(file: str, changed: set[str], policy: Path) -> None:
    before = versions()
    (policy / file).write_text((policy / file).read_text() + "\n")
    after = versions()
    assert {name for name, version in after.items() if before[name] != version} == {f"warehouse/{n}" for n in changed}


def test_evidence_has_no_policy() -> None:
    made = recipes()
    for table in EVIDENCE:
        assert made["evidence", table.name].reads == ()
        assert made["evidence", table.name].sql == ""
