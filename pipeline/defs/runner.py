"""``python -m pipeline.defs.runner JOBS RESULTS DEVICE``: the runner as a process that Dagster Pipes listens to."""

import sys
from pathlib import Path

from dagster_pipes import open_dagster_pipes

from pipeline.rerun.runner.batch import Event, run_batch


def main(jobs: str, results: str, device: str) -> None:
    """Run a folder of jobs and tell Dagster of each."""
    with open_dagster_pipes() as pipes:

        def report(event: Event) -> None:
            line = f"[{event.number}/{event.total}] {event.status} {event.title}: {event.detail}"
            pipes.log.info(line)

        run_batch([Path(jobs)], Path(results), device=device, tensors=None, report=report)


if __name__ == "__main__":
    main(*sys.argv[1:4])
