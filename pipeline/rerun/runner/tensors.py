"""Arguments of a workload: shapes, dtypes, contents by recipe, and where each lies in shared memory."""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_ALIGNMENT = 256

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "int64", "int32", "int16", "int8", "uint8", "bool",
    )
}  # fmt: skip
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "float8_e4m3": "float8_e4m3fn"}


class CannotMake(Exception):
    """An input or output that this runner cannot make: a cause and a sentence."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument with every dimension bound."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        elements = 1
        for size in self.shape:
            elements *= size
        return int(elements * DTYPES[self.dtype].itemsize)

    @property
    def is_float(self) -> bool:
        """Its elements are floating-point numbers."""
        return bool(DTYPES[self.dtype].is_floating_point)


@dataclass(frozen=True)
class Arguments:
    """What a solution is called with: arguments in order (tensor or scalar), and the tensors that it gives back."""

    order: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    scalars: Mapping[str, int | float]
    outputs: tuple[TensorSpec, ...]


def bind_arguments(definition: Mapping[str, Any], workload: Mapping[str, Any], axes: Mapping[str, int]) -> Arguments:
    """Return the arguments of a definition under full axis values.

    Raises:
        CannotMake: UNSUPPORTED_DTYPE, or UNBOUND_INPUT for a scalar without a value or an input of another kind.
    """
    inputs, scalars = [], {}
    for name, spec in definition["inputs"].items():
        described = workload.get("inputs", {}).get(name) or {}
        if described.get("type") == "scalar":
            value = described.get("value")
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CannotMake("UNBOUND_INPUT", f"scalar {name} has no value")
            scalars[name] = value
        elif described.get("type", "random") not in ("random", "safetensors"):
            raise CannotMake("UNBOUND_INPUT", f"{name} is {described['type']!r}, which this runner cannot make")
        elif not spec.get("shape"):
            raise CannotMake("UNBOUND_INPUT", f"scalar {name} is not described by the workload")
        else:
            inputs.append(_bound(name, spec, axes))
    outputs = [_bound(name, spec, axes) for name, spec in definition["outputs"].items()]
    return Arguments(tuple(definition["inputs"]), tuple(inputs), scalars, tuple(outputs))


def _bound(name: str, spec: Mapping[str, Any], axes: Mapping[str, int]) -> TensorSpec:
    dtype = _ALIASES.get(spec["dtype"], spec["dtype"])
    if dtype not in DTYPES:
        raise CannotMake("UNSUPPORTED_DTYPE", f"{name} is {spec['dtype']}, which this runner cannot make")
    lower = {axis.lower(): value for axis, value in axes.items()}
    shape = tuple(size if isinstance(size, int) else lower[size.lower()] for size in spec.get("shape") or ())
    return TensorSpec(name, dtype, shape)


def make_input(spec: TensorSpec, seed: int) -> torch.Tensor:
    """Return the content of a random input, by recipe 1: the same for the same seed on every machine.

    Floating point: standard normal, rounded to the dtype. Booleans: fair. Integers: uniform from 0 to 127.
    """
    generator = torch.Generator().manual_seed(seed)
    if spec.is_float:
        return torch.randn(spec.shape, generator=generator, dtype=torch.float32).to(DTYPES[spec.dtype])
    if spec.dtype == "bool":
        return torch.randint(0, 2, spec.shape, generator=generator).to(torch.bool)
    return torch.randint(0, 128, spec.shape, generator=generator).to(DTYPES[spec.dtype])


def seed_for(secret: str, *place: str | int) -> int:
    """Return the seed of one input: nobody knows it before the judge draws the secret of the run."""
    text = json.dumps([secret, *place]).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


_SAFETENSORS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip


def load_tensor(
    spec: TensorSpec, folder: Path | None, described: Mapping[str, Any], sha256: str | None
) -> torch.Tensor:
    """Return an input out of a safetensors file (header length, JSON header, data; little-endian).

    Raises:
        CannotMake: MISSING_TENSOR_FILE, TENSOR_FILE_MISMATCH.
    """
    path = str(described.get("path", "")).removeprefix("./")
    if sha256 is None:
        raise CannotMake("MISSING_TENSOR_FILE", f"{path} was in no pull, so the job has no digest for {spec.name}")
    if folder is None:
        raise CannotMake("MISSING_TENSOR_FILE", f"{spec.name} comes from {path}: give the folder with --tensors")
    # A link may lead out of the folder, as in the cache of the Hub's client; the digest says what is right.
    place = folder / path
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise CannotMake("MISSING_TENSOR_FILE", f"{path} is no path inside a trace set")
    try:
        raw = place.read_bytes()
    except OSError as error:
        raise CannotMake("MISSING_TENSOR_FILE", f"{path} is not in the folder of --tensors: {error.strerror}") from None
    found = "sha256:" + hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise CannotMake("TENSOR_FILE_MISMATCH", f"{path} has {found} and the job names {sha256}")
    try:
        (size,) = struct.unpack("<Q", raw[:8])
        entry = json.loads(raw[8 : 8 + size])[described.get("tensor_key") or spec.name]
        start, end = entry["data_offsets"]
        dtype, shape = _SAFETENSORS[entry["dtype"]], tuple(entry["shape"])
        data = bytearray(raw[8 + size + start : 8 + size + end])
        flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        tensor = flat.view(DTYPES[dtype]).reshape(shape)
    except (ValueError, KeyError, TypeError, RuntimeError, RecursionError, struct.error) as error:
        raise CannotMake("TENSOR_FILE_MISMATCH", f"{path} holds no tensor for {spec.name}: {error!r}") from error
    if shape != spec.shape:
        raise CannotMake("TENSOR_FILE_MISMATCH", f"{spec.name} is {shape} in {path} and {spec.shape} in the workload")
    return tensor if dtype == spec.dtype else tensor.to(DTYPES[spec.dtype])


class Region:
    """Shared memory of a judge and a worker: tensors one after the other, each at an aligned offset."""

    def __init__(self, descriptor: int, specs: list[TensorSpec]) -> None:
        """Map the memory; the judge has given it at least the size of :func:`region_bytes`."""
        self._map = mmap.mmap(descriptor, region_bytes(specs))
        self._whole = torch.frombuffer(self._map, dtype=torch.uint8)
        self._offsets: list[int] = []
        offset = 0
        for spec in specs:
            self._offsets.append(offset)
            offset += _aligned(spec.nbytes)
        self._specs = specs

    def bytes_at(self, index: int) -> torch.Tensor:
        """Return the bytes of a tensor: a view of the shared memory."""
        offset = self._offsets[index]
        return self._whole[offset : offset + self._specs[index].nbytes]

    def tensor_at(self, index: int) -> torch.Tensor:
        """Return a tensor: a view of the shared memory."""
        spec = self._specs[index]
        return self.bytes_at(index).view(DTYPES[spec.dtype]).reshape(spec.shape)


def region_bytes(specs: list[TensorSpec]) -> int:
    """Return the size of a region for these tensors."""
    return max(_ALIGNMENT, sum(_aligned(spec.nbytes) for spec in specs))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
