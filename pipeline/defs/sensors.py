"""Sensors: when jobs run because something happened. Off until somebody turns them on in the UI."""

import dagster as dg

from pipeline.defs.jobs import INGEST
from pipeline.defs.partitions import REVISIONS
from pipeline.defs.settings import Settings

INTERVAL_S = 15 * 60
"""Between two looks at a source, in seconds."""


def new_revision(settings: Settings) -> dg.SensorDefinition:
    """Return the sensor that launches the job ``ingest`` for each new revision of the configured source."""

    @dg.sensor(
        name="new_revision",
        job_name=INGEST,
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Pull {settings.source} when it has a new revision",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        """Ask for the newest revision, one request; cursor and run key are the revision."""
        revision = settings.head()
        if revision == context.cursor:
            return dg.SensorResult(skip_reason=f"{settings.source} is still at {revision}")
        config = dg.RunConfig(ops={"snapshot": settings.pull})
        return dg.SensorResult(
            run_requests=[dg.RunRequest(run_key=revision, partition_key=revision, run_config=config)],
            dynamic_partitions_requests=[REVISIONS.build_add_request([revision])],
            cursor=revision,
        )

    return sensor
