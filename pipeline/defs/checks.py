"""Checks: what the tables promise (``pipeline/query/promises.py``), as asset checks of Dagster.

A blocking check that fails stops whatever depends on the table: the parts before anything is replayed on them, the
evidence before it is published, the warehouse before it is exported.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import dagster as dg

from pipeline.defs.execution import failures
from pipeline.defs.resources import DataResource
from pipeline.errors import CheckFailure
from pipeline.query.promises import Opened, Promise, check_parts
from pipeline.query.verify import Check
from pipeline.store.lineage import Place, Recipe

INTACT = "parts"


def intact_spec(recipe: Recipe) -> dg.AssetCheckSpec:
    """Return the check that the parts of a table are what the commits say."""
    said = "Its parts have the SHA-256 and the rows that the commits name, before anything is built on them"
    return dg.AssetCheckSpec(INTACT, asset=dg.AssetKey(recipe.place), description=said, blocking=True)


def intact(made: Sequence[Recipe], data: DataResource) -> Iterator[dg.AssetCheckResult]:
    """Yield whether the parts of each table are sound.

    Raises:
        CheckFailure: some are not.
    """
    commits = data.commits()
    outcomes = []
    for recipe in made:
        check = check_parts(data.directory, commits, recipe.table)
        outcomes.append((recipe.place, INTACT, check))
        yield _result(recipe.place, INTACT, check, blocking=True)
    _refuse(outcomes)


def table_checks(name: str, promised: Sequence[Promise]) -> dg.AssetChecksDefinition:
    """Return the checks of what the tables of a place promise, all in one step."""
    by_key = {dg.AssetCheckKey(dg.AssetKey(promise.place), promise.name): promise for promise in promised}

    @dg.multi_asset_check(
        name=f"{name}_checks",
        specs=[
            dg.AssetCheckSpec(key.name, asset=key.asset_key, description=promise.description, blocking=promise.blocking)
            for key, promise in by_key.items()
        ],
        can_subset=True,
    )
    def checks(context: dg.AssetCheckExecutionContext, data: DataResource) -> Iterator[dg.AssetCheckResult]:
        """Look at the tables; the first sentence of what is wrong becomes the failure of the run."""
        opened: Callable[[], AbstractContextManager[Opened]] = getattr(data, name)
        failed = []
        with failures(context, data), opened() as tables:
            for key in sorted(context.selected_asset_check_keys, key=list(by_key).index):
                promise = by_key[key]
                check = promise.check(tables)
                if promise.blocking:
                    failed.append((promise.place, promise.name, check))
                yield _result(promise.place, promise.name, check, blocking=promise.blocking)
            _refuse(failed)

    return checks


def _result(place: Place, name: str, check: Check, *, blocking: bool) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=dg.AssetKey(place),
        check_name=name,
        passed=check.ok,
        severity=dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN,
        description=check.detail,
        metadata={
            "failures": check.failures,
            "problems": [f"{problem.where}: {problem.what}" for problem in check.problems],
        },
    )


def _refuse(outcomes: Sequence[tuple[Place, str, Check]]) -> None:
    """Raise CheckFailure naming the first problem of every check that failed."""
    failed = [
        f"check {name} of {'/'.join(place)} failed: {check.problems[0].where}: {check.problems[0].what}"
        for place, name, check in outcomes
        if not check.ok
    ]
    if failed:
        raise CheckFailure(f"{'; '.join(failed)}; the job rebuild (kernelhouse ingest --rebuild) makes it again")
