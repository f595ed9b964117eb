from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataDirectoryError
from pipeline.store.blobs import BlobStore
from pipeline.store.files import TEMPORARY
from tests.trace_set import tree


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def kept(store: BlobStore, tmp_path: Path, content: bytes) -> str:
    (tmp_path / "file").write_bytes(content)
    digest, size = store.add_file(tmp_path / "file")
    assert (digest, size) == (sha256(content), len(content))
    return digest


@given(st.binary(max_size=100), st.integers(0, 120), st.integers(0, 120))
def test_what_is_kept_comes_back_whole_and_in_part(tmp_path: Path, content: bytes, offset: int, size: int) -> None:
    store = BlobStore(tmp_path / "blobs")
    digest = kept(store, tmp_path, content)
    assert store.has(digest)
    assert store.read(digest) == content
    assert store.read(digest, offset, size) == content[offset : offset + size]


@pytest.mark.parametrize("size", [0, 2**20 - 1, 2**20, 2**20 + 1])
def test_sizes_around_a_chunk(tmp_path: Path, size: int) -> None:
    store = BlobStore(tmp_path / "blobs")
    assert len(store.read(kept(store, tmp_path, b"x" * size))) == size


def test_the_same_content_is_kept_once_and_never_written_again(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    digest = kept(store, tmp_path, b"content")
    before = store.path(digest).stat()
    assert kept(store, tmp_path, b"content") == digest
    assert store.path(digest).stat() == before
    assert [name for name, content in tree(tmp_path / "blobs").items() if content] == [f"{digest[7:9]}/{digest[7:]}"]


def test_a_missing_blob_is_told_from_an_empty_one(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    assert not store.has(sha256(b"missing"))
    with pytest.raises(DataDirectoryError, match=sha256(b"missing")):
        store.read(sha256(b"missing"))
    assert store.read(kept(store, tmp_path, b"")) == b""


def test_a_scratch_store_reads_what_is_kept_and_writes_beside(tmp_path: Path) -> None:
    old = kept(BlobStore(tmp_path / "blobs"), tmp_path, b"old")
    before = tree(tmp_path / "blobs")
    scratch = BlobStore(tmp_path / "blobs", scratch=tmp_path / "scratch")
    new = kept(scratch, tmp_path, b"new")
    assert kept(scratch, tmp_path, b"old") == old
    assert (scratch.read(old), scratch.read(new)) == (b"old", b"new")
    assert tree(tmp_path / "blobs") == before
    assert not BlobStore(tmp_path / "blobs").has(new)
    BlobStore(tmp_path / "missing", scratch=tmp_path / "scratch").has(new)
    assert not (tmp_path / "missing").exists()


def test_leftovers_are_removed_and_blobs_stay(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    digest = kept(store, tmp_path, b"content")
    leftover = store.path(digest).parent / f"{TEMPORARY}7-{'a' * 64}"
    leftover.write_bytes(b"half")
    store.remove_temporaries()
    assert not leftover.exists()
    assert store.read(digest) == b"content"


def test_a_damaged_blob_is_known_and_replaced(tmp_path: Path) -> None:
    digest = kept(BlobStore(tmp_path / "blobs"), tmp_path, b"content")
    path = BlobStore(tmp_path / "blobs").path(digest)
    for number, damage in enumerate((b"", b"konten", b"contenT")):
        path.write_bytes(damage)
        before = tree(tmp_path / "blobs")
        scratch = BlobStore(tmp_path / "blobs", scratch=tmp_path / f"scratch{number}")
        assert not scratch.is_intact(digest)
        kept(scratch, tmp_path, b"content")
        assert scratch.read(digest) == b"content"
        assert tree(tmp_path / "blobs") == before
        store = BlobStore(tmp_path / "blobs")
        assert not store.is_intact(digest)
        kept(store, tmp_path, b"content")
        assert store.is_intact(digest)
        assert store.read(digest) == b"content"


def test_a_tombstone_never_covers_damage(tmp_path: Path) -> None:
    digest = kept(BlobStore(tmp_path / "blobs"), tmp_path, b"content")
    store = BlobStore(tmp_path / "blobs")
    store.path(digest).write_bytes(b"CONTENT")
    with pytest.raises(DataDirectoryError, match="damaged"):
        store.redact(digest, {0: b" "}, [])
    assert store.tombstone(digest) is None
    assert store.read(digest) == b"CONTENT"
