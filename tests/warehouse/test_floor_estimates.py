from __future__ import annotations

import json
from typing import Any

import pytest

from tests.warehouse.rows import Bench, Row, Rows

PEAKS: list[Row] = [
    {"peaks": "published-v1", "match": match, "label": label, "hbm_gb_s": bandwidth}
    | {"fp4_tflops": fp4, "fp8_tflops": fp8, "bf16_tflops": bf16, "tf32_tflops": tf32}
    for match, label, bandwidth, fp4, fp8, bf16, tf32 in (
        ("gb200", "GB200", 8000.0, 9000.0, 4500.0, 2250.0, 1100.0),
        ("b200", "B200", 8000.0, 9000.0, 4500.0, 2250.0, 1100.0),
        ("h100 pcie", "H100 PCIe", 2000.0, None, 1513.0, 756.0, 378.0),
        ("h100", "H100 SXM", 3350.0, None, 1979.0, 989.0, 495.0),
        ("nvidia l4", "L4", 300.0, None, 242.0, 121.0, 60.0),
    )
] + [{"peaks": "another", "match": "b200", "label": "wrong", "hbm_gb_s": 1.0}]

Tensors = dict[str, tuple[str, list[int]]]


def tables(tensors: Tensors, axes: dict[str, int], family: str, hardware: str) -> Rows:
    return {
        "peaks": PEAKS,
        "runs": [{"hardware": hardware, "run_digest": number} for number in "12"],
        "operations": [{"family": family}],
        "workloads": [{"axes": json.dumps(axes)}],
        "workload_tensors": [
            {"role": "input", "position": position, "name": name, "dtype": dtype, "shape": shape}
            for position, (name, (dtype, shape)) in enumerate(tensors.items())
        ]
        + [{"role": "output", "name": "a", "dtype": "fp64", "shape": [999, 999]}],
    }


def estimate(
    bench: Bench, tensors: Tensors, axes: dict[str, int], family: str = "gemm", hardware: str = "NVIDIA B200"
) -> dict[str, Any] | None:
    """Return the one estimate of the pair, or None; it is made once however many runs the pair has."""
    rows = bench.answer("floor_estimates.headroom_v1", tables(tensors, axes, family, hardware))
    assert len(rows) <= 1
    return rows[0] if rows else None


def test_the_published_sparse_gemm_is_bandwidth_bound(bench: Bench) -> None:
    floor = estimate(
        bench,
        {
            "a_vals": ("int8", [64, 512]),
            "a_meta": ("int8", [64, 512]),
            "a_scale": ("int8", [64, 128]),
            "b_fp4": ("int8", [2048, 1024]),
            "b_scale": ("int8", [2048, 128]),
        },
        {"m": 64},
    )
    assert floor is not None
    assert (floor["bytes_moved"], floor["floor_ns"], floor["bound_by"]) == (2_433_024, 304.128, "dram")
    assert [floor[name] for name in ("operations", "peak_tflops", "peak_class", "compute_ns")] == [None] * 4
    assert floor["assumptions"] == ["every declared tensor crosses HBM exactly once (8,000 GB/s, B200 datasheet)"]


def test_the_published_grouped_gemm_has_a_compute_term(bench: Bench) -> None:
    floor = estimate(
        bench,
        {
            "a_fp8": ("fp8_e4m3", [4, 512, 2048]),
            "a_scale": ("fp32", [4, 512, 16]),
            "b_fp4": ("int8", [4, 2048, 1024]),
            "b_scale": ("fp32", [4, 2048, 64]),
            "masked_m": ("int32", [4]),
        },
        {"max_m": 512},
    )
    assert floor is not None
    assert (floor["peak_class"], floor["operations"], floor["bound_by"]) == ("fp8", 2.0**31, "dram")
    assert floor["compute_ns"] == 2**31 / 4_500_000
    assert floor["assumptions"][1:] == [
        "2·M·N·K with M=512, N=1024, K=2048 at the dense fp8 peak (4,500 TFLOP/s)",
    ]


@pytest.mark.parametrize(
    ("tensors", "axes", "family", "operations"),
    [
        # M, N, K from the axes where all three are bound, whatever the shapes; times the batch.
        ({"a": ("bf16", [8])}, {"m": 2, "n": 3, "k": 5}, "gemm", 60),
        ({"a": ("bf16", [8])}, {"m": 2, "n": 3, "k": 5, "b": 7}, "batched-gemm", 420),
        ({"a": ("bf16", [8])}, {"m": 2, "n": 3, "k": 5, "b": 7, "batch": 11}, "linear", 660),
        # Else from the two shortest names, in their order: N is the last dimension where the second-last is K ...
        ({"zzz": ("bf16", [9, 9]), "b": ("bf16", [5, 3]), "a": ("bf16", [2, 5])}, {"m": 2}, "matmul", 60),
        ({"b": ("bf16", [7, 5, 3]), "a": ("bf16", [7, 2, 5])}, {"m": 2, "n": 4}, "matmul", 60),
        # ... else its second-last.
        ({"a": ("bf16", [2, 5]), "b": ("bf16", [3, 5])}, {}, "gemv", 60),
        ({"a": ("bf16", [2, 5]), "b": ("bf16", [4, 3])}, {}, "gemv", 80),
        # No term: one operand, a vector among the two, only integers, another family.
        ({"a": ("bf16", [2, 5])}, {}, "gemm", None),
        ({"a": ("bf16", [2, 5]), "b": ("bf16", [5])}, {}, "gemm", None),
        ({"a": ("int8", [2, 5]), "b": ("int8", [5, 3])}, {}, "gemm", None),
        ({"a": ("bf16", [2, 5]), "b": ("bf16", [5, 3])}, {}, "rmsnorm", None),
    ],
)
def test_compute_term(
    bench: Bench, tensors: Tensors, axes: dict[str, int], family: str, operations: float | None
) -> None:
    floor = estimate(bench, tensors, axes, family)
    assert floor is not None
    assert floor["operations"] == operations
    assert floor["compute_ns"] == (None if operations is None else operations / 2_250_000)
    assert len(floor["assumptions"]) == (1 if operations is None else 2)


def test_a_compute_bound_product_names_its_batch(bench: Bench) -> None:
    floor = estimate(bench, {"a": ("bf16", [8])}, {"m": 2, "n": 3, "k": 5000, "b": 7})
    assert floor is not None
    assert (floor["bound_by"], floor["floor_ns"]) == ("compute", floor["compute_ns"])
    assert floor["assumptions"][1] == (
        "2·batch·M·N·K with batch=7, M=2, N=3, K=5000 at the dense bf16 peak (2,250 TFLOP/s)"
    )


@pytest.mark.parametrize(
    ("hardware", "dtypes", "peak_class"),
    [
        ("NVIDIA B200", ["bf16", "nvfp4"], "fp4"),
        ("NVIDIA H100", ["bf16", "nvfp4"], "bf16"),  # this GPU has no fp4 rate
        ("NVIDIA H100", ["fp4"], None),
        ("NVIDIA B200", ["fp32", "int8"], "tf32"),
        ("NVIDIA B200", ["fp64"], None),
        ("NVIDIA B200", ["fp16", "e5m2"], "fp8"),
    ],
)
def test_the_highest_peak_among_the_classes_counts(
    bench: Bench, hardware: str, dtypes: list[str], peak_class: str | None
) -> None:
    tensors = {str(place): (dtype, [4, 4]) for place, dtype in enumerate(dtypes)}
    floor = estimate(bench, tensors, {"m": 1, "n": 1, "k": 1}, hardware=hardware)
    assert floor is not None
    assert floor["peak_class"] == peak_class


@pytest.mark.parametrize(
    ("tensors", "bytes_moved"),
    [
        ({"a": ("int4", [3])}, 1.5),
        ({"a": ("fp64", [2, 3]), "b": ("int16", [5]), "c": ("uint8", [7])}, 65),
        ({"a": ("fp16", [2]), "b": ("complex64", [1000])}, 4),  # an unknown dtype is skipped
        ({"a": ("fp32", [])}, 4),
        ({"a": ("bf16", [0, 64])}, 0),
        ({"a": ("bf16", [2**40, 2**40, 2**40])}, 2.0**121),  # overflows every integer
    ],
)
def test_memory_term(bench: Bench, tensors: Tensors, bytes_moved: float) -> None:
    floor = estimate(bench, tensors, {}, "rmsnorm")
    assert floor is not None
    assert (floor["bytes_moved"], floor["dram_ns"]) == (bytes_moved, bytes_moved / 8000)


@pytest.mark.parametrize(
    ("hardware", "gpu"),
    [
        ("NVIDIA B200", "B200"),
        ("b200", "B200"),
        ("NVIDIA_B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),  # the longest match wins
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", None),
        ("NVIDIA B2000", None),
        ("B200É", None),
        ("cuda:0", None),
    ],
)
def test_a_gpu_is_found_by_whole_words(bench: Bench, hardware: str, gpu: str | None) -> None:
    floor = estimate(bench, {"a": ("bf16", [8])}, {}, hardware=hardware)
    assert (floor and floor["gpu"]) == gpu


def test_no_estimate_where_no_dtype_counts(bench: Bench) -> None:
    assert estimate(bench, {"a": ("complex64", [8])}, {}) is None
