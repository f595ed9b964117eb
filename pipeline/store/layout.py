"""The data directory: where everything lies, and which format version it carries."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import DataDirectoryError, UsageError
from pipeline.store.files import TEMPORARY, is_utf8, read_plain, refusal, remove_temporaries, write_whole

FORMAT_VERSION = 1
"""Version of the layout described in ARCHITECTURE.md; a change of it comes with a migration."""

_EARLY = ("blobs", "snapshots", "tables", "dagster", "writer.lock")
"""What may be there before the format version is: ``dagster`` holds the history of an orchestrator."""

_OWN = (*_EARLY, "format.json", "corrections.toml")
"""What belongs to the directory by its whole name; see :func:`owning_directory`."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

_OWN_BEGINNINGS = ("warehouse.duckdb", TEMPORARY)
"""And what by its beginning: the database with its write-ahead log, and what is not finished yet."""


@dataclass(frozen=True)
class DataDirectory:
    """Paths of a data directory."""

    root: Path

    @property
    def blobs(self) -> Path:
        """Raw files by the SHA-256 of their content."""
        return self.root / "blobs" / "sha256"

    @property
    def snapshots(self) -> Path:
        """One JSON record a pull."""
        return self.root / "snapshots"

    @property
    def tables(self) -> Path:
        """Parquet parts, one folder a table."""
        return self.root / "tables"

    @property
    def commits(self) -> Path:
        """One JSON record an ingested snapshot: its accounting, and its parts with their SHA-256."""
        return self.tables / "commits"

    @property
    def database(self) -> Path:
        """The published warehouse."""
        return self.root / "warehouse.duckdb"

    @property
    def corrections(self) -> Path:
        """The reviewed corrections, which people write; it need not exist."""
        return self.root / "corrections.toml"

    @property
    def exports(self) -> Path:
        """Tables as Parquet files for others, each replaced as a whole."""
        return self.root / "exports"

    @property
    def format_file(self) -> Path:
        """The format version of the directory."""
        return self.root / "format.json"

    @property
    def lock_file(self) -> Path:
        """Who writes to the directory now."""
        return self.root / "writer.lock"

    def exists(self) -> bool:
        """Tell whether this is a data directory already."""
        return self.format_file.is_file()

    def check(self) -> None:
        """Check that this version of the program can use the directory.

        Raises:
            DataDirectoryError: the directory is of a newer format, or is no data directory though files lie in it.
        """
        if not self.root.exists():
            return
        if not self.root.is_dir():
            raise DataDirectoryError(f"{self.root} is a file: name a folder as the data directory")
        self.check_format()
        if not os.path.lexists(self.format_file):
            names = (path.name for path in self.root.iterdir())
            foreign = [name for name in names if name not in _EARLY and not name.startswith(TEMPORARY)]
            if foreign:
                raise DataDirectoryError(
                    f"{self.root} is not empty and no data directory (it holds {sorted(foreign)[0]}): "
                    "give an empty or new folder with --data"
                )

    def check_format(self) -> None:
        """Check that this version of the program can read the directory; one that carries no format has none to check.

        Raises:
            DataDirectoryError: the directory is of a newer format, or does not tell.
        """
        if not os.path.lexists(self.format_file):
            if any(self.snapshots.glob("*.json")):
                raise DataDirectoryError(f"{self.format_file} is missing: restore it or ingest into a new folder")
            return
        try:
            version = json.loads(read_plain(self.format_file))["format"]
            if type(version) is not int or version < 1:
                raise ValueError("no version")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataDirectoryError(
                f"{self.format_file} is damaged: restore it or ingest into a new folder"
            ) from error
        if version > FORMAT_VERSION:
            raise DataDirectoryError(
                f"{self.root} has format {version} and this kernelhouse knows {FORMAT_VERSION}: upgrade kernelhouse"
            )

    def prepare(self) -> None:
        """Check the directory and make what is missing of it.

        Raises:
            DataDirectoryError: see :meth:`check`, or the folder cannot be written.
        """
        self.check()
        try:
            for folder in (self.blobs, self.snapshots, self.tables):
                folder.mkdir(parents=True, exist_ok=True)
            remove_temporaries(self.root)
            if not self.exists():
                write_whole(self.format_file, json.dumps({"format": FORMAT_VERSION}).encode() + b"\n")
        except OSError as error:
            raise DataDirectoryError(refusal(error, self.root)) from error

    def remove_if_empty(self) -> None:
        """Remove what :meth:`prepare` made, where neither a blob nor a snapshot came to lie in it."""
        if any(self.blobs.rglob("*")) or any(self.snapshots.glob("*")):
            return
        self.format_file.unlink(missing_ok=True)
        self.lock_file.unlink(missing_ok=True)
        for folder in (self.blobs, self.blobs.parent, self.snapshots, self.tables, self.root):
            with suppress(OSError):
                folder.rmdir()


def chosen_directory(given: str | None = None) -> DataDirectory:
    """Return the data directory that somebody gave, else ``$KERNELHOUSE_DATA``, else ``./data``.

    Its path is absolute: a relative one may mean another place to DuckDB, which reads ``~`` and ``s3:`` as it likes.

    Raises:
        UsageError: the name of a place elsewhere or of nobody's home, or a path that DuckDB cannot write to.
    """
    name = given or os.environ.get("KERNELHOUSE_DATA") or "data"
    home = os.path.expanduser(name)  # noqa: PTH111 - a Path would drop the ./ that tells a folder named ~
    if _ADDRESS.match(name) or home.startswith("~"):
        raise UsageError(f"{name} is no folder of this machine: give one with --data, or write ./{name} if it is")
    root = Path(home).absolute()
    if "?" in str(root) or not is_utf8(str(root)):  # DuckDB reads options behind a ?, and knows UTF-8 alone
        raise UsageError(f"{root} has a ? or what is no UTF-8 in it, where DuckDB cannot write: choose another")
    return DataDirectory(root)


def owning_directory(path: Path) -> DataDirectory | None:
    """Return the data directory that a file is a part of, by its absolute path and by what that resolves to.

    ``exports/`` and what else people put beside the parts of a data directory is theirs.
    """
    for place in {path.absolute(), path.resolve()}:
        for folder in place.parents:
            own = place.relative_to(folder).parts[0]
            if (own in _OWN or own.startswith(_OWN_BEGINNINGS)) and DataDirectory(folder).exists():
                return DataDirectory(folder)
    return None
