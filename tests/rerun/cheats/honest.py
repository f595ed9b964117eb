"""No cheat: what the operation asks for."""


def run(x, y):
    return x + 2 * y
