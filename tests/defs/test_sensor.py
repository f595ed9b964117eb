"""Schedule and sensor against the fake Hub, with Dagster's own scheduler, sensor loop and queue."""

import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._scheduler.scheduler import launch_scheduled_runs

from pipeline.defs.execution import WRITER
from pipeline.defs.sensors import INTERVAL_S, new_revision
from pipeline.defs.settings import Settings
from pipeline.store.layout import DataDirectory
from tests.fake_hub.pulls import query
from tests.fake_hub.revisions import ONE, THREE
from tests.fake_hub.server import REPOSITORY, FakeHub, Fault

DEPLOY = Path(__file__).parents[2] / "deploy"
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition.environment_vars`:DeprecationWarning")


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub(token="hf_secret") as hub:  # noqa: S106 - a token of the fake
        hub.commit(ONE)
        yield hub


@pytest.fixture
def workspace(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkspaceProcessContext]:
    for name, value in {
        "KERNELHOUSE_DATA": str(tmp_path / "data"),
        "KERNELHOUSE_SOURCE": f"hub:{REPOSITORY}",
        "HF_ENDPOINT": hub.endpoint,
        "HF_TOKEN": str(hub.token),
    }.items():
        monkeypatch.setenv(name, value)
    overrides = yaml.safe_load((DEPLOY / "dev" / "dagster.yaml").read_text())
    overrides["run_launcher"] = {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    }
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name="pipeline.defs.definitions")
    with dg.instance_for_test(overrides, temp_dir=str(tmp_path)) as instance:
        instance.event_log_storage.set_concurrency_slots(WRITER, 1)
        with WorkspaceProcessContext(
            instance, InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(target))
        ) as workspace:
            [location] = workspace.create_request_context().code_locations
            [repository] = location.get_repositories().values()
            with freeze_time(MIDNIGHT):
                instance.start_schedule(repository.get_schedule("daily_ingest"))
                instance.start_sensor(repository.get_sensor("new_revision"))
            yield workspace


def sense(workspace: WorkspaceProcessContext, at: datetime) -> str:
    """Let the sensor look, and the queue run what it asks for; return how the tick ended."""
    with freeze_time(at):
        errors = [error for error in execute_sensor_iteration(workspace, logging.getLogger(), None, None) if error]
    dequeue(workspace)
    [sensor] = [state for state in workspace.instance.all_instigator_state() if state.instigator_name == "new_revision"]
    tick = workspace.instance.get_ticks(sensor.instigator_origin_id, sensor.selector_id, limit=1)[0]
    assert bool(errors) == (tick.status.value == "FAILURE")
    return tick.status.value


def dequeue(workspace: WorkspaceProcessContext) -> None:
    for error in QueuedRunCoordinatorDaemon(interval_seconds=1).run_iteration(workspace):
        assert error is None


@pytest.mark.slow
def test_the_sensor_pulls_each_revision_once(workspace: WorkspaceProcessContext, hub: FakeHub, tmp_path: Path) -> None:
    data, first = DataDirectory(tmp_path / "data"), hub.head
    look = timedelta(seconds=INTERVAL_S + 1)
    assert sense(workspace, MIDNIGHT + look) == "SUCCESS"
    assert query(data, "SELECT revision FROM snapshots") == [(first,)]

    before = len(hub.seen)
    assert sense(workspace, MIDNIGHT + 2 * look) == "SKIPPED"
    assert [seen.target for seen in hub.seen[before:]] == [f"/api/datasets/{REPOSITORY}/revision/main"]

    second = hub.commit(THREE)
    assert sense(workspace, MIDNIGHT + 3 * look) == "SUCCESS"
    assert query(data, "SELECT revision FROM snapshots ORDER BY sequence") == [(first,), (second,)]
    assert query(data, "SELECT count(*) FROM runs") == [(5,)]

    hub.switch(Fault.NO_REPOSITORY, on_files=False)
    assert sense(workspace, MIDNIGHT + 4 * look) == "FAILURE"
    hub.calm()
    assert sense(workspace, MIDNIGHT + 5 * look) == "SKIPPED"

    newest, oldest = workspace.instance.get_runs()
    assert [run.tags["dagster/run_key"] for run in (oldest, newest)] == [first, second]
    assert [run.tags["dagster/partition"] for run in (oldest, newest)] == [first, second]
    assert newest.is_success
    assert oldest.is_success
    records = workspace.instance.fetch_materializations(dg.AssetKey("snapshot"), limit=2).records
    metadata = [record.asset_materialization.metadata for record in records if record.asset_materialization]
    assert [each["revision"].value for each in metadata] == [second, first]
    assert [each["dagster/row_count"].value for each in metadata] == [len(THREE), len(ONE)]


@pytest.mark.slow
def test_the_schedule_pulls_the_head_of_the_hub(
    workspace: WorkspaceProcessContext, hub: FakeHub, tmp_path: Path
) -> None:
    at = MIDNIGHT + timedelta(hours=5, minutes=1)
    with freeze_time(at):
        for error in launch_scheduled_runs(workspace, logging.getLogger(), at, {}):
            assert error is None
    dequeue(workspace)
    [run] = workspace.instance.get_runs()
    assert run.is_success
    assert run.tags["dagster/partition"] == hub.head
    assert query(DataDirectory(tmp_path / "data"), "SELECT revision, complete FROM snapshots") == [(hub.head, True)]


def test_a_look_is_one_request_and_cursor_and_run_key_are_the_revision(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("HF_TOKEN", str(hub.token))
    looks = ((None, True), ("0" * 40, True), (hub.head, False))
    for cursor, asked in looks:
        found = look(Settings(source=f"hub:{REPOSITORY}"), cursor)
        requests = [(request.run_key, request.partition_key) for request in found.run_requests or []]
        assert requests == [(hub.head, hub.head)] * asked
        added = [key for request in found.dynamic_partitions_requests or [] for key in request.partition_keys]
        assert added == [hub.head] * asked
        assert found.cursor == (hub.head if asked else None)
    assert len(hub.seen) == len(looks)


def test_a_source_without_revisions_is_pulled_once() -> None:
    assert len(look(Settings(), None).run_requests or []) == 1
    assert look(Settings(), "sample").run_requests == []


def look(settings: Settings, cursor: str | None) -> dg.SensorResult:
    with dg.build_sensor_context(cursor=cursor) as context:
        found = new_revision(settings)(context)
    assert isinstance(found, dg.SensorResult)
    return found
