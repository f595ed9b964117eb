"""What the warehouse has observed already: lookups by batches over the parts of ``observations``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

import polars as pl

_COLUMNS = {"observation_sha256": pl.String, "implementation_digest": pl.String, "run_digest": pl.String}


class Ledger:
    """The observations of earlier snapshots."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self._parts = list(parts)

    @cached_property
    def _rows(self) -> pl.DataFrame:
        if not self._parts:
            return pl.DataFrame(schema=_COLUMNS)
        return pl.read_parquet(self._parts, columns=list(_COLUMNS))

    def implementations(self, observations: Collection[str]) -> dict[str, set[str]]:
        """Return the implementations with which each of these records was observed; unknown records are left out."""
        found: dict[str, set[str]] = {}
        rows = self._matching("observation_sha256", observations)
        for sha256, implementation in rows.select("observation_sha256", "implementation_digest").iter_rows():
            found.setdefault(sha256, set()).add(implementation)
        return found

    def known_runs(self, runs: Collection[str]) -> set[str]:
        """Return those of these run digests that the warehouse has."""
        return set(self._matching("run_digest", runs)["run_digest"])

    def _matching(self, column: str, values: Collection[str]) -> pl.DataFrame:
        if not values or self._rows.is_empty():
            return self._rows.clear()
        wanted = pl.DataFrame({column: list(values)}, schema={column: pl.String})
        return self._rows.join(wanted, on=column, how="semi")
