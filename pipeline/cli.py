"""The command line: parse, call, print.

What a command does is in ``pipeline/query``, ``pipeline/export`` and ``pipeline/ingest``, how it looks in
``pipeline/render``. Those rooms are imported inside the commands, so that help and usage errors come at once.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from pipeline import __version__
from pipeline.errors import CheckFailure, KernelhouseError, ManifestError, UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipeline.query.sql import Result
    from pipeline.render.screen import Screen
    from pipeline.store.layout import DataDirectory

INTERRUPTED = 130
"""128 + SIGINT: the status of a command that Ctrl-C ended."""

CLOSED_PIPE = 141
"""128 + SIGPIPE: the status of a command whose reader went away."""

SHOWN_COHORTS = 12
"""Cohorts that a leaderboard shows unless --all is given: nobody reads hundreds."""

SHOWN_RESULTS = 10
"""Runs of each of these cohorts, unless --limit or --all is given."""

SHOWN_RUNS = 20
"""Runs that a dossier lists unless --all is given: a protocol may have a million."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class WithExample(click.Command):
    """A command whose help ends with an example, line by line as given."""

    def __init__(self, *args: Any, example: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        with formatter.section("Example"):
            for line in self.example:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class TakesSql(WithExample):
    """A command whose argument may begin with a comment of SQL, which is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with a line end before what is SQL: the name of no option has a space in it, and none two lines."""
        return super().parse_args(ctx, [re.sub(r"^--(?=[^=]*\s|.*\n)", "\n--", each) for each in args])


class CommandGroup(WithExample, click.Group):
    """A group of commands under one name."""


class CommandLine(WithExample, click.Group):
    """The group of all commands: every error becomes one line on stderr and an exit status."""

    def main(  # type: ignore[override]  # click's other modes serve callers that are no command line
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run and exit: 0 done, 1 a check failed, 2 bad usage or input, 130 Ctrl-C, 141 closed pipe."""
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            _open_streams()
            _check_utf8(arguments)
            with self.make_context(prog_name or "kernelhouse", arguments, **extra) as context:
                self.invoke(context)
            sys.stdout.flush()
            status = 0
        except click.exceptions.Exit as end:
            status = end.exit_code
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            status = error.exit_code
        except click.ClickException as error:
            status = _complain(_usage(error), error.exit_code)
        except KernelhouseError as error:
            status = _complain(str(error), error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            status = _complain("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _give_up_stdout()
            status = CLOSED_PIPE
        except Exception as error:
            if os.environ.get("KERNELHOUSE_DEBUG"):
                raise
            if isinstance(error, RuntimeError) and str(error) == "Query interrupted":  # Ctrl-C, as DuckDB says it
                status = _complain("interrupted", INTERRUPTED)
            else:
                status = _complain(_unexpected(error), KernelhouseError.exit_code)
        sys.exit(status)


def _open_streams() -> None:
    """Let closed standard streams be empty ones, so that no file that is opened later gets their number.

    UsageError where stdout is closed: nobody would get the answer.
    """
    answers = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  (for the whole process)
    if not answers:
        raise UsageError("stdout is closed: send the answer to a file, or to /dev/null")


def _check_utf8(arguments: Sequence[str]) -> None:
    """Refuse what neither DuckDB nor JSON can take."""
    from pipeline.store.files import is_utf8

    for argument in arguments:
        if not is_utf8(argument):
            raise UsageError(f"an argument is not UTF-8 text: {os.fsencode(argument)!r}; give it in UTF-8")


def _give_up_stdout() -> None:
    """Let the interpreter flush into nothing at its end: nobody reads any more, or there is no room."""
    with suppress(io.UnsupportedOperation):  # it may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, status: int) -> int:
    from pipeline.render.text import encodable, visible

    line = visible(" ".join(message.split()))
    with suppress(OSError):  # where stderr cannot be written to, the status alone tells
        click.echo(encodable(f"kernelhouse: {line}", sys.stderr.encoding or "ascii"), err=True)
    return status


def _usage(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message}; see {error.ctx.command_path} --help"
    return message


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        from pipeline.store.files import refusal

        if not error.filename:  # all else that is written has a handler of its own
            _give_up_stdout()
        return refusal(error, "stdout")
    if isinstance(error, MemoryError):
        return "this does not fit into memory: ask for less, or give it more"
    return f"internal error: {type(error).__name__}: {error}; set KERNELHOUSE_DEBUG=1 to see where, and report it"


@dataclass
class Session:
    """What every command shares: the data directory and the way to answer."""

    root: str | None = None
    json: bool = False

    @property
    def data(self) -> DataDirectory:
        """The data directory: ``--data``, else ``$KERNELHOUSE_DATA``, else ``./data``."""
        from pipeline.store.layout import chosen_directory

        return chosen_directory(self.root)

    def warehouse(self) -> AbstractContextManager[DuckDBPyConnection]:
        """Open the published database, read-only and sandboxed."""
        from pipeline.store.database import published

        return published(self.data)

    def answer(self, render: Callable[[Screen], None], **fields: object) -> None:
        """Print the answer: ``fields`` as one JSON document with ``--json``, else what ``render`` writes."""
        if self.json:
            from pipeline.query.plain import document

            write(document(**fields) + "\n")
            return
        screen = new_screen()
        render(screen)
        write(screen.text())

    @property
    def shows_progress(self) -> bool:
        """Whether a progress bar may be drawn: stderr is a terminal, and a person reads."""
        return not self.json and sys.stderr.isatty()


def new_screen() -> Screen:
    """Return an empty page for stdout: as wide as its terminal, without limit in a pipe."""
    from pipeline.render.screen import Screen

    if not sys.stdout.isatty():
        return Screen()
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return Screen(width=max(shutil.get_terminal_size().columns, 20), styled=not plain)


def write(text: str) -> None:
    """Write text to stdout in what its encoding can carry."""
    from pipeline.render.text import encodable

    sys.stdout.write(encodable(text, sys.stdout.encoding or "ascii"))
    sys.stdout.flush()


def show_result(result: Result) -> None:
    """Write a result of SQL as a table; a sign that stdout cannot carry is an escape: the signs are all data."""
    from pipeline.render.sql import render

    screen = new_screen()
    render(screen, result)
    encoding = sys.stdout.encoding or "ascii"
    write(screen.text().encode(encoding, "backslashreplace").decode(encoding))


class Stdout:
    """Stdout as a stream for CSV and JSON: UTF-8 as in a file, but on a terminal control characters are escaped."""

    def __init__(self) -> None:
        self.escapes = sys.stdout.isatty()
        if not self.escapes and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")

    def write(self, text: str) -> int:
        """Write ``text``."""
        from pipeline.render.text import visible

        write("\n".join(map(visible, text.split("\n"))) if self.escapes else text)
        return len(text)


def shared_options(command: _Command) -> _Command:
    """Add ``--data`` and ``--json``, which may stand before or after the command's name."""

    def keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def callback(context: click.Context, parameter: click.Parameter, value: Any) -> None:
            if value:
                setattr(context.ensure_object(Session), name, value)

        return callback

    data = click.option(
        "--data",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Data directory  [default: $KERNELHOUSE_DATA, else ./data]",
        expose_value=False,
        callback=keep("root"),
    )
    json = click.option(
        "--json",
        is_flag=True,
        help="Answer with one JSON document (schema_version 1) on stdout.",
        expose_value=False,
        callback=keep("json"),
    )
    return data(json(command))


@click.group(
    cls=CommandLine,
    example=["kernelhouse ingest sample", "kernelhouse leaderboard gemm_nvfp4_n4096_k4096 --gpu B200"],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kernelhouse", message="%(prog)s %(version)s")
@shared_options
@click.pass_context
def main(context: click.Context) -> None:
    """A warehouse of public GPU-kernel benchmark traces: leaderboards, floors, record histories.

    Exit status: 0 done, 1 a check found something wrong, 2 bad usage or input.
    """
    context.ensure_object(Session)


@main.command(
    cls=WithExample,
    example=[
        "kernelhouse ingest hub:flashinfer-ai/flashinfer-trace",
        "kernelhouse ingest ./flashinfer-trace \\",
        "  --repository https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace \\",
        "  --revision da915083d4c7c5e61aa3005e3d17ae488e0fc71c",
    ],
)
@click.argument("source", required=False)
@click.option("--revision", metavar="SHA", help="Commit that SOURCE holds, or to pull from the Hub (40 hex digits).")
@click.option("--repository", metavar="URL", help="URL of the trace set that SOURCE holds (https).")
@click.option("--author", "authors", metavar="NAME", multiple=True, help="Only this author folder; repeatable.")
@click.option("--dry-run", is_flag=True, help="Read and report, change nothing.")
@click.option("--rebuild", is_flag=True, help="Derive everything again from blobs and snapshots.")
@click.option("--endpoint", metavar="URL", help="Address of the Hub  [default: $HF_ENDPOINT, else the public one]")
@click.option("--allow-host", "allow_hosts", metavar="HOST", multiple=True, help="Host for plain http; repeatable.")
@click.option("--jobs", metavar="N", type=click.IntRange(1, 64), default=8, show_default=True, help="Fetch N at once.")
@click.option("--wait", is_flag=True, help="Wait while another ingest writes to the data directory.")
@click.option("--accept-shrink", is_flag=True, help="Take a commit of the Hub that lost over a fifth of the records.")
@shared_options
@click.pass_obj
def ingest(
    session: Session,
    source: str | None,
    revision: str | None,
    repository: str | None,
    authors: tuple[str, ...],
    dry_run: bool,
    rebuild: bool,
    endpoint: str | None,
    allow_hosts: tuple[str, ...],
    jobs: int,
    wait: bool,
    accept_shrink: bool,
) -> None:
    """Fetch, normalize, store and derive; print a report.

    SOURCE is `sample` (bundled, works offline; the default), a directory in the upstream layout, or `hub:OWNER/NAME`,
    a dataset of the Hugging Face Hub: the head of its main branch, or --revision. $HF_TOKEN is sent to the Hub alone.
    With --rebuild and no SOURCE nothing is fetched: the snapshots that are there are replayed.

    Only a complete pull of another commit of the Hub withdraws records; a pull of a directory never does.

    Exit status 1: nothing was changed, because a pull from the Hub shrank; see --accept-shrink.

    JSON: {schema_version, report: {snapshot_id, sequence, source, files, records, added, already_known,
    duplicates, quarantined, quarantine_reasons, ..., recovered: [sequence], published, seconds}}.
    """
    from pipeline.ingest import IngestRequest
    from pipeline.ingest import ingest as run
    from pipeline.render.ingest import render
    from pipeline.render.progress import progress

    request = IngestRequest(
        source=source,
        revision=revision,
        repository=repository,
        authors=authors,
        dry_run=dry_run,
        rebuild=rebuild,
        endpoint=endpoint,
        allow_hosts=allow_hosts,
        jobs=jobs,
        wait=wait,
        accept_shrink=accept_shrink,
    )
    with progress(session.shows_progress) as report_progress:
        report = run(session.data, request, report_progress)
    session.answer(lambda screen: render(screen, report), report=report)


@main.command(
    cls=WithExample,
    example=[
        "kernelhouse changes --fail-on withdrawn --fail-on lost-record",
        "kernelhouse changes --since 0a1b2c3d --json",
    ],
)
@click.option("--since", metavar="SNAPSHOT", help="Id of the last pull that is left out (8 digits or more).")
@click.option("--fail-on", "rules", metavar="RULE", multiple=True, help="End with status 1 on RULE; repeatable.")
@shared_options
@click.pass_obj
def changes(session: Session, since: str | None, rules: tuple[str, ...]) -> None:
    """Show what the last pull changed, or all pulls after a snapshot.

    That is records with another holder, runs added, withdrawn and reinstated, definitions with another document, and
    what is held back more or no more.

    RULE is one of: withdrawn, lost-record (a holder lost its standing), quarantine (more is held back),
    definition-changed, operation-changed (a definition means another operation), incomplete (the last pull is).

    JSON: {schema_version, changes: {since, pulls: [...], records: [{cohort_key, cause, run_digest, latency_ns,
    previous_run_digest, previous_latency_ns, previous_reasons, ...}], runs_added: [{operation, hardware, runs,
    eligible}], runs_withdrawn, runs_reinstated, definitions, quarantine_added, quarantine_freed}, broken_rules}.
    """
    from pipeline.query.changes import RULES, broken
    from pipeline.query.changes import changes as ask
    from pipeline.render.changes import render

    for rule in rules:
        if rule not in RULES:
            raise UsageError(f"--fail-on {rule} is no rule: there are {', '.join(RULES)}")
    answer = ask(session.data, since)
    failed = broken(answer, rules)
    session.answer(lambda screen: render(screen, answer), changes=answer, broken_rules=failed)
    if failed:
        raise CheckFailure("; ".join(failed))


@main.command(cls=WithExample, example=["kernelhouse status --json | jq .status.quarantine"])
@shared_options
@click.pass_obj
def status(session: Session) -> None:
    """Show what the warehouse holds.

    That is pulls and their accounting, counts, quarantine by reason, disk use and versions.

    JSON: {schema_version, status: {data_directory, pulls: [...], rows: {table: n}, run_statuses, eligible_runs,
    hardware, observed_from, observed_to, quarantine: [{reason, files, records}], drift, disk_bytes, versions, meta}}.
    """
    from pipeline.query.status import status as ask
    from pipeline.render.status import render

    with session.warehouse() as connection:
        answer = ask(connection, session.data)
    session.answer(lambda screen: render(screen, answer), status=answer)


@main.command(
    cls=TakesSql,
    example=[
        'kernelhouse sql "SELECT operation, min(latency_ns) FROM leaderboard GROUP BY ALL ORDER BY 1"',
        "kernelhouse sql --file report.sql --out report.parquet",
    ],
)
@click.argument("query", required=False)
@click.option("--file", "-f", metavar="F", help="Read the SQL from a file; - is stdin.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json", "csv", "parquet"]),
    help="Format of the result  [default: by the ending of --out, else table]",
)
@click.option("--out", "-o", metavar="F", type=click.Path(path_type=Path), help="Write the result to a file.")
@shared_options
@click.pass_obj
def sql(session: Session, query: str | None, file: str | None, format_name: str | None, out: Path | None) -> None:
    """Run SQL over the warehouse, read-only.

    The session is cut off from files and network.

    Several statements are separated by `;`: `table` shows every result, the other formats the last one.
    Without QUERY it is an interactive prompt (.help there), or a script on a stdin that is no terminal.

    Values are exact. In CSV null is nothing and the empty text `""`; CSV and JSON are UTF-8. In JSON a decimal that
    a float cannot hold, an interval and an infinite time are text; other times are ISO 8601, in UTC.

    JSON: {schema_version, columns: [{name, type}], rows: [{column: value}]}; with --out {schema_version, file,
    format, rows, bytes}.
    """
    if query is not None and file is not None:
        raise UsageError("give the SQL as QUERY or with --file, not both")
    chosen = format_name or _format_of(out) or ("json" if session.json else "table")
    if session.json and out is None and chosen != "json":
        raise UsageError(f"--json and --format {chosen} contradict each other: give one of them")
    if chosen == "parquet" and out is None:
        raise UsageError("Parquet needs a file: add --out F")
    if chosen == "table" and out is not None:
        raise UsageError(f"{out} needs a format: add --format csv, json or parquet, or redirect the table with >")
    with session.warehouse() as connection:
        if query is None and file is None:
            if sys.stdin.isatty():
                if session.json or out is not None or format_name not in (None, "table"):
                    raise UsageError("the prompt answers with tables: give QUERY or --file for other formats")
                _prompt(connection)
                return
            file = "-"
        _script(session, connection, query if query is not None else _read(file or "-"), chosen, out)


def _format_of(out: Path | None) -> str | None:
    return {".json": "json", ".csv": "csv", ".parquet": "parquet"}.get(out.suffix.lower()) if out else None


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}: name the SQL file, or - for stdin") from None
    except UnicodeDecodeError:
        raise UsageError(f"{'stdin' if file == '-' else file} is not UTF-8 text") from None


def _script(session: Session, connection: DuckDBPyConnection, text: str, format_name: str, out: Path | None) -> None:
    from pipeline.export.results import FORMATS, save
    from pipeline.query.sql import execute, statements
    from pipeline.render.text import count

    *before, last = statements(connection, text)
    for statement in before:
        result = execute(connection, statement)
        if format_name == "table" and out is None:
            show_result(result)
            write("\n")
        result.finish()
    if out is not None:
        rows, size = save(connection, last, format_name, out)
        session.answer(
            lambda screen: screen.prose(f"{count(rows, 'row')} written to {out}"),
            file=str(out),
            format=format_name,
            rows=rows,
            bytes=size,
        )
    elif format_name == "table":
        show_result(execute(connection, last))
    else:
        FORMATS[format_name](execute(connection, last), Stdout())


def _prompt(connection: DuckDBPyConnection) -> None:
    import readline  # noqa: F401  (with it, input() has line editing and a history of this session)

    from pipeline.query.shell import Shell

    Shell(
        connection,
        read=input,
        show=show_result,
        say=lambda text: write(text + "\n"),
        complain=lambda error: _complain(str(error), error.exit_code),
    ).run()


@main.command(cls=WithExample, example=["kernelhouse leaderboard gemm_nvfp4_n4096_k4096 --axes m=1024 --gpu B200"])
@click.argument("operation")
@click.option(
    "--axes", metavar="A=N,...", multiple=True, help="Only cohorts with these axis values: m=1024,n=2048; repeatable."
)
@click.option("--gpu", metavar="NAME", help="Only this GPU: a word of the hardware's name, such as B200.")
@click.option("--profile", default="source_native", show_default=True, help="How runs are grouped and ranked.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most N runs of each cohort  [default: 10]")
@click.option("--all", "everything", is_flag=True, help="Every cohort, and every run where there is no --limit.")
@shared_options
@click.pass_obj
def leaderboard(
    session: Session,
    operation: str,
    axes: tuple[str, ...],
    gpu: str | None,
    profile: str,
    limit: int | None,
    everything: bool,
) -> None:
    """Rank the runs of an operation, cohort by cohort.

    Each cohort comes with its floor, its record and how the source's baseline stands.

    OPERATION is its exact name or a digest prefix. Cohorts are never ranked against each other.

    At most 12 cohorts are shown, those with the most results. With --json it is always every cohort, and every run
    where there is no --limit.

    JSON: {schema_version, leaderboard: {profile, policy_version, boards: [{operation, fitting, cohorts: [{cohort_key,
    axes, hardware, results, best_latency_ns, baseline_state, record, floors, not_ranked, entries: [{rank, run_digest,
    implementation, latency_ns, vs_best, evidence_level, flags, ...}]}]}]}}.
    """
    from pipeline.query.leaderboard import leaderboard as ask
    from pipeline.render.leaderboard import render

    wanted = _axes(axes)
    cohort_limit = None
    if not (everything or session.json):
        cohort_limit, limit = SHOWN_COHORTS, limit or SHOWN_RESULTS
    with session.warehouse() as connection:
        answer = ask(
            connection, operation, profile=profile, axes=wanted, gpu=gpu, limit=limit, cohort_limit=cohort_limit
        )
    session.answer(lambda screen: render(screen, answer), leaderboard=answer)


def _axes(texts: Sequence[str]) -> dict[str, int]:
    """Return the axis values of texts like ``m=1024,n=2048``; names are lower-case, as everywhere in manifests."""
    axes: dict[str, int] = {}
    for text in texts:
        for part in text.split(","):
            name, _, value = (each.strip() for each in part.lower().partition("="))
            if not (name and re.fullmatch("[0-9]{1,1000}", value)):
                raise UsageError(f'--axes "{text}" is not a list of axis values: write it as m=1024,n=2048')
            if axes.setdefault(name, int(value)) != int(value):
                raise UsageError(f"--axes gives {name} two values: give it once")
    return axes


@main.command(cls=WithExample, example=["kernelhouse records gemm_nvfp4_n4096_k4096 --limit 20"])
@click.argument("operation", required=False)
@click.option("--profile", default="source_native", show_default=True, help="How runs are grouped and ranked.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most the N newest.")
@shared_options
@click.pass_obj
def records(session: Session, operation: str | None, profile: str, limit: int | None) -> None:
    """Show the history of records, newest first.

    Without OPERATION it is that of all operations.

    JSON: {schema_version, profile, records: [{at, cause, operation, hardware, axes, run_digest, implementation,
    latency_ns, previous_run_digest, previous_latency_ns, improvement, current, cohort_key, policy_version}]}.
    run_digest is null where a withdrawal or correction leaves a cohort without a record.
    """
    from pipeline.query.records import records as ask
    from pipeline.render.records import render

    with session.warehouse() as connection:
        events = ask(connection, operation, profile=profile, limit=limit)
    session.answer(lambda screen: render(screen, events), profile=profile, records=events)


@main.command(cls=WithExample, example=["kernelhouse floors --json | jq '.floors.families[] | select(.below > 0)'"])
@shared_options
@click.pass_obj
def floors(session: Session) -> None:
    """Compare both floor models with what is measured.

    One line a model and family of operations: eligible runs, how many are faster than their floor, median and
    minimum ratio of latency to floor. Then every run that is faster than a floor.

    JSON: {schema_version, floors: {families: [{model, family, runs, workloads, without_floor, below,
    baseline_below, median_ratio, minimum_ratio}], runs_below: [{model, run_digest, operation, hardware, axes, role,
    latency_ns, floor_ns, ratio, flagged}]}}.
    """
    from pipeline.query.floors import floors as ask
    from pipeline.render.floors import render

    with session.warehouse() as connection:
        answer = ask(connection)
    session.answer(lambda screen: render(screen, answer), floors=answer)


@main.command(cls=WithExample, example=["kernelhouse show gemm_nvfp4_n4096_k4096", "kernelhouse show 83c9b6e7 --json"])
@click.argument("what", metavar="DIGEST|NAME")
@click.option("--all", "everything", is_flag=True, help="Every run of it  [default: the 20 newest; all with --json]")
@shared_options
@click.pass_obj
def show(session: Session, what: str, everything: bool) -> None:
    """Show all that is known of one object.

    It may be a run, operation, implementation, workload, environment, protocol or artifact. A digest may be
    cut to a unique prefix of 8 or more hex digits, with or without `sha256:`; operations and
    implementations also answer to their exact name.

    JSON: {schema_version, kind, digest, name, dossier: {...}}; the fields of the dossier depend on the kind.
    """
    from pipeline.query.dossier import dossier
    from pipeline.render.dossier import render

    with session.warehouse() as connection:
        found, answer = dossier(connection, what, run_limit=None if everything or session.json else SHOWN_RUNS)
    session.answer(
        lambda screen: render(screen, found, answer),
        kind=found.kind,
        digest=found.digest,
        name=found.name,
        dossier=answer,
    )


@main.command(cls=WithExample, example=["kernelhouse digest run.json"])
@click.argument("file", metavar="FILE")
@shared_options
@click.pass_obj
def digest(session: Session, file: str) -> None:
    """Compute the digest of a manifest file.

    FILE is JSON (- is stdin). The document is read strictly: duplicate keys, unknown fields and numbers that
    are not finite are refused.

    JSON: {schema_version, digest, kind, name, file}.
    """
    from pipeline.manifests import load_manifest

    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}: name a manifest, or - for stdin") from None
    try:
        manifest = load_manifest(text)
    except ManifestError as error:
        raise ManifestError(f"{file}: {error}") from error
    document = manifest.document
    session.answer(
        lambda screen: screen.prose(manifest.digest),
        digest=manifest.digest,
        kind=document["kind"],
        name=document["metadata"].get("name"),
        file=file,
    )


@main.command(
    cls=WithExample, example=["kernelhouse verify && kernelhouse export leaderboard --out leaderboard.parquet"]
)
@shared_options
@click.pass_obj
def verify(session: Session) -> None:
    """Recompute what is stored, and check it.

    That is digests, keys, references, files, accounting, floors and ranks; every table is derived again and compared.

    Prints one line a check and exits with 1 where one fails, naming the file or row.

    JSON: {schema_version, ok, checks: [{name, ok, detail, failures, problems: [{where, what}]}]}.
    """
    from pipeline.query.verify import verify as ask
    from pipeline.render.progress import progress
    from pipeline.render.verify import render

    with session.warehouse() as connection, progress(session.shows_progress) as report:
        checks = list(ask(connection, session.data, report))
    failed = [check.name for check in checks if not check.ok]
    session.answer(lambda screen: render(screen, checks), ok=not failed, checks=checks)
    if failed:
        raise CheckFailure(f"verify failed in {', '.join(failed)}: see the rows named above")


@main.command(cls=WithExample, example=["kernelhouse export leaderboard --out leaderboard.parquet"])
@click.argument("table", metavar="TABLE")
@click.option(
    "--out", "-o", metavar="F", required=True, type=click.Path(path_type=Path), help="The Parquet file; replaced whole."
)
@shared_options
@click.pass_obj
def export(session: Session, table: str, out: Path) -> None:
    """Write a table as Parquet, sorted by its key.

    JSON: {schema_version, table, file, rows, bytes}.
    """
    from pipeline.export.tables import export_table
    from pipeline.render.text import count

    with session.warehouse() as connection:
        done = export_table(connection, table, out)
    session.answer(
        lambda screen: screen.prose(f"{done.table}: {count(done.rows, 'row')} written to {done.file}"), **vars(done)
    )


@main.group(cls=CommandGroup, example=["kernelhouse rerun plan --operation gemm_bf16_n4096_k4096 --out jobs"])
@shared_options
def rerun() -> None:
    """Repeat runs on a GPU of your own, under a protocol of our own.

    `plan` writes job files, `run` runs them where a GPU is, `import` brings the results in as evidence.

    JSON: {schema_version, ...}, as each of the three says.
    """


@rerun.command(
    cls=WithExample,
    example=[
        "kernelhouse rerun plan 17946874 --out jobs",
        "kernelhouse rerun plan --operation gemm_bf16_n4096_k4096 --records --out jobs",
    ],
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--operation", metavar="NAME", help="Only runs of this operation.")
@click.option("--solution", metavar="NAME", help="Only runs of this solution.")
@click.option("--author", metavar="NAME", help="Only runs of solutions by this author.")
@click.option("--workload", metavar="ID", help="Only runs of this workload: its uuid, or a digest prefix.")
@click.option("--records", is_flag=True, help="Only runs that hold a record now.")
@click.option("--sql", metavar="QUERY", help="Only runs that the column run_digest of this query names.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most N jobs, the newest runs first.")
@click.option("--device", metavar="PRODUCT", default="any", show_default=True, help="GPU that must run the jobs.")
@click.option("--build-seconds", type=click.IntRange(1, 10**6), default=600, show_default=True)
@click.option("--run-seconds", type=click.IntRange(1, 10**6), default=300, show_default=True)
@click.option("--memory-gib", type=click.IntRange(1, 10**6), default=32, show_default=True)
@click.option(
    "--out", "-o", metavar="DIR", required=True, type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the job files.",
)  # fmt: skip
@shared_options
@click.pass_obj
def plan(
    session: Session, /, out: Path, limit: int | None, device: str, build_seconds: int, run_seconds: int,
    memory_gib: int, **chosen: Any,
) -> None:  # fmt: skip
    """Write a job file for each chosen run that passed.

    RUN is a digest or a unique prefix. A job carries the code, the manifests under their digests, and a nonce.

    JSON: {schema_version, jobs: [file], left_out: {run_digest: reason}}.
    """
    from pipeline.export.files import check_folder
    from pipeline.render.reruns import render_plan
    from pipeline.rerun.jobs import Limits
    from pipeline.rerun.plan import Selection, write_jobs
    from pipeline.rerun.plan import plan as choose

    check_folder(out)
    limits = Limits(build_seconds=build_seconds, run_seconds=run_seconds, memory_bytes=memory_gib * 2**30)
    with session.warehouse() as connection:
        planned = choose(connection, session.data, Selection(**chosen), device=device, limits=limits, limit=limit)
    files = [str(path) for path in write_jobs(planned.jobs, out)]
    session.answer(lambda screen: render_plan(screen, files, planned.left_out), jobs=files, left_out=planned.left_out)


@rerun.command(cls=WithExample, example=["kernelhouse rerun run jobs --out results --allow-code"])
@click.argument("jobs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out", "-o", metavar="DIR", required=True, type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; a job whose result is there is not run again.",
)  # fmt: skip
@click.option("--allow-code", is_flag=True, help="Run the code in the jobs: it is untrusted.")
@click.option(
    "--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True,
    help="Where; a CPU checks correctness alone.",
)  # fmt: skip
@click.option(
    "--tensors", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the trace set with the tensor files.",
)  # fmt: skip
@shared_options
@click.pass_obj
def run(
    session: Session, jobs: tuple[Path, ...], out: Path, allow_code: bool, device: str, tensors: Path | None
) -> None:
    """Run job files on this machine, each in processes of its own, in a sandbox.

    Needs torch. The folder pipeline/rerun/runner does the same on a host that has torch alone: python -m runner.

    JSON: {schema_version, results: [{title, status, detail, resumed}]}.
    """
    from importlib.util import find_spec

    from pipeline.export.files import check_folder
    from pipeline.rerun.runner.batch import CannotRun, run_batch
    from pipeline.rerun.runner.job import JobError

    check_folder(out)
    if not allow_code:
        raise UsageError("the jobs carry untrusted code: add --allow-code to run it in the sandbox")
    if find_spec("torch") is None:
        raise UsageError("torch is not installed here: install it, or copy pipeline/rerun/runner to a host that has it")
    if device == "auto":
        from pipeline.rerun.runner.host import default_device

        device = default_device()
    try:
        events = run_batch(
            jobs, out, device=device, tensors=tensors,
            report=lambda event: click.echo(f"[{event.number}/{event.total}] {event.status} {event.title}", err=True),
        )  # fmt: skip
    except (JobError, CannotRun) as error:
        raise UsageError(str(error)) from error

    def show(screen: Screen) -> None:
        for event in events:
            screen.prose(f"{event.title}: {event.status}, {event.detail}")

    session.answer(
        show,
        results=[
            {"title": event.title, "status": event.status, "detail": event.detail, "resumed": event.resumed}
            for event in events
        ],
    )


@rerun.command("import", cls=WithExample, example=["kernelhouse rerun import results"])
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--traces", metavar="F", type=click.Path(path_type=Path), help="Also write them as upstream's trace lines."
)
@shared_options
@click.pass_obj
def import_(session: Session, folder: Path, traces: Path | None) -> None:
    """Bring results into the warehouse as evidence, each with its verdict.

    All or nothing: a file that was altered, or is about what this warehouse does not know, is refused with the rest.

    JSON: {schema_version, report: {...}, reruns: [{run_digest, target_run_digest, verdict, reasons, ratio, ...}]}.
    """
    from pipeline.export.files import check_target
    from pipeline.ingest.reruns import import_reruns
    from pipeline.render.ingest import render
    from pipeline.render.progress import progress
    from pipeline.render.reruns import render_verdicts
    from pipeline.render.text import count
    from pipeline.rerun.results import read_results
    from pipeline.rerun.traces import write_traces

    if traces is not None:
        check_target(traces)
    with progress(session.shows_progress) as report_progress:
        report, verdicts = import_reruns(session.data, folder, report_progress)
    written = 0 if traces is None else write_traces(read_results(folder), traces)

    def show(screen: Screen) -> None:
        render(screen, report)
        if traces is not None:
            screen.prose(f"{count(written, 'trace')} written to {traces}, of the reruns that upstream has a status for")
        render_verdicts(screen, verdicts)

    session.answer(show, report=report, reruns=verdicts)
