"""HTTP with the Hub: bounded, patient with its limits, and careful with the token.

Every request is a GET that may be repeated. Redirects are followed by hand, since each hop must be allowed and
only the Hub's own host may see the token. Nothing here logs, and no error shows a query string or a header: signed
URLs and tokens live there.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from requests.auth import AuthBase

from pipeline.errors import KernelhouseError, UsageError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REDIRECTS = (301, 302, 303, 307, 308)
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_TOKEN = re.compile(r"[\x21-\x7e]+")
_RATE_LIMIT = re.compile(r'"[^"]*"\s*;\s*r\s*=\s*(?P<remaining>\d+)\s*;\s*t\s*=\s*(?P<seconds>\d+)')
"""IETF draft-ietf-httpapi-ratelimit-headers-09, as the Hub writes it: ``"api";r=0;t=55``."""
_CHUNK_BYTES = 2**18

T = TypeVar("T")


class FetchError(KernelhouseError):
    """Something could not be had from the Hub: a sentence without a secret, and whether it is worth another try."""

    def __init__(
        self, sentence: str, *, status: int | None = None, transient: bool = False, wait_s: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.transient = transient
        self.wait_s = wait_s
        """How long the Hub asks to wait, in seconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait and how much to take."""

    connect_s: float = 10.0
    read_s: float = 30.0
    """Longest silence inside a response."""
    transfer_s: float = 1800.0
    """Longest time for one body."""
    attempts: int = 6
    backoff_s: float = 1.0
    """The longest wait before the first repetition; it doubles with each."""
    longest_backoff_s: float = 60.0
    longest_wait_s: float = 600.0
    """A server that asks for a longer wait is given up."""
    redirects: int = 5
    file_bytes: int = 4 * 2**30
    page_bytes: int = 64 * 2**20
    pages: int = 1_000
    entries: int = 500_000
    failures_in_a_row: int = 24
    """After so many files of a pull that a broken network took, the others are not tried."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, so that tests need neither."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[threading.Event, float], object] = threading.Event.wait
    """Wait so many seconds, or until the event is set."""
    random: Callable[[], float] = random.random
    utc: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


class HubClient:
    """Requests to one endpoint; may be used by several threads.

    Args:
        endpoint: ``https://HOST``, or http where the host is loopback or allowed.
        token: sent to the endpoint's own scheme, host and port, and nowhere else.
        allow_hosts: ``HOST`` or ``HOST:PORT`` that may be talked to in http.
        limits: time-outs and caps.
        clock: time and chance.

    Raises:
        UsageError: an endpoint that cannot be used safely, or a token that is none.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        token: str | None = None,
        allow_hosts: tuple[str, ...] = (),
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._allowed = frozenset(host.lower() for host in allow_hosts)
        try:
            parts, origin = urlsplit(endpoint), _origin(endpoint)
        except ValueError:
            parts, origin = urlsplit(""), ("", "", None)
        strange = parts.scheme not in ("http", "https") or any(c.isspace() or not c.isprintable() for c in endpoint)
        if strange or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
            raise UsageError("the endpoint is no address such as https://HOST: see --endpoint and HF_ENDPOINT")
        if not self._is_trusted(endpoint) and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise UsageError(f"the endpoint {_place(endpoint)} is not https: use https, or add --allow-host HOST")
        if token is not None and not _TOKEN.fullmatch(token):
            raise UsageError("HF_TOKEN holds a character that no token has: set it again, or unset it")
        self.endpoint = endpoint.rstrip("/")
        self.host = parts.netloc
        self.limits = limits or Limits()
        self.clock = clock or Clock()
        self._auth = _OwnHostOnly(origin, token)
        self._sessions = threading.local()
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End what other threads do with this client, as soon as they wait or read."""
        self._stopped.set()

    def get_json(self, url: str) -> tuple[Any, str | None]:
        """Return the JSON document at a URL, and the URL of the next page where there is one.

        Raises:
            FetchError: it cannot be had, also after repetitions.
        """
        return self.repeated(lambda: self._get_json(url))

    def repeated(self, attempt: Callable[[], T]) -> T:
        """Try until it succeeds, fails for good, or the tries are used up; then raise the last FetchError."""
        limits, clock = self.limits, self.clock
        tried = 0
        while True:
            self._wait_for_turn()
            try:
                return attempt()
            except FetchError as error:
                tried += 1
                if not error.transient or tried >= limits.attempts or (error.wait_s or 0) > limits.longest_wait_s:
                    raise
                ceiling = min(limits.longest_backoff_s, limits.backoff_s * 2 ** (tried - 1))
                jitter = ceiling * clock.random()
                if error.wait_s is not None:
                    # The limit holds for all threads; jitter keeps them from coming back at once.
                    self._postpone(error.wait_s)
                self._sleep((error.wait_s or 0.0) + jitter)

    @contextmanager
    def body(self, url: str, *, most_bytes: int) -> Iterator[tuple[Iterator[bytes], Mapping[str, str]]]:
        """Open a URL, following redirects; give its body in chunks and its headers.

        Raises:
            FetchError: also out of the chunks: cut short, too slow, or over ``most_bytes``.
        """
        deadline = self.clock.now() + self.limits.transfer_s
        with self._open(url) as response:
            yield self._chunks(response, deadline, most_bytes), response.headers

    def _get_json(self, url: str) -> tuple[Any, str | None]:
        with self._open(url) as response:
            deadline = self.clock.now() + self.limits.transfer_s
            raw = b"".join(self._chunks(response, deadline, self.limits.page_bytes))
            try:
                document = json.loads(raw)
            except (ValueError, RecursionError):
                raise FetchError(f"{_place(url)} answers with something that is not JSON", transient=True) from None
            following = response.links.get("next", {}).get("url")
            return document, urljoin(url, following) if following else None

    @contextmanager
    def _open(self, url: str) -> Iterator[requests.Response]:
        """Send a request and follow its redirects; give a response of status 200."""
        for _ in range(self.limits.redirects + 1):
            try:
                response = self._session().get(
                    url,
                    headers={"Accept-Encoding": "identity"},
                    timeout=(self.limits.connect_s, self.limits.read_s),
                    allow_redirects=False,
                    stream=True,
                )
            except (requests.RequestException, OSError) as error:
                raise FetchError(f"{_place(url)} cannot be reached ({_kind(error)})", transient=True) from None
            with response:
                if response.status_code == requests.codes.ok:
                    self._heed(response)
                    yield response
                    return
                if response.status_code not in _REDIRECTS:
                    raise self._refused(url, response)
                target = urljoin(url, response.headers.get("Location", ""))
            if not self._may_visit(target):
                raise FetchError(
                    f"{_place(url)} redirects to {_place(target)}, which is not https: "
                    "name its host with --allow-host if you trust it"
                )
            url = target
        raise FetchError(f"{_place(url)} redirects over {self.limits.redirects} times: check the endpoint")

    def _chunks(self, response: requests.Response, deadline: float, most_bytes: int) -> Iterator[bytes]:
        place = _place(response.url)
        size = 0
        try:
            for chunk in response.iter_content(_CHUNK_BYTES):
                self._check_stopped()
                size += len(chunk)
                if size > most_bytes:
                    raise FetchError(f"{place} sends more than the {most_bytes:,} bytes that it may", transient=True)
                if self.clock.now() > deadline:
                    raise FetchError(f"{place} takes over {self.limits.transfer_s:,.0f} s", transient=True)
                yield chunk
        except (requests.RequestException, OSError) as error:
            raise FetchError(f"{place} broke off ({_kind(error)})", transient=True) from None

    def _session(self) -> requests.Session:
        """Return the session of this thread: requests does not promise that one may be shared."""
        session: requests.Session | None = getattr(self._sessions, "session", None)
        if session is None:
            session = requests.Session()
            session.auth = self._auth
            self._sessions.session = session
        return session

    def _refused(self, url: str, response: requests.Response) -> FetchError:
        status = response.status_code
        return FetchError(
            f"{_place(url)} answers with status {status}",
            status=status,
            transient=status in _TRANSIENT,
            wait_s=self._asked_to_wait(response) if status in _TRANSIENT else None,
        )

    def _heed(self, response: requests.Response) -> None:
        """Pause before the limit is hit, where the Hub says that nothing is left of it."""
        limit = _RATE_LIMIT.search(response.headers.get("RateLimit", ""))
        if limit and int(limit["remaining"]) == 0 and int(limit["seconds"]) <= self.limits.longest_wait_s:
            self._postpone(float(limit["seconds"]))

    def _asked_to_wait(self, response: requests.Response) -> float | None:
        """Return the seconds of ``Retry-After`` (RFC 9110, 10.2.3: a number or a date), else of ``RateLimit``."""
        after = response.headers.get("Retry-After", "").strip()
        if after.isascii() and after.isdigit():
            return float(after)
        if after:
            try:
                at = parsedate_to_datetime(after)
            except ValueError:
                return None
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            return max(0.0, (at - self.clock.utc()).total_seconds())
        limit = _RATE_LIMIT.search(response.headers.get("RateLimit", ""))
        return float(limit["seconds"]) if limit and int(limit["remaining"]) == 0 else None

    def _postpone(self, seconds: float) -> None:
        with self._lock:
            self._not_before = max(self._not_before, self.clock.now() + seconds)

    def _wait_for_turn(self) -> None:
        with self._lock:
            wait = self._not_before - self.clock.now()
        if wait > 0:
            self._sleep(wait)

    def _sleep(self, seconds: float) -> None:
        self.clock.sleep(self._stopped, seconds)
        self._check_stopped()

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise FetchError("the pull was stopped")

    def _may_visit(self, url: str) -> bool:
        try:
            return self._is_trusted(url) or _origin(url) == self._auth.origin
        except ValueError:
            return False

    def _is_trusted(self, url: str) -> bool:
        """Tell whether a URL is https, or http to a host that was named."""
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        if parts.scheme == "https":
            return bool(host)
        return parts.scheme == "http" and not self._allowed.isdisjoint({host, f"{host}:{parts.port}"})


class _OwnHostOnly(AuthBase):
    """Adds the token to requests of one origin. As the session's auth it also keeps ``.netrc`` out of the others."""

    def __init__(self, origin: tuple[str, str, int | None], token: str | None) -> None:
        self.origin = origin
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token is not None and _origin(request.url or "") == self.origin:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _place(url: str) -> str:
    """Return a URL for people: no query (it may be signed), no user."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "something that is no URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _kind(error: Exception) -> str:
    """Return what kind of failure it is; the text of the error may hold a signed URL."""
    if isinstance(error, requests.Timeout) or "timed out" in str(error):
        return "time-out"
    return type(error).__name__
