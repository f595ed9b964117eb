"""The runner of controlled reruns: one folder, which needs Python 3.10 or newer and torch and nothing else.

It is used in place or copied to the host of the GPU (``python -m runner JOBS... --out DIR --allow-code``), so its
imports are relative and it imports nothing of the package around it.

Four kinds of process, from the outside in:

- the *batch* takes one job after another and outlives whatever happens to them; it runs no foreign code;
- a *judge* for each job makes inputs, keeps them, decides what is measured and checked and when, reads its own
  clock, compares, and writes the result; it runs no foreign code either;
- a *worker* for the reference, and another for the solution, each in a sandbox: these run foreign code, and the judge
  believes nothing that they say without a second look.
"""

PROTOCOL = "kernelhouse-rerun"
"""Name of the protocol that this runner follows."""

PROTOCOL_VERSION = "1"
"""Its version; whatever may move a number, or what counts as right, makes a new one.

A check may learn to see more of the others, or to be misled less: the digest of the runner, in every result, tells
which it was.
"""

WARMUP_CALLS = 20
"""Calls before the first sample."""

SAMPLES = 200
"""Timed calls of a run."""

INPUT_SETS = 4
"""Different contents of the inputs, and places in memory for them, among which the calls rotate."""

CHECKED_SAMPLES = 16
"""Timed calls whose outputs and inputs are compared, chosen after the call; fewer where they are very large."""

FLUSH_BYTES = 512 * 2**20
"""Bytes written before each sample: several times any L2, and long enough to hide the launch of a solution."""
