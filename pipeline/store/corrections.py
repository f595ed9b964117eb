"""The reviewed corrections: ``corrections.toml`` in the data directory, which people write and every build applies.

An entry names a run and what becomes of it::

    [[correction]]
    run = "sha256:..."          # the whole digest
    action = "supersede"        # or retract, takedown
    successor = "sha256:..."    # of supersede: the run that counts in its place
    removes = ["sha256:..."]    # of takedown: its log, or a source text of its implementation
    reason = "measured with a warm cache"
    author = "reviewer"
    date = 2026-07-01           # a date or an instant, UTC where it names no zone

The run stays, its standing ends at that date. A takedown also takes texts out of the blobs (see
:mod:`pipeline.store.tombstones`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from pipeline.errors import CorrectionError
from pipeline.manifests import canonical_text, sha256_of
from pipeline.manifests.documents import explain
from pipeline.store.arrow import arrow_schema
from pipeline.store.files import read_plain
from pipeline.store.frames import pl
from pipeline.store.tables import CORRECTIONS

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Correction(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    run: Digest
    action: Literal["retract", "supersede", "takedown"]
    reason: Sentence
    author: Sentence
    date: datetime | date
    successor: Digest | None = None
    removes: list[Digest] = []

    @model_validator(mode="after")
    def _fits_its_action(self) -> Correction:
        if (self.action == "supersede") != (self.successor is not None):
            raise ValueError("supersede, and no other action, names a successor")
        if (self.action == "takedown") != bool(self.removes):
            raise ValueError("takedown, and no other action, names in removes the texts that it removes")
        try:
            _ = self.at
        except OverflowError:
            raise ValueError("the date lies beyond the years 1 to 9999 in UTC") from None
        return self

    @property
    def at(self) -> datetime:
        """From when on it counts: UTC, without zone."""
        if not isinstance(self.date, datetime):
            return datetime(self.date.year, self.date.month, self.date.day)  # noqa: DTZ001 - the tables hold UTC
        zoned = self.date if self.date.tzinfo else self.date.replace(tzinfo=UTC)
        return zoned.astimezone(UTC).replace(tzinfo=None)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    correction: list[dict[str, Any]] = []


@dataclass(frozen=True)
class Corrections:
    """The entries of a file that is good in itself; whether the runs exist is checked by :meth:`check`."""

    path: Path
    entries: tuple[Correction, ...] = ()

    @property
    def digest(self) -> str:
        """Identity of what they say: part of what decides a build."""
        rows = [
            entry.model_dump(mode="json", exclude={"date"}) | {"at": entry.at.isoformat()} for entry in self.entries
        ]
        return sha256_of(canonical_text(rows))

    @property
    def removed(self) -> dict[str, Correction]:
        """The texts that takedowns remove, by digest."""
        return {digest: entry for entry in self.entries for digest in entry.removes}

    def rows(self) -> pa.Table:
        """Return the rows of the table ``corrections``."""
        return pa.Table.from_pylist(
            [
                {
                    "run_digest": entry.run,
                    "action": entry.action,
                    "successor": entry.successor,
                    "removes": entry.removes,
                    "reason": entry.reason,
                    "author": entry.author,
                    "at": entry.at,
                }
                for entry in self.entries
            ],
            schema=arrow_schema(CORRECTIONS),
        )

    def check(self, runs: Sequence[Path], artifacts: Mapping[str, Sequence[Path]]) -> None:
        """Check that what the entries name is there.

        Args:
            runs: the Parquet parts of ``runs``.
            artifacts: the parts of ``artifacts`` under that name.

        Raises:
            CorrectionError: a run or successor is unknown, or a text is no log or source that the warehouse knows.
        """
        if not self.entries:
            return
        known = _matching(runs, "run_digest", {entry.run for entry in self.entries} | set(_successors(self.entries)))
        texts = _matching(artifacts["artifacts"], "digest", set(self.removed))
        for number, entry in enumerate(self.entries, 1):
            for run in filter(None, (entry.run, entry.successor)):
                if run not in known:
                    raise self._wrong(number, entry.run, f"the warehouse has no run {run}")
            for text in entry.removes:
                if text not in texts:
                    raise self._wrong(number, entry.run, f"the warehouse has no log or source {text}")

    def _wrong(self, number: int, run: object, what: str) -> CorrectionError:
        return CorrectionError(
            f"{self.path} entry {number} (run {run}): {what}; correct the entry, nothing was changed"
        )


def read_corrections(path: Path) -> Corrections:
    """Return the corrections of a file; a file that is not there holds none.

    Raises:
        CorrectionError: the file cannot be read or is no TOML, an entry is malformed, two entries say the same of a
            run, or runs supersede each other in a circle.
    """
    if not os.path.lexists(path):
        return Corrections(path)
    try:
        document = tomllib.loads(read_plain(path).decode("utf-8"))
    except OSError as error:
        what = f"{path} cannot be read ({error.strerror})"
        raise CorrectionError(f"{what}: put a readable file there or take it away, nothing was changed") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CorrectionError(f"{path} is no TOML ({error}): correct the file, nothing was changed") from None
    try:
        raw = _File.model_validate(document).correction
    except ValidationError as error:
        raise CorrectionError(f"{path}: {explain(error)}; correct the file, nothing was changed") from None
    found = Corrections(path)
    entries: list[Correction] = []
    for number, fields in enumerate(raw, 1):
        try:
            entry = Correction.model_validate(fields)
        except ValidationError as error:
            raise found._wrong(number, fields.get("run", "not named"), explain(error)) from None
        if any((entry.run, entry.action) == (other.run, other.action) for other in entries):
            raise found._wrong(number, entry.run, f"an earlier entry says {entry.action} of this run already")
        entries.append(entry)
        if (circle := _circle(entries, entry.run)) is not None:
            raise found._wrong(number, entry.run, f"runs supersede each other in a circle through {circle}")
    return Corrections(path, tuple(entries))


def _successors(entries: Iterable[Correction]) -> list[str]:
    return [entry.successor for entry in entries if entry.successor is not None]


def _circle(entries: Sequence[Correction], start: str) -> str | None:
    """Return a run on the way from ``start`` along its successors back to it, or None where there is no way back."""
    successors = {entry.run: entry.successor for entry in entries if entry.successor is not None}
    run = successors.get(start)
    for _ in successors:
        if run is None:
            return None
        if run == start:
            return successors[start]
        run = successors.get(run)
    return None


def _matching(parts: Sequence[Path], column: str, wanted: Collection[str]) -> set[str]:
    if not parts or not wanted:
        return set()
    rows = pl.scan_parquet(list(parts), glob=False).select(column).filter(pl.col(column).is_in(list(wanted)))
    return set(rows.collect()[column])
