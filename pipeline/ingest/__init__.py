"""One pull from end to end: list, fetch, normalize, store, publish, account."""

from pipeline.ingest.pull import ingest
from pipeline.ingest.report import IngestReport, IngestRequest

__all__ = ["IngestReport", "IngestRequest", "ingest"]
