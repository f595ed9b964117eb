"""Job files: what they carry, and which of them are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.manifests import sha256_of
from pipeline.rerun.protocol import RERUN_PROTOCOL
from pipeline.rerun.runner import PROTOCOL, PROTOCOL_VERSION
from pipeline.rerun.runner.job import JobError, parse_job
from tests.rerun.making import altered, make_job

SOURCE = {"main.py": "def run(x, y):\n    return x + 2 * y\n"}


def test_a_job_is_what_its_text_says() -> None:
    job = make_job(SOURCE)
    assert parse_job(job.text) == job
    assert job.digest == sha256_of(job.text.encode())
    assert job.document["axes"] == {"n": 4096}
    assert not job.destination_passing


def test_two_jobs_of_one_thing_differ_in_their_nonce() -> None:
    assert make_job(SOURCE).digest != make_job(SOURCE).digest
    assert make_job(SOURCE, nonce="1").digest == make_job(SOURCE, nonce="1").digest


def test_arguments_keep_the_order_of_the_definition() -> None:
    definition = {
        "name": "minus",
        "op_type": "elementwise",
        "axes": {"N": {"type": "var"}},
        "inputs": {name: {"shape": ["N"], "dtype": "float32"} for name in ("z", "a")},
        "outputs": {"out": {"shape": ["N"], "dtype": "float32"}},
        "reference": "def run(z, a):\n    return z - a\n",
    }
    job = make_job({"main.py": "def run(z, a):\n    return z - a\n"}, definition=definition)
    assert list(json.loads(job.text)["definition"]["inputs"]) == ["z", "a"]


def test_the_runner_follows_the_protocol_of_the_manifest() -> None:
    harness = RERUN_PROTOCOL.spec.harness
    assert (harness.name, harness.version) == (PROTOCOL, PROTOCOL_VERSION)


def edited(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(changes)


def other_source(document: dict[str, Any]) -> None:
    document["solution"]["sources"][0]["content"] = "def run(x, y):\n    return x\n"


def other_source_with_its_digest(document: dict[str, Any]) -> None:
    other_source(document)
    document["sources"] = {"main.py": sha256_of(document["solution"]["sources"][0]["content"].encode())}


def other_workload(document: dict[str, Any]) -> None:
    document["workload"]["text"] = document["workload"]["text"].replace("4096", "4097")


def other_protocol(document: dict[str, Any]) -> None:
    text = document["protocol"]["text"].replace('"version":"1"', '"version":"9"')
    document["protocol"] = {"text": text, "digest": sha256_of(text.encode())}


def escaping_source(document: dict[str, Any]) -> None:
    document["solution"]["sources"][0]["path"] = "../main.py"


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (other_source, "source files do not have the digests"),
        (other_source_with_its_digest, "is not the file that the implementation names"),
        (other_workload, "workload has digest"),
        (other_protocol, "this runner follows kernelhouse-rerun version 1"),
        (escaping_source, "may leave its folder"),
        (edited(surprise=1), "unknown field surprise"),
        (edited(nonce=3), "nonce must be str"),
        (edited(format="other/1"), "no job of format"),
        (edited(limits={}), "limits.build_seconds"),
        (edited(target={"digest": "sha256:0", "text": "{}"}), "target has digest"),
    ],
)
def test_an_altered_job_is_refused(alter: Callable[[dict[str, Any]], None], said: str) -> None:
    document = json.loads(make_job(SOURCE).text)
    alter(document)
    with pytest.raises(JobError, match=said):
        parse_job(json.dumps(document))


def test_whatever_a_field_is_put_to_a_job_is_sound_or_refused() -> None:
    outcomes = set()
    for _, document in altered(json.loads(make_job(SOURCE).text)):
        try:
            outcomes.add(type(parse_job(json.dumps(document)).title))
        except JobError:
            outcomes.add(JobError)
    assert outcomes == {str, JobError}


@pytest.mark.parametrize("text", ["", "[]", "nonsense", "[" * 100_000])
def test_what_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(JobError):
        parse_job(text)
