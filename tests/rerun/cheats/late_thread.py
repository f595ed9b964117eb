"""Returns at once and lets a thread do the work. CPU and GPU: THREAD_LEFT_RUNNING."""

import threading
import time

import torch


def run(x, y):
    out = torch.empty_like(x)

    def work():
        time.sleep(0.02)
        torch.add(x, y, alpha=2, out=out)

    threading.Thread(target=work, daemon=True).start()
    return out
