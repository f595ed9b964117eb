"""Calls a server, and hides that it could not. CPU and GPU: NETWORK_ACCESS."""

import contextlib
import socket

with contextlib.suppress(OSError):
    socket.create_connection(("192.0.2.1", 80), timeout=1)


def run(x, y):
    return x + 2 * y
