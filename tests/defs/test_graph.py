"""The graph as a whole, against files: run with UPDATE_SNAPSHOTS=1 to accept what it is now."""

import ast
import json
import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipeline.defs.assets.evidence import GROUPS
from pipeline.defs.definitions import build_defs
from pipeline.defs.settings import Settings
from pipeline.store.database import policy_files
from pipeline.store.tables import EVIDENCE, TABLES

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="module")
def defs() -> dg.Definitions:
    return build_defs(settings=Settings())


def assets(defs: dg.Definitions) -> dict[str, Any]:
    graph = defs.resolve_asset_graph()
    found = {}
    for key in sorted(graph.get_all_asset_keys()):
        node = graph.get(key)
        policy = node.freshness_policy
        found[key.to_user_string()] = {
            "deps": sorted(parent.to_user_string() for parent in node.parent_keys),
            "group": node.group_name,
            "kinds": sorted(node.kinds),
            "owners": list(node.owners),
            "partitions": node.partitions_def and node.partitions_def.name,
            "pools": sorted(node.pools or ()),
            "automation": node.automation_condition and node.automation_condition.get_label(),
            "freshness": policy and f"{policy.warn_window.to_timedelta()} / {policy.fail_window.to_timedelta()}",
            "checks": {
                check.name: "blocking" if graph.get_check_spec(check).blocking else "warns"
                for check in sorted(node.check_keys, key=lambda check: check.name)
            },
        }
    return found


def jobs(defs: dg.Definitions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted(job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")):
        job = defs.resolve_job_def(name)
        found[name] = {
            "steps": {
                node.name: sorted(
                    {
                        dependency.node
                        for depends in job.dependencies.get(dg.NodeInvocation(node.name), {}).values()
                        for dependency in depends.get_node_dependencies()
                    }
                )
                for node in job.nodes_in_topological_order
            },
            "partitions": job.partitions_def and job.partitions_def.name,
            "config": dict(job.run_config or {}),
        }
    schedules = {
        schedule.name: {
            "job": schedule.job_name,
            "cron": schedule.cron_schedule,
            "time_zone": schedule.execution_timezone,
            "status": schedule.default_status.value,
        }
        for schedule in defs.schedules or ()
    }
    sensors = {
        sensor.name: {
            "job": sensor.job_name,
            "seconds": sensor.minimum_interval_seconds,
            "status": sensor.default_status.value,
        }
        for sensor in defs.sensors or ()
    }
    return {"jobs": found, "schedules": schedules, "sensors": sensors}


@pytest.mark.parametrize("name", ["assets", "jobs"])
def test_it_is_what_the_file_says(name: str, defs: dg.Definitions) -> None:
    file = SNAPSHOTS / f"{name}.json"
    now = json.dumps({"assets": assets, "jobs": jobs}[name](defs), indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(now)
    assert now == file.read_text()


def test_every_table_is_an_asset(defs: dg.Definitions) -> None:
    keys = {tuple(key.path) for key in defs.resolve_asset_graph().get_all_asset_keys()}
    evidence = {("evidence", table.name) for table in EVIDENCE}
    derived = {("warehouse", table.name) for table in TABLES if table.stage != "evidence"}
    policies = {("warehouse", name) for name in policy_files()}
    assert keys == evidence | derived | policies | {("snapshot",), ("exports", "leaderboard"), ("controlled_reruns",)}


def test_groups_name_evidence() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(table.name for table in EVIDENCE)


def test_every_asset_is_described(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description
        assert node.owners
        assert node.code_version
        if len(key.path) > 1:
            columns = node.metadata["dagster/column_schema"].columns
            assert columns
            assert all(column.description for column in columns)


def test_assets_are_thin() -> None:
    """At most 15 lines a function, whatever surrounds it."""

    folder = Path(__file__).parents[2] / "pipeline" / "defs"
    seen = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and any("asset" in ast.unparse(d) for d in node.decorator_list):
                seen.add(node.name)
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < 15, f"{file.name}: {node.name}"
    assert seen >= {"snapshot", "evidence", "warehouse", "export", "reruns"}
