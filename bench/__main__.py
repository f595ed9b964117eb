"""Measure an ingest of synthetic trace sets, stage by stage: a table on the screen, and JSON where it is asked for."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import pipeline
from bench.synthetic import write_one_more, write_trace_set

SCHEMA_VERSION = 1
ONE_MORE_RECORDS = 1_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What a stage took: a process of its own, its start included."""

    records: int
    stage: str
    wall_s: float
    cpu_s: float
    peak_mib: float


def main() -> None:
    """Run the benchmark."""
    arguments = _arguments()
    console = Console(stderr=arguments.json == "-")
    report: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "kernelhouse_version": pipeline.__version__,
        "sets": [],
    }
    for records in arguments.records:
        with tempfile.TemporaryDirectory(prefix="kernelhouse-bench-", dir=arguments.folder) as folder:
            trace_bytes = write_trace_set(Path(folder) / "set", records)
            console.print(f"{records:,} records, {trace_bytes / 1e6:,.0f} MB of traces")
            measured = []
            for stage in _stages(Path(folder), records, one_by_one=records <= arguments.one_by_one_up_to):
                console.print(f"  {stage.stage}: {stage.wall_s:.2f} s, {stage.cpu_s:.2f} s of CPU", highlight=False)
                measured.append(stage)
            report["sets"].append(_summary(Path(folder), records, trace_bytes, measured))
            console.print(_table(report["sets"][-1]))
    if arguments.json:
        text = json.dumps(report, indent=2) + "\n"
        if arguments.json == "-":
            sys.stdout.write(text)
        else:
            Path(arguments.json).write_text(text, encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("records", nargs="*", type=int, default=[10**4, 10**5, 10**6], help="trace records a set")
    parser.add_argument("--json", metavar="FILE", help="also write the report as JSON; - for standard output")
    parser.add_argument("--folder", help="where the sets are written while they are measured")
    parser.add_argument(
        "--one-by-one-up-to", type=int, default=10**6, metavar="RECORDS", help="largest set also read one by one"
    )
    return parser.parse_args()


def _stages(folder: Path, records: int, *, one_by_one: bool) -> Iterator[Measured]:
    source, data = folder / "set", folder / "data"
    stage = [sys.executable, "-m", "bench.stages"]
    command = [sys.executable, "-m", "pipeline"]
    yield _measure(records, "fetch", [*stage, "fetch", str(source), str(data)])
    if one_by_one:
        other = folder / "other"
        shutil.copytree(data, other)
        yield _measure(records, "rows one by one", [*stage, "rows one by one", str(other)])
    yield _measure(records, "rows", [*stage, "rows", str(data)])
    if one_by_one:
        yield _measure(records, "compare", [*stage, "compare", str(data), str(other)])
    yield _measure(records, "publish", [*stage, "publish", str(data)])
    names = subprocess.run([*stage, "names", str(data)], check=True, capture_output=True, text=True)  # noqa: S603
    operation, run = names.stdout.split()
    for name, arguments in (("leaderboard", [operation]), ("show", [run])):
        yield _measure(records, name, [*command, name, *arguments, "--data", str(data)])
    yield _measure(records, "--help", [*command, "--help"])
    more = folder / "more"
    write_one_more(more, ONE_MORE_RECORDS)
    ingest = [*command, "ingest", str(more), "--data", str(data)]
    yield _measure(records, "ingest one file more", ingest)
    yield _measure(records, "ingest nothing new", ingest)


def _measure(records: int, stage: str, command: Sequence[str]) -> Measured:
    """Run a command to its end and return what it took, by the accounting of the operating system.

    A process begins with the peak of the one that starts it, so nothing large is ever done in this one.
    """
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own commands
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - started
    if process.returncode != 0:
        raise SystemExit(f"the stage {stage!r} failed: see its message above")
    peak_mib = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return Measured(records, stage, round(wall, 3), round(usage.ru_utime + usage.ru_stime, 3), round(peak_mib, 1))


def _summary(folder: Path, records: int, trace_bytes: int, measured: Sequence[Measured]) -> dict[str, Any]:
    by_stage = {stage.stage: stage for stage in measured}
    ingest = [by_stage[name] for name in ("fetch", "rows", "publish")]
    summary: dict[str, Any] = {
        "records": records,
        "trace_bytes": trace_bytes,
        "database_bytes": (folder / "data" / "warehouse.duckdb").stat().st_size,
        "stages": [asdict(stage) for stage in measured],
        "raw_to_published_wall_s": round(sum(stage.wall_s for stage in ingest), 3),
        "raw_to_published_peak_mib": max(stage.peak_mib for stage in ingest),
    }
    if (one_by_one := by_stage.get("rows one by one")) is not None:
        summary["one_by_one_over_columns_wall"] = round(one_by_one.wall_s / by_stage["rows"].wall_s, 2)
        summary["one_by_one_over_columns_cpu"] = round(one_by_one.cpu_s / by_stage["rows"].cpu_s, 2)
    return summary


def _table(summary: dict[str, Any]) -> Table:
    table = Table(title=f"{summary['records']:,} records", title_justify="left")
    for column in ("stage", "wall s", "CPU s", "peak MiB", "µs a record"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for stage in summary["stages"]:
        each = f"{stage['cpu_s'] / stage['records'] * 1e6:,.1f}"
        table.add_row(
            stage["stage"], f"{stage['wall_s']:,.2f}", f"{stage['cpu_s']:,.2f}", f"{stage['peak_mib']:,.0f}", each
        )
    table.add_section()
    wall, peak = summary["raw_to_published_wall_s"], summary["raw_to_published_peak_mib"]
    table.add_row("raw files to warehouse", f"{wall:,.2f}", "", f"{peak:,.0f}", "")
    if "one_by_one_over_columns_wall" in summary:
        ratio = f"{summary['one_by_one_over_columns_wall']:.1f} x"
        table.add_row("one by one over columns", ratio, f"{summary['one_by_one_over_columns_cpu']:.1f} x", "", "")
    return table


if __name__ == "__main__":
    main()
