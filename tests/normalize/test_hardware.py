from __future__ import annotations

import pytest

from pipeline.normalize.environment import normalize_environment
from pipeline.normalize.hardware import hardware
from pipeline.upstream.documents import Environment

# fmt: off
HARDWARE = [
    ("B200", "nvidia", "NVIDIA B200", "sm_100"),
    ("NVIDIA_B200", "nvidia", "NVIDIA B200", "sm_100"),
    ("GB200", "nvidia", "NVIDIA GB200", "sm_100"),
    ("H200", "nvidia", "NVIDIA H200", "sm_90"),
    ("H100", "nvidia", "NVIDIA H100", "sm_90"),
    ("NVIDIA_H100", "nvidia", "NVIDIA H100", "sm_90"),
    ("A100", "nvidia", "NVIDIA A100", "sm_80"),
    # Only these spellings, exactly: every other text is its own product of unknown architecture.
    ("NVIDIA B200", "nvidia", "NVIDIA B200", "unknown"),
    ("b200", "nvidia", "b200", "unknown"),
    (" B200", "nvidia", " B200", "unknown"),
    ("NVIDIA_H200", "nvidia", "NVIDIA H200", "unknown"),
    ("NVIDIA_A100", "nvidia", "NVIDIA A100", "unknown"),
    ("NVIDIA H100 80GB HBM3", "nvidia", "NVIDIA H100 80GB HBM3", "unknown"),
    ("NVIDIA_H100_80GB_HBM3", "nvidia", "NVIDIA H100 80GB HBM3", "unknown"),
    ("NVIDIA A800-SXM4-80GB", "nvidia", "NVIDIA A800-SXM4-80GB", "unknown"),
    ("cuda:0", "nvidia", "cuda:0", "unknown"),
    ("CPU", "nvidia", "CPU", "unknown"),
    ("AMD Instinct MI350X", "amd", "AMD Instinct MI350X", "unknown"),
    ("AMD_Instinct_MI350X", "amd", "AMD Instinct MI350X", "unknown"),
    ("amd", "amd", "amd", "unknown"),
    ("Radeon RX 7900", "amd", "Radeon RX 7900", "unknown"),
    ("INSTINCT", "amd", "INSTINCT", "unknown"),
    ("MI300X", "amd", "MI300X", "unknown"),
    ("MI300A", "amd", "MI300A", "unknown"),
    ("mi325x", "amd", "mi325x", "unknown"),
    ("MI250", "amd", "MI250", "unknown"),
    ("gfx942", "amd", "gfx942", "unknown"),
    ("gfx90a", "amd", "gfx90a", "unknown"),
    ("Amdahl 1", "nvidia", "Amdahl 1", "unknown"),  # amd is no word in it
]
# fmt: on


@pytest.mark.parametrize(("text", "vendor", "product", "architecture"), HARDWARE)
def test_hardware(text: str, vendor: str, product: str, architecture: str) -> None:
    read = hardware(text)
    assert (read.vendor, read.product, read.architecture) == (vendor, product, architecture)


@pytest.mark.parametrize(
    ("libs", "software"),
    [
        (None, {}),
        ({}, {}),
        ({"cuda": "13.0"}, {"cudaToolkit": "13.0"}),
        ({"torch": "2.11.0+cu130"}, {"framework": {"name": "pytorch", "version": "2.11.0+cu130"}}),
        ({"triton": "3.6.0", "Flash-Attn": "2"}, {"libraries": {"triton": "3.6.0", "flash_attn": "2"}}),
        (
            {"torch": "2", "cuda": "13", "triton": "3"},
            {"cudaToolkit": "13", "framework": {"name": "pytorch", "version": "2"}, "libraries": {"triton": "3"}},
        ),
    ],
)
def test_software(libs: dict[str, str] | None, software: dict[str, object]) -> None:
    document = normalize_environment(Environment(hardware="B200", libs=libs)).document
    assert document["spec"]["software"] == software


def test_published_environment() -> None:
    libs = {"triton": "3.6.0", "cuda": "13.0", "torch": "2.11.0+cu130"}
    assert (
        normalize_environment(Environment(hardware="NVIDIA B200", libs=libs)).digest
        == "sha256:83c9b6e78d493927f18878d57448d9a0d2221a70840b562455b2665a2897ba19"
    )
