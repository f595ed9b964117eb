"""``python -m pipeline.defs``: run the configured ingest once, in this process and the instance of $DAGSTER_HOME."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import dagster as dg

from pipeline.defs.definitions import build_defs
from pipeline.defs.jobs import INGEST
from pipeline.defs.partitions import REVISIONS
from pipeline.defs.resources import DataResource
from pipeline.defs.settings import Settings
from pipeline.errors import KernelhouseError, UsageError
from pipeline.ingest.pull import open_source


def main() -> int:
    """Return 0 where the run succeeded, 1 where it failed, and 2 where it could not begin."""
    try:
        return _run()
    except KernelhouseError as error:
        sys.stderr.write(f"kernelhouse: {error}\n")
        return error.exit_code


def _run() -> int:
    settings = Settings.from_environment()
    home = os.environ.get("DAGSTER_HOME") or ""
    if not (Path(home).is_absolute() and Path(home).is_dir()):
        raise UsageError(f"DAGSTER_HOME cannot be {home!r}: name a folder that is there, by its absolute path")
    # What can be told before the run begins needs no run to fail.
    open_source(settings.pull.request(settings.partition))
    DataResource().directory.check()
    job = build_defs(settings=settings).resolve_job_def(INGEST)
    with dg.DagsterInstance.get() as instance:
        partition = settings.head()
        instance.add_dynamic_partitions(str(REVISIONS.name), [partition])
        result = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            run_config=dg.RunConfig(
                ops={"snapshot": settings.pull}, loggers={"console": {"config": {"log_level": "WARNING"}}}
            ),
            raise_on_error=False,
        )
    return 0 if result.success else 1


if __name__ == "__main__":
    sys.exit(main())
