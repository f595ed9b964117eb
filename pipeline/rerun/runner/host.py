"""The host of a run: what stays the same (its environment), what identifies it, and what is read beside a run.

Everything is read, nothing is set.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

STABLE = "name,memory.total,driver_version,compute_cap,uuid"
_MOVING = (
    "temperature.gpu,power.draw,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,utilization.gpu,memory.used,"
    "power.limit,persistence_mode,clocks_throttle_reasons.active"
)


def query(fields: str) -> dict[str, str]:
    """Ask nvidia-smi for fields of the first GPU; empty where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits", "--id=0"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    values = [value.strip() for value in answer.stdout.strip().split(",")]
    names = fields.split(",")
    return dict(zip(names, values)) if answer.returncode == 0 and len(values) == len(names) else {}


def telemetry(device: str) -> dict[str, str]:
    """Return clocks, temperature, power and use of the GPU as they are now (MHz, degrees C, W, %, MiB)."""
    return query(_MOVING) if device == "cuda" else {}


@cache
def stable() -> dict[str, Any]:
    """Return what does not change about the GPU, asked for once a process."""
    seen = query(STABLE)
    return {
        "vendor": "nvidia",
        "product": seen.get("name", "unknown"),
        "architecture": "sm_" + seen.get("compute_cap", "").replace(".", ""),
        "memory_bytes": int(seen.get("memory.total") or 0) * 2**20,
        "driver": seen.get("driver_version", "unknown"),
        "uuid": seen.get("uuid", "unknown"),
    }


def environment(device: str) -> dict[str, Any]:
    """Return the stable facts of the host: product, architecture, memory, versions."""
    import torch

    facts: dict[str, Any] = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system().lower(),
        "machine": platform.machine(),
    }
    if device == "cpu":
        return facts | {"product": _cpu_name(), "vendor": "cpu", "architecture": platform.machine()}
    facts |= {name: value for name, value in stable().items() if name != "uuid"} | {"cuda": torch.version.cuda}
    try:
        facts["triton"] = metadata.version("triton")
    except metadata.PackageNotFoundError:
        return facts
    return facts


def identity(device: str) -> dict[str, str]:
    """Return what tells verifiers apart: hashes of the host's and the GPU's own ids, which themselves stay here."""
    place = Path("/etc/machine-id")
    host = place.read_text().strip() if place.is_file() else ""
    found = {"host": _hashed(f"{platform.node()} {host}")}
    if device == "cuda":
        found["gpu"] = _hashed(stable()["uuid"])
    return found


def default_device() -> str:
    """Return cuda where a GPU answers, else cpu."""
    return "cuda" if query("name") else "cpu"


def runner_digest() -> str:
    """Return the digest of the runner's own files: which code measured."""
    hasher = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        hasher.update(f"{path.name} {len(content)}\n".encode() + content)
    return "sha256:" + hasher.hexdigest()


def _hashed(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _cpu_name() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Print environment and identity of this host for a device, in JSON; called by the batch, which loads no torch."""
    device = sys.argv[1]
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            sys.exit("torch finds no GPU")
    print(json.dumps({"environment": environment(device), "identity": identity(device)}))
