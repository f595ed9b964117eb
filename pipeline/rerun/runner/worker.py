"""The worker: the one process that runs foreign code. It does what its judge says, one message at a time.

Nothing secret lies here: which calls are checked is decided after them, and expected outputs never come here.
"""

from __future__ import annotations

import _thread
import errno
import gc
import importlib
import json
import os
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.profiler

from .channel import Channel, ChannelClosed
from .guard import Guard, PersistingL2
from .sandbox import watch
from .tensors import DTYPES, Region, TensorSpec

_POISON = 0xFF
"""Fills outputs before each call: NaN in every floating-point dtype, -1 or 255 in integers."""

_HELD_OUTPUTS = 2
"""Earlier outputs kept alive, so that no honest allocation can lie where they do."""

_MISSING_TOOL = ("ninja is required", "cuda_home environment variable is not set", "no such file or directory: 'nvcc'")


class Worker:
    """Loads a solution or a reference and calls it as told."""

    def __init__(self, channel: Channel, config: dict[str, Any], report: Callable[[str, str], None]) -> None:
        self._channel = channel
        self._config = config
        self._report = report
        self._scratch = Path(config["scratch"])
        self._on_gpu = config["device"] == "cuda"
        self._device = torch.device(config["device"])
        self._guard = Guard()
        self._tensor, self._type, self._threads = torch.Tensor, type, _thread._count
        self._empty, self._clone = torch.empty, torch.Tensor.clone
        if self._on_gpu:
            torch.cuda.init()
            torch.cuda.set_per_process_memory_fraction(config["device_memory_fraction"])
            self._flush = torch.empty(config["flush_bytes"], dtype=torch.uint8, device=self._device)
            self._event, self._synchronize = torch.cuda.Event, torch.cuda.synchronize
            self._stream = torch.cuda.current_stream()
            self._set_stream = torch.cuda.set_stream
            self._profile, self._activity = torch.profiler.profile, torch.profiler.ProfilerActivity
            self._l2 = PersistingL2()
        self._function: Callable[..., Any] | None = None
        self._contents: list[list[torch.Tensor]] = []
        self._slots: list[list[torch.Tensor]] = []
        self._outputs: list[torch.Tensor] = []
        self._held: deque[Any] = deque(maxlen=_HELD_OUTPUTS)
        self._snapshot: list[torch.Tensor] = []
        self._slot = 0

    def serve(self) -> None:
        """Answer until told to finish."""
        commands = {
            "load": self._load, "inputs": self._take_inputs, "call": self._call, "fetch": self._fetch,
            "block": self._block, "profile": self._profiled, "integrity": self._integrity,
        }  # fmt: skip
        while (message := self._channel.receive())["do"] != "finish":
            try:
                answer = commands[message["do"]](message)
            except ChannelClosed:
                return
            except BaseException as error:  # noqa: BLE001 - foreign code raises what it likes
                answer = _failure(error)
            self._channel.send(answer)
        self._channel.send({"ok": True})

    # Foreign code

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Build or import the entry point."""
        watch(self._scratch, self._report)
        source = self._scratch / "src"
        try:
            if message["language"] in ("cuda", "cuda_cpp", "cpp", "c++"):
                module = self._build(source, message)
            else:
                sys.path.insert(0, str(source))
                module = importlib.import_module(message["entry_file"].removesuffix(".py").replace("/", "."))
        except SyntaxError as error:
            return {"ok": False, "cause": "COMPILE_ERROR", "error": repr(error)}
        self._function = getattr(module, message["symbol"], None)
        if not callable(self._function):
            where = f"{message['entry_file']}::{message['symbol']}"
            return {"ok": False, "cause": "MISSING_ENTRY_POINT", "error": f"{where} is nothing to call"}
        return {"ok": True}

    def _build(self, source: Path, message: dict[str, Any]) -> Any:
        """Build an extension with torch's builder; every C++ and CUDA file of the sources is part of it."""
        from torch.utils import cpp_extension

        build = self._scratch / "build"
        build.mkdir()
        files = [str(path) for path in sorted(source.rglob("*")) if path.suffix in (".cpp", ".cc", ".cxx", ".cu")]
        with_cuda = any(path.endswith(".cu") for path in files)
        try:
            return cpp_extension.load(
                name="solution",
                sources=files,
                extra_cflags=["-O3"],
                extra_cuda_cflags=["-O3"],
                extra_include_paths=[str(source)],
                build_directory=str(build),
                with_cuda=with_cuda,
            )
        except (RuntimeError, OSError, ImportError) as error:
            text = str(error)
            missing = any(sign in text.lower() for sign in _MISSING_TOOL)
            raise BuildFailed("MISSING_DEPENDENCY" if missing else "COMPILE_ERROR", text) from None

    def _run(self, slot: int) -> Any:
        order: list[Any] = list(self._slots[slot])
        arguments = [self._scalars[name] if name in self._scalars else order.pop(0) for name in self._order]
        if self._config["destination_passing"]:
            self._function(*arguments, *self._outputs)  # type: ignore[misc]
            return self._outputs
        return self._function(*arguments)  # type: ignore[misc]

    # Inputs and outputs

    def _take_inputs(self, message: dict[str, Any]) -> dict[str, Any]:
        """Read the contents of the inputs out of the shared memory, and make places for them on the device."""
        inputs = [TensorSpec(i["name"], i["dtype"], tuple(i["shape"])) for i in message["inputs"]]
        outputs = [TensorSpec(o["name"], o["dtype"], tuple(o["shape"])) for o in message["outputs"]]
        self._order, self._scalars = message["order"], message["scalars"]
        self._held.clear()
        self._snapshot, self._contents, self._slots, self._outputs = [], [], [], []
        gc.collect()
        region = Region(self._config["input_descriptor"], inputs * message["sets"])
        for content in range(message["sets"]):
            tensors = [region.tensor_at(content * len(inputs) + index) for index in range(len(inputs))]
            self._contents.append([self._placed(tensor, message["upcast"]) for tensor in tensors])
        self._slots = [[self._clone(t) for t in content] for content in self._contents]
        self._declared = outputs
        if self._config["destination_passing"]:
            self._outputs = [self._empty(spec.shape, dtype=DTYPES[spec.dtype], device=self._device) for spec in outputs]
        returned = [TensorSpec(r["name"], r["dtype"], tuple(r["shape"])) for r in message["returned"]]
        self._returned = Region(self._config["output_descriptor"], returned)
        self._wait()
        return {"ok": True}

    def _placed(self, tensor: torch.Tensor, upcast: bool) -> torch.Tensor:
        placed = self._clone(tensor).to(self._device)
        return placed.double() if upcast and placed.is_floating_point() else placed

    def _fill_slots(self) -> None:
        """Put each content into the place of its number."""
        for places, contents in zip(self._slots, self._contents):
            for place, pristine in zip(places, contents):
                place.copy_(pristine)
        self._wait()

    def _poison(self) -> None:
        """Fill outputs, or the free memory that an allocation of their size will get, so that no old value is there."""
        if self._outputs:
            for output in self._outputs:
                output.reshape(-1).view(torch.uint8).fill_(_POISON)
            return
        blocks = [self._empty(spec.nbytes, dtype=torch.uint8, device=self._device) for spec in self._declared]
        for block in blocks:
            block.fill_(_POISON)

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call once: content into its place, outputs poisoned, L2 flushed, time by device events, outputs kept."""
        self._slot, content = message["slot"], message["content"]
        for place, pristine in zip(self._slots[self._slot], self._contents[content]):
            place.copy_(pristine)
        self._snapshot = []
        self._poison()
        threads = self._threads()
        elapsed = None
        if self._on_gpu:
            self._l2.reset()
            start, end = self._event(enable_timing=True), self._event(enable_timing=True)
            self._flush.zero_()
            start.record(self._stream)
            returned = self._run(self._slot)
            end.record(self._stream)
            self._set_stream(self._stream)
        else:
            returned = self._run(self._slot)
        described = self._take_outputs(returned)
        self._wait()
        if self._on_gpu:
            elapsed = round(start.elapsed_time(end) * 1e6)
        extra = self._threads() - threads
        return {"ok": True, "elapsed_ns": elapsed, "outputs": described, "threads": extra}

    def _take_outputs(self, returned: Any) -> list[dict[str, Any]]:
        """Describe outputs and copy them at once, on the stream of the call: what comes later does not count."""
        outputs = self._ordered(returned)
        described = []
        for output in outputs:
            plain = self._type(output) is self._tensor and output.layout is torch.strided
            entry: dict[str, Any] = {
                "plain": plain,
                "tensor": isinstance(output, self._tensor),
                "type": self._type(output).__name__,
            }
            if plain:
                entry |= {
                    "shape": list(output.shape),
                    "dtype": str(output.dtype).removeprefix("torch."),
                    "alias": self._alias(output),
                }
                self._snapshot.append(self._clone(output.detach(), memory_format=torch.contiguous_format))
            described.append(entry)
        if not self._config["destination_passing"]:
            self._held.append(outputs)
        return described

    def _ordered(self, returned: Any) -> list[Any]:
        """Return the outputs in the order of the definition: of one, of a sequence, or of a mapping by name."""
        if isinstance(returned, dict):
            return [returned[spec.name] for spec in self._declared if spec.name in returned]
        return list(returned) if isinstance(returned, (tuple, list)) else [returned]

    def _alias(self, output: torch.Tensor) -> str | None:
        if self._config["destination_passing"]:
            return None
        start, size = _extent(output)
        for tensor in self._slots[self._slot]:
            if _overlaps(start, size, *_extent(tensor)):
                return "input"
        for earlier in self._held:
            for tensor in earlier:
                if isinstance(tensor, torch.Tensor) and _overlaps(start, size, *_extent(tensor)):
                    return "earlier output"
        return None

    def _fetch(self, message: dict[str, Any]) -> dict[str, Any]:
        """Hand over the outputs of the last call, and the inputs as they are after it."""
        handed = [*self._snapshot, *(self._slots[self._slot] if message["with_inputs"] else [])]
        for index, tensor in enumerate(handed):
            self._returned.bytes_at(index).copy_(tensor.contiguous().reshape(-1).view(torch.uint8))
        self._wait()
        return {"ok": True}

    # Time

    def _block(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call many times back to back, each after a flush; or flush alone, to compare. The judge reads its clock."""
        self._fill_slots()
        for index in range(message["count"]):
            self._flush.zero_()
            if message["call"]:
                self._slot = index % len(self._slots)
                returned = self._run(self._slot)
        if message["call"]:
            self._snapshot = []
            described = self._take_outputs(returned)
        else:
            described = []
        self._wait()
        return {"ok": True, "outputs": described}

    def _profiled(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return every activity of the device (name, stream, start, end) over calls, each alone after a flush."""
        self._fill_slots()
        with self._profile(activities=[self._activity.CUDA]) as profile:
            for index in range(message["count"]):
                self._flush.zero_()
                self._wait()
                self._run(index % len(self._slots))
                self._wait()
        activities = [
            [event.name, getattr(event, "device_resource_id", 0), event.time_range.start, event.time_range.end]
            for event in profile.events()
            if event.device_type == torch.autograd.DeviceType.CUDA
        ]
        return {"ok": True, "activities": activities}

    # Integrity

    def _integrity(self, message: dict[str, Any]) -> dict[str, Any]:
        """Tell what foreign code has changed of the harness and of the device."""
        l2 = self._l2.changed() if self._on_gpu else None
        return {"ok": True, "changed": self._guard.changed(), "device": l2}

    def _wait(self) -> None:
        """Wait for everything on every stream."""
        if self._on_gpu:
            self._synchronize()


class BuildFailed(Exception):
    """The extension was not built: a cause and the builder's words."""

    def __init__(self, cause: str, text: str) -> None:
        super().__init__(text)
        self.cause = cause


def _failure(error: BaseException) -> dict[str, Any]:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-8000:]
    cause = getattr(error, "cause", None) if isinstance(error, BuildFailed) else None
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        cause = "MEMORY_LIMIT"
    elif isinstance(error, ModuleNotFoundError):
        return {"ok": False, "cause": "MISSING_DEPENDENCY", "error": f"module {error.name} is not installed here"}
    elif isinstance(error, OSError) and error.errno == errno.EFBIG:
        cause = "OUTPUT_LIMIT"
    said = f"{type(error).__name__}: {error}"[:2000]
    return {"ok": False, "cause": cause or "RUNTIME_ERROR", "error": said, "trace": text}


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _overlaps(start: int, size: int, other: int, other_size: int) -> bool:
    return size > 0 and other_size > 0 and start < other + other_size and other < start + size


def main(descriptor: int, violations: int, config: dict[str, Any], isolation: dict[str, str]) -> None:
    """Serve one judge; called by the launcher once the process is shut in."""

    def report(code: str, detail: str) -> None:
        os.write(violations, json.dumps({"code": code, "detail": detail[:300]}).encode() + b"\n")

    channel = Channel(socket.socket(fileno=descriptor))
    worker = Worker(channel, config, report)
    channel.send({"ok": True, "isolation": isolation, "torch": torch.__version__})
    worker.serve()
    os._exit(0)
