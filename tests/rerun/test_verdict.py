"""Verdicts, one case a rule."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.rerun.verdict import Timed, Verdict, agree, judge

H200, B200 = "NVIDIA H200", "NVIDIA B200"
PASSED: dict[str, Any] = {"correct": True, "status": "passed", "cause": None, "violations": []}


@pytest.mark.parametrize(
    ("outcome", "rerun", "target", "verdict", "reasons", "ratio"),
    [
        ({}, Timed(H200, 1000.0, (990, 1010)), Timed(H200, 1000), Verdict.REPRODUCED, (), 1.0),
        ({}, Timed(H200, 1090.0, (1085, 1095)), Timed(H200, 1000), Verdict.REPRODUCED, (), 1.09),
        ({}, Timed(H200, 1150.0, (1090, 1200)), Timed(H200, 1000), Verdict.REPRODUCED, (), 1.15),
        ({}, Timed(H200, 1110.0, (1105, 1115)), Timed(H200, 1000), Verdict.SLOWER, (), 1.11),
        ({}, Timed(H200, 900.0, (899, 901)), Timed(H200, 1000), Verdict.FASTER, (), 0.9),
        ({}, Timed(H200, 900.0, (899, 901)), Timed(H200, 1000, (950, 1050)), Verdict.REPRODUCED, (), 0.9),
        (
            {},
            Timed(H200, 900.0),
            Timed(B200, 900),
            Verdict.CORRECT_OTHER_HARDWARE,
            ("measured on NVIDIA H200, reported on NVIDIA B200",),
            None,
        ),
        (
            {},
            Timed("a CPU", None),
            Timed(H200, 900),
            Verdict.CORRECT_OTHER_HARDWARE,
            ("measured on a CPU, reported on NVIDIA H200",),
            None,
        ),
        ({}, Timed(H200, 900.0), Timed(H200, None), Verdict.FAILED, ("NO_LATENCY_TO_COMPARE",), None),
        (
            {"correct": False, "status": "incorrect_numerical", "cause": "OUTPUT_NOT_WRITTEN"},
            Timed(H200, None),
            Timed(H200, 900),
            Verdict.INCORRECT,
            ("OUTPUT_NOT_WRITTEN",),
            None,
        ),
        (
            {"correct": False, "status": "timeout", "cause": "TIMEOUT"},
            Timed(H200, None),
            Timed(H200, 900),
            Verdict.FAILED,
            ("TIMEOUT",),
            None,
        ),
        (
            {"correct": False, "status": "suspected_reward_hack", "violations": ["STALE_OUTPUT", "HARNESS_TAMPERED"]},
            Timed(H200, None),
            Timed(H200, 900),
            Verdict.SUSPECT,
            ("HARNESS_TAMPERED", "STALE_OUTPUT"),
            None,
        ),
    ],
)
def test_verdict(
    outcome: dict[str, Any], rerun: Timed, target: Timed, verdict: Verdict, reasons: tuple[str, ...], ratio: float
) -> None:
    judgement = judge(**(PASSED | outcome), rerun=rerun, target=target)
    assert (judgement.verdict, judgement.reasons) == (verdict, reasons)
    assert judgement.ratio == (None if ratio is None else pytest.approx(ratio))


def test_agreement_does_not_depend_on_which_comes_first() -> None:
    one, other = Timed(H200, 100.0, (95, 99)), Timed(H200, 110.0, (108, 112))
    assert agree(one, other)
    assert agree(other, one)
    assert not agree(one, Timed(H200, 110.0, (109, 112)))
    assert not agree(Timed(H200, 110.0, (109, 112)), one)
