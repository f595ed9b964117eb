from __future__ import annotations

import errno
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from pipeline.store.files import TEMPORARY, appearing, read_plain, refusal, remove_temporaries, write_whole


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "file"
    write_whole(target, b"one")
    write_whole(target, b"two")
    assert target.read_bytes() == b"two"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "file"
    write_whole(target, b"old")

    def write_half() -> None:
        with appearing(target) as temporary:
            temporary.write_bytes(b"half")
            assert temporary.name.startswith(TEMPORARY)
            assert target.read_bytes() == b"old"
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_leftovers_of_any_process_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (f"{TEMPORARY}1-a", f"{TEMPORARY}99999-b.json", "kept", ".hidden"):
        (tmp_path / name).write_bytes(b"")
    remove_temporaries(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "kept"]
    remove_temporaries(tmp_path / "missing")


def test_a_plain_file_is_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link") == read_plain(tmp_path / "file") == b"content"
    os.mkfifo(tmp_path / "pipe")
    for other in ("pipe", ".", "missing"):
        with pytest.raises(OSError, match=r"no plain file|No such file"):
            read_plain(tmp_path / other)


FULL = "No space left on device"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, FULL), f"out cannot be used ({FULL}): free disk space"),
        (OSError(errno.ENOSPC, FULL, "/x/.tmp-1-out"), f"out cannot be used ({FULL}): free disk space"),
        (
            pa.ArrowIOError(errno.ENOSPC, f"Error writing bytes. Detail: [errno 28] {FULL}"),
            f"out cannot be used ({FULL}): free disk space",
        ),
        (duckdb.IOException(f'Cannot write "/x/.tmp-1-out": {FULL}'), f"out cannot be used ({FULL}): free disk space"),
        (
            duckdb.Error("Odd Error: so it is\nLINE 1"),
            "out cannot be used (Odd Error: so it is): mend it or choose another place",
        ),
        (
            OSError(errno.EDQUOT, "", "/x/y"),
            f"/x/y cannot be used ({os.strerror(errno.EDQUOT)}): free disk space",
        ),
        (
            OSError(errno.EROFS, "Read-only file system"),
            "out cannot be used (Read-only file system): change its permissions or choose another place",
        ),
        (
            OSError(errno.EACCES, "Permission denied", "/x/y"),
            "/x/y cannot be used (Permission denied): change its permissions or choose another place",
        ),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "/x/.tmp-1-y"),
            "out cannot be used (File name too long): choose a shorter name",
        ),
        (
            OSError(errno.EISDIR, "Is a directory", "/x/.tmp-1-y", None, "/x/y"),
            "/x/y cannot be used (Is a directory): take the folder away",
        ),
        (
            OSError(errno.ENOTDIR, "Not a directory", "/x/y"),
            "/x/y cannot be used (Not a directory): mend it or choose another place",
        ),
    ],
)
def test_what_the_file_system_refuses_is_told_of_the_place_with_what_helps(error: Exception, sentence: str) -> None:
    assert refusal(error, "out") == sentence
