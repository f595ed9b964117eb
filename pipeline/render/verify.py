"""The outcome of ``verify`` as text."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.query.verify import Check
from pipeline.render import text as words
from pipeline.render.screen import Screen


def render(screen: Screen, checks: Sequence[Check]) -> None:
    """Write one line a check, below a failed one what is wrong and where, and the outcome."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        screen.prose(f"{'ok    ' if check.ok else 'FAILED'}  {check.name:<{width}}  {check.detail}")
        for problem in check.problems:
            screen.prose(f"{problem.where}: {problem.what}", "        ")
        if hidden := check.failures - len(check.problems):
            screen.prose(f"... and {words.count(hidden, 'more problem')}", "        ")
    failed = sum(not check.ok for check in checks)
    screen.prose(f"{len(checks)} checks, {failed} failed" if failed else f"{len(checks)} checks, all passed")
