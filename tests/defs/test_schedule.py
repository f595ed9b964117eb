"""The schedule launches a run, and runs that write wait for one another: with Dagster's own scheduler and queue."""

import logging
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster._scheduler.scheduler import launch_scheduled_runs
from sqlalchemy import Engine, event

from pipeline.defs.definitions import defs
from pipeline.defs.execution import WRITER

DEPLOY = Path(__file__).parents[2] / "deploy"
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)

# Dagster reads this property of its own when it describes a schedule to the scheduler.
pytestmark = pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition.environment_vars`:DeprecationWarning")


IN_THIS_PROCESS = ("dagster._core.launcher.sync_in_memory_run_launcher", "SyncInMemoryRunLauncher")
NOT_AT_ALL = ("dagster._core.test_utils", "MockedRunLauncher")


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk() -> Iterator[None]:
    """Let SQLite not sync: history that a test throws away need not survive a crash."""

    def relax(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", relax)
    yield
    event.remove(Engine, "connect", relax)


@pytest.fixture
def instance(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dg.DagsterInstance]:
    """An instance as in ``make dev``, but for where its runs happen: by default in this process."""
    module, name = getattr(request, "param", IN_THIS_PROCESS)
    overrides = yaml.safe_load((DEPLOY / "dev" / "dagster.yaml").read_text())
    overrides["run_launcher"] = {"module": module, "class": name}
    with dg.instance_for_test(overrides, temp_dir=str(tmp_path)) as instance:
        instance.event_log_storage.set_concurrency_slots(WRITER, 1)  # as `dagster instance concurrency set` does
        yield instance


@pytest.fixture
def workspace(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WorkspaceProcessContext]:
    monkeypatch.setenv("KERNELHOUSE_DATA", str(tmp_path / "data"))
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name="pipeline.defs.definitions")
    with WorkspaceProcessContext(
        instance, InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(target))
    ) as workspace:
        yield workspace


def turn_on(workspace: WorkspaceProcessContext) -> None:
    [location] = workspace.create_request_context().code_locations
    [repository] = location.get_repositories().values()
    with freeze_time(MIDNIGHT):
        workspace.instance.start_schedule(repository.get_schedule("daily_ingest"))


def tick(workspace: WorkspaceProcessContext, at: datetime) -> None:
    with freeze_time(at):
        for error in launch_scheduled_runs(workspace, logging.getLogger(), at, {}):
            assert error is None


def dequeue(workspace: WorkspaceProcessContext) -> None:
    daemon = QueuedRunCoordinatorDaemon(interval_seconds=1)
    for error in daemon.run_iteration(workspace):
        assert error is None


def statuses(instance: dg.DagsterInstance) -> list[str]:
    return [run.status.value for run in reversed(instance.get_runs())]


def test_it_is_off_until_turned_on(workspace: WorkspaceProcessContext, instance: dg.DagsterInstance) -> None:
    tick(workspace, MIDNIGHT)
    tick(workspace, MIDNIGHT + timedelta(days=2))
    assert instance.get_runs() == []


def test_a_tick_launches_one_run(
    workspace: WorkspaceProcessContext, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    turn_on(workspace)
    tick(workspace, MIDNIGHT + timedelta(hours=4, minutes=59))
    assert statuses(instance) == []
    tick(workspace, MIDNIGHT + timedelta(hours=5, minutes=1))
    tick(workspace, MIDNIGHT + timedelta(hours=5, minutes=2))
    assert statuses(instance) == ["QUEUED"]
    dequeue(workspace)
    [run] = instance.get_runs()
    assert run.is_success
    assert (run.job_name, run.tags["dagster/partition"]) == ("ingest", "sample")
    assert (tmp_path / "data" / "warehouse.duckdb").is_file()


@pytest.mark.parametrize("instance", [NOT_AT_ALL], indirect=True, ids=["queue"])
def test_two_runs_at_once_one_waits(workspace: WorkspaceProcessContext, instance: dg.DagsterInstance) -> None:
    turn_on(workspace)
    tick(workspace, MIDNIGHT + timedelta(hours=5, minutes=1))
    tick(workspace, MIDNIGHT + timedelta(days=1, hours=5, minutes=1))
    assert statuses(instance) == ["QUEUED", "QUEUED"]
    first = instance.get_runs()[-1]
    started = DagsterEvent(DagsterEventType.PIPELINE_START.value, first.job_name)
    instance.report_dagster_event(started, first.run_id)
    dequeue(workspace)
    assert statuses(instance) == ["STARTED", "QUEUED"]
    instance.report_run_canceled(first)
    dequeue(workspace)
    assert statuses(instance) == ["CANCELED", "STARTING"]


@pytest.mark.parametrize("deployment", ["dev", "production"])
def test_deployments_let_one_run_write(deployment: str) -> None:
    config = yaml.safe_load((DEPLOY / deployment / "dagster.yaml").read_text())
    assert config["concurrency"]["pools"] == {"default_limit": 1, "granularity": "run"}
    assert config["telemetry"] == {"enabled": False}


def test_the_environment_configures_it(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "CRON": "30 2 * * 1",
        "TIME_ZONE": "Europe/Berlin",
        "SOURCE": "/trace-set",
        "REPOSITORY": "https://example.org/trace-set",
        "REVISION": "a" * 40,
    }.items():
        monkeypatch.setenv(f"KERNELHOUSE_{name}", value)

    schedule = defs().resolve_schedule_def("daily_ingest")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 2 * * 1", "Europe/Berlin")
    with dg.build_schedule_context(instance, repository_def=defs().get_repository_def()) as context:
        [request] = schedule.evaluate_tick(context).run_requests or []
    assert request.partition_key == "a" * 40
    config = request.run_config["ops"]["snapshot"]["config"]
    assert (config["source"], config["repository"]) == ("/trace-set", "https://example.org/trace-set")
