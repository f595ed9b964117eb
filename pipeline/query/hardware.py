"""Which hardware a GPU's name means."""

from __future__ import annotations

import re


def means(gpu: str, hardware: str) -> bool:
    """Return whether ``gpu`` stands in the hardware text as a word: no letter or digit on either side, any case.

    ``B200`` means ``NVIDIA B200`` and not ``NVIDIA GB200``; ``h100 pcie`` means ``NVIDIA H100 PCIe 80GB``.
    """
    words = r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", gpu.strip()))
    return bool(words) and re.search(rf"(?<![a-z0-9]){words}(?![a-z0-9])", hardware, re.IGNORECASE) is not None
