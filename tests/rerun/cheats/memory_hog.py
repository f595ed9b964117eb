"""Takes all the memory that it can have. CPU and GPU: MEMORY_LIMIT."""

import time

kept = []


def run(x, y):
    while True:
        kept.append(bytearray(b"x") * (64 * 2**20))
        time.sleep(0.01)
