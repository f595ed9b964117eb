"""Exports: tables that leave as Parquet files, each replaced as a whole."""

from typing import Any

import dagster as dg

from pipeline.defs.assets.warehouse import DAILY
from pipeline.defs.execution import failures
from pipeline.defs.metadata import OWNERS, materialized, schema_of
from pipeline.defs.resources import DataResource
from pipeline.export.tables import export_table
from pipeline.query.contents import digest
from pipeline.store.lineage import Recipe


def leaderboard_export(recipe: Recipe, retry: dg.RetryPolicy) -> dg.AssetsDefinition:
    """Return the asset of the exported leaderboard."""
    name = recipe.table.name
    key = dg.AssetKey(["exports", name])

    @dg.asset(
        key=key,
        deps=[dg.AssetKey(recipe.place)],
        description=f"{recipe.table.comment}, as a Parquet file sorted by its key",
        metadata={"dagster/column_schema": schema_of(recipe.table, part=False)},
        group_name="exports",
        kinds={"parquet"},
        owners=OWNERS,
        code_version=recipe.version,
        freshness_policy=DAILY,
        retry_policy=retry,
    )
    def export(context: dg.AssetExecutionContext, data: DataResource) -> dg.MaterializeResult[Any]:
        """Write the table of the published warehouse to ``exports/`` in the data directory."""
        with failures(context, data), data.warehouse() as opened:
            target = data.directory.exports / f"{name}.parquet"
            target.parent.mkdir(exist_ok=True)
            written = export_table(opened.connection, name, target)
            version = digest(opened.connection, name)
            return materialized(key, recipe.table, opened, version, file=str(target), bytes=written.bytes)

    return export
