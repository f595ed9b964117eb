"""The definitions that Dagster loads: ``dagster dev -m pipeline.defs.definitions``.

Everything is put together here, and here alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from pipeline.defs.assets.evidence import evidence_assets
from pipeline.defs.assets.exports import leaderboard_export
from pipeline.defs.assets.reruns import controlled_reruns
from pipeline.defs.assets.snapshot import snapshot_asset
from pipeline.defs.assets.warehouse import warehouse_assets
from pipeline.defs.checks import table_checks
from pipeline.defs.jobs import jobs
from pipeline.defs.resources import DataResource
from pipeline.defs.schedules import daily_ingest
from pipeline.defs.sensors import new_revision
from pipeline.defs.settings import Settings
from pipeline.query.promises import promises
from pipeline.store.lineage import recipes
from pipeline.store.tables import LEADERBOARD


def build_defs(overrides: Mapping[str, object] | None = None, *, settings: Settings | None = None) -> dg.Definitions:
    """Return the definitions; ``overrides`` replaces resources by name, ``settings`` those of the environment."""
    settings = settings or Settings.from_environment()
    made = recipes()
    promised = promises(made)
    return dg.Definitions(
        assets=[
            snapshot_asset(settings.retry),
            evidence_assets([recipe for recipe in made.values() if recipe.place[0] == "evidence"], settings.retry),
            warehouse_assets([recipe for recipe in made.values() if recipe.place[0] == "warehouse"], settings.retry),
            leaderboard_export(made["warehouse", LEADERBOARD.name], settings.retry),
            controlled_reruns(),
        ],
        asset_checks=[
            table_checks(place, [promise for promise in promised if promise.place[0] == place])
            for place in ("evidence", "warehouse")
        ],
        jobs=jobs(),
        schedules=[daily_ingest(settings)],
        sensors=[new_revision(settings)],
        resources={"data": DataResource(), **(overrides or {})},
    )


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions of this deployment."""
    return build_defs()
