"""Metadata: what the UI shows of an asset, from declarations before it is made and from its rows afterwards."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import dagster as dg

from pipeline.ingest import IngestReport
from pipeline.query.contents import preview, rows
from pipeline.query.plain import plain
from pipeline.query.promises import Opened
from pipeline.store.lineage import Recipe
from pipeline.store.snapshots import Snapshot
from pipeline.store.tables import Table

OWNERS = ["team:kernelhouse"]


def spec_of(recipe: Recipe, deps: list[dg.AssetKey], **more: Any) -> dg.AssetSpec:
    """Return the asset of a table; its code version is the version of the policy that makes it."""
    policy = {"policy": dg.MetadataValue.md(f"```sql\n{recipe.sql.strip()}\n```")} if recipe.sql else {}
    return dg.AssetSpec(
        key=dg.AssetKey(recipe.place),
        deps=deps,
        description=recipe.table.comment,
        metadata={"dagster/column_schema": schema_of(recipe.table, part=recipe.place[0] == "evidence"), **policy},
        code_version=recipe.version,
        owners=OWNERS,
        **more,
    )


def schema_of(table: Table, *, part: bool) -> dg.TableSchema:
    """Return the columns of a table, as in its parts or as in the database, with comments and constraints."""
    key = (table.part_key if part else ()) or table.key
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.type.value,
                column.comment,
                dg.TableColumnConstraints(nullable=column.nullable, unique=(column.name,) == key),
            )
            for column in (table.part_columns if part else table.columns)
        ],
        constraints=dg.TableConstraints(other=[f"key: {', '.join(key)}"]),
    )


def materialized(key: dg.AssetKey, table: Table, opened: Opened, digest: str, **more: Any) -> dg.MaterializeResult[Any]:
    """Return what a table holds now; its digest is the version of its data."""
    shown = [dg.TableRecord(row) for row in preview(opened.connection, table.name, table.key)]
    columns = [dg.TableColumn(name) for name in (shown[0].data if shown else {})]
    return dg.MaterializeResult(
        asset_key=key,
        data_version=dg.DataVersion(digest),
        metadata={
            "dagster/row_count": rows(opened.connection, table.name),
            "digest": digest,
            "preview": dg.MetadataValue.table(shown, dg.TableSchema(columns)),
            **more,
        },
    )


def listing(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a pull listed."""
    pull = snapshot.pull
    return {
        "dagster/row_count": len(pull.files),
        "digest": snapshot.snapshot_id,
        "source": pull.source,
        "repository": pull.repository or "",
        "revision": pull.revision or "",
        "authors": list(pull.authors),
        "sequence": snapshot.sequence,
        "fetched_at": dg.MetadataValue.timestamp(snapshot.fetched_at.replace(tzinfo=UTC)),
        "bytes": sum(file.size_bytes for file in pull.files),
        "complete": pull.complete,
    }


def accounting(report: IngestReport) -> dg.JsonMetadataValue:
    """Return the report of a replay, as ``kernelhouse ingest --json`` has it, without what is not decided yet."""
    undecided = ("published", "dry_run")
    return dg.MetadataValue.json({name: value for name, value in plain(report).items() if name not in undecided})
