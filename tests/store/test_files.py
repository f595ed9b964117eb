from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.store.files import TEMPORARY, appearing, remove_temporaries, write_whole


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
