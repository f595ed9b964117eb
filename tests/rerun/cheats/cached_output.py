"""Computes once and returns that for ever. CPU and GPU: STALE_OUTPUT."""

kept = []


def run(x, y):
    if not kept:
        kept.append(x + 2 * y)
    return kept[0].clone()
