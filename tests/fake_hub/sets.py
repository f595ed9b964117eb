"""Small trace sets to put into the fake Hub."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

LFS = frozenset({"blob/tensor.safetensors"})


def sample_files() -> dict[str, bytes]:
    """Return the files of the bundled sample, by path."""
    root = Path(str(files("pipeline") / "sample" / "trace-set"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def definition(name: str = "scale", *, description: str = "y = 2 x", op_type: str = "elementwise") -> bytes:
    document = {
        "name": name,
        "op_type": op_type,
        "description": description,
        "axes": {"N": {"type": "var"}},
        "inputs": {"x": {"shape": ["N"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["N"], "dtype": "float32"}},
        "reference": "def run(x):\n    return 2 * x\n",
    }
    return json.dumps(document).encode()


def solution(name: str, *, author: str = "alice", content: str = "v1", of: str = "scale") -> bytes:
    document = {
        "name": name,
        "definition": of,
        "author": author,
        "spec": {
            "language": "python",
            "target_hardware": ["NVIDIA B200"],
            "entry_point": "main.py::run",
            "dependencies": [],
        },
        "sources": [{"path": "main.py", "content": f"# {content}\ndef run(x):\n    return 2 * x\n"}],
    }
    return json.dumps(document).encode()


def trace(solution: str, latency_ms: float, day: int, *, n: int = 1024, of: str = "scale", uuid: str = "w1") -> bytes:
    """Return one line: a passed run measured on a day of January 2026."""
    document = {
        "definition": of,
        "workload": {"uuid": uuid, "axes": {"N": n}, "inputs": {"x": {"type": "random"}}},
        "solution": solution,
        "evaluation": {
            "status": "PASSED",
            "environment": {"hardware": "NVIDIA B200", "libs": {"torch": "2.8.0", "cuda": "12.8"}},
            "timestamp": f"2026-01-{day:02d}T00:00:00+00:00",
            "log": "",
            "correctness": {"max_absolute_error": 0.0, "max_relative_error": 0.0},
            "performance": {
                "latency_ms": latency_ms,
                "reference_latency_ms": 1.0,
                "speedup_factor": 1.0 / latency_ms,
            },
        },
    }
    return json.dumps(document).encode() + b"\n"
