"""Works for the first ten calls alone. CPU and GPU: WRONG_AFTER_WARM_UP."""

import torch

calls = []


def run(x, y):
    calls.append(0)
    return x + 2 * y if len(calls) <= 10 else torch.empty_like(x)
