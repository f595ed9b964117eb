"""RFC 8785 text and the digests over it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import rfc8785

from pipeline.errors import ManifestError

API_VERSION: Final = "kernelindex.dev/v1alpha1"


def canonical_text(value: Any) -> bytes:
    """Return the RFC 8785 (JCS) text of a JSON value, in UTF-8.

    Raises:
        ManifestError: a number is not finite or an integer leaves +-(2^53-1) (RFC 8785, 3.2.2.3),
            or a string cannot be encoded.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise ManifestError(f"no canonical JSON text exists for this document: {error}; correct the value") from error


def sha256_of(data: bytes) -> str:
    """Return ``sha256:`` and the 64 hex digits of the SHA-256 of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def identity_text(manifest: Mapping[str, Any]) -> bytes:
    """Return what the digest of a manifest is over: the JCS text of apiVersion, kind and spec alone."""
    return canonical_text({name: manifest[name] for name in ("apiVersion", "kind", "spec")})


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the digest of a manifest: SHA-256 over its identity text."""
    return sha256_of(identity_text(manifest))
