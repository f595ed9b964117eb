"""Words and numbers for people: units, ratios, dates, and names made safe to display."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

SEPARATOR = " · "

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NARROW = str.maketrans({"µ": "u", "×": "x", "·": "|", "→": "->", "—": "-"})
_FLOATS = ("bf", "fp", "tf", "nvfp", "mxfp", "e4m3", "e5m2")
_EVIDENCE = {
    "reported": "Reported",
    "reproducible": "Reproduction-ready",
    "verified": "Verified",
    "replicated": "Replicated",
}
_TRACE_SETS = {"flashinfer-bench": "FlashInfer-Bench"}
_RERUNS = frozenset({"kernelhouse-rerun"})
_CASED = (
    *("BF16", "DSA", "FFN", "FP16", "FP32", "FP8", "GELU", "GEMM", "GEMV", "GQA", "INT4", "INT8", "KV", "LayerNorm"),
    *("MLA", "MLP", "MoE", "NVFP4", "QKV", "RMSNorm", "RoPE", "SiLU", "SwiGLU"),
)
_SPELLED = {word.lower(): word for word in _CASED}


def visible(text: str) -> str:
    """Return ``text`` with control, format (bidi) and unassigned characters as escapes.

    Names and logs are data from strangers: an escape sequence must not reach a terminal, and a bidi
    control must not reorder what stands beside it.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(char) if unicodedata.category(char) in _UNSAFE else char for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def encodable(text: str, encoding: str) -> str:
    """Return ``text`` so that ``encoding`` can carry it: ``us`` and ``x`` where it lacks the signs, escapes beyond."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_NARROW).encode(encoding, "backslashreplace").decode(encoding)
    return text


def cells(text: str) -> int:
    """Return the columns that ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def latency(nanoseconds: float | None) -> str:
    """Return a time for people: 477 ns, 1.85 µs, 137.3 µs, 1.54 ms; two decimals below 10, else one."""
    if nanoseconds is None:
        return "-"
    if nanoseconds < 999.5:
        return f"{nanoseconds:.0f} ns"
    value, unit = _scaled(nanoseconds, ("µs", "ms", "s"), 999.95)
    return f"{value:.2f} {unit}" if value < 9.995 else f"{value:.1f} {unit}"


def _scaled(value: float, units: Sequence[str], limit: float) -> tuple[float, str]:
    """Return the value in the first of ``units``, each a thousand of the one before, in which it is below ``limit``."""
    for unit in units:
        value /= 1000
        if value < limit:
            return value, unit
    return value, units[-1]


def ratio(value: float | None) -> str:
    """Return a ratio for people: 1.04×, 79.54×, 5063.3×."""
    if value is None:
        return "-"
    return f"{value:.2f}×" if value < 100 else f"{value:.1f}×"


def number(value: float | None) -> str:
    """Return a number in its shortest exact form, a whole one without its ``.0``; ``-`` where there is none."""
    if value is None:
        return "-"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(value)


def size(count: int) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    if count < 1000:
        return f"{count} B"
    value, unit = _scaled(count, ("kB", "MB", "GB", "TB"), 999.5)
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def count(amount: int, noun: str, plural: str | None = None) -> str:
    """Return an amount with its noun: 1 run, 1,331 runs."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def day(at: datetime | None) -> str:
    """Return the UTC day."""
    return "-" if at is None else at.strftime("%Y-%m-%d")


def moment(at: datetime | None) -> str:
    """Return the UTC instant to the second."""
    return "-" if at is None else at.strftime("%Y-%m-%d %H:%M:%SZ")


def short(digest: str) -> str:
    """Return a digest cut to what names it: ``sha256:`` and twelve hex digits."""
    return digest[:19]


def shape(dimensions: Sequence[object] | None) -> str:
    """Return the dimensions of a tensor, ``scalar`` where it has none."""
    return f"[{', '.join(map(str, dimensions))}]" if dimensions else "scalar"


def title(name: str) -> str:
    """Return the name of an operation as a title: ``gemm_nvfp4_n4096_k4096`` reads GEMM NVFP4 n4096 k4096."""
    words = [_SPELLED.get(word.lower(), word) for word in name.split("_") if word]
    if words and words[0].islower():
        words[0] = words[0][0].upper() + words[0][1:]
    return " ".join(words) or name


def source(name: str) -> str:
    """Return the name of a source of measurements as it calls itself."""
    return _TRACE_SETS.get(name, name)


def project(source_name: str, role: str, author: str) -> str:
    """Return whose implementation it is: the source's baselines, or an author.

    A rerun has no baselines of its own: it repeats those of trace sets.
    """
    if role != "baseline":
        return author
    return f"{' and '.join(_TRACE_SETS.values()) if source_name in _RERUNS else source(source_name)} baselines"


def evidence(level: str) -> str:
    """Return the label of an evidence level."""
    return _EVIDENCE.get(level, level)


def trust(level: str, license_name: str | None, source_available: bool) -> str:
    """Return evidence and availability in one: ``Reported · Apache-2.0 · source``."""
    return SEPARATOR.join(filter(None, (evidence(level), availability(license_name, source_available))))


def availability(license_name: str | None, source_available: bool) -> str:
    """Return under which licence an implementation can be had, and whether as source."""
    return SEPARATOR.join(filter(None, (license_name, "source" if source_available else None)))


def workload(shape_summary: str, dtypes: Sequence[str]) -> str:
    """Return a workload in a few words: its axes and its floating-point dtypes, or all where it has none."""
    floats = [dtype for dtype in dtypes if dtype.startswith(_FLOATS)]
    return SEPARATOR.join(filter(None, (shape_summary, "/".join(floats or dtypes))))


def environment(manifest: Mapping[str, Any]) -> list[str]:
    """Return CUDA and framework of an ExecutionEnvironment, as far as they are known."""
    software = manifest["spec"]["software"]
    words = []
    if toolkit := software.get("cudaToolkit"):
        words.append(f"CUDA {toolkit}")
    if framework := software.get("framework"):
        words.append(f"Framework {framework['name']} {framework.get('version', '')}".rstrip())
    return words


def protocol(manifest: Mapping[str, Any]) -> str:
    """Return harness and primary statistic of a BenchmarkProtocol."""
    spec = manifest["spec"]
    return f"Protocol {spec['harness']['name']}{SEPARATOR}{spec['measurement']['primaryStatistic']}"
