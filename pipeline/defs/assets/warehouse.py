"""The warehouse: the tables that policy makes. One step builds them all aside and renames the file into place."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from pipeline.defs.execution import WRITER, failures
from pipeline.defs.metadata import materialized, spec_of
from pipeline.defs.resources import BuildConfig, DataResource
from pipeline.ingest.pull import publish
from pipeline.query.contents import digest
from pipeline.store.lineage import Recipe
from pipeline.store.lock import writing

DAILY = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=50), warn_window=timedelta(hours=26))
"""A daily ingest with two hours to spare; the second one missed is a failure."""


def warehouse_assets(made: Sequence[Recipe], retry: dg.RetryPolicy) -> dg.AssetsDefinition:
    """Return the assets of the derived tables, and of evidence as policy shows it."""

    @dg.multi_asset(
        name="warehouse",
        specs=[
            spec_of(
                recipe,
                [dg.AssetKey(place) for place in recipe.reads],
                group_name="warehouse",
                kinds={"duckdb", "sql"},
                freshness_policy=DAILY,
            )
            for recipe in made
        ],
        retry_policy=retry,
        pool=WRITER,
    )
    def warehouse(context: dg.AssetExecutionContext, config: BuildConfig, data: DataResource) -> Iterator[Any]:
        """Build and publish where evidence or policy changed, and say what each table holds."""
        with failures(context, data), writing(data.directory, wait=True):
            published = publish(data.directory, force=config.rebuild)
            context.log.info(f"warehouse {'published' if published else 'unchanged'}")
            with data.warehouse() as opened:
                for recipe in made:
                    version = digest(opened.connection, recipe.table.name)
                    yield materialized(dg.AssetKey(recipe.place), recipe.table, opened, version, published=published)

    return warehouse
