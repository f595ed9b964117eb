"""A trace set that is a dataset of the Hugging Face Hub, pulled at a pinned revision.

The branch is resolved once; everything after that names the 40-hex commit, so a branch that moves during the pull
changes nothing. Whatever the endpoint, a snapshot records the public address of the dataset: digests agree between a
mirror and the Hub.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import quote

from pipeline.errors import SourceError, UsageError
from pipeline.sources.hub_client import FetchError, HubClient
from pipeline.sources.listing import (
    Blobs,
    Failure,
    ListedFile,
    Listing,
    Progress,
    Pull,
    check_authors,
    is_wanted,
)

PUBLIC_ENDPOINT = "https://huggingface.co"
PREFIX = "hub:"
BRANCH = "main"
JOBS = 8

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
_LONGEST_PATH = 1_000
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_LONGEST_POINTER = 1_024


def is_complete_view(pull: Pull) -> bool:
    """Tell whether a pull shows all of a commit, so that what it lacks is not there.

    That is a pull of the Hub without filter, in which nothing failed. A directory may be any part of a trace set.
    """
    return (
        pull.source.startswith(PREFIX)
        and pull.revision is not None
        and not pull.authors
        and pull.complete
        and all(file.failure is None for file in pull.files)
    )


def repository_of(source: str) -> str:
    """Return OWNER/NAME of a source ``hub:OWNER/NAME``.

    Raises:
        UsageError: it is not of that form.
    """
    name = source.removeprefix(PREFIX)
    if not _REPOSITORY.fullmatch(name) or ".." in name or "--" in name:
        raise UsageError(f"{source} names no dataset: write hub:OWNER/NAME, such as hub:flashinfer-ai/flashinfer-trace")
    return name


def open_client(
    environ: Mapping[str, str], *, endpoint: str | None = None, allow_hosts: tuple[str, ...] = ()
) -> HubClient:
    """Return a client as the environment says: ``HF_ENDPOINT`` where no endpoint is given, and ``HF_TOKEN``.

    Raises:
        UsageError: an endpoint or token that cannot be used.
    """
    return HubClient(
        endpoint or environ.get("HF_ENDPOINT") or PUBLIC_ENDPOINT,
        token=environ.get("HF_TOKEN") or None,
        allow_hosts=allow_hosts,
    )


def latest_revision(client: HubClient, repository: str, branch: str = BRANCH) -> str:
    """Return the 40-hex commit at the head of a branch of OWNER/NAME: one request.

    Raises:
        SourceError: the Hub cannot be reached, or shows no such dataset or branch.
    """
    url = f"{client.endpoint}/api/datasets/{repository}/revision/{quote(branch, safe='')}"
    try:
        document, _ = client.get_json(url)
    except FetchError as error:
        raise _no_repository(client, repository, error) from None
    revision = document.get("sha") if isinstance(document, dict) else None
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise SourceError(f"{client.host} names no commit for {repository}@{branch}: is the endpoint a Hub?")
    return revision


@dataclass(frozen=True)
class HubSource:
    """A dataset of the Hub.

    Args:
        repository: OWNER/NAME.
        client: how to talk to the endpoint.
        revision: 40-hex commit; the head of the branch where it is None.
        authors: author folders to limit solutions and traces to; empty: all.
        jobs: files fetched at a time.
    """

    repository: str
    client: HubClient
    revision: str | None = None
    authors: tuple[str, ...] = ()
    jobs: int = JOBS

    @property
    def name(self) -> str:
        """The source as the command line names it."""
        return PREFIX + self.repository

    def pull(self, blobs: Blobs, listing: Listing, progress: Progress, earlier: Sequence[Pull] = ()) -> Pull:
        """Pin a revision, list it, and bring what is missing into the blob store.

        A revision that was pulled whole before, and whose blobs are intact, is that same pull again: nothing is listed.
        A file that cannot be had is listed with its failure and leaves the pull incomplete; the next pull fetches what
        is missing.

        Raises:
            SourceError: the dataset cannot be listed.
            UsageError: an author that has no folder.
        """
        revision = self.revision or latest_revision(self.client, self.repository)
        for pull in reversed(earlier):
            if (pull.source, pull.adapter, pull.revision, pull.authors) == (
                self.name,
                listing.name,
                revision,
                self.authors,
            ) and all(_is_had(file, blobs) for file in pull.files):
                return pull
        entries = self._list(revision, progress)
        check_authors([entry.path for entry in entries], self.authors, listing, self.name)
        files = [
            self._listed(entry, revision, listing) for entry in entries if is_wanted(entry.path, self.authors, listing)
        ]
        return Pull(
            source=self.name,
            adapter=listing.name,
            repository=f"{PUBLIC_ENDPOINT}/datasets/{self.repository}",
            revision=revision,
            authors=self.authors,
            files=tuple(self._fetched(files, revision, blobs, progress, earlier)),
        )

    # Listing

    def _list(self, revision: str, progress: Progress) -> list[_Entry]:
        """Return the files of a revision by path."""
        limits = self.client.limits
        url: str | None = f"{self.client.endpoint}/api/datasets/{self.repository}/tree/{revision}?recursive=true"
        entries: dict[str, _Entry] = {}
        pages: set[str] = set()
        while url is not None:
            if url in pages or len(pages) >= limits.pages:
                raise SourceError(f"the listing of {self.name} at {revision} does not end after {len(pages):,} pages")
            pages.add(url)
            try:
                page, url = self.client.get_json(url)
            except FetchError as error:
                raise _no_repository(self.client, self.repository, error, revision) from None
            for entry in self._entries(page, revision):
                if entries.setdefault(entry.path, entry) != entry:
                    raise SourceError(f"the listing of {self.name} at {revision} has {entry.path!r} twice: try again")
            if len(entries) > limits.entries:
                raise SourceError(f"{self.name} at {revision} lists over {limits.entries:,} files: too many to pull")
            progress("list", len(entries), None)
        return [entries[path] for path in sorted(entries)]

    def _entries(self, page: object, revision: str) -> Iterator[_Entry]:
        try:
            if not isinstance(page, list):
                raise TypeError("no list")
            for item in page:
                if item["type"] == "file":
                    yield _Entry.of(item)
        except (TypeError, KeyError, ValueError) as error:
            what = f"the listing of {self.name} at {revision} cannot be read ({error})"
            raise SourceError(f"{what}: is {self.client.host} a Hub?") from None

    def _listed(self, entry: _Entry, revision: str, listing: Listing) -> ListedFile:
        address = f"{PUBLIC_ENDPOINT}/datasets/{self.repository}/resolve/{revision}/{quote(entry.path)}"
        failure = None
        if not is_safe(entry.path):
            failure = Failure("UNSAFE_SOURCE_PATH", "its path leads out of the trace set or cannot be a file name")
        return ListedFile(
            path=entry.path,
            kind=listing.kind_of(entry.path),
            size_bytes=entry.size_bytes,
            sha256=entry.sha256,
            locator=None if failure else address,
            failure=failure,
            oid=entry.oid,
        )

    # Fetching

    def _fetched(
        self, files: Sequence[ListedFile], revision: str, blobs: Blobs, progress: Progress, earlier: Sequence[Pull]
    ) -> Iterator[ListedFile]:
        """Yield the files with their content in the blob store, or with the reason why not."""
        wanted = [file for file in files if file.kind.is_fetched and file.failure is None]
        kept = _kept(wanted, blobs, earlier)
        missing = {content: file for file in wanted if (content := _content(file)) not in kept}
        fetch = partial(
            self._fetch, revision=revision, blobs=blobs, breaker=_Breaker(self.client.limits.failures_in_a_row)
        )
        failures: dict[str, Failure] = {}
        progress("fetch", 0, len(missing))
        pool = ThreadPoolExecutor(self.jobs, thread_name_prefix="fetch")
        try:
            outcomes = pool.map(fetch, missing.values())
            for done, (content, outcome) in enumerate(zip(missing, outcomes, strict=True), 1):
                if isinstance(outcome, Failure):
                    failures[content] = outcome
                else:
                    kept[content] = outcome
                progress("fetch", done, len(missing))
        except BaseException:
            self.client.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        for file in files:
            if not file.kind.is_fetched or file.failure is not None:
                yield file
            elif (sha256 := kept.get(_content(file))) is not None:
                yield replace(file, sha256=sha256, fetched=True)
            else:
                yield replace(file, failure=failures[_content(file)])

    def _fetch(self, file: ListedFile, *, revision: str, blobs: Blobs, breaker: _Breaker) -> str | Failure:
        """Bring one file into the blob store; return its SHA-256, or why it cannot be had."""
        limits = self.client.limits
        if file.size_bytes > limits.file_bytes:
            return Failure(
                "FETCH_FAILED", f"it has {file.size_bytes:,} bytes and at most {limits.file_bytes:,} are fetched"
            )
        if breaker.is_open:
            return Failure("FETCH_FAILED", f"it was not tried: {breaker.most} files in a row had failed")
        url = f"{self.client.endpoint}/datasets/{self.repository}/resolve/{revision}/{quote(file.path)}"

        def attempt() -> str:
            with self.client.body(url, most_bytes=file.size_bytes + _LONGEST_POINTER) as (chunks, headers):
                sha256, _ = blobs.add_stream(_verified(chunks, headers, file))
                return sha256

        try:
            sha256 = self.client.repeated(attempt)
        except FetchError as error:
            breaker.count(failed=error.transient)
            reason = error.reason if isinstance(error, _WrongContentError) else "FETCH_FAILED"
            return Failure(reason, f"it could not be fetched: {error}")
        breaker.count(failed=False)
        return sha256


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file as the Hub lists it."""

    path: str
    size_bytes: int
    oid: str | None
    """Git blob SHA-1 of its content; None where the content is in LFS."""
    sha256: str | None
    """SHA-256 of its content, where it is in LFS."""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> _Entry:
        """Read an entry; TypeError, KeyError or ValueError where it is none."""
        path, size, lfs = item["path"], item["size"], item.get("lfs")
        oid, sha256 = item["oid"], None
        if lfs is not None:
            size, sha256 = lfs["size"], lfs["oid"]
        if not isinstance(path, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError("an entry without path or size")
        path.encode()  # a lone surrogate has no place in any table
        if sha256 is not None:
            if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
                raise ValueError("an LFS entry without SHA-256")
            return cls(path, size, None, "sha256:" + sha256)
        if not isinstance(oid, str) or not _REVISION.fullmatch(oid):
            raise ValueError("an entry without git SHA-1")
        return cls(path, size, oid, None)


class _WrongContentError(FetchError):
    """The whole body came, and it is not what the listing says."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence, transient=True)
        self.reason = reason


class _Breaker:
    """Opens after so many failures in a row: then the network is gone, not the files."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._failures = 0
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        return self._failures >= self.most

    def count(self, *, failed: bool) -> None:
        with self._lock:
            if not self.is_open:
                self._failures = self._failures + 1 if failed else 0


def is_safe(path: str) -> bool:
    """Tell whether a path stays inside the trace set: relative, with forward slashes, no ``..``, no control character.

    Names are data and never opened; this keeps them harmless for whoever joins them to a folder.
    """
    return (
        0 < len(path) <= _LONGEST_PATH
        and "\\" not in path
        and all(part not in ("", ".", "..") for part in path.split("/"))
        and all(unicodedata.category(character) not in _CONTROLS for character in path)
    )


def _no_repository(client: HubClient, repository: str, error: FetchError, revision: str | None = None) -> SourceError:
    """Return the sentence for a dataset that cannot be listed."""
    if error.status not in (401, 403, 404):
        later = "; try again later" if error.transient else ""
        return SourceError(f"{PREFIX}{repository} cannot be listed: {error}{later}")
    what = f"{client.host} shows no dataset {repository}" + (f" at {revision}" if revision else "")
    return SourceError(f"{what} (status {error.status}): check the name, or set HF_TOKEN if it is private")


def _is_had(file: ListedFile, blobs: Blobs) -> bool:
    """Tell whether a file of an earlier pull need not be fetched: it is only listed, or its blob is intact."""
    return file.failure is None and (not file.fetched or file.sha256 is None or blobs.is_intact(file.sha256))


def _kept(wanted: Sequence[ListedFile], blobs: Blobs, earlier: Sequence[Pull]) -> dict[str, str]:
    """Return the SHA-256 of the content that the blob store has already, by what the listing calls it.

    Earlier pulls tell most. What a killed pull or a directory left is found by its size and hashed.
    """
    names = {_content(file): file.size_bytes for file in wanted}
    kept = {
        content: file.sha256
        for pull in earlier
        for file in pull.files
        if file.fetched and file.sha256 is not None
        for content in (file.oid, file.sha256)
        if content is not None and names.get(content) == file.size_bytes and blobs.is_intact(file.sha256)
    }
    sizes = {size for content, size in names.items() if content not in kept}
    for path in blobs.of_sizes(sizes) if sizes else ():
        sha256, oid = hashlib.sha256(), _git_blob(path.stat().st_size)
        with path.open("rb") as stream:
            while chunk := stream.read(2**20):
                sha256.update(chunk)
                oid.update(chunk)
        if path.name == sha256.hexdigest():  # a crash of the machine may leave one that is not what its name says
            digest = "sha256:" + path.name
            kept |= {content: digest for content in (digest, oid.hexdigest()) if content in names}
    return kept


def _verified(chunks: Iterable[bytes], headers: Mapping[str, str], file: ListedFile) -> Iterator[bytes]:
    """Pass on a body; at its end raise FetchError where it is not what the listing says."""
    sha256, oid, size = hashlib.sha256(), _git_blob(file.size_bytes), 0
    start = b""
    for chunk in chunks:
        if len(start) < _LONGEST_POINTER:
            start += chunk[:_LONGEST_POINTER]
        sha256.update(chunk)
        oid.update(chunk)
        size += len(chunk)
        yield chunk
    found = "sha256:" + sha256.hexdigest() if file.sha256 else oid.hexdigest()
    if found == _content(file) and size == file.size_bytes:
        return
    if start.startswith(_LFS_POINTER):
        raise _WrongContentError("LFS_POINTER", "a Git LFS pointer came in place of its content")
    if size != file.size_bytes:
        kind = headers.get("Content-Type", "").partition(";")[0].strip() or "unknown type"
        what = "an HTML page" if kind == "text/html" else "a body"
        raise FetchError(f"{what} of {size:,} bytes came in place of {file.size_bytes:,}", transient=True)
    raise _WrongContentError("DIGEST_MISMATCH", f"what came has the right size and digest {found}")


def _content(file: ListedFile) -> str:
    """Return what the listing calls the content of a file: SHA-256 in LFS, else git SHA-1."""
    return file.sha256 or file.oid or ""


def _git_blob(size: int) -> Any:
    """Return the hasher of a git blob of that size: SHA-1 over ``blob SIZE NUL`` and the content."""
    return hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
