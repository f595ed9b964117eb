"""Settings of a deployment: what its schedule pulls, and when. Read when the definitions are loaded, not at import."""

from __future__ import annotations

import os

from pydantic import BaseModel, ConfigDict

from pipeline.defs.partitions import key_of
from pipeline.defs.resources import SourceConfig
from pipeline.ingest import IngestRequest


class Settings(BaseModel):
    """The schedule: five fields of cron in an IANA time zone, and the pull that it launches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cron: str = "0 5 * * *"
    time_zone: str = "UTC"
    source: str = "sample"
    repository: str | None = None
    revision: str | None = None

    @classmethod
    def from_environment(cls) -> Settings:
        """Read KERNELHOUSE_CRON, KERNELHOUSE_TIME_ZONE, KERNELHOUSE_SOURCE and so on; what is not set has its default."""
        given = {name: os.environ.get(f"KERNELHOUSE_{name.upper()}") for name in cls.model_fields}
        return cls(**{name: value for name, value in given.items() if value})

    @property
    def pull(self) -> SourceConfig:
        """The configuration of the pull."""
        return SourceConfig(source=self.source, repository=self.repository)

    @property
    def partition(self) -> str:
        """The partition of the pull."""
        return key_of(IngestRequest(source=self.source, revision=self.revision, repository=self.repository))
