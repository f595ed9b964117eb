"""The one-by-one path alone: the reference that the columns are compared with."""

from __future__ import annotations

from pipeline.normalize.adapter import Catalog, RunReader
from pipeline.normalize.adapter import OneByOne as NothingFits
from pipeline.normalize.flashinfer_bench import FlashInferBench


class OneByOne(FlashInferBench):
    """Reads every record of FlashInfer-Bench by itself."""

    def columns(self, catalog: Catalog) -> RunReader:
        """Return a reader that no record fits."""
        return NothingFits()
