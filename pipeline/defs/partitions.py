"""Partitions: one a revision of a source, added as revisions are pulled."""

from __future__ import annotations

import re

import dagster as dg

from pipeline.ingest import IngestRequest

REVISIONS = dg.DynamicPartitionsDefinition(name="revisions")
"""Keys are 40-hex commits; a source that names none has ``sample`` or ``unversioned``."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


def revision_of(key: str) -> str | None:
    """Return the commit that a partition key is, if it is one."""
    return key if _COMMIT.fullmatch(key) else None


def key_of(request: IngestRequest) -> str:
    """Return the partition that a pull belongs to."""
    return request.revision or ("sample" if request.source in (None, "sample") else "unversioned")
