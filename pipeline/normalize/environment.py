"""``evaluation.environment`` to ExecutionEnvironment."""

from __future__ import annotations

from pipeline.manifests import ExecutionEnvironment
from pipeline.manifests.measurement import EnvironmentBody, Framework, Software
from pipeline.manifests.scalars import Metadata
from pipeline.normalize import words
from pipeline.normalize.hardware import hardware
from pipeline.upstream import documents as upstream


def normalize_environment(environment: upstream.Environment) -> ExecutionEnvironment:
    """Return the ExecutionEnvironment that a trace reports.

    Raises:
        pydantic.ValidationError: a library name or version that no canonical document can hold.
    """
    libs = dict(environment.libs or {})
    cuda, torch = libs.pop("cuda", None), libs.pop("torch", None)
    device = hardware(environment.hardware)
    versions = [version for version in (torch, *libs.values(), cuda) if version]
    return ExecutionEnvironment(
        metadata=Metadata(
            name=words.document_name("sol-trace", device.product, *versions),
            title=f"{device.product} (trace-reported software)",
        ),
        spec=EnvironmentBody(
            hardware=device,
            software=Software(
                cuda_toolkit=cuda or None,
                framework=Framework(name="pytorch", version=torch) if torch else None,
                libraries={words.token(name): version for name, version in libs.items() if version} or None,
            ),
        ),
    )
