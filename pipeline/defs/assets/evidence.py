"""Evidence: the tables of the Parquet parts. One step writes them all, since a record brings rows to several."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from pipeline.defs.assets.snapshot import SNAPSHOT, last_pulled
from pipeline.defs.checks import intact, intact_spec
from pipeline.defs.execution import WRITER, failures
from pipeline.defs.metadata import accounting, materialized, spec_of
from pipeline.defs.resources import BuildConfig, DataResource
from pipeline.ingest.pull import forget_derived, replay
from pipeline.store.blobs import BlobStore
from pipeline.store.lineage import Recipe
from pipeline.store.lock import writing
from pipeline.store.parts import parts_digest

GROUPS = {
    "pulls": ("snapshots", "source_files", "ingests", "presence"),
    "documents": ("operations", "workloads", "workload_tensors", "workload_inputs", "implementations"),
    "measured": ("environments", "protocols", "observations", "runs", "measurements", "artifacts", "reruns"),
    "held_back": ("quarantine", "releases", "drift"),
}
"""Evidence tables by what they are about."""


def evidence_assets(made: Sequence[Recipe], retry: dg.RetryPolicy) -> dg.AssetsDefinition:
    """Return the assets of the evidence tables."""
    group = {name: group for group, names in GROUPS.items() for name in names}

    @dg.multi_asset(
        name="evidence",
        specs=[
            spec_of(recipe, [SNAPSHOT], group_name=group.get(recipe.table.name, "evidence"), kinds={"parquet"})
            for recipe in made
        ],
        check_specs=[intact_spec(recipe) for recipe in made],
        retry_policy=retry,
        pool=WRITER,
    )
    def evidence(context: dg.AssetExecutionContext, config: BuildConfig, data: DataResource) -> Iterator[Any]:
        """Replay what is not ingested yet, on parts that are sound, and say what each table holds."""
        with failures(context, data), writing(data.directory, wait=True):
            blobs = BlobStore(data.directory.blobs)
            if config.rebuild:
                forget_derived(data.directory, blobs)
            yield from intact(made, data)
            report = accounting(replay(data.directory, of=last_pulled(context), blobs=blobs))
            commits = data.commits()
            with data.evidence() as opened:
                for recipe in made:
                    version = parts_digest(commits, recipe.table)
                    yield materialized(dg.AssetKey(recipe.place), recipe.table, opened, version, report=report)

    return evidence
