"""Staleness is exact: versions of data come from content, versions of code from policy."""

import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.test_utils import BasicLoadingContext

from pipeline.defs.assets.reruns import RERUNS
from pipeline.store import database, lineage
from tests.defs.conftest import Finished, Platform

REPOSITORY = "https://example.org/trace-set"


def stale(platform: Platform) -> dict[str, str]:
    """The assets that are not fresh, with the reason."""
    graph = platform.defs.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(platform.instance, graph, BasicLoadingContext(platform.instance))
    found = {}
    for key in graph.get_all_asset_keys() - {RERUNS}:  # nobody must make it
        partitions = platform.instance.get_dynamic_partitions("revisions") if graph.get(key).is_partitioned else [None]
        for partition in partitions:
            status = resolver.get_status(key, partition)
            causes = [cause.reason for cause in resolver.get_stale_causes(key, partition)]
            if status is not StaleStatus.FRESH:
                found[key.to_user_string()] = "; ".join(causes) or status.value
    return found


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the policy as a copy that a test may change."""
    folder = tmp_path / "warehouse"
    shutil.copytree(database.warehouse_folder(), folder)
    for module in (database, lineage):
        monkeypatch.setattr(module, "warehouse_folder", lambda: folder)
    return folder


def test_nothing_is_stale_after_a_run(finished: Finished) -> None:
    assert stale(finished.platform) == {}


def test_running_again_gives_the_same_versions(platform: Platform) -> None:
    first, again = platform.ingest(), platform.ingest()
    assert platform.versions(first) == platform.versions(again)
    assert len(platform.versions(first)) == len(platform.defs.resolve_asset_graph().get_all_asset_keys() - {RERUNS})
    assert stale(platform) == {}


@pytest.mark.slow
def test_a_new_policy_is_published_and_nothing_stays_stale(platform: Platform, policy: Path) -> None:
    assert platform.ingest().success
    (policy / "55_coverage.sql").write_text((policy / "55_coverage.sql").read_text() + "WHERE false\n")
    assert set(stale(platform)) == {"warehouse/coverage", "warehouse/meta"}
    assert platform.ingest().success
    assert stale(platform) == {}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("55_coverage.sql", {"warehouse/coverage", "warehouse/meta"}),
        ("54_current_records.sql", {"warehouse/current_records", "warehouse/meta"}),
        (
            "51_leaderboard.sql",
            {
                "warehouse/leaderboard",
                "warehouse/cohorts",
                "warehouse/current_records",
                "warehouse/meta",
                "exports/leaderboard",
            },
        ),
        (
            "peaks/published-v1.csv",
            {
                "warehouse/peaks",
                "warehouse/floor_estimates",
                "warehouse/flags",
                "warehouse/runs",
                "warehouse/cohort_runs",
                "warehouse/leaderboard",
                "warehouse/cohorts",
                "warehouse/record_history",
                "warehouse/coverage",
                "warehouse/current_records",
                "warehouse/meta",
                "exports/leaderboard",
            },
        ),
    ],
)
def test_a_changed_policy_stales_what_depends_on_it(
    file: str, expected: set[str], finished: Finished, policy: Path
) -> None:
    changed = policy / file
    changed.write_text(changed.read_text() + "\n")
    found = stale(finished.platform)
    assert set(found) == expected
    assert set(found.values()) == {"has a new code version"}


def test_a_new_pull_stales_the_evidence(platform: Platform, trace_set: Path) -> None:
    assert platform.ingest().success
    platform.instance.add_dynamic_partitions("revisions", ["b" * 40])
    job = platform.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={dg.AssetKey("snapshot")})
    config = {"ops": {"snapshot": {"config": {"source": str(trace_set), "repository": REPOSITORY}}}}
    assert job.execute_in_process(instance=platform.instance, partition_key="b" * 40, run_config=config).success
    found = stale(platform)
    assert found
    assert {key.partition("/")[0] for key in found} == {"evidence"}


@pytest.mark.slow
def test_a_pull_that_adds_nothing_changes_only_what_tells_of_pulls(platform: Platform, trace_set: Path) -> None:
    first = platform.ingest("b" * 40, source=str(trace_set), repository=REPOSITORY)
    second = platform.ingest("c" * 40, source=str(trace_set), repository=REPOSITORY)
    before, after = platform.versions(first), platform.versions(second)
    changed = {asset for asset, version in after.items() if before[asset] != version}
    assert changed == {
        "snapshot",
        "evidence/snapshots",
        "evidence/source_files",
        "evidence/ingests",
        "warehouse/meta",
    }
