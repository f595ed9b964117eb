"""The BenchmarkProtocol of controlled reruns: what the runner does, as a manifest."""

from __future__ import annotations

from pipeline.manifests import BenchmarkProtocol
from pipeline.manifests.measurement import (
    Comparability,
    DevicePolicy,
    Harness,
    Measurement,
    ProtocolBody,
    ProtocolCorrectness,
)
from pipeline.manifests.scalars import Metadata
from pipeline.rerun import runner

COMPARATOR = "kernelhouse_rerun_v1"

RERUN_PROTOCOL = BenchmarkProtocol(
    metadata=Metadata(name="kernelhouse-rerun", title="kernelhouse controlled rerun"),
    spec=ProtocolBody(
        harness=Harness(name=runner.PROTOCOL, version=runner.PROTOCOL_VERSION),
        measurement=Measurement(
            timer="device_events",
            primary_statistic="median",
            synchronization=(
                "events around each call on its stream, outputs copied on that stream behind the second event, then "
                "the device synchronized; profiler and wall clock of the judge must agree"
            ),
            compile_included=False,
            setup_included=False,
            warmup_iterations=runner.WARMUP_CALLS,
            measured_iterations=1,
            samples=runner.SAMPLES,
            input_regeneration=(
                f"up to {runner.INPUT_SETS} contents, each call with one drawn at random in a place drawn at random; "
                f"{runner.FLUSH_BYTES} bytes written before each call to flush the L2"
            ),
            outlier_policy="none",
        ),
        device_policy=DevicePolicy(clocks_locked=False),
        correctness=ProtocolCorrectness(
            reference="definition reference in float64 where it allows, in a process of its own", comparator=COMPARATOR
        ),
        comparability=Comparability(family="kernelhouse_rerun"),
    ),
)
