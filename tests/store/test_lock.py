from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.errors import DataDirectoryError
from pipeline.ingest import IngestRequest, ingest
from pipeline.store.layout import DataDirectory
from pipeline.store.lock import LockedError, writing

_HOLD = """
import sys
from pathlib import Path
from pipeline.store.layout import DataDirectory
from pipeline.store.lock import writing
with writing(DataDirectory(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(data: DataDirectory) -> subprocess.Popen[str]:
    """Start a process that is the writer until its stdin is closed."""
    command = [sys.executable, "-c", _HOLD, str(data.root)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data")


def test_the_lock_says_who_writes_since_when(data: DataDirectory) -> None:
    with writing(data):
        owner = json.loads(data.lock_file.read_text())
        assert owner["pid"] == os.getpid()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", owner["started"])
        with pytest.raises(LockedError, match=rf"process {os.getpid()} on .*, started {owner['started']}, is writing"):
            ingest(data, IngestRequest())
    assert data.lock_file.read_text() == ""


def test_a_second_writer_is_told_who_the_first_is_and_exits_with_2(data: DataDirectory) -> None:
    with hold(data) as holder:
        with pytest.raises(DataDirectoryError, match=rf"process {holder.pid} .* with --wait") as caught:
            ingest(data, IngestRequest())
        assert caught.value.exit_code == 2
        holder.communicate("")
    assert ingest(data, IngestRequest()).published


def test_a_lock_whose_owner_is_gone_is_taken_over(data: DataDirectory) -> None:
    with hold(data) as holder:
        holder.send_signal(signal.SIGKILL)
    assert json.loads(data.lock_file.read_text())["pid"] == holder.pid
    assert ingest(data, IngestRequest()).published


def test_a_patient_writer_waits_for_the_first(data: DataDirectory) -> None:
    reports = []
    with hold(data) as holder:
        waiting = threading.Thread(target=lambda: reports.append(ingest(data, IngestRequest(wait=True))))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        assert not data.database.exists()
        holder.communicate("")
        waiting.join()
    assert [report.published for report in reports] == [True]


def test_a_dry_run_needs_no_lock(data: DataDirectory) -> None:
    with hold(data) as holder:
        assert ingest(data, IngestRequest(dry_run=True)).added == 49
        holder.communicate("")
