"""First steps of a worker process: shut it in while it has one thread, then load torch and serve."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import sandbox


def main() -> None:
    """Start a worker: descriptors of the channel and of the violations, then the configuration in JSON."""
    descriptor, violations, config = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    isolation = sandbox.enter(Path(config["scratch"]), file_bytes=config["file_bytes"])
    from . import worker

    worker.main(descriptor, violations, config, isolation)
