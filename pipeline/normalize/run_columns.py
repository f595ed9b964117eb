"""FlashInfer-Bench traces in columns: the runs of a batch of records at once.

A record *fits* when it has exactly the fields that the harness writes, in their types, and nothing to think about: no
unknown field, no legacy form, a plain timestamp, documents that are known. msgspec proves that while it decodes.
Every other record is left to the one-by-one path, which alone knows reasons.

No rule is restated here. What many records share (workload, environment) is read by the one-by-one path, once. What
varies is put into the text of a manifest that the one-by-one path made of placeholders, once for each combination of
a status with the values that are there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import count
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from pipeline.manifests import ExecutionEnvironment, canonical_text, sha256_of
from pipeline.manifests.canonical import identity_text
from pipeline.manifests.columns import create_macros
from pipeline.manifests.keys import comparison_key, metric_key
from pipeline.manifests.scalars import SAFE_INTEGER
from pipeline.normalize.adapter import RUN_COLUMNS, Catalog, Document, Held, ReadWorkload, RunBatch, SharedWorkload
from pipeline.normalize.measures import Instant, nanoseconds
from pipeline.normalize.protocol import FLASHINFER_BENCH_PROTOCOL
from pipeline.normalize.run import SOURCE, STATUSES, Outcome, normalize_run, run_name
from pipeline.upstream import documents as upstream
from pipeline.upstream.framing import Record

T = TypeVar("T")
K = TypeVar("K")

_Number = float | Literal["Infinity", "-Infinity", "NaN"] | None


class _Fitting(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part of a record that fits: the fields of its model in ``upstream.documents``, with what they may hold here."""


class _Correctness(_Fitting):
    max_relative_error: _Number = None
    max_absolute_error: _Number = None
    extra: None = None


class _Performance(_Fitting):
    latency_ms: float | None = None
    reference_latency_ms: _Number = None
    speedup_factor: _Number = None
    profile: None = None


class _Evaluation(_Fitting):
    status: str
    environment: msgspec.Raw
    timestamp: str
    log: str | None = None
    correctness: _Correctness | None = None
    performance: _Performance | None = None


class _Trace(_Fitting):
    definition: str
    workload: msgspec.Raw
    solution: str
    evaluation: _Evaluation


_NOTHING_FOUND = _Correctness()
_NOT_TIMED = _Performance()

_DAY = "(?:0[1-9]|1[0-9]|2[0-8])"
_MONTH_AND_DAY = f"(?:(?:0[1-9]|1[0-2])-{_DAY}|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{3}(?:[0-9]{3})?)?"
_PLAIN_TIMESTAMP = f"^[1-9][0-9]{{3}}-{_MONTH_AND_DAY}T{_TIME}Z?$"
"""The timestamps that fit: a date, but a leap day, and a time as ``isoformat`` writes them."""

_LEAST_MS, _MOST_MS = 1e-6, SAFE_INTEGER / 1e7
"""Latencies outside, which no kernel has, are left to the one-by-one path, which knows the limits."""

_STRING = pa.string()

_CACHE_SIZE = 20_000
"""How many groups, and workloads, are remembered."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """A status, with which of the values that a record may have are there."""

    number: int
    status: str
    timed: bool
    statistic: str | None
    metric: str
    error_not_finite: bool
    spec: str
    """SQL for the text of the spec."""
    manifest: str
    """SQL for the text of the manifest, around ``spec``."""
    identity: str
    """SQL for the text that its digest is over, around ``spec``."""


class _Shared(Generic[T]):
    """What many records share: each thing once, and which of them each record has."""

    def __init__(self, codes: pa.Array, values: Sequence[T]) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, records: pa.RecordBatch, names: Sequence[str], find: Callable[..., T]) -> _Shared[T]:
        """Find a thing, once, for each combination of values that records have in some columns."""
        numbers: pa.Array = pa.repeat(pa.scalar(0, pa.int64()), records.num_rows)
        distinct = []
        for name in names:
            encoded = records.column(name).dictionary_encode("encode")
            distinct.append(encoded.dictionary.to_pylist())
            numbers = pc.add(pc.multiply(numbers, len(distinct[-1])), encoded.indices.cast(pa.int64()))
        combined = numbers.dictionary_encode()
        values = []
        for number in combined.dictionary.to_pylist():
            combination = []
            for choices in reversed(distinct):
                number, place = divmod(number, len(choices))
                combination.append(choices[place])
            values.append(find(*reversed(combination)))
        return cls(combined.indices, values)

    def known(self) -> pa.Array:
        """Tell which records have something."""
        return pa.array([value is not None for value in self.values], pa.bool_()).take(self.codes)

    def known_where(self: _Shared[K | None], mask: pa.Array) -> _Shared[K]:
        """Return what the records have for which the mask is true: all of them something."""
        left = self.codes.filter(mask).dictionary_encode()
        values = (self.values[code] for code in left.dictionary.to_pylist())
        return _Shared(left.indices, [value for value in values if value is not None])

    def column(self, of: Callable[[T], Any], kind: pa.DataType = _STRING) -> pa.Array:
        """Return a column of what each thing has, which is never nothing."""
        return pa.DictionaryArray.from_arrays(self.codes, pa.array(map(of, self.values), kind))


class _Fits(NamedTuple):
    """The records of a batch that fit."""

    said: pa.RecordBatch
    """What they say, as :func:`_said` reads it."""
    workload: _Shared[SharedWorkload]
    environment: _Shared[ExecutionEnvironment]
    implementation: _Shared[str]
    shape: _Shared[_Shape]


class ColumnReader:
    """Reads the trace records of one snapshot in columns."""

    def __init__(
        self,
        catalog: Catalog,
        read_workload: Callable[[Record], ReadWorkload | Held],
        read_environment: Callable[[Record], Document[ExecutionEnvironment] | Held],
    ) -> None:
        """Read with the documents of a catalog; the functions read what records share from a record that holds it."""
        self._catalog = catalog
        self._read_workload = read_workload
        self._read_environment = read_environment
        self._decode = msgspec.json.Decoder(_Trace).decode
        self._workloads: dict[tuple[str, bytes], SharedWorkload | None] = {}
        self._environments: dict[bytes, ExecutionEnvironment | None] = {}
        self._shapes: dict[tuple[Any, ...], _Shape | None] = {}
        self._comparison_keys: dict[tuple[int, str, str], str] = {}
        self._numbers = count()
        self._connection = duckdb.connect(config={"python_enable_replacements": "false", "threads": "1"})
        create_macros(self._connection)

    def read(self, records: Sequence[Record]) -> RunBatch:
        """Read a batch of trace records."""
        places, traces = [], []
        for place, record in enumerate(records):
            if record.from_document or record.removed:
                continue
            try:
                traces.append(self._decode(record.raw or b""))
            except (msgspec.DecodeError, RecursionError):
                continue
            places.append(place)
        if not traces:
            return RunBatch.unfit(len(records))
        said = _said(places, traces)
        workload = _Shared.of(said, ("definition", "workload"), self._workload)
        environment = _Shared.of(said, ("environment",), self._environment)
        implementation = _Shared.of(said, ("solution",), self._catalog.implementation)
        shape = _Shared.of(said, ("status", "has_correctness", "has_log", *_KINDS_OF.values()), self._shape)
        fitting = reduce(
            pc.and_,
            (
                pc.match_substring_regex(said["timestamp"], _PLAIN_TIMESTAMP),
                pc.greater(said["latency_ms"], _LEAST_MS).fill_null(True),
                pc.less(said["latency_ms"], _MOST_MS).fill_null(True),
                *(shared.known() for shared in (workload, environment, implementation, shape)),
            ),
        )
        said = said.filter(fitting)
        if not said.num_rows:
            return RunBatch.unfit(len(records))
        fits = _Fits(
            said,
            workload.known_where(fitting),
            environment.known_where(fitting),
            implementation.known_where(fitting),
            shape.known_where(fitting),
        )
        return RunBatch(
            workloads=fits.workload.values,
            environments=fits.environment.values,
            protocol=FLASHINFER_BENCH_PROTOCOL,
            rest=sorted(set(range(len(records))).difference(said["place"].to_pylist())),
            runs=lambda: self._runs(fits),
        )

    def _workload(self, definition: str, text: bytes) -> SharedWorkload | None:
        key = definition, text
        if key not in self._workloads:
            if len(self._workloads) >= _CACHE_SIZE:
                self._workloads.clear()
            read = self._read_workload(_record(b'{"definition":%b,"workload":%b}' % (_json(definition), text)))
            if isinstance(read, Held) or read.drift:
                self._workloads[key] = None
            else:
                self._workloads[key] = SharedWorkload(next(self._numbers), read.benchmark, read.workload)
        return self._workloads[key]

    def _environment(self, text: bytes) -> ExecutionEnvironment | None:
        if text not in self._environments:
            if len(self._environments) >= _CACHE_SIZE:
                self._environments.clear()
            evaluation = b'{"status":"","timestamp":"","environment":%b}' % text
            workload = b'{"axes":{},"uuid":"-"}'
            read = self._read_environment(
                _record(b'{"definition":"-","workload":%b,"evaluation":%b}' % (workload, evaluation))
            )
            self._environments[text] = None if isinstance(read, Held) or read.drift else read.value
        return self._environments[text]

    def _comparison_key(self, shared: SharedWorkload, environment: ExecutionEnvironment, metric: str) -> str:
        key = shared.number, environment.digest, metric
        if key not in self._comparison_keys:
            if len(self._comparison_keys) >= _CACHE_SIZE:
                self._comparison_keys.clear()
            workload = shared.workload
            self._comparison_keys[key] = comparison_key(
                operation=workload.manifest.spec.operation_spec_digest,
                workload=workload.manifest.digest,
                protocol=FLASHINFER_BENCH_PROTOCOL.digest,
                environment=environment.digest,
                correctness=workload.correctness_key,
                metric=metric,
            )
        return self._comparison_keys[key]

    def _shape(self, *key: Any) -> _Shape | None:
        if key not in self._shapes:
            self._shapes[key] = _shape(len(self._shapes), *key)
        return self._shapes[key]

    def _runs(self, fits: _Fits) -> pa.Table:
        """Work out the columns of the records that fit, of which there are some."""
        said, workload, environment, implementation, shape = fits
        key = _Shared.of(
            pa.record_batch([workload.codes, environment.codes, shape.codes], names=["w", "e", "s"]),
            ("w", "e", "s"),
            lambda w, e, s: self._comparison_key(workload.values[w], environment.values[e], shape.values[s].metric),
        )
        zoned = pc.ends_with(said["timestamp"], "Z")
        given = pa.table(
            {
                **{name: said[name] for name in _NUMBERS},
                "latency_ns": pa.array(
                    [None if value is None else nanoseconds(value) for value in said["latency_ms"].to_pylist()],
                    pa.int64(),
                ),
                "timestamp": pc.utf8_rtrim(said["timestamp"], "Z"),
                "log": said["log"],
                "shape": shape.column(lambda shape: shape.number, pa.int32()),
                "name": workload.column(lambda shared: run_name(shared.benchmark, shared.workload.uuid)),
                "solution": said["solution"].dictionary_encode(),
                "benchmark": workload.column(lambda shared: shared.benchmark),
                "implementation_digest": implementation.column(str),
                "workload_digest": workload.column(lambda shared: shared.workload.manifest.digest),
                "environment_digest": environment.column(lambda environment: environment.digest),
            }
        )
        columns = {
            "place": said["place"],
            "workload": workload.codes,
            "environment": environment.codes,
            "operation_digest": workload.column(lambda shared: shared.workload.manifest.spec.operation_spec_digest),
            "protocol_digest": shape.column(lambda _: FLASHINFER_BENCH_PROTOCOL.digest),
            "comparison_key": key.column(str),
            "source": shape.column(lambda _: SOURCE),
            "status": shape.column(lambda shape: shape.status),
            "hardware": environment.column(lambda environment: environment.spec.hardware.product),
            "primary_statistic": shape.column(lambda shape: shape.statistic).dictionary_decode(),
            "workload_uuid": workload.column(lambda shared: shared.workload.uuid),
            "inputs_sha256": workload.column(lambda shared: shared.workload.inputs_sha256),
            "timezone_assumed": pc.invert(zoned),
            "error_not_finite": shape.column(lambda shape: shape.error_not_finite, pa.bool_()),
        }
        worked_out = self._work_out(given, shape.values)
        # Half the time of DuckDB's own SHA-256.
        identities = worked_out["identity"].cast(pa.binary()).to_pylist()
        columns["run_digest"] = pa.array(map(sha256_of, identities), _STRING)
        for table in (given, worked_out):
            columns |= {name: table.column(name) for name in table.column_names}
        return pa.table([columns[field.name] for field in RUN_COLUMNS], names=RUN_COLUMNS.names)

    def _work_out(self, given: pa.Table, shapes: Sequence[_Shape]) -> pa.Table:
        """Return what takes text: manifests, what run digests are over, logs and instants, in the same order."""
        spec, manifest, identity = (
            _by_shape({shape.number: text for shape, text in zip(shapes, texts, strict=True)})
            for texts in zip(*((shape.spec, shape.manifest, shape.identity) for shape in shapes), strict=True)
        )
        self._connection.register("given", given)
        try:
            return self._connection.sql(
                f"""
                WITH instants AS (
                    SELECT
                        *,
                        'sha256:' || sha256(log) AS log_digest,
                        left(timestamp || '.000', 23) AS instant
                    FROM given
                ),

                specs AS (
                    SELECT *, {spec} AS spec FROM instants
                )

                SELECT
                    log_digest,
                    coalesce(strlen(log), 0) AS log_size_bytes,
                    instant::TIMESTAMP AS observed_at,
                    {identity} AS identity,
                    {manifest} AS manifest
                FROM specs
                """
            ).to_arrow_table()
        finally:
            self._connection.unregister("given")


def _by_shape(texts: dict[int, str]) -> str:
    """Return the SQL that chooses among the SQL of shapes."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    cases = " ".join(f"WHEN {number} THEN {text}" for number, text in texts.items())
    return f"CASE shape {cases} END"


def _said(places: Sequence[int], traces: Sequence[_Trace]) -> pa.RecordBatch:
    """Return what records say, with the kinds of their numbers, and which of them have a log."""
    evaluations = [trace.evaluation for trace in traces]
    performances = [evaluation.performance or _NOT_TIMED for evaluation in evaluations]
    correctnesses = [evaluation.correctness or _NOTHING_FOUND for evaluation in evaluations]
    numbers: dict[str, list[_Number]] = {
        "latency_ms": [performance.latency_ms for performance in performances],
        "reference_latency_ms": [performance.reference_latency_ms for performance in performances],
        "speedup_factor": [performance.speedup_factor for performance in performances],
        "max_absolute_error": [correctness.max_absolute_error for correctness in correctnesses],
        "max_relative_error": [correctness.max_relative_error for correctness in correctnesses],
    }
    columns = {
        "place": pa.array(places, pa.int32()),
        "definition": pa.array([trace.definition for trace in traces], _STRING),
        "workload": pa.array([bytes(trace.workload) for trace in traces], pa.binary()),
        "solution": pa.array([trace.solution for trace in traces], _STRING),
        "status": pa.array([evaluation.status for evaluation in evaluations], _STRING),
        "environment": pa.array([bytes(evaluation.environment) for evaluation in evaluations], pa.binary()),
        "timestamp": pa.array([evaluation.timestamp for evaluation in evaluations], _STRING),
        "has_correctness": pa.array([evaluation.correctness is not None for evaluation in evaluations], pa.bool_()),
        "log": pa.array([evaluation.log or None for evaluation in evaluations], _STRING),
    }
    columns["has_log"] = columns["log"].is_valid()
    for name, values in numbers.items():
        kinds = [_KINDS[type(value)] for value in values]
        columns[name] = pa.array([value if type(value) is float else None for value in values], pa.float64())
        columns[_KINDS_OF[name]] = pa.array(kinds, pa.int8())
    return pa.record_batch(columns)


def _record(raw: bytes) -> Record:
    return Record(1, 0, len(raw), sha256_of(raw), raw)


def _json(text: str) -> bytes:
    return json.dumps(text).encode()


# Placeholders: a value for each thing that varies among the runs of a shape, and the SQL that stands in its place.

_NUMBERS = ("latency_ms", "reference_latency_ms", "speedup_factor", "max_absolute_error", "max_relative_error")
_KINDS = {type(None): 0, float: 1, str: 2}
"""Of what a number may be, by its type; a text stands for one that is not finite."""
_KINDS_OF = {name: f"{name}_kind" for name in _NUMBERS}
_NUMBER_PLACEHOLDERS = {name: 1.0625e-3 * 3**place for place, name in enumerate(_NUMBERS, 1)}
_NS_PLACEHOLDER = 4_242_424_242_424_242
_DIGEST_PLACEHOLDERS = {
    name: "sha256:" + digit * 64
    for name, digit in (("implementation_digest", "a"), ("workload_digest", "b"), ("environment_digest", "c"))
}
_LOG_PLACEHOLDER = b"log"
_INSTANT_PLACEHOLDER = Instant("0001-01-01T01:01:01.001Z", datetime(1, 1, 1), zone_assumed=True)  # noqa: DTZ001
_TEXT_PLACEHOLDERS = {"benchmark": "\ue000benchmark\ue001", "solution": "\ue000solution\ue001", "uuid": "-"}

_SLOTS: dict[str, str] = {
    **{canonical_text(number).decode(): f"jcs_number({name})" for name, number in _NUMBER_PLACEHOLDERS.items()},
    str(_NS_PLACEHOLDER): "latency_ns",
    **{digest: name for name, digest in _DIGEST_PLACEHOLDERS.items()},
    sha256_of(_LOG_PLACEHOLDER): "log_digest",
    _INSTANT_PLACEHOLDER.text.removesuffix("Z"): "instant",
    **{_TEXT_PLACEHOLDERS[name]: f"jcs_characters({name})" for name in ("benchmark", "solution")},
    run_name(_TEXT_PLACEHOLDERS["benchmark"], _TEXT_PLACEHOLDERS["uuid"]): "name",
}
"""The SQL in place of each text that stands for something."""

_ANY_SLOT = re.compile("(" + "|".join(map(re.escape, _SLOTS)) + ")")


def _shape(number: int, status: str, has_correctness: bool, has_log: bool, *kinds: int) -> _Shape | None:
    """Return a shape, with the manifest that the one-by-one path makes of placeholders; None where none can be made."""
    canonical_status = STATUSES.get(status)
    if canonical_status is None:
        return None
    given: dict[str, Any] = {
        name: placeholder if kind == _KINDS[float] else math.inf if kind == _KINDS[str] else None
        for (name, placeholder), kind in zip(_NUMBER_PLACEHOLDERS.items(), kinds, strict=True)
    }
    timed = given["latency_ms"] is not None
    evaluation = upstream.Evaluation(
        status=status,
        environment=upstream.Environment(hardware="-"),
        timestamp="",
        correctness=upstream.Correctness(**{name: given[name] for name in _NUMBERS[3:]}) if has_correctness else None,
        performance=upstream.Performance(**{name: given[name] for name in _NUMBERS[:3]}),
    )
    trace = upstream.Trace(
        definition=_TEXT_PLACEHOLDERS["benchmark"],
        workload=upstream.Workload(axes={}, uuid=_TEXT_PLACEHOLDERS["uuid"]),
        solution=_TEXT_PLACEHOLDERS["solution"],
        evaluation=evaluation,
    )
    outcome = Outcome(
        status=canonical_status,
        observed=_INSTANT_PLACEHOLDER,
        latency_ns=_NS_PLACEHOLDER if timed else None,
        log=_LOG_PLACEHOLDER if has_log else b"",
        error_not_finite=_KINDS[str] in kinds[3:],
    )
    try:
        run = normalize_run(
            trace,
            evaluation,
            outcome,
            workload=_DIGEST_PLACEHOLDERS["workload_digest"],
            implementation=_DIGEST_PLACEHOLDERS["implementation_digest"],
            protocol=FLASHINFER_BENCH_PROTOCOL.digest,
            environment=_DIGEST_PLACEHOLDERS["environment_digest"],
        )
    except ValidationError:  # a passed run without a time
        return None
    spec = canonical_text(run.document["spec"]).decode()
    return _Shape(
        number=number,
        status=canonical_status,
        timed=timed,
        statistic=run.spec.timing.primary_statistic if run.spec.timing else None,
        metric=metric_key(run),
        error_not_finite=outcome.error_not_finite,
        spec=_sql(spec),
        manifest=_sql(run.text, around=spec),
        identity=_sql(identity_text(run.document).decode(), around=spec),
    )


def _sql(text: str, *, around: str | None = None) -> str:
    """Return the SQL that makes a text with values in place of its placeholders; one part of it may be ``spec``."""
    if around is not None:
        before, after = text.split(around)
        return f"concat({_sql(before)}, spec, {_sql(after)})"
    pieces = (_SLOTS.get(piece) or "'" + piece.replace("'", "''") + "'" for piece in _ANY_SLOT.split(text) if piece)
    return f"concat({', '.join(pieces)})"
