"""The small types that canonical documents are made of, and the base of every model."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

SAFE_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly (RFC 8785, appendix D)."""


class Strict(BaseModel):
    """A part of a canonical document: no unknown field, no conversion, no change once made."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


def _sorted_set(values: tuple[str, ...]) -> tuple[str, ...]:
    if list(values) != sorted(set(values)):
        raise ValueError("a set-like list must be unique and sorted by code point")
    return values


def _exact(value: int | float) -> int | float:
    """Take a larger integer for the double that its text stands for; refuse one that a double would change.

    RFC 8785 writes a double up to 1e21 as a plain integer, its shortest digits filled up with zeros (3.2.2.3).
    """
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        try:
            double = float(value)
        except OverflowError:
            raise ValueError("the number is too large for a double") from None
        if value != int(Decimal(repr(double))):
            raise ValueError("a double would change this integer")
        return double
    return value


Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Token = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=100)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=200)]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Url = Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Integer = Annotated[int, Field(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]
Count = Annotated[int, Field(ge=0, le=SAFE_INTEGER)]
Number = Annotated[int | float, AfterValidator(_exact)]
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Ratio = Annotated[Number, Field(ge=0, le=1)]
SetLike = Annotated[tuple[Text, ...], AfterValidator(_sorted_set)]
TokenSet = Annotated[tuple[Token, ...], AfterValidator(_sorted_set)]


class Artifact(Strict):
    """A file that a document refers to: where, and the SHA-256 of its content."""

    uri: Text
    digest: Digest


class Author(Strict):
    """Who made something, by display name."""

    name: Text
    github: Text | None = None


class SourceRef(Strict):
    """A public page that a document was made from."""

    url: Url


class Metadata(Strict):
    """The editorial part of a manifest: it never changes the digest."""

    name: Name
    title: str | None = None
    description: str | None = None
    labels: dict[Token, str] | None = None
    authors: tuple[Author, ...] | None = None
    source_refs: tuple[SourceRef, ...] | None = None
