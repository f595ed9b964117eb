"""Writes where it must not, and hides that it could not. CPU and GPU: WRITE_OUTSIDE_SCRATCH."""

import contextlib

with contextlib.suppress(OSError), open("/tmp/kernelhouse-was-here", "w") as stream:
    stream.write("x")


def run(x, y):
    return x + 2 * y
