"""What the parts hold already: lookups of digests by batches, without keeping the parts in memory.

Most batches bring nothing known. So the first eight bytes of each digest are kept, sorted, in 8 bytes a row; whole
digests are read only when one of a batch may be there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

from pipeline.store.frames import pl

_HEX = slice(len("sha256:"), len("sha256:") + 16)


class DigestIndex:
    """A column of digests of some parts, with another column beside it."""

    def __init__(self, parts: Sequence[Path], column: str, beside: str | None = None) -> None:
        self._parts = list(parts)
        self._column = column
        self._beside = beside

    @cached_property
    def _prefixes(self) -> pl.Series:
        """The first eight bytes of the digests, sorted."""
        return self._read(_prefix("digest")).to_series().sort()

    @cached_property
    def _rows(self) -> pl.DataFrame:
        """Digests by their prefixes, with what lies beside them."""
        digest = pl.col("digest").str.slice(_HEX.start).str.decode("hex")
        beside = () if self._beside is None else (pl.col("beside").cast(pl.Categorical),)
        return self._read(_prefix("digest").alias("prefix"), digest, *beside).sort("prefix", maintain_order=True)

    def find(self, digests: Collection[str]) -> pl.DataFrame:
        """Return the rows with one of some digests: ``digest``, and ``beside`` where there is such a column."""
        empty = pl.DataFrame(schema={"digest": pl.String, "beside": pl.String})
        if not self._parts or not digests or self._prefixes.is_empty():
            return empty
        wanted = pl.DataFrame({"digest": list(digests)}, schema={"digest": pl.String}).with_columns(
            _prefix("digest").alias("prefix")
        )
        wanted = wanted.filter(_contains(self._prefixes, wanted["prefix"]))
        if wanted.is_empty():
            return empty
        rows = self._rows
        start = rows["prefix"].search_sorted(wanted["prefix"], side="left")
        end = rows["prefix"].search_sorted(wanted["prefix"], side="right")
        places = pl.select(pl.int_ranges(start, end)).to_series().explode()
        digest = (pl.lit("sha256:") + pl.col("digest").bin.encode("hex")).alias("digest")
        near = rows[places].select(digest, *(("beside",) if self._beside else ()))
        return near.join(wanted, on="digest", how="semi")

    def known(self, digests: Collection[str]) -> set[str]:
        """Return those of some digests that are in the column."""
        return set(self.find(digests)["digest"])

    def _read(self, *columns: pl.Expr) -> pl.DataFrame:
        names = {self._column: "digest"} | ({} if self._beside is None else {self._beside: "beside"})
        parts = (pl.scan_parquet(part, glob=False) for part in self._parts)
        return pl.concat([part.rename(names).select(columns).collect() for part in parts])


class Ledger:
    """The observations of earlier snapshots."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self._observations = DigestIndex(parts, "observation_sha256", "implementation_digest")
        self._runs = DigestIndex(parts, "run_digest")

    def implementations(self, observations: Collection[str]) -> dict[str, set[str]]:
        """Return the implementations with which each of these records was observed; unknown records are left out."""
        found: dict[str, set[str]] = {}
        rows = self._observations.find(observations)
        for sha256, implementation in rows.iter_rows():
            found.setdefault(sha256, set()).add(implementation)
        return found

    def known_runs(self, runs: Collection[str]) -> set[str]:
        """Return those of these run digests that the warehouse has."""
        return self._runs.known(runs)


def _prefix(column: str) -> pl.Expr:
    """Return the first eight bytes of a digest as an integer."""
    return pl.col(column).str.slice(_HEX.start, 16).str.decode("hex").bin.reinterpret(dtype=pl.UInt64)


def _contains(ascending: pl.Series, values: pl.Series) -> pl.Series:
    """Tell which values are in a sorted series that is not empty."""
    places = ascending.search_sorted(values).clip(upper_bound=len(ascending) - 1)
    return ascending.gather(places) == values
