"""The one-by-one path alone: the reference that the columns are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.normalize.adapter import RUN_COLUMNS, Catalog, RunBatch, RunReader
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.normalize.protocol import FLASHINFER_BENCH_PROTOCOL
from pipeline.upstream.framing import Record


class OneByOne(FlashInferBench):
    """Reads every record of FlashInfer-Bench by itself."""

    def columns(self, catalog: Catalog) -> RunReader:
        """Return a reader that no record fits."""
        return _NothingFits()


class _NothingFits:
    def read(self, records: Sequence[Record]) -> RunBatch:
        rest = range(len(records))
        return RunBatch((), (), (), FLASHINFER_BENCH_PROTOCOL, rest, RUN_COLUMNS.empty_table)
