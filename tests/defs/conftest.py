import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipeline.defs.definitions import build_defs
from pipeline.defs.jobs import INGEST
from pipeline.defs.partitions import REVISIONS
from pipeline.defs.resources import DataResource, SourceConfig
from pipeline.defs.settings import Settings
from pipeline.ingest import IngestRequest, ingest
from pipeline.store.layout import DataDirectory


@dataclass
class Platform:
    """A data directory with the definitions of it, and an instance of Dagster of its own."""

    data: DataDirectory
    instance: dg.DagsterInstance
    settings: Settings = field(default_factory=lambda: Settings(retries=0))

    @property
    def defs(self) -> dg.Definitions:
        return build_defs({"data": DataResource(path=str(self.data.root))}, settings=self.settings)

    def ingest(self, partition: str = "sample", **source: Any) -> dg.ExecuteInProcessResult:
        self.instance.add_dynamic_partitions(str(REVISIONS.name), [partition])
        config = dg.RunConfig(ops={"snapshot": SourceConfig(**source)})
        return self.run(INGEST, partition_key=partition, run_config=config)

    def run(self, job: str, **how: Any) -> dg.ExecuteInProcessResult:
        definition = self.defs.resolve_job_def(job)
        return definition.execute_in_process(instance=self.instance, raise_on_error=False, **how)

    def versions(self, result: dg.ExecuteInProcessResult) -> dict[str, str]:
        """The data version of every asset that a run materialized."""
        found = {}
        for event in result.get_asset_materialization_events():
            materialization = event.step_materialization_data.materialization
            found[materialization.asset_key.to_user_string()] = materialization.tags["dagster/data_version"]
        return found


@pytest.fixture(autouse=True)
def _without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("KERNELHOUSE_", "DAGSTER_")) and name != "KERNELHOUSE_TRACE_SET":
            monkeypatch.delenv(name)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        yield Platform(DataDirectory(tmp_path / "data"), instance)


@dataclass
class Finished:
    """A run of the sample that succeeded, and where."""

    platform: Platform
    result: dg.ExecuteInProcessResult


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Shared by all tests: ask it, never run on it."""
    folder = tmp_path_factory.mktemp("finished")
    with dg.DagsterInstance.ephemeral(tempdir=str(folder)) as instance:
        platform = Platform(DataDirectory(folder / "data"), instance)
        result = platform.ingest()
        assert result.success
        yield Finished(platform, result)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> DataDirectory:
    """A data directory with the sample, by the command line's function: read it, never change it."""
    data = DataDirectory(tmp_path_factory.mktemp("sample") / "data")
    ingest(data, IngestRequest())
    return data


@pytest.fixture
def filled(platform: Platform, sample: DataDirectory) -> Platform:
    """A platform whose data directory has the sample, though its instance of Dagster knows nothing of that."""
    shutil.copytree(sample.root, platform.data.root)
    return platform


@pytest.fixture
def trace_set(tmp_path: Path) -> Path:
    """The bundled sample as a folder that a test may change."""
    folder = tmp_path / "trace-set"
    shutil.copytree(Path(str(files("pipeline") / "sample" / "trace-set")), folder)
    return folder
