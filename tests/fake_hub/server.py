"""A Hub on loopback, as far as a dataset is pulled from it, with one switch a fault.

Three servers stand for three hosts: the Hub, the store that its LFS files redirect to, and a host that nobody should
ever ask. Faithful enough for the official client (see test_faithful.py).
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

REPOSITORY = "owner/kernels"


class Fault(StrEnum):
    RETRY_AFTER = "429 with Retry-After"
    RATE_LIMIT = "429 with RateLimit"
    ERROR_500 = "500"
    ERROR_502 = "502"
    ERROR_503 = "503"
    RESET = "connection reset in the middle of the body"
    TRUNCATED = "body cut short"
    HTML = "HTML page with status 200"
    WRONG_BYTES = "wrong bytes of the right size"
    POINTER = "LFS pointer in place of content"
    FORBIDDEN_REDIRECT = "redirect to a forbidden host"
    REDIRECT_LOOP = "redirect loop"
    UNAUTHORIZED = "401"
    NO_REPOSITORY = "404 of the repository"
    VANISHED = "file gone between listing and fetch"
    BRANCH_MOVES = "branch moves during the pull"
    STALLED = "stalled socket"
    UNSAFE_PATH = "path ../../x in the listing"
    OVER_CAP = "file over the cap"


LISTING_ONLY = frozenset({Fault.NO_REPOSITORY, Fault.BRANCH_MOVES, Fault.UNSAFE_PATH, Fault.OVER_CAP})
FILES_ONLY = frozenset({Fault.WRONG_BYTES, Fault.POINTER, Fault.VANISHED})
FAULTS_OF_FILES = tuple(fault for fault in Fault if fault not in LISTING_ONLY)
FAULTS_OF_LISTINGS = tuple(fault for fault in Fault if fault not in FILES_ONLY)
AT_THE_HUB = frozenset({Fault.UNAUTHORIZED, Fault.VANISHED, Fault.FORBIDDEN_REDIRECT})
"""Faults that an LFS file has before its redirect."""
HUGE = 2**40


@dataclass
class Switch:
    """A fault that is on for so many requests."""

    fault: Fault
    times: int
    on_files: bool
    path: str | None = None


@dataclass(frozen=True)
class Seen:
    """A request as a host saw it."""

    host: str
    method: str
    target: str
    token: str | None


@dataclass(frozen=True)
class Commit:
    sha: str
    files: Mapping[str, bytes]
    lfs: frozenset[str]


@dataclass
class FakeHub:
    """One dataset; :meth:`commit` moves its branch, :meth:`switch` turns a fault on."""

    token: str | None = None
    page_size: int = 1000
    commits: dict[str, Commit] = field(default_factory=dict)
    head: str = ""
    next_head: str | None = None
    """Where the branch moves after it was asked for, with BRANCH_MOVES."""
    seen: list[Seen] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    chance: Callable[[str, bool], Fault | None] | None = None
    """Asked for a fault at each request, with its target and whether it is for a file: for storms."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> FakeHub:
        self.hub = _serve(self, _HubHandler)
        self.store = _serve(self, _StoreHandler)
        self.elsewhere = _serve(self, _ElsewhereHandler)
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        for server in (self.hub, self.store, self.elsewhere):
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.hub.server_port}"

    @property
    def store_host(self) -> str:
        return f"127.0.0.1:{self.store.server_port}"

    def commit(self, files: Mapping[str, bytes], lfs: Collection[str] = (), *, move: bool = True) -> str:
        """Add a commit and, unless told otherwise, move the branch to it; return its 40-hex name."""
        tree = [[path, _git_blob(files[path])] for path in sorted(files)]
        sha = _git_blob(json.dumps([len(self.commits), tree]).encode())
        self.commits[sha] = Commit(sha, dict(files), frozenset(lfs))
        if move:
            self.head = sha
        return sha

    def switch(self, fault: Fault, times: int = 10**9, *, on_files: bool = True, path: str | None = None) -> None:
        self.switches.append(Switch(fault, times, on_files, path))

    def calm(self) -> None:
        """Turn every fault off."""
        self.switches.clear()
        self.chance = None

    @property
    def may_stall(self) -> bool:
        return self.chance is not None or any(switch.fault is Fault.STALLED for switch in self.switches)

    def take(self, target: str, *, on_files: bool) -> Fault | None:
        """Return the fault of a request, where one is on."""
        with self.lock:
            for switch in self.switches:
                fits = switch.path is None or switch.path in target
                if switch.times > 0 and switch.on_files == on_files and fits:
                    switch.times -= 1
                    return switch.fault
            return self.chance(target, on_files) if self.chance else None

    def note(self, handler: _Handler) -> None:
        with self.lock:
            token = handler.headers.get("Authorization")
            self.seen.append(Seen(handler.role, handler.command, handler.path, token))

    def asked(self, part: str, host: str = "hub") -> list[str]:
        """Return the targets that a host was asked for with GET and that contain a text."""
        return [seen.target for seen in self.seen if seen.host == host and seen.method == "GET" and part in seen.target]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    fake: FakeHub

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    role = ""
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    @property
    def fake(self) -> FakeHub:
        return self.server.fake

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.fake.note(self)
        self.answer()

    def answer(self) -> None:
        raise NotImplementedError

    def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, fault: Fault, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer a request whose good body would be ``body`` as the fault demands."""
        half = body[: len(body) // 2]
        match fault:
            case Fault.RETRY_AFTER:
                self.reply(429, b"slow down", {"Retry-After": "7"})
            case Fault.RATE_LIMIT:
                self.reply(429, b"slow down", {"RateLimit": '"resolvers";r=0;t=55'})
            case Fault.ERROR_500 | Fault.ERROR_502 | Fault.ERROR_503:
                self.reply(int(fault.value), b"<html>error</html>", {"Content-Type": "text/html"})
            case Fault.RESET:
                self._begin(body, headers)
                self.wfile.write(half)
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            case Fault.TRUNCATED:
                self._begin(body, headers)
                self.wfile.write(half)
                self.close_connection = True
            case Fault.STALLED:
                self._begin(body, headers)
                self.wfile.write(half)
                self.wfile.flush()
                self.fake.closing.wait(30)
                self.close_connection = True
            case Fault.HTML:
                page = b"<!doctype html><title>Hugging Face</title><p>Something went wrong."
                self.reply(200, page, {"Content-Type": "text/html; charset=utf-8"})
            case Fault.WRONG_BYTES:
                self.reply(200, bytes(byte ^ 1 for byte in body), headers)
            case Fault.POINTER:
                oid = hashlib.sha256(body).hexdigest()
                pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(body)}\n"
                self.reply(200, pointer.encode(), {"Content-Type": "text/plain"})
            case Fault.FORBIDDEN_REDIRECT:
                target = f"http://localhost:{self.fake.elsewhere.server_port}/stolen?Signature=secret-signature"
                self.reply(302, b"", {"Location": target})
            case Fault.REDIRECT_LOOP:
                self.reply(302, b"", {"Location": self.path})
            case Fault.UNAUTHORIZED:
                self.reply(401, b'{"error":"Invalid credentials"}', {"X-Error-Code": "GatedRepo"})
            case Fault.VANISHED:
                self.reply(404, b"Entry not found", {"X-Error-Code": "EntryNotFound"})
            case _:
                raise AssertionError(f"{fault} is no answer to a request")

    def _begin(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(200)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()


class _HubHandler(_Handler):
    role = "hub"

    def answer(self) -> None:
        fake = self.fake
        if fake.token is not None and self.headers.get("Authorization") != f"Bearer {fake.token}":
            self.reply(401, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"})
            return
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        api, files = f"/api/datasets/{REPOSITORY}", f"/datasets/{REPOSITORY}/resolve/"
        if path.startswith(files):
            revision, _, name = path.removeprefix(files).partition("/")
            self._file(revision, name)
        elif path in (api, f"{api}/revision/main") or path.startswith(f"{api}/revision/"):
            self._info(path.rpartition("/")[2] if "/revision/" in path else "main")
        elif path.startswith(f"{api}/tree/"):
            revision, _, folder = path.removeprefix(f"{api}/tree/").partition("/")
            self._tree(revision, folder, parse_qs(parts.query))
        else:
            self._no_repository()

    def _no_repository(self) -> None:
        self.reply(404, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"})

    def _info(self, revision: str) -> None:
        fake = self.fake
        commit = self._commit(revision)
        if commit is None:
            self._no_repository()
            return
        siblings = [{"rfilename": path} for path in sorted(commit.files)]
        document = {"id": REPOSITORY, "sha": commit.sha, "private": False, "siblings": siblings, "tags": []}
        fault = fake.take(self.path, on_files=False)
        if fault is Fault.BRANCH_MOVES and fake.next_head is not None:
            fake.head, fault = fake.next_head, None
        self._json(document, fault)

    def _tree(self, revision: str, folder: str, query: Mapping[str, list[str]]) -> None:
        fake = self.fake
        commit = self._commit(revision)
        if commit is None:
            self.reply(404, b'{"error":"Invalid rev id"}', {"X-Error-Code": "RevisionNotFound"})
            return
        entries = [_entry(commit, path) for path in sorted(commit.files) if path.startswith(folder)]
        fault = fake.take(self.path, on_files=False)
        if fault is Fault.UNSAFE_PATH:
            entries.append({"type": "file", "path": "../../x", "size": 1, "oid": "0" * 40})
        elif fault is Fault.OVER_CAP:
            for entry in entries:
                if str(entry["path"]).startswith("traces/"):
                    entry["size"] = HUGE
                    if "lfs" in entry:
                        entry["lfs"]["size"] = HUGE
        start = int(query.get("cursor", ["0"])[0])
        page = entries[start : start + fake.page_size]
        headers = {}
        if start + fake.page_size < len(entries):
            following = f"{fake.endpoint}{urlsplit(self.path).path}?recursive=true&cursor={start + fake.page_size}"
            headers["Link"] = f'<{following}>; rel="next"'
        self._json(page, None if fault in (Fault.UNSAFE_PATH, Fault.OVER_CAP) else fault, headers)

    def _json(self, document: object, fault: Fault | None, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
        if fault is Fault.NO_REPOSITORY:
            self._no_repository()
        elif fault is None or fault in LISTING_ONLY:
            self.reply(200, body, headers)
        else:
            self.fail(fault, body, headers)

    def _file(self, revision: str, path: str) -> None:
        commit = self._commit(revision)
        if commit is None or path not in commit.files:
            self.reply(404, b"Entry not found", {"X-Error-Code": "EntryNotFound"})
            return
        body = commit.files[path]
        sha256 = hashlib.sha256(body).hexdigest()
        headers = {"X-Repo-Commit": commit.sha, "Accept-Ranges": "bytes", "Content-Type": "text/plain"}
        fault = self.fake.take(self.path, on_files=True)
        if fault is not None and (path not in commit.lfs or fault in AT_THE_HUB):
            self.fail(fault, body, headers)
        elif path in commit.lfs:
            named = {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(len(body)), "ETag": f'"{sha256}"'}
            query = f"?fault={quote(fault.value)}" if fault else ""
            target = f"http://{self.fake.store_host}/{sha256}{query}"
            self.reply(302, b"", headers | named | {"Location": target})
        else:
            self.reply(200, body, headers | {"ETag": f'"{_git_blob(body)}"'})

    def _commit(self, revision: str) -> Commit | None:
        return self.fake.commits.get(self.fake.head if revision == "main" else revision)


class _StoreHandler(_Handler):
    role = "store"

    def answer(self) -> None:
        parts = urlsplit(self.path)
        for commit in list(self.fake.commits.values()):
            for path in commit.lfs:
                body = commit.files[path]
                if hashlib.sha256(body).hexdigest() == parts.path.strip("/"):
                    wanted = parse_qs(parts.query).get("fault")
                    if wanted:
                        self.fail(Fault(wanted[0]), body, {})
                    else:
                        self.reply(200, body, {"Content-Type": "application/octet-stream"})
                    return
        self.reply(404, b"no such object")


class _ElsewhereHandler(_Handler):
    role = "elsewhere"

    def answer(self) -> None:
        self.reply(200, b"thanks for the visit")


def _serve(fake: FakeHub, handler: type[_Handler]) -> _Server:
    server = _Server(("127.0.0.1", 0), handler)
    server.fake = fake
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


def _entry(commit: Commit, path: str) -> dict[str, Any]:
    body = commit.files[path]
    if path not in commit.lfs:
        return {"type": "file", "path": path, "size": len(body), "oid": _git_blob(body)}
    sha256 = hashlib.sha256(body).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(body)}\n".encode()
    return {
        "type": "file",
        "path": path,
        "size": len(body),
        "oid": _git_blob(pointer),
        "lfs": {"oid": sha256, "size": len(body), "pointerSize": len(pointer)},
    }


def _git_blob(body: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
