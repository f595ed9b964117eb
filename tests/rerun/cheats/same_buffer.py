"""Returns the same memory every time. CPU and GPU: OUTPUT_ALIASES."""

import torch

kept = []


def run(x, y):
    if not kept:
        kept.append(torch.empty_like(x))
    return torch.add(x, y, alpha=2, out=kept[0])
