"""``python -m runner JOBS... --out DIR --allow-code``: run job files on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .batch import CannotRun, Event, run_batch
from .job import JobError


def main() -> int:
    """Parse the command line and run the batch."""
    parser = argparse.ArgumentParser(prog="runner", description="Run controlled reruns; needs Python and torch.")
    parser.add_argument("jobs", nargs="+", type=Path, help="job files, or folders of them")
    parser.add_argument(
        "--out", required=True, type=Path, help="folder for the results; what is there is not run again"
    )
    parser.add_argument("--allow-code", action="store_true", help="run the code in the jobs: it is untrusted")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--tensors", type=Path, help="folder of the trace set that holds the tensor files")
    options = parser.parse_args()
    if not options.allow_code:
        parser.error("the jobs carry untrusted code: add --allow-code to run it in the sandbox")
    device = options.device
    if device == "auto":
        from .host import default_device

        device = default_device()
    try:
        run_batch(options.jobs, options.out, device=device, tensors=options.tensors, report=_print)
    except (JobError, CannotRun) as error:
        print(f"runner: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("runner: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _print(event: Event) -> None:
    again = " (done before)" if event.resumed else ""
    line = f"[{event.number}/{event.total}] {event.status} {event.title}: {event.detail}{again}"
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
