"""JSON Schemas of the manifests and of the tables, generated from their declarations into ``schemas/``.

Run ``python -m pipeline.schemas`` after a change of either; a test tells when that was forgotten.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pipeline.manifests import KINDS
from pipeline.store.tables import TABLES, Table, Type

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: dict[Type, dict[str, Any]] = {
    Type.TEXT: {"type": "string"},
    Type.BIGINT: {"type": "integer"},
    Type.DOUBLE: {"type": "number"},
    Type.BOOLEAN: {"type": "boolean"},
    Type.TIMESTAMP: {"type": "string", "format": "date-time"},
    Type.TEXTS: {"type": "array", "items": {"type": "string"}},
    Type.BIGINTS: {"type": "array", "items": {"type": "integer"}},
}


def schemas() -> dict[str, str]:
    """Return the text of every schema file, by its path below ``schemas/``."""
    documents = {
        f"manifests/{kind}.json": {"$schema": DIALECT, **model.model_json_schema(by_alias=True)}
        for kind, model in KINDS.items()
    }
    documents |= {f"tables/{table.name}.json": _table_schema(table) for table in TABLES}
    return {
        path: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for path, document in sorted(documents.items())
    }


def _table_schema(table: Table) -> dict[str, Any]:
    """Return the schema of a row; the key and the stage stand beside it as annotations."""
    properties: dict[str, Any] = {}
    for column in table.columns:
        described = dict(_TYPES[column.type])
        if column.nullable:
            described["type"] = [described["type"], "null"]
        properties[column.name] = described | {"description": column.comment}
    return {
        "$schema": DIALECT,
        "title": table.name,
        "description": table.comment,
        "type": "object",
        "properties": properties,
        "required": [column.name for column in table.columns],
        "additionalProperties": False,
        "x-key": list(table.key),
        "x-stage": table.stage,
    }


def main() -> int:
    """Write ``schemas/`` of the checkout anew."""
    folder = Path(__file__).resolve().parents[1] / "schemas"
    for stale in folder.rglob("*.json"):
        stale.unlink()
    for path, text in schemas().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
