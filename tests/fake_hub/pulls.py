"""Pulling from the fake Hub without waiting, and comparing what comes of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.ingest import IngestReport, IngestRequest, ingest
from pipeline.sources.hub import HubSource
from pipeline.sources.hub_client import Clock, HubClient, Limits
from pipeline.store.database import connect
from pipeline.store.layout import DataDirectory
from pipeline.store.tables import TABLES
from tests.fake_hub.server import REPOSITORY, FakeHub

LIMITS = Limits(connect_s=30.0, read_s=30.0, attempts=3, file_bytes=2**20)
IMPATIENT = replace(LIMITS, read_s=0.25)
"""Real seconds: for a hub that may stall, and no other, since a loaded machine too is silent for so long."""
START = datetime(2026, 2, 1, tzinfo=UTC)


@dataclass
class FakeTime:
    """A clock that jumps over every wait and remembers it."""

    elapsed: float = 0.0
    waits: list[float] = field(default_factory=list)
    step: float = 0.0
    """Seconds that pass whenever somebody looks."""

    def now(self) -> float:
        self.elapsed += self.step
        return self.elapsed

    def sleep(self, stopped: threading.Event, seconds: float) -> None:
        del stopped
        self.waits.append(seconds)
        self.elapsed += seconds

    @property
    def clock(self) -> Clock:
        return Clock(self.now, self.sleep, lambda: 0.5, lambda: START + timedelta(seconds=self.elapsed))


def client(
    hub: FakeHub, time: FakeTime | None = None, *, limits: Limits | None = None, allow: tuple[str, ...] | None = None
) -> HubClient:
    limits = limits or (IMPATIENT if hub.may_stall else LIMITS)
    allowed = (hub.store_host,) if allow is None else allow
    clock = (time or FakeTime()).clock
    return HubClient(hub.endpoint, token=hub.token, allow_hosts=allowed, limits=limits, clock=clock)


def pull(
    data: DataDirectory,
    hub: FakeHub,
    *,
    limits: Limits | None = None,
    revision: str | None = None,
    authors: tuple[str, ...] = (),
    accept_shrink: bool = False,
) -> IngestReport:
    """Ingest the head of the fake Hub's branch, or a revision."""
    source = HubSource(REPOSITORY, client(hub, limits=limits), revision, authors)
    request = IngestRequest(source=f"hub:{REPOSITORY}", authors=authors, accept_shrink=accept_shrink)
    return ingest(data, request, source=source)


_BOOKKEEPING = ("snapshots", "source_files", "ingests", "releases", "meta")
"""Tables of single pulls and of failures that are over."""

_MOMENTS = ("snapshot_id", "sequence", "ingested_at", "at", "since", "until", "held_since")
"""Columns that tell in which pull something came."""


def tables(data: DataDirectory) -> dict[str, list[tuple[Any, ...]]]:
    """Return every table of a warehouse in a fixed order, without what differs between pulls of the same thing."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    connection = connect(data.database)
    try:
        for table in TABLES:
            if table.name not in _BOOKKEEPING:
                names = [column.name for column in table.columns if column.name not in _MOMENTS]
                columns = ", ".join(f'"{name}"' for name in names)
                found[table.name] = sorted(connection.sql(f"SELECT {columns} FROM {table.name}").fetchall(), key=repr)
        last = "(SELECT snapshot_id FROM snapshots ORDER BY sequence DESC LIMIT 1)"
        found["files now"] = connection.sql(
            f"SELECT path, kind, sha256, size_bytes, fetched FROM source_files WHERE snapshot_id = {last} ORDER BY path"
        ).fetchall()
    finally:
        connection.close()
    return found


def query(data: DataDirectory, sql: str) -> list[tuple[Any, ...]]:
    connection = connect(data.database)
    try:
        return connection.sql(sql).fetchall()
    finally:
        connection.close()


def patient(limits: Limits = LIMITS, **changes: Any) -> Limits:
    return replace(limits, **changes)
