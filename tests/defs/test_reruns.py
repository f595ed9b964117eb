"""The optional asset of controlled reruns: what it does without a GPU, and the whole way on a CPU."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import dagster as dg
import pytest

from pipeline.defs.jobs import INGEST, RERUN
from pipeline.defs.resources import RerunConfig
from pipeline.rerun.plan import Selection
from pipeline.rerun.runner.host import default_device
from tests.defs.conftest import Platform


def rerun(platform: Platform, **config: Any) -> dg.ExecuteInProcessResult:
    return platform.run(RERUN, run_config=dg.RunConfig(ops={"controlled_reruns": RerunConfig(**config)}))


@pytest.mark.skipif(default_device() == "cuda" and find_spec("torch") is not None, reason="here is a GPU, with torch")
def test_without_a_gpu_it_is_skipped_with_one_sentence(filled: Platform, capfd: pytest.CaptureFixture[str]) -> None:
    result = rerun(filled, operation="gemm_bf16_n4096_k4096", allow_code=True)
    assert result.success
    assert result.get_asset_materialization_events() == []
    assert capfd.readouterr().err.count("controlled reruns are skipped: ") == 1


def test_an_ingest_goes_without_it(platform: Platform) -> None:
    keys = platform.defs.resolve_job_def(INGEST).asset_layer.executable_asset_keys
    assert dg.AssetKey("controlled_reruns") not in keys


def test_every_condition_reaches_the_plan() -> None:
    given = {"operation": "o", "solution": "s", "author": "a", "workload": "w", "records": False, "sql": "SELECT 1"}
    assert RerunConfig(**given).selection == Selection(**given)


# Dagster warns of what its own Pipes client does.
@pytest.mark.filterwarnings("ignore:AssetExecutionContext.run_id:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*expected_writer_count")
@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_the_whole_way_on_a_cpu(filled: Platform) -> None:
    # The smallest of the workloads of torch_rmsnorm_h4096 is the only one below this.
    quick = "SELECT run_digest FROM runs WHERE latency_ns < 10_000"
    result = rerun(
        filled, solution="torch_rmsnorm_h4096", sql=quick, records=False, limit=2, device="cpu", allow_code=True
    )
    assert result.success
    [event] = result.get_asset_materialization_events()
    metadata = event.step_materialization_data.materialization.metadata
    [row] = metadata["verdicts"].records
    assert row.data["verdict"] == "CORRECT_OTHER_HARDWARE"
