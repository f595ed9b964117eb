"""Jobs: which assets are made together.

Each runs in one process: the steps follow one another anyway, and share what is loaded.
"""

from __future__ import annotations

import dagster as dg

INGEST = "ingest"
"""The job that the schedule launches."""

RERUN = "rerun_records"
"""The job that repeats runs; its configuration says which."""


def jobs() -> list[dg.UnresolvedAssetJobDefinition]:
    """Return the jobs."""
    rebuild = {name: {"config": {"rebuild": True}} for name in ("evidence", "warehouse")}
    return [
        dg.define_asset_job(
            INGEST,
            dg.AssetSelection.all() - dg.AssetSelection.groups("reruns"),
            description="Pull a revision and bring everything up to it, as kernelhouse ingest does",
            executor_def=dg.in_process_executor,
        ),
        dg.define_asset_job(
            "rebuild",
            dg.AssetSelection.all() - dg.AssetSelection.groups("sources", "reruns"),
            description="Throw away what is derived and make it again, as kernelhouse ingest --rebuild does",
            config={"ops": rebuild},
            executor_def=dg.in_process_executor,
        ),
        dg.define_asset_job(
            "export",
            dg.AssetSelection.groups("exports"),
            description="Write the exported tables of the published warehouse, as kernelhouse export does",
            executor_def=dg.in_process_executor,
        ),
        dg.define_asset_job(
            RERUN,
            dg.AssetSelection.groups("reruns"),
            description="Repeat the current records of an operation on the GPU of this host, as kernelhouse rerun does",
            executor_def=dg.in_process_executor,
        ),
    ]
