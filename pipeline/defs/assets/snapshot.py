"""The snapshot: one pull of a source, its files in the blob store."""

from typing import Any

import dagster as dg

from pipeline.defs.execution import WRITER, failures
from pipeline.defs.metadata import OWNERS, listing
from pipeline.defs.partitions import REVISIONS
from pipeline.defs.resources import DataResource, SourceConfig
from pipeline.ingest.pull import open_source, take
from pipeline.store.layout import FORMAT_VERSION
from pipeline.store.lock import writing
from pipeline.store.tables import SNAPSHOTS

SNAPSHOT = dg.AssetKey("snapshot")


def snapshot_asset(retry: dg.RetryPolicy) -> dg.AssetsDefinition:
    """Return the asset of the pulls."""

    @dg.asset(
        key=SNAPSHOT,
        description=f"{SNAPSHOTS.comment}: every file that it lists, with the content of those that matter",
        group_name="sources",
        kinds={"json"},
        owners=OWNERS,
        code_version=f"format-{FORMAT_VERSION}",
        partitions_def=REVISIONS,
        retry_policy=retry,
        pool=WRITER,
    )
    def snapshot(
        context: dg.AssetExecutionContext, config: SourceConfig, data: DataResource
    ) -> dg.MaterializeResult[Any]:
        """Pull a revision; the same pull again is the snapshot that is there already."""
        with failures(context, data), writing(data.directory, wait=True):
            taken = take(data.directory, open_source(config.request(context.partition_key)))
        return dg.MaterializeResult(data_version=dg.DataVersion(taken.snapshot_id), metadata=listing(taken))

    return snapshot


def last_pulled(context: dg.AssetExecutionContext) -> str | None:
    """Return the id of the snapshot that was pulled last; None where this instance of Dagster never pulled."""
    for record in context.instance.fetch_materializations(SNAPSHOT, limit=1).records:
        materialization = record.asset_materialization
        return str(materialization.metadata["digest"].value) if materialization else None
    return None
