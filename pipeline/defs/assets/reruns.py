"""Controlled reruns: runs of the warehouse repeated on a GPU of this host, where there is one."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import dagster as dg

from pipeline.defs.execution import GPU, failures
from pipeline.defs.metadata import OWNERS
from pipeline.defs.resources import DataResource, RerunConfig
from pipeline.errors import CheckFailure
from pipeline.ingest.reruns import import_reruns
from pipeline.rerun.plan import plan, write_jobs
from pipeline.rerun.protocol import RERUN_PROTOCOL
from pipeline.rerun.verdict import VERDICT_VERSION

RERUNS = dg.AssetKey("controlled_reruns")
_SHOWN = ("operation", "implementation", "shape_summary", "hardware", "status", "verdict", "ratio")


def controlled_reruns() -> dg.AssetsDefinition:
    """Return the asset of the controlled reruns."""

    @dg.asset(
        key=RERUNS,
        deps=[dg.AssetKey(["warehouse", "runs"])],
        description="Chosen runs repeated on the GPU of this host, and imported as evidence; skipped without a GPU",
        group_name="reruns",
        owners=OWNERS,
        code_version=f"{RERUN_PROTOCOL.digest} {VERDICT_VERSION}",
        output_required=False,
        pool=GPU,
    )
    def reruns(context: dg.AssetExecutionContext, config: RerunConfig, data: DataResource) -> Any:
        """Plan, run in the sandbox, import; yield nothing where nothing can be run."""
        if (missing := config.missing()) is not None:
            context.log.warning(missing)
            return
        with failures(context, data), tempfile.TemporaryDirectory(prefix="reruns-") as folder:
            jobs, results = Path(folder, "jobs"), Path(folder, "results")
            _plan(config, data, jobs)
            _run(context, config, jobs, results)
            _, verdicts = import_reruns(data.directory, results, _quiet)
            yield dg.MaterializeResult(asset_key=RERUNS, metadata=_metadata(verdicts))

    return reruns


def _plan(config: RerunConfig, data: DataResource, folder: Path) -> None:
    with data.warehouse() as opened:
        planned = plan(opened.connection, data.directory, config.selection, limit=config.limit)
    if not planned.jobs:
        raise CheckFailure(f"none of the chosen runs can be repeated: {'; '.join(planned.left_out.values())[:300]}")
    write_jobs(planned.jobs, folder)


def _run(context: dg.AssetExecutionContext, config: RerunConfig, jobs: Path, results: Path) -> None:
    """Launch the runner as a process of its own and pass on what it says of each job."""
    command = [sys.executable, "-m", "pipeline.defs.runner", str(jobs), str(results), config.device]
    dg.PipesSubprocessClient().run(context=context, command=command)


def _metadata(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    records = [dg.TableRecord({name: row[name] for name in _SHOWN}) for row in verdicts]
    schema = dg.TableSchema([dg.TableColumn(name) for name in _SHOWN])
    return {"dagster/row_count": len(verdicts), "verdicts": dg.MetadataValue.table(records, schema)}


def _quiet(stage: str, done: int, total: int | None) -> None:
    """Report no progress: an import takes seconds."""
