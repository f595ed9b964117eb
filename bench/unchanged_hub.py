"""What it costs to ask a Hub that has nothing new: ``python -m bench.unchanged_hub``.

A dataset of 10,000 files on loopback is pulled once. Then it is pulled again, at the same commit and at a commit that
changes its README alone. Nothing may be read and no run added, and each has a budget of CPU time.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pipeline.ingest import IngestReport, IngestRequest, ingest
from pipeline.store.layout import DataDirectory
from tests.fake_hub.server import REPOSITORY, FakeHub
from tests.fake_hub.sets import definition, solution, trace

FILES = 10_000
BUDGET_S = 2.0
"""CPU seconds of user and system, of this process: the fake Hub's share is in it."""


def trace_set() -> dict[str, bytes]:
    """Return a set of FILES files: one definition, a README, and solutions with a trace file each."""
    files = {"definitions/elementwise/scale.json": definition(), "README.md": b"first"}
    for number in range((FILES - len(files)) // 2):
        files[f"solutions/alice/elementwise/scale/s{number}.json"] = solution(f"s{number}", content=str(number))
        files[f"traces/alice/elementwise/t{number}.jsonl"] = trace(f"s{number}", 1.0 + number / 1e3, 1)
    return files


def main() -> int:
    """Run it, print one JSON line a case, and return 1 where a budget is overrun."""
    failed = False
    with FakeHub() as hub, tempfile.TemporaryDirectory() as folder:
        data = DataDirectory(Path(folder) / "data")
        request = IngestRequest(source=f"hub:{REPOSITORY}", endpoint=hub.endpoint)
        files = trace_set()
        hub.commit(files)
        for case in ("first pull", "same commit", "README alone changed"):
            if case.startswith("README"):
                hub.commit(files | {"README.md": b"second"})
            asked, began = len(hub.seen), time.process_time()
            report = ingest(data, request)
            cpu_s = time.process_time() - began
            targets = [seen.target for seen in hub.seen[asked:]]
            line = {
                "case": case,
                "cpu_s": round(cpu_s, 2),
                "listed": report.files,
                "tree_pages": sum("/tree/" in target for target in targets),
                "fetched": sum("/resolve/" in target for target in targets),
                "read": report.files_read if report.new_snapshot else 0,
                "published": report.published,
            }
            sys.stdout.write(json.dumps(line) + "\n")
            failed |= case == "same commit" and not _costs_nothing(report, cpu_s, line)
    return int(failed)


def _costs_nothing(report: IngestReport, cpu_s: float, line: dict[str, object]) -> bool:
    free = not report.new_snapshot and not report.published and line["fetched"] == line["read"] == 0
    return free and cpu_s < BUDGET_S


if __name__ == "__main__":
    sys.exit(main())
