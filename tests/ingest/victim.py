"""A process to be killed: pulls from the fake Hub when told to. Run as ``python -m tests.ingest.victim``."""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.ingest import IngestRequest, ingest
from pipeline.store.layout import DataDirectory

if __name__ == "__main__":
    folder, source, endpoint, store_host = sys.argv[1:]
    request = IngestRequest(source=source, endpoint=endpoint, allow_hosts=(store_host,))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    ingest(DataDirectory(Path(folder)), request)
