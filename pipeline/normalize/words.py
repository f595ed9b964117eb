"""Small functions over names: how upstream text becomes canonical text."""

from __future__ import annotations

import hashlib
import re

_NOT_KEBAB = re.compile(r"[^a-z0-9]+")
_NOT_TOKEN = re.compile(r"[^a-z0-9_]")
_DIGITS = re.compile(r"[0-9]{1,20}")
_SLUG_LENGTH = 100

_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
}
_LANGUAGES = {"cuda_cpp": "cuda"}


def kebab(text: str) -> str:
    """Return text in lower case with single dashes between its letters and digits, 100 characters at most."""
    return _NOT_KEBAB.sub("-", text.lower()).strip("-")[:_SLUG_LENGTH]


def token(text: str) -> str:
    """Return text in lower case with ``_`` for each character outside ``a-z0-9_``."""
    return _NOT_TOKEN.sub("_", text.lower())


def argument_name(text: str) -> str:
    """Return the canonical name of an argument: a token, with ``x_`` in front where no letter begins it."""
    name = token(text)
    return name if name[:1].isalpha() else "x_" + name


def dimension(value: int | str) -> int | str:
    """Return a canonical dimension: an integer, also from a string of digits, or an axis name in lower case."""
    if isinstance(value, int):
        return value
    return int(value) if _DIGITS.fullmatch(value) else value.lower()


def dtype(text: str) -> str:
    """Return the canonical name of an upstream dtype: bf16, fp16, fp8_e4m3, int32, ..."""
    return _DTYPES.get(text.lower(), token(text))


def language(text: str) -> str:
    """Return the canonical name of an upstream language."""
    return _LANGUAGES.get(token(text), token(text))


def document_name(*parts: str) -> str:
    """Return an editorial document name from parts; a digest stands in where no letter or digit is left."""
    text = "-".join(filter(None, (kebab(part) for part in parts)))
    return text[:200] or "x" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
