from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pipeline.errors import DataDirectoryError
from pipeline.store.blobs import BlobStore
from pipeline.store.tombstones import remove_texts
from pipeline.upstream.framing import RemovedText

TEXT = 'say "no" \\ \u00e9\n'
DIGEST = "sha256:" + hashlib.sha256(TEXT.encode()).hexdigest()
WANTED = {DIGEST: len(TEXT.encode())}


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        ({"log": TEXT}, ["/log"]),
        ({"a": [{"b": "other"}, {"b": TEXT}], "c": TEXT}, ["/a/1/b", "/c"]),
        ({"a/b": {"~": TEXT}}, ["/a~1b/~0"]),
        ({TEXT: "x", "log": "x"}, []),  # a member's name is no text
        ({TEXT: TEXT}, [f"/{TEXT}"]),
        ({"log": TEXT + "!"}, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_texts_become_blanks_of_their_length(document: object, pointers: list[str], ascii_only: bool) -> None:
    raw = json.dumps(document, ensure_ascii=ascii_only).encode()
    kept, removed = remove_texts(raw, WANTED)
    assert removed == [RemovedText(pointer, *next(iter(WANTED.items()))) for pointer in pointers]
    assert len(kept) == len(raw)
    assert str(json.loads(kept)).count(repr(TEXT)) == str(document).count(repr(TEXT)) - len(pointers)
    assert remove_texts(kept, WANTED) == (kept, [])


def test_what_is_no_json_stays() -> None:
    assert remove_texts(b'{"log": ', WANTED) == (b'{"log": ', [])


def test_a_damaged_tombstone_is_named(tmp_path: Path) -> None:
    root = tmp_path / "sha256"
    (root.parent / "tombstones").mkdir(parents=True)
    (root.parent / "tombstones" / "ab.json").write_text("{}")
    with pytest.raises(DataDirectoryError, match=r"ab\.json is damaged"):
        BlobStore(root).tombstone("sha256:ab")
