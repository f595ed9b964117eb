from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fake_hub.server import REPOSITORY, FakeHub
from tests.fake_hub.sets import LFS, sample_files

TOKEN = "hf_secret"
_DOWNLOAD = """
import sys
from huggingface_hub import HfApi, snapshot_download
files = {entry.path: entry for entry in HfApi().list_repo_tree(sys.argv[1], repo_type="dataset", recursive=True)}
assert files["traces/baseline/lfs.jsonl"].lfs.size == files["traces/baseline/lfs.jsonl"].size
snapshot_download(sys.argv[1], repo_type="dataset", local_dir=sys.argv[2], token=sys.argv[3])
"""


def test_the_official_client_downloads_the_fixture_set_from_the_fake_hub(tmp_path: Path) -> None:
    files = sample_files() | {"traces/baseline/lfs.jsonl": b'{"kept": "in LFS"}\n', "blob/tensor.safetensors": bytes(9)}
    with FakeHub(token=TOKEN, page_size=5) as hub:
        hub.commit(files, lfs={"traces/baseline/lfs.jsonl", *LFS})
        environment = {
            "PATH": os.environ["PATH"],
            "HF_ENDPOINT": hub.endpoint,
            "HF_TOKEN": TOKEN,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        command = [sys.executable, "-c", _DOWNLOAD, REPOSITORY, str(tmp_path / "set"), TOKEN]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        for path, content in files.items():
            assert (tmp_path / "set" / path).read_bytes() == content
        assert {seen.host for seen in hub.seen} == {"hub", "store"}
        assert all(seen.token is None for seen in hub.seen if seen.host == "store")
