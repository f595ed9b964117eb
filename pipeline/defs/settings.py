"""Settings of a deployment: what its schedule and sensor pull and when, and how often a step is tried again.

They are read when the definitions are loaded, not at import.
"""

from __future__ import annotations

import os
from zoneinfo import ZoneInfo

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipeline.defs.partitions import key_of
from pipeline.defs.resources import SourceConfig
from pipeline.errors import UsageError
from pipeline.ingest import IngestRequest
from pipeline.manifests.documents import explain
from pipeline.sources.hub import PREFIX, latest_revision, open_client, repository_of
from pipeline.store.layout import chosen_directory


class Settings(BaseModel):
    """Five fields of cron in an IANA time zone, the pull that they launch, and the retries of steps that write."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cron: str = "0 5 * * *"
    time_zone: str = "UTC"
    source: str = "sample"
    repository: str | None = None
    revision: str | None = None
    retries: int = Field(default=2, ge=0, le=100)
    retry_seconds: float = Field(default=30, ge=0, le=86_400)
    """Before the first retry; twice that before the second, and so on."""

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, value: str) -> str:
        try:
            dg.ScheduleDefinition(name="any", job_name="any", cron_schedule=value)
        except dg.DagsterInvalidDefinitionError:
            raise ValueError("cron has five fields, such as 0 5 * * *") from None
        return value

    @field_validator("time_zone")
    @classmethod
    def _known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (OSError, ValueError, LookupError):
            raise ValueError("no time zone of the IANA has this name; UTC is one") from None
        return value

    @field_validator("repository")
    @classmethod
    def _https(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("https://"):
            raise ValueError("it is no https URL")
        return value

    @classmethod
    def from_environment(cls) -> Settings:
        """Read ``KERNELHOUSE_CRON``, ``KERNELHOUSE_TIME_ZONE`` and so on; what is not set has its default.

        Raises:
            UsageError: a value that cannot be one, also of ``KERNELHOUSE_DATA``.
        """
        chosen_directory()
        given = {name: os.environ.get(f"KERNELHOUSE_{name.upper()}") for name in cls.model_fields}
        try:
            return cls.model_validate({name: value for name, value in given.items() if value})
        except ValidationError as error:
            name, _, what = explain(error).partition(": ")
            raise UsageError(f"KERNELHOUSE_{name.upper()} cannot be {given[name]!r} ({what}): set it right") from error

    @property
    def pull(self) -> SourceConfig:
        """The configuration of the pull."""
        return SourceConfig(source=self.source, repository=self.repository)

    @property
    def retry(self) -> dg.RetryPolicy:
        """The retries of a step that writes: each takes up what was interrupted."""
        return dg.RetryPolicy(max_retries=self.retries, delay=self.retry_seconds, backoff=dg.Backoff.EXPONENTIAL)

    def head(self) -> str:
        """Return the partition of a pull made now: of a dataset of the Hub its newest commit, for one request.

        Raises:
            UsageError: the source or the endpoint makes no sense.
            SourceError: the Hub does not tell.
        """
        if self.revision is not None or not self.source.startswith(PREFIX):
            return self.partition
        return latest_revision(open_client(os.environ), repository_of(self.source))

    @property
    def partition(self) -> str:
        """The partition of the pull, as far as the settings tell."""
        return key_of(IngestRequest(source=self.source, revision=self.revision, repository=self.repository))
