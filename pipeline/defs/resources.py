"""Resources and run configuration: the data directory, the source of a pull, whether to build anew.

They hand plain objects of the rooms below to the assets, and decide nothing before a run asks.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import Literal

import dagster as dg
from pydantic import Field, field_validator

from pipeline.defs.partitions import key_of, revision_of
from pipeline.errors import UsageError
from pipeline.ingest import IngestRequest
from pipeline.ingest.pull import committed
from pipeline.query.promises import Opened
from pipeline.rerun.plan import Selection
from pipeline.rerun.runner.host import default_device
from pipeline.store.database import connect_parts, published
from pipeline.store.layout import DataDirectory, chosen_directory
from pipeline.store.parts import Commit, part_files
from pipeline.store.snapshots import read_snapshots


class DataResource(dg.ConfigurableResource):  # type: ignore[type-arg]  # it is its own value
    """The data directory."""

    path: str | None = Field(default=None, description="The folder; else $KERNELHOUSE_DATA, else ./data")

    @property
    def directory(self) -> DataDirectory:
        """The data directory, chosen as the command line does."""
        return chosen_directory(self.path)

    def commits(self) -> list[Commit]:
        """Return the commits of the ingested snapshots in their sequence."""
        self.directory.check_format()
        return [commit for _, commit in committed(self.directory, read_snapshots(self.directory))]

    @contextmanager
    def evidence(self) -> Iterator[Opened]:
        """Open the parts."""
        parts = part_files(self.directory, self.commits())
        with closing(connect_parts(parts)) as connection:
            yield Opened(connection, parts)

    @contextmanager
    def warehouse(self) -> Iterator[Opened]:
        """Open the published database, where it follows the policy of this program."""
        with published(self.directory) as connection:
            yield Opened(connection)


class SourceConfig(dg.Config):
    """What to pull; the revision is the partition of the run."""

    source: str = Field(
        default="sample", min_length=1, description="sample, the folder of a trace set, or hub:OWNER/NAME"
    )
    repository: str | None = Field(default=None, description="https URL of the trace set that a folder holds")
    authors: list[str] = Field(default=[], description="Author folders to limit solutions and traces to; empty: all")

    @field_validator("repository")
    @classmethod
    def _https(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("https://"):
            raise ValueError(f"repository {value} is no https URL")
        return value

    def request(self, partition: str) -> IngestRequest:
        """Return the pull of a partition.

        Raises:
            UsageError: the source is not what the partition stands for.
        """
        request = IngestRequest(
            source=self.source,
            revision=revision_of(partition),
            repository=self.repository,
            authors=tuple(self.authors),
        )
        if (key := key_of(request)) != partition:
            raise UsageError(f"the run is for {partition}, its source belongs to {key}: choose that partition")
        return request


class BuildConfig(dg.Config):
    """How to derive."""

    rebuild: bool = Field(
        default=False, description="Throw away what is derived and make it again from blobs and snapshots"
    )


class RerunConfig(dg.Config):
    """Which runs to repeat, and where; every condition that is given must hold."""

    allow_code: bool = Field(default=False, description="Run the code of the chosen solutions: it is untrusted")
    device: Literal["cuda", "cpu"] = Field(default="cuda", description="A CPU checks correctness alone")
    operation: str | None = Field(default=None, description="Only runs of this operation")
    solution: str | None = Field(default=None, description="Only runs of this solution")
    author: str | None = Field(default=None, description="Only runs of solutions by this author")
    workload: str | None = Field(default=None, description="Only runs of this workload: uuid or digest prefix")
    records: bool = Field(default=True, description="Only runs that hold a record now")
    sql: str | None = Field(default=None, description="Only runs that the column run_digest of this query names")
    limit: int = Field(default=20, ge=1, description="At most so many, the newest runs first")

    @property
    def selection(self) -> Selection:
        """The runs."""
        return Selection(
            operation=self.operation,
            solution=self.solution,
            author=self.author,
            workload=self.workload,
            records=self.records,
            sql=self.sql,
        )

    def missing(self) -> str | None:
        """Return what this host or this configuration lacks for a rerun, in a sentence."""
        if find_spec("torch") is None:
            return "controlled reruns are skipped: torch is not installed on this host"
        if self.device == "cuda" and default_device() != "cuda":
            return "controlled reruns are skipped: this host has no GPU"
        if not self.allow_code:
            return "controlled reruns are skipped: set allow_code, since the code of the solutions is untrusted"
        return None
