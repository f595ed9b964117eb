from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pipeline.errors import SourceError, UsageError
from pipeline.normalize.flashinfer_bench import FlashInferBench
from pipeline.sources.directory import DirectorySource, sample_source
from pipeline.sources.listing import Kind, Pull
from pipeline.store.blobs import BlobStore
from tests.trace_set import DEFINITION, RIVAL, RIVAL_TRACES, SOLUTION, TRACES, WORKLOADS, small_set, tree, write_files

Steps = list[tuple[str, int, int | None]]


def pull(source: DirectorySource, blobs: Path, steps: Steps | None = None) -> Pull:
    seen: Steps = [] if steps is None else steps
    return source.pull(BlobStore(blobs), FlashInferBench(), lambda *step: seen.append(step))


def test_every_file_of_the_layout_is_listed_and_documents_are_fetched(tmp_path: Path) -> None:
    files = small_set() | {
        "blob/workloads/elementwise/x.safetensors": b"tensor",
        "workloads/notes.md": b"notes",
        "README.md": b"outside the layout",
        "other/traces/x.jsonl": b"{}",
        "traces/.hidden/x.jsonl": b"{}",
        "traces/.cache": b"{}",
    }
    steps: Steps = []
    root = write_files(tmp_path / "set", files)
    pulled = pull(DirectorySource(root, repository="https://example.org/x"), tmp_path / "blobs", steps)
    kinds = {file.path: file.kind for file in pulled.files}
    assert kinds == {
        DEFINITION: Kind.DEFINITION,
        SOLUTION: Kind.SOLUTION,
        RIVAL: Kind.SOLUTION,
        WORKLOADS: Kind.WORKLOAD,
        TRACES: Kind.TRACE,
        RIVAL_TRACES: Kind.TRACE,
        "blob/workloads/elementwise/x.safetensors": Kind.TENSOR,
        "workloads/notes.md": Kind.OTHER,
    }
    assert [file.path for file in pulled.files] == sorted(kinds)
    blobs = BlobStore(tmp_path / "blobs")
    for file in pulled.files:
        content = files[file.path]
        assert file.sha256 == "sha256:" + hashlib.sha256(content).hexdigest()
        assert file.size_bytes == len(content)
        assert file.fetched is (file.kind not in (Kind.TENSOR, Kind.OTHER))
        assert blobs.has(file.sha256) is file.fetched
        assert not file.fetched or blobs.read(file.sha256) == content
    assert pulled.complete
    assert (pulled.source, pulled.repository, pulled.revision) == ("directory", "https://example.org/x", None)
    assert steps[-1] == ("fetch", len(kinds), len(kinds))


def test_the_order_of_the_file_system_and_the_place_do_not_matter(tmp_path: Path) -> None:
    one = write_files(tmp_path / "one", small_set())
    other = write_files(tmp_path / "elsewhere" / "other", dict(reversed(small_set().items())))
    assert pull(DirectorySource(one), tmp_path / "a") == pull(DirectorySource(other), tmp_path / "b")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_a_file_that_cannot_be_read_leaves_the_pull_incomplete(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    (root / "traces" / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    pulled = pull(DirectorySource(root), tmp_path / "blobs")
    assert not pulled.complete
    (failed,) = [file for file in pulled.files if file.failure is not None]
    assert failed.path == "traces/gone.jsonl"
    assert not failed.fetched
    assert failed.failure is not None
    assert failed.failure.reason == "FETCH_FAILED"
    assert "traces/gone.jsonl" in failed.failure.detail


def test_a_folder_that_cannot_be_listed_ends_the_pull(tmp_path: Path) -> None:
    """A path longer than the system takes cannot be listed, not even by root."""
    root = write_files(tmp_path / "set", small_set())
    here = os.open(root / "traces", os.O_RDONLY)
    for _ in range(17):
        os.mkdir("n" * 250, dir_fd=here)
        inner = os.open("n" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with pytest.raises(SourceError, match=r"/nnn[^ ]+ cannot be listed \(File name too long\): make it"):
        pull(DirectorySource(root), tmp_path / "blobs")


@pytest.mark.parametrize("name", ["traces", "blob"])
def test_a_file_where_a_folder_of_the_layout_belongs_ends_the_pull(tmp_path: Path, name: str) -> None:
    root = write_files(tmp_path / "set", {DEFINITION: small_set()[DEFINITION], name: b"{}"})
    with pytest.raises(SourceError, match=rf"/{name} cannot be listed \(Not a directory\)"):
        pull(DirectorySource(root), tmp_path / "blobs")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("traces/gpt-6", "baseline"),
        ("traces/gpt-6", "../../elsewhere"),
        ("traces/circle", ".."),
        ("blob", "../elsewhere"),
        ("blob", "nowhere"),
    ],
)
def test_a_link_to_a_folder_ends_the_pull(tmp_path: Path, name: str, target: str) -> None:
    root = write_files(tmp_path / "set", small_set())
    write_files(tmp_path / "elsewhere", small_set())
    (root / name).symlink_to(target)
    with pytest.raises(SourceError, match=rf"/{name} is a link where a folder belongs: put a copy"):
        pull(DirectorySource(root), tmp_path / "blobs")


def test_the_trace_set_itself_may_be_a_link(tmp_path: Path) -> None:
    write_files(tmp_path / "set", small_set())
    (tmp_path / "link").symlink_to("set")
    assert pull(DirectorySource(tmp_path / "link"), tmp_path / "blobs").complete


def test_a_blob_that_cannot_be_written_is_no_fault_of_the_file(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    in_the_way = tmp_path / "blobs" / hashlib.sha256(small_set()[TRACES]).hexdigest()[:2]
    write_files(tmp_path / "blobs", {in_the_way.name: b""})
    with pytest.raises(FileExistsError) as caught:
        pull(DirectorySource(root), tmp_path / "blobs")
    assert caught.value.filename == str(in_the_way)


def test_links_to_files_count(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    content = root / "content"
    (root / TRACES).rename(content)
    (root / TRACES).symlink_to(content)
    (file,) = [file for file in pull(DirectorySource(root), tmp_path / "blobs").files if file.path == TRACES]
    assert file.sha256 == "sha256:" + hashlib.sha256(small_set()[TRACES]).hexdigest()


@pytest.mark.parametrize("name", ["some one", "a\u2011b", "é漢", "a'b\"c", "tab\there", "-rf", "*?[x]", "new\nline"])
def test_names_are_data(tmp_path: Path, name: str) -> None:
    root = write_files(tmp_path / "set", {f"traces/{name}/elementwise/x.jsonl": b"{}\n"})
    (file,) = pull(DirectorySource(root, authors=(name,)), tmp_path / "blobs").files
    assert file.path == f"traces/{name}/elementwise/x.jsonl"
    assert file.fetched


def test_a_name_that_is_no_text_does_not_stop_the_pull(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    (root / "traces" / "bad\udcff.jsonl").write_bytes(b"{}\n")
    pulled = pull(DirectorySource(root), tmp_path / "blobs")
    assert len(pulled.files) == len(small_set()) + 1
    for file in pulled.files:
        file.path.encode()


@pytest.mark.parametrize(
    ("authors", "expected"),
    [
        (("gpt-5",), {DEFINITION, WORKLOADS, RIVAL, RIVAL_TRACES}),
        (("baseline",), {DEFINITION, WORKLOADS, SOLUTION, TRACES}),
        (("gpt-5", "baseline"), set(small_set())),
    ],
)
def test_authors_limit_solutions_and_traces(tmp_path: Path, authors: tuple[str, ...], expected: set[str]) -> None:
    root = write_files(tmp_path / "set", small_set())
    pulled = pull(DirectorySource(root, authors=authors), tmp_path / "blobs")
    assert {file.path for file in pulled.files} == expected
    assert pulled.authors == tuple(sorted(authors))


def test_an_unknown_author_is_a_mistake(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    with pytest.raises(UsageError, match=r"'gpt-6'.*baseline, gpt-5"):
        pull(DirectorySource(root, authors=("gpt-6",)), tmp_path / "blobs")


def test_no_folder_a_file_and_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "empty" / "traces").mkdir(parents=True)
    for name in ("missing", "file", "empty"):
        with pytest.raises(SourceError, match=name):
            pull(DirectorySource(tmp_path / name), tmp_path / "blobs")


def test_the_sample_is_a_trace_set_of_its_own(tmp_path: Path) -> None:
    pulled = pull(sample_source(), tmp_path / "blobs")
    assert (pulled.source, pulled.repository, pulled.complete) == ("sample", None, True)
    assert {file.kind for file in pulled.files} >= {Kind.DEFINITION, Kind.SOLUTION, Kind.TRACE}


def test_what_is_no_plain_file_is_held_back_at_once(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    os.mkfifo(root / "traces/baseline/elementwise/pipe.jsonl")
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(small_set()[TRACES])
    (root / "traces/baseline/elementwise/link.jsonl").symlink_to(outside)
    (root / "traces/baseline/elementwise/inside.jsonl").symlink_to(root / TRACES)
    taken = pull(DirectorySource(root), tmp_path / "blobs")
    failed = {file.path.rpartition("/")[2]: file.failure.detail for file in taken.files if file.failure}
    assert sorted(failed) == ["link.jsonl", "pipe.jsonl"]
    assert "link out of the trace set" in failed["link.jsonl"]
    assert "no plain file" in failed["pipe.jsonl"]


def test_a_hub_cache_is_made_of_links(tmp_path: Path) -> None:
    """``snapshots/<revision>/...`` links into the ``blobs`` beside ``snapshots``."""
    cache = tmp_path / "datasets--o--n"
    for path, content in small_set().items():
        blob = cache / "blobs" / path.replace("/", "_")
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = cache / "snapshots" / ("1" * 40) / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    assert pull(DirectorySource(cache / "snapshots" / ("1" * 40)), tmp_path / "kept").complete


def test_a_name_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    root = write_files(tmp_path / "set", small_set())
    (root / TRACES).rename(Path(os.fsdecode(os.fsencode(root / TRACES) + b"\xff.jsonl")))
    taken = pull(DirectorySource(root), tmp_path / "blobs")
    assert taken.complete
    assert any("\\xff" in file.path for file in taken.files)
