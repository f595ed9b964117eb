from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.normalize.words import argument_name, dimension, document_name, dtype, kebab, language, token


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gqa_paged", "gqa-paged"),
        ("GEMM", "gemm"),
        ("  a  b__c--d  ", "a-b-c-d"),
        ("--a--", "a"),
        ("NVFP4 n4096/k4096", "nvfp4-n4096-k4096"),
        ("é", ""),
        ("aéb", "a-b"),
        ("", ""),
        ("---", ""),
        ("a" * 101, "a" * 100),
        # Cut after the dashes at the ends are gone: a dash may then be the last character.
        ("a" * 99 + "-b", "a" * 99 + "-"),
        ("-" + "a" * 100, "a" * 100),
    ],
)
def test_kebab(text: str, expected: str) -> None:
    assert kebab(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CUDA_cpp", "cuda_cpp"),
        ("flash-attn", "flash_attn"),
        ("a  b", "a__b"),
        ("", ""),
        ("é.", "__"),
        ("_x_", "_x_"),
        ("0", "0"),
        ("a" * 300, "a" * 300),
    ],
)
def test_token(text: str, expected: str) -> None:
    assert token(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("A", "a"), ("q_nope", "q_nope"), ("0", "x_0"), ("_a", "x__a"), ("", "x_"), ("é", "x__"), ("x-1", "x_1")],
)
def test_argument_name(text: str, expected: str) -> None:
    assert argument_name(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (4096, 4096),
        ("2048", 2048),
        ("007", 7),
        ("M", "m"),
        ("num_Pages", "num_pages"),
        ("2M", "2m"),
        ("-1", "-1"),
    ],
)
def test_dimension(value: int | str, expected: int | str) -> None:
    assert dimension(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bfloat16", "bf16"), ("float16", "fp16"), ("half", "fp16"), ("float32", "fp32"), ("float", "fp32"),
        ("float64", "fp64"), ("double", "fp64"), ("float8_e4m3fn", "fp8_e4m3"), ("float8_e4m3", "fp8_e4m3"),
        ("float8_e5m2", "fp8_e5m2"), ("int32", "int32"), ("bool", "bool"), ("fp8_e4m3fnuz", "fp8_e4m3fnuz"),
        ("NVFP4", "nvfp4"), ("torch.int8", "torch_int8"), ("float4_e2m1fn_x2", "float4_e2m1fn_x2"),
    ],
)  # fmt: skip
def test_dtype(text: str, expected: str) -> None:
    assert dtype(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("cuda_cpp", "cuda"), ("cuda", "cuda"), ("python", "python"), ("Triton", "triton"), ("C++", "c__")],
)
def test_language(text: str, expected: str) -> None:
    assert language(text) == expected


@given(st.text())
def test_shapes_of_words(text: str) -> None:
    assert re.fullmatch(r"([a-z0-9][a-z0-9-]{0,99})?", kebab(text))
    assert re.fullmatch(r"[a-z0-9_]*", token(text))
    assert re.fullmatch(r"[a-z][a-z0-9_]*", argument_name(text))
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,199}", document_name(text, text))
    assert kebab(kebab(text)) == kebab(text).rstrip("-")
    assert token(token(text)) == token(text)
