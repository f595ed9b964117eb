"""Whether an output is right: by shape, dtype, finiteness, tolerance and the share of elements within it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

_DEFAULT = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float8_e4m3fn: (0.125, 0.125),
    torch.float8_e5m2: (0.25, 0.25),
}
"""Absolute and relative tolerance by dtype, where the workload has none; integers and booleans must be equal."""

_CHUNK = 2**22


@dataclass(frozen=True)
class Tolerance:
    """An element is within tolerance where ``|output - expected| <= absolute + relative * |expected|``."""

    absolute: float
    relative: float
    required_ratio: float
    """Share of elements that must be within tolerance."""


@dataclass(frozen=True)
class Comparison:
    """What a comparison found; errors are over the elements where both are finite."""

    matched_ratio: float
    max_absolute: float
    max_relative: float
    finite: bool
    """The output is finite wherever the expected one is."""


def tolerance_for(dtype: torch.dtype, workload: dict[str, object]) -> Tolerance:
    """Return the tolerance of a workload, else the default of a dtype."""
    given = workload.get("tolerance")
    given = given if isinstance(given, dict) else {}
    absolute, relative = _DEFAULT.get(dtype, (0.0, 0.0))
    return Tolerance(
        _number(given.get("max_atol"), absolute),
        _number(given.get("max_rtol"), relative),
        _number(given.get("required_matched_ratio"), 1.0),
    )


def compare(output: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> Comparison:
    """Compare an output with the expected one, which may be of a wider dtype; both have one shape."""
    matched, absolute, relative, finite = 0, 0.0, 0.0, True
    flat, wanted = output.reshape(-1), expected.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        got = flat[start : start + _CHUNK].double()
        right = wanted[start : start + _CHUNK].double()
        size = right.abs()
        error = (got - right).abs_()
        within = error <= size * tolerance.relative + tolerance.absolute
        if bool(torch.isfinite(error).all()):
            matched += int(within.sum())
        else:
            known = torch.isfinite(right)
            both = known & torch.isfinite(got)
            finite = finite and bool((both == known).all())
            equal = (got == right) | (torch.isnan(got) & torch.isnan(right))
            matched += int(((within & both) | (equal & ~known)).sum())
            error, size = error[both], size[both]
        if error.numel():
            absolute = max(absolute, float(error.max()))
            relative = max(relative, float((error / size.masked_fill(size == 0, math.inf)).max()))
    total = flat.numel()
    return Comparison(matched / total if total else 1.0, absolute, relative, finite)


def is_right(found: Comparison, tolerance: Tolerance) -> bool:
    """Tell whether a comparison passes."""
    return found.finite and found.matched_ratio >= tolerance.required_ratio


def _number(value: object, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return default
    return float(value)
