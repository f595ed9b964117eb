from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pipeline.errors import UsageError
from pipeline.sources.hub import latest_revision
from pipeline.sources.hub_client import Clock, FetchError, HubClient, Limits
from tests.fake_hub.pulls import LIMITS, FakeTime, client, patient
from tests.fake_hub.server import REPOSITORY, FakeHub, Fault

TOKEN = "hf_secret"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as hub:
        hub.commit({"README.md": b"0123456789"})
        yield hub


def fetch(asker: HubClient, hub: FakeHub, *, most: int = 1000) -> bytes:
    def attempt() -> bytes:
        url = f"{hub.endpoint}/datasets/{REPOSITORY}/resolve/{hub.head}/README.md"
        with asker.body(url, most_bytes=most) as (chunks, _):
            return b"".join(chunks)

    return asker.repeated(attempt)


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (Fault.ERROR_503, [0.5, 1.0]),
        (Fault.RETRY_AFTER, [7.5, 8.0]),
        (Fault.RATE_LIMIT, [55.5, 56.0]),
    ],
)
def test_it_waits_as_the_hub_asks_and_longer_each_time(hub: FakeHub, fault: Fault, waits: list[float]) -> None:
    hub.switch(fault, 2)
    time = FakeTime()
    assert fetch(client(hub, time), hub) == b"0123456789"
    assert time.waits == waits


def test_the_back_off_has_a_ceiling_and_the_tries_an_end(hub: FakeHub) -> None:
    hub.switch(Fault.ERROR_500)
    time = FakeTime()
    with pytest.raises(FetchError, match="answers with status 500"):
        fetch(client(hub, time, limits=Limits(attempts=10)), hub)
    assert time.waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_one_who_asks_for_too_long_a_wait_is_given_up(hub: FakeHub) -> None:
    hub.switch(Fault.RATE_LIMIT)
    time = FakeTime()
    with pytest.raises(FetchError, match="429"):
        fetch(client(hub, time, limits=patient(longest_wait_s=50)), hub)
    assert time.waits == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": "Sun, 01 Feb 2026 00:00:30 GMT"}, 30.0),
        ({"Retry-After": "Sat, 31 Jan 2026 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"RateLimit": '"api";r=0;t=55'}, 55.0),
        ({"RateLimit": '"api";r=3;t=55'}, None),
        ({"Retry-After": "5", "RateLimit": '"api";r=0;t=55'}, 5.0),
        ({}, None),
    ],
)
def test_how_long_the_hub_asks_to_wait(hub: FakeHub, headers: dict[str, str], seconds: float | None) -> None:
    import requests

    response = requests.Response()
    response.headers.update(headers)
    assert client(hub)._asked_to_wait(response) == seconds


def test_a_limit_that_one_thread_meets_holds_for_all(hub: FakeHub) -> None:
    hub.switch(Fault.RETRY_AFTER, 1)
    time = FakeTime()
    asker = client(hub, time)
    fetch(asker, hub)
    asker._postpone(20)
    fetch(asker, hub)
    assert time.waits == [7.5, 20.0]


def test_a_body_that_drips_is_cut_off(hub: FakeHub) -> None:
    time = FakeTime(step=6.0)
    with pytest.raises(FetchError, match="takes over 5 s"):
        fetch(client(hub, time, limits=patient(transfer_s=5.0)), hub)


def test_a_body_over_its_cap_is_cut_off(hub: FakeHub) -> None:
    with pytest.raises(FetchError, match="sends more than the 9 bytes"):
        fetch(client(hub), hub, most=9)


def test_a_stopped_client_waits_no_longer(hub: FakeHub) -> None:
    hub.switch(Fault.RETRY_AFTER)
    stop = threading.Event()
    asker = HubClient(hub.endpoint, limits=LIMITS, clock=Clock(sleep=lambda event, _: (asker.stop(), event.wait())))
    with pytest.raises(FetchError, match="the pull was stopped"):
        fetch(asker, hub)
    assert not stop.is_set()
    assert len(hub.seen) == 1


@pytest.mark.parametrize("fault", [Fault.FORBIDDEN_REDIRECT, Fault.REDIRECT_LOOP])
@pytest.mark.parametrize("on_files", [True, False])
def test_a_bad_redirect_is_not_followed_nor_tried_again(hub: FakeHub, fault: Fault, on_files: bool) -> None:
    hub.switch(fault, on_files=on_files)
    with pytest.raises(Exception, match="redirects") as caught:
        fetch(client(hub), hub) if on_files else latest_revision(client(hub), REPOSITORY)
    assert "secret-signature" not in str(caught.value)
    assert "try again" not in str(caught.value)
    assert len(hub.asked("", "hub")) == (LIMITS.redirects + 1 if fault is Fault.REDIRECT_LOOP else 1)
    assert hub.asked("", "elsewhere") == []


def test_a_redirect_to_a_named_host_is_followed_without_the_token(hub: FakeHub) -> None:
    hub.token = TOKEN
    hub.switch(Fault.FORBIDDEN_REDIRECT, 1)
    assert fetch(client(hub, allow=("localhost",)), hub) == b"thanks for the visit"
    assert [(seen.host, seen.token) for seen in hub.seen] == [("hub", f"Bearer {TOKEN}"), ("elsewhere", None)]


@pytest.mark.parametrize(
    ("endpoint", "allow", "message"),
    [
        ("http://hub.example", (), "http://hub.example is not https"),
        ("http://hub.example:81", ("hub.example:80",), "is not https"),
        ("ftp://hub.example", ("hub.example",), "no address"),
        ("https://hub.example\n", (), "no address"),
        ("https://hub.exa mple", (), "no address"),
        ("https://", (), "no address"),
        ("https://user:password@hub.example", (), "no address"),
        ("https://hub.example?token=secret", (), "no address"),
        ("http://[::1", (), "no address"),
        ("hub.example", (), "no address"),
    ],
)
def test_an_endpoint_that_cannot_be_used_safely_is_refused(endpoint: str, allow: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        HubClient(endpoint, allow_hosts=allow)
    assert "password" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "allow"),
    [
        ("https://hub.example/", ()),
        ("http://hub.example", ("hub.example",)),
        ("http://HUB.example:81", ("hub.EXAMPLE:81",)),
        ("http://localhost:8080", ()),
        ("http://[::1]:8080", ()),
    ],
)
def test_an_endpoint_may_be_https_or_loopback_or_named(endpoint: str, allow: tuple[str, ...]) -> None:
    assert HubClient(endpoint, allow_hosts=allow).endpoint == endpoint.rstrip("/")


@pytest.mark.parametrize("token", ["hf_secret\n", "hf secret", "hf_sécret", ""])
def test_a_token_that_is_none_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(UsageError, match="HF_TOKEN holds a character") as caught:
        HubClient("https://hub.example", token=token)
    assert "cret" not in str(caught.value)


def test_netrc_is_not_read(hub: FakeHub, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    netrc = Path(str(tmp_path)) / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    fetch(client(hub), hub)
    assert [seen.token for seen in hub.seen] == [None]
