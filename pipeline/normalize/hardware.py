"""Hardware text, as harnesses write it, to vendor, product and architecture."""

from __future__ import annotations

import re

from pipeline.manifests.measurement import Hardware

_AMD = re.compile(r"(?<![a-z0-9])(?:amd|instinct|radeon|mi[0-9]{2,3}[a-z]*|gfx[0-9a-f]*)(?![a-z0-9])", re.IGNORECASE)

_EXACT = {
    "B200": ("NVIDIA B200", "sm_100"),
    "NVIDIA_B200": ("NVIDIA B200", "sm_100"),
    "GB200": ("NVIDIA GB200", "sm_100"),
    "H200": ("NVIDIA H200", "sm_90"),
    "H100": ("NVIDIA H100", "sm_90"),
    "NVIDIA_H100": ("NVIDIA H100", "sm_90"),
    "A100": ("NVIDIA A100", "sm_80"),
}
"""Spellings that name their architecture in the public index; every other text is its own product."""


def hardware(text: str) -> Hardware:
    """Return the canonical hardware of a hardware text."""
    product, architecture = _EXACT.get(text, (text.replace("_", " "), "unknown"))
    return Hardware(
        vendor="amd" if _AMD.search(text.replace("_", " ")) else "nvidia", product=product, architecture=architecture
    )
