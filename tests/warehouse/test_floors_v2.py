"""headroom-v2 by hand: each case is worked out in its comment, before any formula was run against a latency.

Rates of ``datasheet-v2`` used below. B200: 8,000 GB/s = 8,000 B/ns; dense fp4 10,000, fp6 and fp8 5,000, bf16 2,500
TFLOP/s, that is 10,000,000, 5,000,000 and 2,500,000 operations a ns; L2 126 MiB = 132,120,576 B.
A800: 2,039 B/ns; bf16 312, tf32 156 TFLOP/s; L2 40 MiB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest

from pipeline.store.database import build, connect
from tests.warehouse.rows import Row, completed, write_part

Tensors = dict[str, tuple[str, list[int]]]


@dataclass(frozen=True)
class Case:
    name: str
    family: str
    axes: dict[str, int]
    inputs: Tensors
    outputs: Tensors
    bytes_moved: float | None
    operations: float | None
    peak_class: str | None
    floor_ns: float | None
    bound_by: str | None
    constants: dict[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    hardware: str = "NVIDIA B200"
    undescribed: tuple[str, ...] = ()
    """Inputs that the workload says nothing of."""


FP4 = ("status-verified", "quantization-float4-e2m1fn")
NVFP4 = ("quantization-float4-e2m1fn-nvfp4",)
FP4_FP6 = ("quantization-float4-e2m1fn", "quantization-float6-e3m2")
FP8_FP4 = ("quantization-float8-e4m3fn", "quantization-float4-e2m1fn-mxfp4")


def gemm(m: int, n: int, k: int, dtype: str = "bf16") -> tuple[Tensors, Tensors]:
    return {"a": (dtype, [m, k]), "b": (dtype, [n, k])}, {"c": (dtype, [m, n])}


def decode(
    batch: int, indices: int, pages: int, page_size: int, heads: tuple[int, int, int], last_page: bool = False
) -> tuple[Tensors, Tensors]:
    qo, kv, dim = heads
    inputs: Tensors = {
        "q": ("bf16", [batch, qo, dim]),
        "k_cache": ("bf16", [pages, page_size, kv, dim]),
        "v_cache": ("bf16", [pages, page_size, kv, dim]),
        "kv_indptr": ("int32", [batch + 1]),
        "kv_indices": ("int32", [indices]),
    }
    if last_page:
        inputs["kv_last_page_len"] = ("int32", [batch])
    return inputs, {"output": ("bf16", [batch, qo, dim]), "lse": ("fp32", [batch, qo])}


def prefill(
    total: int, sequences: int, indices: int, pages: int, page_size: int, heads: tuple[int, int, int]
) -> tuple[Tensors, Tensors]:
    inputs, _ = decode(total, indices, pages, page_size, heads)
    inputs |= {"qo_indptr": ("int32", [sequences + 1]), "kv_indptr": ("int32", [sequences + 1])}
    return inputs, {"output": ("bf16", [total, heads[0], heads[2]]), "lse": ("fp32", [total, heads[0]])}


def mla(total: int, indices: int, pages: int, pointers: dict[str, int]) -> tuple[Tensors, Tensors]:
    inputs: Tensors = {
        "q_nope": ("bf16", [total, 16, 512]),
        "q_pe": ("bf16", [total, 16, 64]),
        "ckv_cache": ("bf16", [pages, 1, 512]),
        "kpe_cache": ("bf16", [pages, 1, 64]),
        **{name: ("int32", [length]) for name, length in pointers.items()},
        "kv_indices": ("int32", [indices]),
    }
    return inputs, {"output": ("bf16", [total, 16, 512]), "lse": ("fp32", [total, 16])}


def ragged(queries: int, keys: int, sequences: int, heads: tuple[int, int, int]) -> tuple[Tensors, Tensors]:
    qo, kv, dim = heads
    inputs: Tensors = {
        "q": ("bf16", [queries, qo, dim]),
        "k": ("bf16", [keys, kv, dim]),
        "v": ("bf16", [keys, kv, dim]),
        "qo_indptr": ("int32", [sequences + 1]),
        "kv_indptr": ("int32", [sequences + 1]),
    }
    return inputs, {"output": ("bf16", [queries, qo, dim]), "lse": ("fp32", [queries, qo])}


def gdn(
    shape: list[int], qk: int, v: int, states: int, state: str, more: Tensors | None = None
) -> tuple[Tensors, Tensors]:
    inputs: Tensors = {
        "q": ("bf16", [*shape, qk, 128]),
        "k": ("bf16", [*shape, qk, 128]),
        "v": ("bf16", [*shape, v, 128]),
        state: ("fp32", [states, v, 128, 128]),
        "a_log": ("fp32", [v]),
        "a": ("bf16", [*shape, v]),
        "dt_bias": ("fp32", [v]),
        "b": ("bf16", [*shape, v]),
        **(more or {}),
    }
    return inputs, {"output": ("bf16", [*shape, v, 128]), "new_state": ("fp32", [states, v, 128, 128])}


def moe(tokens: int, routed: int, local: int, hidden: int, inner: int) -> tuple[Tensors, Tensors]:
    inputs: Tensors = {
        "routing_logits": ("fp32", [tokens, routed]),
        "routing_bias": ("bf16", [routed]),
        "hidden_states": ("fp8_e4m3", [tokens, hidden]),
        "hidden_states_scale": ("fp32", [hidden // 128, tokens]),
        "gemm1_weights": ("fp8_e4m3", [local, 2 * inner, hidden]),
        "gemm1_weights_scale": ("fp32", [local, 2 * inner // 128, hidden // 128]),
        "gemm2_weights": ("fp8_e4m3", [local, hidden, inner]),
        "gemm2_weights_scale": ("fp32", [local, hidden // 128, inner // 128]),
    }
    return inputs, {"output": ("bf16", [tokens, hidden])}


CASES = [
    # Dense, memory bound. A 7·2048·2 = 28,672, B 128·2048·2 = 524,288: 552,960 B / 8,000 = 69.12 ns.
    # 2·7·128·2048 = 3,670,016 operations / 2,500,000 = 1.47 ns.
    Case("dense, few rows", "gemm", {"m": 7}, *gemm(7, 128, 2048, "fp16"), 552_960, 3_670_016, "bf16", 69.12, "dram",
         {"n": 128, "k": 2048}),
    # Dense, compute bound. (8192 + 4096)·4096·2 = 100,663,296 B / 8,000 = 12,582.912 ns; the output of 67,108,864 B
    # fits the L2. 2·8192·4096·4096 = 274,877,906,944 operations / 2,500,000 = 109,951.1627776 ns.
    Case("dense, many rows", "gemm", {"m": 8192}, *gemm(8192, 4096, 4096), 100_663_296, 274_877_906_944, "bf16",
         109_951.1627776, "compute", {"n": 4096, "k": 4096}),
    # An output beyond the L2: (65536 + 4096)·64·2 = 8,912,896 B of inputs, and of the output of 65536·4096·2 =
    # 536,870,912 B what 132,120,576 B cannot hold: 404,750,336. 413,663,232 B / 8,000 = 51,707.904 ns.
    # 2·65536·4096·64 = 34,359,738,368 operations / 2,500,000 = 13,743.9 ns.
    Case("dense, large output", "gemm", {"m": 65536}, *gemm(65536, 4096, 64), 413_663_232, 34_359_738_368, "bf16",
         51_707.904, "dram", {"n": 4096, "k": 64}),
    # fp32 operands run at the tf32 rate. 2·1024² = 2,147,483,648 operations / 156,000 = 13,765.92082... ns, over
    # 2·1024·1024·4 = 8,388,608 B / 2,039 = 4,114.08 ns.
    Case("dense fp32 on A800", "gemm", {"m": 1024}, *gemm(1024, 1024, 1024, "fp32"), 8_388_608, 2_147_483_648, "tf32",
         2_147_483_648 / 156_000, "compute", {"n": 1024, "k": 1024}, hardware="NVIDIA A800-SXM4-80GB"),
    # bf16 values that lie on the fp4 grid: 16-bit storage is read, (1024 + 2048)·2048·2 = 12,582,912 B / 8,000 =
    # 1,572.864 ns, but the hardware may multiply at fp4: 2·1024·2048·2048 = 8,589,934,592 / 10,000,000 = 859 ns.
    Case("snapped mxfp4", "gemm", {"m": 1024}, *gemm(1024, 2048, 2048), 12_582_912, 8_589_934_592, "fp4", 1_572.864,
         "dram", {"n": 2048, "k": 2048}, FP8_FP4[1:]),
    # Two fp4 a byte: K is 2048, not 1024. (1024 + 2048)·1024 = 3,145,728 B / 8,000 = 393.216 ns.
    # 2·1024·2048·2048 = 8,589,934,592 operations / 10,000,000 = 858.9934592 ns.
    Case("packed fp4", "gemm", {"m": 1024}, {"a_fp4": ("int8", [1024, 1024]), "b_fp4": ("int8", [2048, 1024])},
         {"c": ("bf16", [1024, 2048])}, 3_145_728, 8_589_934_592, "fp4", 858.9934592, "compute",
         {"n": 2048, "k": 2048, "k_half": 1024}, FP4),
    # One fp6 a byte: 128·1024 + 2048·2048 = 4,325,376 B / 8,000 = 540.672 ns. The wider operand sets the rate:
    # 2·128·2048·2048 = 1,073,741,824 / 5,000,000 = 214.7 ns.
    Case("packed fp4 by fp6", "gemm", {"m": 128}, {"a_fp4": ("int8", [128, 1024]), "b_fp6": ("int8", [2048, 2048])},
         {"c": ("bf16", [128, 2048])}, 4_325_376, 1_073_741_824, "fp6", 540.672, "dram",
         {"n": 2048, "k": 2048, "k_half": 1024}, FP4_FP6),
    # Mixed fp8 by fp4 with scales: A 128·4096 + 128·32·4 = 540,672, B 4096·2048 + 4096·128·4 = 10,485,760:
    # 11,026,432 B / 8,000 = 1,378.304 ns. 2·128·4096·4096 = 4,294,967,296 / 5,000,000 = 859 ns.
    Case("fp8 by fp4", "gemm", {"m": 128},
         {"a_fp8": ("fp8_e4m3", [128, 4096]), "a_scale": ("fp32", [128, 32]), "b_fp4": ("int8", [4096, 2048]),
          "b_scale": ("fp32", [4096, 128])}, {"c": ("bf16", [128, 4096])}, 11_026_432, 4_294_967_296, "fp8",
         1_378.304, "dram", {"n": 4096, "k": 4096, "k_half": 2048}, FP8_FP4),
    # An A800 has no fp8: the operands widen to bf16. 4,294,967,296 / 312,000 = 13,765.92 ns.
    Case("fp8 by fp4 on A800", "gemm", {"m": 128},
         {"a_fp8": ("fp8_e4m3", [128, 4096]), "b_fp4": ("int8", [4096, 2048])}, {"c": ("bf16", [128, 4096])},
         8_912_896, 4_294_967_296, "bf16", 4_294_967_296 / 312_000, "compute",
         {"n": 4096, "k": 4096, "k_half": 2048}, FP8_FP4, "NVIDIA A800-SXM4-80GB"),
    # 2:4: half of the products are by zeros that are not stored. 64·512·2 + 64·128 + 2048·1024 + 2048·128 =
    # 2,433,024 B / 8,000 = 304.128 ns. 2·64·2048·2048 / 2 = 268,435,456 / 10,000,000 = 26.8 ns.
    Case("2:4 nvfp4", "gemm", {"m": 64},
         {"a_vals": ("int8", [64, 512]), "a_meta": ("int8", [64, 512]), "a_scale": ("int8", [64, 128]),
          "b_fp4": ("int8", [2048, 1024]), "b_scale": ("int8", [2048, 128])}, {"c": ("bf16", [64, 2048])},
         2_433_024, 268_435_456, "fp4", 304.128, "dram",
         {"n": 2048, "k": 2048, "g": 512, "k_half": 1024, "k_blocks": 128}, (*NVFP4, "sparsity-2-4")),
    # 128·512·2 + 2048·2048 = 4,325,376 B / 8,000 = 540.672 ns; 128·2048·2048 = 536,870,912 / 5,000,000 = 107.4 ns.
    Case("2:4 fp4 by fp8", "gemm", {"m": 128},
         {"a_vals": ("int8", [128, 512]), "a_meta": ("int8", [128, 512]), "b_fp8": ("fp8_e4m3", [2048, 2048])},
         {"c": ("bf16", [128, 2048])}, 4_325_376, 536_870_912, "fp8", 540.672, "dram",
         {"n": 2048, "k": 2048, "g": 512}, (FP4[1], FP8_FP4[0], "sparsity:2-4")),
    # Grouped, masked: the masks tell which rows count, and at least one does. masked_m 4·4 = 16, a row 2048 + 16·4 =
    # 2,112, a group of B 2048·1024 + 2048·64·4 = 2,621,440: 2,623,568 B / 8,000 = 327.946 ns.
    # One row: 2·2048·2048 = 8,388,608 operations / 5,000,000 = 1.7 ns.
    Case("grouped, masked", "gemm", {"max_m": 512},
         {"a_fp8": ("fp8_e4m3", [4, 512, 2048]), "a_scale": ("fp32", [4, 512, 16]), "b_fp4": ("int8", [4, 2048, 1024]),
          "b_scale": ("fp32", [4, 2048, 64]), "masked_m": ("int32", [4])}, {"c": ("bf16", [4, 512, 2048])},
         2_623_568, 8_388_608, "fp8", 327.946, "dram",
         {"g": 4, "n": 2048, "k": 2048, "k_half": 1024}, FP8_FP4),
    # Grouped, contiguous: m_indices 960·4 = 3,840 (-1 is padding), a row 2,112, a group of B 4096·1024 + 4096·64·4 =
    # 5,242,880: 5,248,832 B / 8,000 = 656.104 ns. 2·4096·2048 = 16,777,216 operations.
    Case("grouped, contiguous", "gemm", {"m": 960},
         {"a_fp8": ("fp8_e4m3", [960, 2048]), "a_scale": ("fp32", [960, 16]), "b_fp4": ("int8", [4, 4096, 1024]),
          "b_scale": ("fp32", [4, 4096, 64]), "m_indices": ("int32", [960])}, {"c": ("bf16", [960, 4096])},
         5_248_832, 16_777_216, "fp8", 656.104, "dram",
         {"g": 4, "n": 4096, "k": 2048, "k_half": 1024}, FP8_FP4),
    # Decode, pages of one token: 100 tokens of 2·8·128·2 = 4,096 B, q 2·32·128·2 = 16,384, kv_indptr 12, kv_indices
    # 400: 426,396 B / 8,000 = 53.2995 ns. Each query head meets each token: 2·32·100·(128 + 128) = 1,638,400.
    Case("decode, page of 1", "gqa-paged", {"batch_size": 2, "len_indptr": 3, "num_kv_indices": 100, "num_pages": 120},
         *decode(2, 100, 120, 1, (32, 8, 128)), 426_396, 1_638_400, "bf16", 53.2995, "dram", {"page_size": 1}),
    # Pages of 64: (10 - 3)·64 + 3 = 451 tokens of 2·8·64·2 = 2,048 B = 923,648; q 12,288, kv_indptr 16, kv_indices 40,
    # kv_last_page_len 12: 936,004 B / 8,000 = 117.0005 ns. 2·32·451·128 = 3,694,592 operations.
    Case("decode, page of 64", "gqa-paged", {"batch_size": 3, "len_indptr": 4, "num_kv_indices": 10, "num_pages": 20},
         *decode(3, 10, 20, 64, (32, 8, 64), last_page=True), 936_004, 3_694_592, "bf16", 117.0005, "dram",
         {"page_size": 64}),
    # Never more than the pool, which holds 30 tokens here: 30·4,096 = 122,880; q 8,192, kv_indptr 8, kv_indices 200:
    # 131,280 B. All 50 named tokens are attended: 2·32·50·256 = 819,200 operations.
    Case("decode, small pool", "gqa-paged", {"batch_size": 1, "len_indptr": 2, "num_kv_indices": 50, "num_pages": 30},
         *decode(1, 50, 30, 1, (32, 8, 128)), 131_280, 819_200, "bf16", 16.41, "dram", {"page_size": 1}),
    # A pool of no page: nothing of the cache is proved. q 8,192, kv_indptr 8, kv_indices 200: 8,400 B = 1.05 ns.
    Case("decode, no pool", "gqa-paged", {"batch_size": 1, "len_indptr": 2, "num_kv_indices": 50, "num_pages": 0},
         *decode(1, 50, 0, 1, (32, 8, 128)), 8_400, 819_200, "bf16", 1.05, "dram", {"page_size": 1}),
    # Prefill of one sequence, exact: query i of 33 meets 34 - 33 + i tokens: 33·34 - 33·32/2 = 594 pairs;
    # 2·40·594·256 = 12,165,120. q 33·40·128·2 = 337,920, 34·2·10·128·2 = 174,080, pointers 8 + 8, indices 136:
    # 512,152 B / 8,000 = 64.019 ns.
    Case("prefill of one", "gqa-paged", {"total_q": 33, "len_indptr": 2, "num_kv_indices": 34, "num_pages": 99},
         *prefill(33, 1, 34, 99, 1, (40, 10, 128)), 512_152, 12_165_120, "bf16", 64.019, "dram", {"page_size": 1}),
    # Of two sequences only the sums are known: 100 queries meet at least 100·(100/2 + 1)/2 = 2,550 tokens (each meets
    # itself and those before it, and the halves are the least case), more than 200 + 100 - 2 = 298.
    # 2·24·2550·256 = 31,334,400. q 100·24·128·2 = 614,400, 200·2·8·128·2 = 819,200, pointers 12 + 12, indices 800.
    Case("prefill of two", "gqa-paged", {"total_q": 100, "len_indptr": 3, "num_kv_indices": 200, "num_pages": 500},
         *prefill(100, 2, 200, 500, 1, (24, 8, 128)), 1_434_424, 31_334_400, "bf16", 179.303, "dram",
         {"page_size": 1}),
    # More queries (14,263) than 142 pages of 64 hold (9,088): the axes contradict each other, so only that each token
    # is met once: (142 - 63)·64 + 63 = 5,119 pairs, 2·32·5119·128 = 41,934,848. q 14263·32·64·2 = 58,421,248,
    # 5,119·2,048 = 10,483,712, pointers 256 + 256, indices 568: 68,906,040 B / 8,000 = 8,613.255 ns.
    Case("prefill, torn axes", "gqa-paged",
         {"total_q": 14263, "len_indptr": 64, "num_kv_indices": 142, "num_pages": 20000},
         *prefill(14263, 63, 142, 20000, 64, (32, 8, 64)), 68_906_040, 41_934_848, "bf16", 8_613.255, "dram",
         {"page_size": 64}),
    # MLA prefill of one: q 33·16·(512 + 64)·2 = 608,256, 34 tokens of (512 + 64)·2 = 1,152 B = 39,168, pointers 16,
    # indices 136: 647,576 B / 8,000 = 80.947 ns. 594 pairs, keys of 576 and values of 512:
    # 2·16·594·1088 = 20,680,704.
    Case("mla prefill", "mla-paged", {"total_q": 33, "len_indptr": 2, "num_kv_indices": 34, "num_pages": 989669},
         *mla(33, 34, 989669, {"qo_indptr": 2, "kv_indptr": 2}), 647_576, 20_680_704, "bf16", 80.947, "dram",
         {"page_size": 1}),
    # MLA decode: q 4·16·576·2 = 73,728, 40·1,152 = 46,080, kv_indptr 20, indices 160: 119,988 B / 8,000 = 14.9985 ns.
    # 2·16·40·1088 = 1,392,640.
    Case("mla decode", "mla-paged", {"batch_size": 4, "len_indptr": 5, "num_kv_indices": 40, "num_pages": 100},
         *mla(4, 40, 100, {"kv_indptr": 5}), 119_988, 1_392_640, "bf16", 14.9985, "dram", {"page_size": 1}),
    # Ragged, one sequence: q 7·8·256·2 = 28,672, k and v 7·256·2 = 3,584 each, pointers 16: 35,856 B = 4.482 ns.
    # 7·7 - 7·6/2 = 28 pairs: 2·8·28·512 = 229,376.
    Case("ragged, one", "gqa-ragged", {"total_q": 7, "total_kv": 7, "len_indptr": 2}, *ragged(7, 7, 1, (8, 1, 256)),
         35_856, 229_376, "bf16", 4.482, "dram"),
    # Compute bound: 32768² pairs less half: 32768·32768 - 32768·32767/2 = 536,887,296; 2·32·536887296·256 =
    # 8,796,361,457,664 / 2,500,000 = 3,518,544.58 ns. q 268,435,456, k and v 134,217,728 each, pointers 16:
    # 536,870,928, and of the output (268,435,456 + lse 4,194,304) - 132,120,576 = 140,509,184: 677,380,112 B.
    Case("ragged, long", "gqa-ragged", {"total_q": 32768, "total_kv": 32768, "len_indptr": 2},
         *ragged(32768, 32768, 1, (32, 16, 128)), 677_380_112, 8_796_361_457_664, "bf16", 3_518_544.5830656, "compute"),
    # The output beyond the L2: 520128·128·2 = 133,152,768 B read, weight 256, and 133,152,768 - 132,120,576 =
    # 1,032,192 written through: 134,185,216 B / 8,000 = 16,773.152 ns. A square, a sum and two products an element:
    # 4·520128·128 = 266,305,536.
    Case("rmsnorm", "rmsnorm", {"batch_size": 520128},
         {"hidden_states": ("bf16", [520128, 128]), "weight": ("bf16", [128])}, {"output": ("bf16", [520128, 128])},
         134_185_216, 266_305_536, "bf16", 16_773.152, "dram", {"hidden_size": 128}),
    # 3·2048·2 = 12,288 B = 1.536 ns; 5·2048 = 10,240 operations, the addition too.
    Case("fused add", "rmsnorm", {"batch_size": 1},
         {"hidden_states": ("bf16", [1, 2048]), "residual": ("bf16", [1, 2048]), "weight": ("bf16", [2048])},
         {"output": ("bf16", [1, 2048])}, 12_288, 10_240, "bf16", 1.536, "dram", {"hidden_size": 2048}),
    # Sparse attention: -1 is padding, so of the cache only one token is proved, (512 + 64)·2 = 1,152 B. q 8·16·576·2 =
    # 147,456, indices 8·2048·4 = 65,536: 214,144 B / 8,000 = 26.768 ns. One token a query: 2·16·8·1088 = 278,528.
    Case("dsa attention", "dsa-paged", {"num_tokens": 8, "num_pages": 8462},
         {"q_nope": ("bf16", [8, 16, 512]), "q_pe": ("bf16", [8, 16, 64]), "ckv_cache": ("bf16", [8462, 64, 512]),
          "kpe_cache": ("bf16", [8462, 64, 64]), "sparse_indices": ("int32", [8, 2048])},
         {"output": ("bf16", [8, 16, 512]), "lse": ("fp32", [8, 16])}, 214_144, 278_528, "bf16", 26.768, "dram",
         {"page_size": 64, "topk": 2048}),
    # Indexer: a sequence of at most topk tokens is selected whole, unscored. Its length and its first page are read,
    # 31·(4 + 4) = 248 B / 8,000 = 0.031 ns, and no operation.
    Case("dsa indexer", "dsa-paged", {"batch_size": 31, "max_num_pages": 26, "num_pages": 11923},
         {"q_index_fp8": ("fp8_e4m3", [31, 64, 128]), "k_index_cache_fp8": ("int8", [11923, 64, 1, 132]),
          "weights": ("fp32", [31, 64]), "seq_lens": ("int32", [31]), "block_table": ("int32", [31, 26])},
         {"topk_indices": ("int32", [31, 2048])}, 248, None, None, 0.031, "dram", {"page_size": 64, "topk": 2048}),
    # gdn decode: q, k 2·4·128·2 = 2,048 each, v 4,096, states 2·8·128·128·4 = 1,048,576, a_log and dt_bias 32 each,
    # a and b 32 each: 1,056,896 B / 8,000 = 132.112 ns. k·S, q·S and the update of a state of 128 by 128 for each of
    # 2 tokens and 8 heads: 6·2·8·16384 = 1,572,864.
    Case("gdn decode", "gdn", {"batch_size": 2}, *gdn([2, 1], 4, 8, 2, "state"), 1_056_896, 1_572_864, "bf16", 132.112,
         "dram", {"seq_len": 1, "num_v_heads": 8, "head_size": 128}),
    # Without a state given: 8,320 B = 1.04 ns.
    Case("gdn decode, no state", "gdn", {"batch_size": 2}, *gdn([2, 1], 4, 8, 2, "state"), 8_320, 1_572_864, "bf16",
         1.04, "dram", {"seq_len": 1, "num_v_heads": 8, "head_size": 128}, undescribed=("state",)),
    # gdn prefill: q, k 204,800 each, v 409,600, states 2·16·16384·4 = 2,097,152, a_log, dt_bias 64 each, a, b 3,200
    # each, cu_seqlens 24: 2,922,904 B / 8,000 = 365.363 ns. In chunks only the update is certain:
    # 2·100·16·16384 = 52,428,800.
    Case("gdn prefill", "gdn", {"total_seq_len": 100, "num_seqs": 2, "len_cu_seqlens": 3},
         *gdn([100], 8, 16, 2, "state", {"cu_seqlens": ("int64", [3])}), 2_922_904, 52_428_800, "bf16", 365.363, "dram",
         {"num_v_heads": 16, "head_size": 128}),
    # gdn verification: 2 of the pool's 10 states, 2·16·16384·4 = 2,097,152; the buffer is written, not read. q, k
    # 2·4·8·128·2 = 16,384 each, v 32,768, a_log, dt_bias 64 each, a, b 256 each, indices 8: 2,163,336 B = 270.417 ns.
    # 2·8·16·16384 = 4,194,304.
    Case("gdn verification", "gdn", {"batch_size": 2, "seq_len": 4, "pool_size": 10},
         *gdn([2, 4], 8, 16, 10, "initial_state",
              {"initial_state_indices": ("int32", [2]), "intermediate_states_buffer": ("fp32", [10, 4, 16, 128, 128])}),
         2_163_336, 4_194_304, "bf16", 270.417, "dram", {"num_v_heads": 16, "head_size": 128}),
    # Expert parallel: 8 of 256 experts may all lie elsewhere. Logits 10·256·4 = 10,240 and bias 512: 10,752 B.
    Case("moe, elsewhere", "moe", {"seq_len": 10}, *moe(10, 256, 32, 7168, 2048), 10_752, None, None, 1.344, "dram",
         {"num_experts": 256, "num_local_experts": 32, "top_k": 8, "hidden_size": 7168, "intermediate_size": 2048}),
    # All experts here: at least 8 of them, each 1536·2048 + 12·16·4 + 2048·768 + 16·6·4 = 4,719,744 B = 37,757,952;
    # hidden states 10·2048 + 16·10·4 = 21,120, logits 5,120, bias 256: 37,784,448 B / 8,000 = 4,723.056 ns.
    # 10·8·6·2048·768 = 754,974,720 operations.
    Case("moe, all here", "moe", {"seq_len": 10}, *moe(10, 128, 128, 2048, 768), 37_784_448, 754_974_720, "fp8",
         4_723.056, "dram",
         {"num_local_experts": 128, "top_k": 8, "gemm1_out_size": 1536, "hidden_size": 2048, "intermediate_size": 768}),
    # Sampling: 3·128256·4 = 1,539,072 B of probabilities, top_k 12: 1,539,084 B / 8,000 = 192.3855 ns.
    Case("top-k sampling", "sampling", {"batch_size": 3},
         {"probs": ("fp32", [3, 128256]), "top_k": ("int32", [3])}, {"samples": ("int64", [3])}, 1_539_084, None, None,
         192.3855, "dram", {"vocab_size": 128256}),
    # 2·151936·4 + 8 + 8 = 1,215,504 B / 2,039 = 596.12751... ns.
    Case("top-k top-p sampling on A800", "sampling", {"batch_size": 2},
         {"probs": ("fp32", [2, 151936]), "top_k": ("int32", [2]), "top_p": ("fp32", [2])}, {"samples": ("int64", [2])},
         1_215_504, None, None, 1_215_504 / 2_039, "dram", {"vocab_size": 151936}, hardware="NVIDIA A800-SXM4-80GB"),
    # 64·1024·2 = 131,072 B and 128 B of factors: 131,200 / 8,000 = 16.4 ns; a product an element: 65,536.
    Case("elementwise", "elementwise", {"m": 64}, {"x": ("fp16", [64, 1024]), "scale": ("fp16", [64])},
         {"y": ("fp16", [64, 1024])}, 131_200, 65_536, "bf16", 16.4, "dram"),
    # fp32: 64·1024·4 = 262,144 B / 2,039 = 128.565 ns.
    Case("elementwise on A800", "elementwise", {"m": 64}, {"x": ("fp32", [64, 1024])}, {"y": ("fp32", [64, 1024])},
         262_144, 65_536, "tf32", 262_144 / 2_039, "dram", hardware="NVIDIA A800-SXM4-80GB"),
    # Nothing is proved of a family without a formula, or of a GPU without a datasheet.
    Case("unknown family", "rope", {"m": 64}, {"x": ("fp16", [64, 1024])}, {"y": ("fp16", [64, 1024])}, None, None,
         None, None, None),
    Case("unknown hardware", "gemm", {"m": 7}, *gemm(7, 128, 2048), 552_960, 3_670_016, None, None, None,
         {"n": 128, "k": 2048}, hardware="a GPU of tomorrow"),
]  # fmt: skip


def _rows(cases: list[Case]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {name: [] for name in ("operations", "workloads", "workload_tensors", "runs")}
    for case in cases:
        axes = {name: {"role": "constant", "type": "integer", "value": value} for name, value in case.constants.items()}
        axes |= {name: {"role": "variable", "type": "integer"} for name in case.axes}
        digests = {"operation_digest": case.name, "workload_digest": case.name}
        operation = {"name": case.name, "family": case.family, "tags": list(case.tags)}
        tables["operations"].append(
            operation | {"operation_digest": case.name} | {"manifest": json.dumps({"spec": {"axes": axes}})}
        )
        tables["workloads"].append(digests | {"axes": json.dumps(case.axes)})
        tables["runs"].append(digests | {"run_digest": case.name, "hardware": case.hardware})
        for role, tensors in (("input", case.inputs), ("output", case.outputs)):
            for position, (name, (dtype, shape)) in enumerate(tensors.items()):
                tables["workload_tensors"].append(
                    {
                        "workload_digest": case.name,
                        "role": role,
                        "position": position,
                        "name": name,
                        "dtype": dtype,
                        "shape": shape,
                        "generator": "random" if role == "input" and name not in case.undescribed else None,
                    }
                )
    return tables


@pytest.fixture(scope="module")
def floors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("floors")
    parts = {name: [write_part(folder, name, rows)] for name, rows in completed(_rows(CASES)).items()}
    build(parts, folder / "warehouse.duckdb", meta={})
    with connect(folder / "warehouse.duckdb") as connection:
        yield connection


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_floor_is_what_the_hand_derives(floors: duckdb.DuckDBPyConnection, case: Case) -> None:
    columns = ("bytes_moved", "operations", "peak_class", "floor_ns", "bound_by")
    query = f"SELECT {', '.join(columns)} FROM floor_estimates WHERE model = 'headroom-v2' AND workload_digest = ?"
    (row,) = floors.execute(query, (case.name,)).fetchall()
    found = dict(zip(columns, row, strict=True))
    expected: dict[str, Any] = {column: getattr(case, column) for column in columns}
    if case.floor_ns is not None:
        expected["floor_ns"] = pytest.approx(case.floor_ns, rel=1e-12)
    assert found == expected
