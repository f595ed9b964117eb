"""Returns an input that it wrote into. CPU and GPU: OUTPUT_ALIASES."""


def run(x, y):
    return x.add_(y, alpha=2)
