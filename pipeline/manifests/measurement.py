"""BenchmarkProtocol, ExecutionEnvironment and BenchmarkRun: how, where and what was measured."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, StringConstraints, model_validator

from pipeline.manifests.scalars import (
    Artifact,
    Commit,
    Count,
    Digest,
    NotNegative,
    Number,
    Positive,
    Ratio,
    Strict,
    Text,
    Token,
    Url,
)

RunStatus = Literal[
    "passed",
    "incorrect_shape",
    "incorrect_numerical",
    "incorrect_dtype",
    "runtime_error",
    "compile_error",
    "timeout",
    "invalid_reference",
    "suspected_reward_hack",
    "resource_exceeded",
    "policy_violation",
    "incomplete_evidence",
    "revoked",
]
Statistic = Literal["mean", "median", "p05", "p95", "minimum", "maximum"]


def _existing(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Instant = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"),
    AfterValidator(_existing),
]


class Harness(Strict):
    """The program that measures."""

    name: Text
    repository: Url | None = None
    version: Text | None = None
    commit: Commit | None = None


class Measurement(Strict):
    """How time is taken; counts are of iterations, durations are in text with their unit."""

    timer: Token
    primary_statistic: Statistic
    synchronization: Text | None = None
    compile_included: bool | None = None
    setup_included: bool | None = None
    warmup_iterations: Count | None = None
    warmup_duration: Text | Number | None = None
    measured_iterations: Count | None = None
    samples: Count | None = None
    input_regeneration: Text | None = None
    outlier_policy: Text | None = None


class DevicePolicy(Strict):
    """What the protocol asks of the device."""

    clocks_locked: bool | None = None
    power_limit_watts: NotNegative | None = None
    persistence_mode: bool | None = None


class ProtocolCorrectness(Strict):
    """How outputs are judged."""

    reference: Text
    comparator: Token


class Comparability(Strict):
    """The family of protocols whose runs may be compared."""

    family: Token
    notes: Text | None = None


class ProtocolBody(Strict):
    """The spec of a BenchmarkProtocol."""

    harness: Harness
    measurement: Measurement
    device_policy: DevicePolicy | None = None
    correctness: ProtocolCorrectness
    comparability: Comparability


class Hardware(Strict):
    """The device: vendor, product name, architecture."""

    vendor: Token
    product: Text
    architecture: Text
    form_factor: Text | None = None
    memory_bytes: Count | None = None
    count: Count | None = None
    interconnect: Text | None = None


class Framework(Strict):
    """The tensor framework and its version."""

    name: Text
    version: Text


class Software(Strict):
    """Versions of what ran on the device's host; empty where nothing is known."""

    cuda_toolkit: Text | None = None
    framework: Framework | None = None
    libraries: dict[Token, Text] | None = None
    operating_system: Text | None = None
    kernel: Text | None = None
    driver: Text | None = None
    compiler: Text | None = None


class EnvironmentBody(Strict):
    """The spec of an ExecutionEnvironment."""

    hardware: Hardware
    software: Software
    settings: dict[Token, str | bool | Number] | None = None
    image_digest: Digest | None = None


class RunCorrectness(Strict):
    """What the comparison found; a bound that is not finite is absent."""

    comparator: Token
    maximum_absolute_error: Number | None = None
    maximum_relative_error: Number | None = None
    matched_ratio: Ratio | None = None


class LatencyNs(Strict):
    """Latency statistics in nanoseconds."""

    mean: Positive | None = None
    median: Positive | None = None
    p05: Positive | None = None
    p95: Positive | None = None
    minimum: Positive | None = None
    maximum: Positive | None = None
    mad: NotNegative | None = None
    confidence95: tuple[NotNegative, NotNegative] | None = None


class Timing(Strict):
    """The measurement of a run."""

    primary_statistic: Statistic
    latency_ns: LatencyNs
    samples: Count | None = None
    raw_samples: Artifact | None = None


class OtherMeasurement(Strict):
    """A measured value that is no latency."""

    metric: Token
    unit: Text
    statistic: Token
    value: Number
    sample_count: Count | None = None


class SourceNative(Strict):
    """What the source itself said of the run, in its own words and numbers."""

    source: Text
    benchmark: Text
    external_id: Text | None = None
    metrics: dict[Token, Number] | None = None


class Evidence(Strict):
    """Artifacts kept with the run."""

    logs: Artifact | None = None
    raw_samples: Artifact | None = None
    harness: Artifact | None = None


class RunBody(Strict):
    """The spec of a BenchmarkRun."""

    implementation_digest: Digest
    workload_digest: Digest
    protocol_digest: Digest
    environment_digest: Digest
    status: RunStatus
    correctness: RunCorrectness | None = None
    timing: Timing | None = None
    measurements: tuple[OtherMeasurement, ...] | None = None
    source_native: SourceNative | None = None
    evidence: Evidence | None = None
    observed_at: Instant

    @model_validator(mode="after")
    def _passed_runs_are_timed(self) -> Self:
        latency = self.timing.latency_ns if self.timing else None
        if self.status == "passed" and (latency is None or (latency.mean is None and latency.median is None)):
            raise ValueError("a passed run must have timing.latencyNs.mean or .median")
        return self
