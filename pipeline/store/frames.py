"""polars, for whoever needs frames: imported here alone, because of what its import does to Ctrl-C.

It puts in a handler of SIGINT after which the system begins blocked calls again (SA_RESTART). Then Ctrl-C would not end
a wait for the writer's lock or for a thread.
"""

import signal

import polars as pl  # noqa: TID251

signal.siginterrupt(signal.SIGINT, True)

__all__ = ["pl"]
