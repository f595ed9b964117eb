"""Uses an input as its work space. CPU and GPU: INPUT_MUTATED."""


def run(x, y):
    y.mul_(2)
    return x + y
