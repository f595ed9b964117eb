"""Schedules: when jobs run by themselves. Off until somebody turns them on in the UI."""

import dagster as dg

from pipeline.defs.jobs import INGEST
from pipeline.defs.partitions import REVISIONS
from pipeline.defs.settings import Settings


def daily_ingest(settings: Settings) -> dg.ScheduleDefinition:
    """Return the daily schedule of the job ``ingest``."""

    @dg.schedule(
        name="daily_ingest",
        job_name=INGEST,
        cron_schedule=settings.cron,
        execution_timezone=settings.time_zone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Pull {settings.source} and bring everything up to it",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        """Ask for one run of the configured pull."""
        partition = settings.head()
        context.instance.add_dynamic_partitions(str(REVISIONS.name), [partition])
        return dg.RunRequest(partition_key=partition, run_config=dg.RunConfig(ops={"snapshot": settings.pull}))

    return schedule
