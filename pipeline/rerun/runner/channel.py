"""Messages between a judge and a worker: one JSON object a line over a socket pair.

A worker runs foreign code, so a judge takes every message for what anybody could have written.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from typing import Any

MAX_MESSAGE_BYTES = 64 * 2**20
_POLL_SECONDS = 0.2


class ChannelClosed(Exception):
    """The other side is gone."""


class Malformed(Exception):
    """The other side sent what is no message."""


class TimedOut(Exception):
    """No message came in time."""


class Channel:
    """One end of the line."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            ChannelClosed: nobody listens.
        """
        try:
            self._end.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, deadline: float | None = None, while_waiting: Callable[[], None] | None = None) -> dict[str, Any]:
        """Return the next message; ``deadline`` is on ``time.monotonic``.

        Raises:
            ChannelClosed, TimedOut, Malformed, or what ``while_waiting`` raises.
        """
        while (end := self._buffer.find(b"\n")) < 0:
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOut
            ready, _, _ = select.select([self._end], [], [], _POLL_SECONDS)
            if not ready:
                if while_waiting is not None:
                    while_waiting()
                continue
            try:
                chunk = self._end.recv(2**20)
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not chunk:
                raise ChannelClosed("end of stream")
            self._buffer += chunk
            if len(self._buffer) > MAX_MESSAGE_BYTES:
                raise Malformed("a message of over 64 MiB")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Malformed(f"no JSON: {error}") from error
        if not isinstance(message, dict):
            raise Malformed("no JSON object")
        return message
