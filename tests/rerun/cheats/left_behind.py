"""Starts a process in a session of its own, which lives on. CPU and GPU: PROCESS_LEFT_BEHIND."""

import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(120)
    os._exit(0)
os.wait()


def run(x, y):
    return x + 2 * y
