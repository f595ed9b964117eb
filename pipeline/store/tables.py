"""Every table, declared once: columns, types, units, key and meaning.

The Arrow schema of the Parquet parts, the JSON Schema in ``schemas/``, the DuckDB table with its
comments, the checks of ``kernelhouse verify`` and the documentation all come from here.

Three stages. *Evidence* tables come from documents and are kept as Parquet parts, one part a table and
snapshot, never changed once written. *Reviewed* tables come from files of the data directory that people
write, read anew at every build. *Derived* tables come from SQL in ``warehouse/`` when the database is
built. A column marked ``derived`` of an evidence table is not in the parts: it can change
later (standing, flags, evidence level), so it too is made when the database is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Stage = Literal["evidence", "reviewed", "derived"]


class Type(Enum):
    """A column type, by its DuckDB name."""

    TEXT = "VARCHAR"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    TEXTS = "VARCHAR[]"
    BIGINTS = "BIGINT[]"


@dataclass(frozen=True)
class Column:
    """One column: its name (with the unit), type, meaning, and whether it may be null."""

    name: str
    type: Type
    comment: str
    nullable: bool = False
    derived: bool = False


@dataclass(frozen=True)
class Table:
    """One table: name, meaning of a row, key and columns in their order."""

    name: str
    stage: Stage
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    part_key: tuple[str, ...] = ()
    """Key of the rows in the Parquet parts, where several of them make one row of the database."""

    @property
    def part_columns(self) -> tuple[Column, ...]:
        """The columns that are kept in the Parquet parts."""
        return tuple(column for column in self.columns if not column.derived)

    def column(self, name: str) -> Column:
        """Return the column of that name; KeyError where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")


def _text(name: str, comment: str, **kw: bool) -> Column:
    return Column(name, Type.TEXT, comment, **kw)


def _texts(name: str, comment: str, **kw: bool) -> Column:
    return Column(name, Type.TEXTS, comment, **kw)


def _bigint(name: str, comment: str, **kw: bool) -> Column:
    return Column(name, Type.BIGINT, comment, **kw)


def _double(name: str, comment: str, **kw: bool) -> Column:
    return Column(name, Type.DOUBLE, comment, **kw)


def _boolean(name: str, comment: str, **kw: bool) -> Column:
    return Column(name, Type.BOOLEAN, comment, **kw)


def _timestamp(name: str, comment: str, **kw: bool) -> Column:
    return Column(name, Type.TIMESTAMP, comment, **kw)


_SNAPSHOT = _text("snapshot_id", "Snapshot in whose ingest this row was added")
_MANIFEST = _text("manifest", "Canonical manifest: RFC 8785 JSON text with apiVersion, kind, metadata, spec")

SNAPSHOTS = Table(
    "snapshots",
    "evidence",
    "One pinned pull of a source",
    ("snapshot_id",),
    (
        _text("snapshot_id", "Digest of the snapshot record without its times"),
        _text("source", "Where it was pulled from: sample, directory, or hub:OWNER/NAME"),
        _text("adapter", "The reader of its documents: flashinfer-bench"),
        _text("repository", "URL of the trace set, where known", nullable=True),
        _text("revision", "40-hex commit of the trace set, where known", nullable=True),
        _texts("authors", "Author folders that the pull was limited to; empty: all"),
        _bigint("sequence", "Order of the pulls of this warehouse, from 1"),
        _timestamp("fetched_at", "When it was pulled, UTC"),
        _bigint("files", "Files listed"),
        _bigint("bytes", "Bytes of the files listed"),
        _boolean("complete", "Every file that belongs to the pull was fetched"),
    ),
)

SOURCE_FILES = Table(
    "source_files",
    "evidence",
    "One file of a snapshot",
    ("snapshot_id", "path"),
    (
        _text("snapshot_id", "The snapshot that lists it"),
        _text("path", "Path inside the trace set, with forward slashes"),
        _text("kind", "definition, solution, workload, trace, tensor or other"),
        _text("sha256", "sha256: and 64 hex digits of its content, where known", nullable=True),
        _bigint("size_bytes", "Size of its content in bytes"),
        _boolean("fetched", "Its content is in the blob store"),
        _text("locator", "Where it can be had again: a URL, where the source has one", nullable=True),
    ),
)

OPERATIONS = Table(
    "operations",
    "evidence",
    "An OperationSpec: what is computed",
    ("operation_digest",),
    (
        _text("operation_digest", "Digest of the manifest"),
        _text("name", "Upstream name of the definition"),
        _text("slug", "The name in lower case with dashes"),
        _text("family", "kebab(op_type): gemm, gqa-paged, rmsnorm, ..."),
        _text("op_type", "Upstream op_type as written"),
        _texts("tags", "Upstream tags in their order"),
        _text("description", "Upstream description", nullable=True),
        _text("definition_sha256", "SHA-256 of the JCS text of the whole upstream definition"),
        _text("source_path", "File of the definition inside the trace set"),
        _text("blob_sha256", "The blob that holds it"),
        _SNAPSHOT,
        _MANIFEST,
    ),
    part_key=("operation_digest", "definition_sha256", "blob_sha256"),
)

WORKLOADS = Table(
    "workloads",
    "evidence",
    "A WorkloadCase: an operation with every shape and input bound",
    ("workload_digest",),
    (
        _text("workload_digest", "Digest of the manifest"),
        _text("operation_digest", "The operation that it binds"),
        _text("axes", "Axis values: JSON object, keys sorted"),
        _text("shape_summary", "Axis values for people, such as 'm = 1024'"),
        _texts("dtypes", "Dtypes of its tensors, unique, sorted"),
        _SNAPSHOT,
        _MANIFEST,
    ),
)

WORKLOAD_TENSORS = Table(
    "workload_tensors",
    "evidence",
    "A tensor argument of a workload with every dimension bound",
    ("workload_digest", "role", "position"),
    (
        _text("workload_digest", "The workload"),
        _text("role", "input or output"),
        _bigint("position", "Place among the operation's inputs or outputs, from 0"),
        _text("name", "Argument name"),
        _text("dtype", "Canonical dtype: bf16, fp8_e4m3, int32, ..."),
        Column("shape", Type.BIGINTS, "Dimensions in elements"),
        _text("generator", "safetensors or random, where the workload describes the input", nullable=True),
    ),
)

WORKLOAD_INPUTS = Table(
    "workload_inputs",
    "evidence",
    "A workload as upstream names it: a uuid of a definition with the inputs that it reads",
    ("benchmark", "workload_uuid", "workload_digest", "inputs_sha256"),
    (
        _text("benchmark", "Upstream name of the definition"),
        _text("workload_uuid", "Upstream uuid, or the one derived from the axes"),
        _text("workload_digest", "The WorkloadCase"),
        _text("inputs_sha256", "SHA-256 of the JCS text of the upstream inputs: which tensor files, which values"),
        _boolean("tensor_files", "Some input comes from a tensor file"),
        _SNAPSHOT,
    ),
)

IMPLEMENTATIONS = Table(
    "implementations",
    "evidence",
    "An ImplementationRevision: a solution as first seen by this warehouse",
    ("implementation_digest",),
    (
        _text("implementation_digest", "Digest of the manifest"),
        _text("operation_digest", "The operation that it is written for"),
        _text("definition", "Upstream name of the definition that it is written for"),
        _text("name", "Upstream name of the solution"),
        _text("author", "Author folder that it lies in, else its author field"),
        _text("role", "baseline or llm-generated, by the author folder"),
        _text("language", "Canonical language: python, triton, cuda, ..."),
        _text("license", "Concluded licence (SPDX)", nullable=True),
        _boolean("source_available", "The primary source file has content"),
        _text("source_path", "File of the solution inside the trace set"),
        _text("solution_sha256", "SHA-256 of the upstream solution file"),
        _text("sources_sha256", "SHA-256 of the JCS text of {path: SHA-256} over all source files"),
        _text("repository", "Trace set of its manifest", nullable=True),
        _text("first_revision", "Revision at which this warehouse first saw it", nullable=True),
        _SNAPSHOT,
        _MANIFEST,
    ),
    part_key=("implementation_digest", "solution_sha256", "source_path"),
)

ENVIRONMENTS = Table(
    "environments",
    "evidence",
    "An ExecutionEnvironment: hardware and software",
    ("environment_digest",),
    (
        _text("environment_digest", "Digest of the manifest"),
        _text("name", "Hardware and versions for people"),
        _text("hardware", "Product name of the hardware"),
        _SNAPSHOT,
        _MANIFEST,
    ),
)

PROTOCOLS = Table(
    "protocols",
    "evidence",
    "A BenchmarkProtocol: how runs are measured",
    ("protocol_digest",),
    (
        _text("protocol_digest", "Digest of the manifest"),
        _text("name", "Harness name and what it reports"),
        _SNAPSHOT,
        _MANIFEST,
    ),
)

OBSERVATIONS = Table(
    "observations",
    "evidence",
    "A record as read with an implementation; several may name one run",
    ("observation_sha256", "implementation_digest"),
    (
        _text("observation_sha256", "SHA-256 of the bytes of the record"),
        _text("implementation_digest", "The implementation that it was read with"),
        _text("run_digest", "The run that it names"),
        _text("snapshot_id", "The snapshot in which it was first read"),
        _text("blob_sha256", "The blob that holds it"),
        _text("source_file", "Path inside the trace set"),
        _bigint("source_line", "Line of the file, or place in its array, from 1"),
        _bigint("byte_offset", "Where the record starts in its blob"),
        _bigint("size_bytes", "Size of the record in bytes"),
        _text("workload_uuid", "Upstream uuid of the workload, or the one derived from the axes"),
        _text("inputs_sha256", "Identity of the upstream inputs (see workload_inputs)"),
        _boolean("timezone_assumed", "Its timestamp names no zone: read as UTC"),
        _boolean("error_not_finite", "An error bound was written as not finite"),
        _texts("legacy_forms", "Accepted legacy forms that it uses, sorted"),
    ),
)

RUNS = Table(
    "runs",
    "evidence",
    "A BenchmarkRun: one measurement of an implementation on a workload, with its present standing",
    ("run_digest",),
    (
        _text("run_digest", "Digest of the manifest"),
        _text("operation_digest", "Operation of the workload"),
        _text("workload_digest", "The workload measured"),
        _text("workload_uuid", "Upstream uuid of the workload", derived=True),
        _text("inputs_sha256", "Identity of the upstream inputs (see workload_inputs)", derived=True),
        _text("implementation_digest", "The implementation measured"),
        _text("protocol_digest", "How it was measured"),
        _text("environment_digest", "Where it was measured"),
        _text("comparison_key", "Source-native cohort: runs that may be compared share it"),
        _text("source", "Origin of the measurement: flashinfer-bench"),
        _text("benchmark", "Upstream name of the definition in the trace"),
        _text("source_file", "File of its first observation", derived=True),
        _bigint("source_line", "Line of its first observation", derived=True),
        _text("status", "passed, incorrect_numerical, runtime_error, ..."),
        _text("hardware", "Product name of the hardware"),
        _text("primary_statistic", "Statistic of latency_ns: mean or median", nullable=True),
        _bigint("latency_ns", "Primary latency in nanoseconds", nullable=True),
        _double("reference_latency_ms", "Latency of the reference as reported, in milliseconds", nullable=True),
        _double("speedup_factor", "Speed-up as reported; never ranked", nullable=True),
        _double("max_absolute_error", "Largest absolute error, where finite", nullable=True),
        _double("max_relative_error", "Largest relative error, where finite", nullable=True),
        _text("log_digest", "Digest of the log kept with the run", nullable=True),
        _timestamp("observed_at", "When it was measured, UTC, milliseconds"),
        _timestamp("ingested_at", "When the snapshot that brought it was pulled, UTC"),
        _boolean("timezone_assumed", "Every observation of it lacks a time zone: read as UTC", derived=True),
        _boolean("error_not_finite", "An error bound was written as not finite", derived=True),
        _texts("legacy_forms", "Legacy forms that its observations use", derived=True),
        _boolean("qualified", "Passed, with a primary latency: it counts while it has standing", derived=True),
        _boolean("eligible", "May be ranked: qualified, and no suspension holds now", derived=True),
        _texts(
            "reasons",
            "Why not: STATUS_..., MISSING_PRIMARY_METRIC, RETRACTED, SUPERSEDED, TAKEN_DOWN, WITHDRAWN",
            derived=True,
        ),
        _text("evidence_level", "reported, reproducible, verified or replicated", derived=True),
        _texts("flags", "Marks of suspicion or of a data peculiarity", derived=True),
        _texts("flag_details", "What each of the flags rests on, in their order", derived=True),
        _SNAPSHOT,
        _MANIFEST,
    ),
)

MEASUREMENTS = Table(
    "measurements",
    "evidence",
    "One statistic of a run",
    ("run_digest", "metric", "statistic"),
    (
        _text("run_digest", "The run"),
        _text("metric", "latency, ..."),
        _text("statistic", "mean, median, p05, ..."),
        _text("unit", "Unit of the value: ns, ..."),
        _double("value", "The value in that unit"),
        _bigint("sample_count", "Samples behind it, where known", nullable=True),
    ),
)

RERUNS = Table(
    "reruns",
    "evidence",
    "A controlled rerun of a run, and what it says of it",
    ("run_digest",),
    (
        _text("run_digest", "The controlled run"),
        _text("target_run_digest", "The run that it repeats; null: nothing was reported before", nullable=True),
        _text("verdict", "REPRODUCED, SLOWER, ... (verdict-v1); null where it repeats no run", nullable=True),
        _texts("reasons", "What the verdict rests on: codes of violations, the cause of a failure, the hardware"),
        _double("ratio", "Its latency over the reported one, where both are of one product", nullable=True),
        _boolean("passed", "It passed: correct, undisturbed and timed"),
        _double("median_ns", "Median latency in nanoseconds", nullable=True),
        _double("low_ns", "Lower end of the median's 95 % interval in nanoseconds", nullable=True),
        _double("high_ns", "Upper end of the median's 95 % interval in nanoseconds", nullable=True),
        _text("host_identity", "Hash that tells the verifier's host from others", nullable=True),
        _text("gpu_identity", "Hash that tells the verifier's GPU from others", nullable=True),
        _text("job_digest", "SHA-256 of the job file"),
        _text("isolation", "What held of the sandbox: JSON object"),
        _text("telemetry", "Clocks, temperature and power before and after, as nvidia-smi gives them: JSON object"),
        _SNAPSHOT,
    ),
)

ARTIFACTS = Table(
    "artifacts",
    "evidence",
    "A log, source or sample file that evidence refers to, and where its bytes lie",
    ("digest",),
    (
        _text("digest", "SHA-256 of its content"),
        _text("kind", "log, source or samples"),
        _text("media_type", "Media type of its content"),
        _bigint("size_bytes", "Size of its content in bytes (UTF-8)"),
        _text("license", "Licence (SPDX), where known", nullable=True),
        _text("blob_sha256", "The blob that holds it"),
        _bigint("byte_offset", "Where the JSON document or record that carries it starts in the blob"),
        _text("pointer", "JSON pointer (RFC 6901) from there to its text"),
        _SNAPSHOT,
    ),
)

QUARANTINE = Table(
    "quarantine",
    "evidence",
    "A record or file that is held back now",
    ("scope", "source_file", "source_line", "raw_sha256"),
    (
        _text("scope", "Trace set whose documents it is read with: its repository, else its source"),
        _text("kind", "What the file is: definition, solution, workload or trace"),
        _text("source_file", "Path inside the trace set"),
        _bigint("source_line", "Line of the file, or place in its array, from 1; null: the whole file", nullable=True),
        _bigint("byte_offset", "Where the record starts in its blob; null: the whole file", nullable=True),
        _bigint("size_bytes", "Size of the record or file in bytes"),
        _text("raw_sha256", "SHA-256 of the bytes held back; null where they could not be had", nullable=True),
        _text("blob_sha256", "The blob that holds them, where they could be had", nullable=True),
        _boolean("from_document", "The record was an array element or a whole-file object"),
        _text("reason", "Reason code"),
        _text("detail", "What is wrong, in a sentence"),
        _text("snapshot_id", "The snapshot in which it was read"),
        _bigint("sequence", "The pull at which it came to this outcome"),
    ),
    part_key=("source_file", "source_line", "raw_sha256", "reason", "sequence"),
)

RELEASES = Table(
    "releases",
    "evidence",
    "Something held back earlier that a later pull let in",
    ("scope", "source_file", "source_line", "raw_sha256", "sequence"),
    (
        _text("scope", "Trace set that it belongs to: its repository, else its source"),
        _text("kind", "What the file is: definition, solution, workload or trace"),
        _text("source_file", "Path inside the trace set"),
        _bigint("source_line", "Line of the file; null: the whole file", nullable=True),
        _text("raw_sha256", "SHA-256 of the bytes that were held back, where they could be had", nullable=True),
        _text("snapshot_id", "The snapshot whose ingest let it in"),
        _bigint("sequence", "The pull at which it was let in"),
    ),
)

PRESENCE = Table(
    "presence",
    "evidence",
    "A record that a complete pull of its repository no longer had, or had again",
    ("observation_sha256", "sequence"),
    (
        _text("observation_sha256", "SHA-256 of the bytes of the record"),
        _text("scope", "Trace set whose pull tells: its repository"),
        _text("event", "withdrawn or reinstated"),
        _text("snapshot_id", "The pull that tells"),
        _bigint("sequence", "Its place in the order of pulls"),
        _timestamp("at", "When it was pulled, UTC"),
    ),
)

DRIFT = Table(
    "drift",
    "evidence",
    "An unknown field or legacy form",
    ("source_file", "path"),
    (
        _text("source_file", "Path inside the trace set"),
        _text("path", "Path of the field inside the document, or legacy:FORM"),
        _bigint("occurrences", "How often it was met"),
    ),
)

INGESTS = Table(
    "ingests",
    "evidence",
    "The accounting of one pull: records = added + already_known + duplicates + quarantined",
    ("sequence",),
    (
        _bigint("sequence", "Order of the pulls of this warehouse, from 1"),
        _text("snapshot_id", "The snapshot ingested"),
        _bigint("files", "Files listed"),
        _bigint("files_read", "Files read in this ingest"),
        _bigint("files_unchanged", "Files already read in an earlier ingest"),
        _bigint("files_quarantined", "Files held back"),
        _bigint("files_not_fetched", "Files listed only: tensors, and what belongs to no kind"),
        _bigint("records", "Trace records of the snapshot"),
        _bigint("added", "Observations added"),
        _bigint("already_known", "Records known from an earlier ingest"),
        _bigint("duplicates", "Records repeated byte for byte inside the snapshot"),
        _bigint("quarantined", "Records held back"),
        _bigint("workload_records", "Records of the workload files"),
        _bigint("freed", "Records of earlier snapshots let in by this ingest"),
    ),
)

PROFILES = Table(
    "profiles",
    "derived",
    "A way to compare runs: which policy ranks, and how wide a tie is",
    ("profile",),
    (
        _text("profile", "source_native, ..."),
        _text("policy_version", "Version of its ranking rules"),
        _double("tie_band", "Latencies up to this multiple of a rank group's fastest share its rank"),
        _double("record_band", "A record falls only to a run faster than holder / this"),
        _text("floor_model", "Floor model that its boards and records show: headroom-v1, ..."),
        _text("comment", "What it compares"),
    ),
)

PEAKS = Table(
    "peaks",
    "derived",
    "Datasheet peaks of a GPU, by version of the peaks table",
    ("peaks", "match"),
    (
        _text("peaks", "Version of the peaks table: published-v1, ..."),
        _text("match", "Text that stands as a word in the hardware name"),
        _text("label", "GPU for people"),
        _double("hbm_gb_s", "Memory bandwidth in GB/s"),
        _double("l2_mib", "Last-level cache in MiB: the L2, on AMD with the Infinity Cache", nullable=True),
        _double("fp4_tflops", "Dense FP4 peak in TFLOP/s", nullable=True),
        _double("fp6_tflops", "Dense FP6 peak in TFLOP/s", nullable=True),
        _double("fp8_tflops", "Dense FP8 peak in TFLOP/s", nullable=True),
        _double("int8_tops", "Dense INT8 peak in TOP/s", nullable=True),
        _double("bf16_tflops", "Dense BF16 and FP16 peak in TFLOP/s", nullable=True),
        _double("tf32_tflops", "Dense TF32 peak in TFLOP/s", nullable=True),
        _double("fp32_tflops", "FP32 peak in TFLOP/s", nullable=True),
        _text("source", "Where the figures stand: document, edition, variant", nullable=True),
    ),
)

CORRECTIONS = Table(
    "corrections",
    "reviewed",
    "A reviewed correction: an entry of corrections.toml in the data directory",
    ("run_digest", "action"),
    (
        _text("run_digest", "The run that is corrected"),
        _text("action", "retract, supersede or takedown"),
        _text("successor", "The run that counts in its place; null: none is named", nullable=True),
        _texts("removes", "Digests of the log and source texts that a takedown removed from the blobs"),
        _text("reason", "Why, in a sentence"),
        _text("author", "Who reviewed it"),
        _timestamp("at", "From when on it counts, UTC"),
    ),
)

SUSPENSIONS = Table(
    "suspensions",
    "derived",
    "A span of time in which a run has no standing",
    ("run_digest", "cause", "since"),
    (
        _text("run_digest", "The run"),
        _text("cause", "withdrawn, retracted, superseded or taken_down"),
        _timestamp("since", "When it lost its standing, UTC"),
        _timestamp("until", "When it was reinstated, UTC; null: it has no standing now", nullable=True),
    ),
)

FLAGS = Table(
    "flags",
    "derived",
    "A mark of suspicion or of a peculiarity of the data; it never changes a status",
    ("run_digest", "flag"),
    (
        _text("run_digest", "The run"),
        _text("flag", "BELOW_FLOOR, ERROR_LARGE, TZ_ASSUMED, ..."),
        _text("detail", "What it rests on, in a sentence"),
    ),
)

FLOOR_TENSORS = Table(
    "floor_tensors",
    "derived",
    "A tensor of a workload as the floors see it",
    ("workload_digest", "role", "position"),
    (
        _text("workload_digest", "The workload"),
        _text("role", "input or output"),
        _bigint("position", "Place among the operation's inputs or outputs, from 0"),
        _text("name", "Argument name"),
        Column("shape", Type.BIGINTS, "Dimensions in elements as stored"),
        _double("elements", "Elements as stored"),
        _double("width_bytes", "Bytes of an element; null where the dtype is unknown", nullable=True),
        _double("bytes", "Bytes of the tensor; 0 where the dtype is unknown: none is proved"),
        _text("class", "What its values are to a multiplier: fp4, fp6, fp8, int8, bf16 or tf32", nullable=True),
        _boolean("described", "The workload describes it, so it is given"),
    ),
)

FLOOR_FACTS = Table(
    "floor_facts",
    "derived",
    "A workload as the floors see it, with the formula that fits it",
    ("workload_digest",),
    (
        _text("workload_digest", "The workload"),
        _text("family", "Family of its operation"),
        _text("formula", "File of the formula, floor_terms.<formula>; null: none fits", nullable=True),
        _text("axes", "Values of its axes and of the operation's constants: JSON object"),
        _boolean("structured_sparse", "One operand keeps two of four values (2:4)"),
        _bigint("topk", "Experts a token is routed to, where the operation tells", nullable=True),
        _double("input_bytes", "Bytes of all declared input tensors"),
        _double("output_bytes", "Bytes of all declared output tensors"),
    ),
)

FLOOR_TERMS = Table(
    "floor_terms",
    "derived",
    "What any correct kernel must move and compute for a workload (headroom-v2)",
    ("workload_digest",),
    (
        _text("workload_digest", "The workload"),
        _double("input_bytes", "Input bytes that must be read"),
        _double("output_bytes", "Output bytes that must be written"),
        _double("operations", "Useful arithmetic operations; null: none is proved", nullable=True),
        _texts("classes", "Classes of the operands that meet in a multiplier (see floor_tensors); null: unknown"),
        _text("memory", "Which inputs count, in a sentence"),
        _text("work", "Which operations count, in a sentence; null: none", nullable=True),
        _texts("assumptions", "What that rests on, code and sentence each"),
    ),
)

FLOOR_ESTIMATES = Table(
    "floor_estimates",
    "derived",
    "A bound on the latency of a workload on a GPU",
    ("workload_digest", "hardware", "model"),
    (
        _text("workload_digest", "The workload"),
        _text("hardware", "Product name of the hardware"),
        _text("model", "headroom-v1, ..."),
        _text("peaks", "Version of the peaks table used"),
        _text("gpu", "Label of the peaks row used", nullable=True),
        _double("bytes_moved", "Bytes that must cross memory", nullable=True),
        _double("hbm_gb_s", "Memory bandwidth used, in GB/s", nullable=True),
        _double("dram_ns", "Memory term in nanoseconds", nullable=True),
        _double("operations", "Arithmetic operations", nullable=True),
        _double("peak_tflops", "Compute peak used, in TFLOP/s", nullable=True),
        _text("peak_class", "Class of the compute peak: fp4, fp8, bf16, tf32, ...", nullable=True),
        _double("compute_ns", "Compute term in nanoseconds", nullable=True),
        _double("floor_ns", "The bound in nanoseconds: the larger term", nullable=True),
        _text("bound_by", "dram or compute", nullable=True),
        _texts("assumptions", "What the bound rests on, one sentence or code each"),
    ),
)

COHORT_RUNS = Table(
    "cohort_runs",
    "derived",
    "Membership: which run belongs to which cohort in which profile",
    ("profile", "run_digest"),
    (
        _text("profile", "The profile"),
        _text("cohort_key", "The cohort"),
        _text("run_digest", "The run"),
        _text("implementation_digest", "Its implementation"),
        _bigint("latency_ns", "Its primary latency in nanoseconds", nullable=True),
        _timestamp("observed_at", "When it was measured, UTC"),
        _text("evidence_level", "Its evidence: reported, reproducible, verified or replicated"),
        _boolean("ranked", "Eligible, and not shut out by the profile"),
        _boolean("qualified", "Would be ranked if it had standing: it counts in the history while it had"),
        _texts("shut_out", "Flags for which the profile does not rank it"),
        _text("input_identity", "Workload uuid where inputs come from tensor files (strict_exact)", nullable=True),
        _text(
            "protocol_era", "How the harness timed, inferred from the time of measurement (strict_exact)", nullable=True
        ),
    ),
)

COHORTS = Table(
    "cohorts",
    "derived",
    "Runs that may be compared: same operation, workload, protocol, environment, correctness rule, metric",
    ("profile", "cohort_key"),
    (
        _text("profile", "The profile"),
        _text("cohort_key", "Key of the cohort"),
        _text("operation", "Name of the operation"),
        _text("operation_digest", "The operation"),
        _text("workload_digest", "The workload"),
        _text("family", "Family of the operation"),
        _text("axes", "Axis values: JSON object"),
        _text("hardware", "Product name of the hardware"),
        _text("environment", "Name of the environment"),
        _text("environment_digest", "The environment"),
        _text("protocol", "Name of the protocol"),
        _text("protocol_digest", "The protocol"),
        _text("metric", "latency:<statistic>:ns"),
        _text("input_identity", "Workload uuid where inputs come from tensor files (strict_exact)", nullable=True),
        _text(
            "protocol_era", "How the harness timed, inferred from the time of measurement (strict_exact)", nullable=True
        ),
        _bigint("results", "Ranked runs"),
        _bigint("runs", "All runs, also those that are not ranked"),
        _text("best_run_digest", "The fastest ranked run", nullable=True),
        _bigint("best_latency_ns", "Its latency in nanoseconds", nullable=True),
        _text("baseline_state", "unbeaten, beaten, or none where no baseline is ranked"),
        _bigint("baseline_latency_ns", "Latency of the fastest ranked baseline in nanoseconds", nullable=True),
        _timestamp("first_observed_at", "Oldest run, UTC"),
        _timestamp("last_observed_at", "Newest run, UTC"),
    ),
)

LEADERBOARD = Table(
    "leaderboard",
    "derived",
    "A ranked run in its cohort",
    ("profile", "cohort_key", "run_digest"),
    (
        _text("profile", "The profile"),
        _text("cohort_key", "The cohort"),
        _bigint("rank", "Dense rank by latency inside the cohort, from 1"),
        _boolean("tied", "Shares its rank with another run"),
        _bigint("position", "Order of display inside the cohort, from 1"),
        _text("run_digest", "The run"),
        _text("operation", "Name of the operation"),
        _text("implementation", "Name of the implementation"),
        _text("implementation_digest", "The implementation"),
        _text("author", "Author of the implementation"),
        _text("role", "baseline or llm-generated"),
        _text("hardware", "Product name of the hardware"),
        _text("axes", "Axis values: JSON object"),
        _bigint("latency_ns", "Latency in nanoseconds"),
        _double("vs_best", "Latency over the cohort's best"),
        _double("vs_baseline", "Latency over the cohort's best baseline", nullable=True),
        _double("floor_ns", "Floor by the profile's floor model, in nanoseconds", nullable=True),
        _double("vs_floor", "Latency over that floor", nullable=True),
        _text("evidence_level", "reported, reproducible, verified or replicated"),
        _texts("flags", "Flags of the run"),
        _timestamp("observed_at", "When it was measured, UTC"),
    ),
)

RECORD_HISTORY = Table(
    "record_history",
    "derived",
    "A change of the record holder of a cohort",
    ("profile", "cohort_key", "position"),
    (
        _text("profile", "The profile"),
        _text("cohort_key", "The cohort"),
        _bigint("position", "Place in the history of the cohort, from 1"),
        _text("run_digest", "The new holder; null: the cohort is left without one", nullable=True),
        _text("previous_run_digest", "The holder before; null: there was none", nullable=True),
        _bigint("latency_ns", "Latency of the new holder in nanoseconds", nullable=True),
        _bigint("previous_latency_ns", "Latency of the holder before in nanoseconds", nullable=True),
        _double("improvement", "Latency before over latency now", nullable=True),
        _timestamp("at", "When the holder changed, UTC: when the new one was measured, else when standing changed"),
        _text("cause", "new_run, withdrawn, reinstated, retracted, superseded or taken_down"),
        _text("policy_version", "Ranking policy that decided"),
    ),
)

CURRENT_RECORDS = Table(
    "current_records",
    "derived",
    "The record of a cohort now",
    ("profile", "cohort_key"),
    (
        _text("profile", "The profile"),
        _text("cohort_key", "The cohort"),
        _text("run_digest", "The holder"),
        _bigint("latency_ns", "Its latency in nanoseconds"),
        _text("fastest_run_digest", "The fastest ranked run"),
        _bigint("fastest_latency_ns", "Its latency in nanoseconds"),
        _timestamp("held_since", "When it took the record, UTC"),
        _double("floor_ns", "Floor by the profile's floor model, in nanoseconds", nullable=True),
        _double("vs_floor", "Latency of the holder over that floor", nullable=True),
    ),
)

COVERAGE = Table(
    "coverage",
    "derived",
    "An operation on a GPU: how much of it is measured",
    ("operation_digest", "hardware"),
    (
        _text("operation_digest", "The operation"),
        _text("operation", "Name of the operation"),
        _text("hardware", "Product name of the hardware"),
        _bigint("workloads", "Workloads known of the operation"),
        _bigint("measured", "Workloads with a run on this hardware"),
        _bigint("passing", "Workloads with an eligible run on this hardware"),
        _timestamp("last_observed_at", "Newest run, UTC", nullable=True),
    ),
)

META = Table(
    "meta",
    "derived",
    "What this database was built from and by",
    ("key",),
    (
        _text("key", "format_version, build_key, ..."),
        _text("value", "Its value as text"),
    ),
)

TABLES: tuple[Table, ...] = (
    SNAPSHOTS,
    SOURCE_FILES,
    OPERATIONS,
    WORKLOADS,
    WORKLOAD_TENSORS,
    WORKLOAD_INPUTS,
    IMPLEMENTATIONS,
    ENVIRONMENTS,
    PROTOCOLS,
    OBSERVATIONS,
    RUNS,
    MEASUREMENTS,
    RERUNS,
    ARTIFACTS,
    QUARANTINE,
    RELEASES,
    PRESENCE,
    DRIFT,
    INGESTS,
    CORRECTIONS,
    PROFILES,
    PEAKS,
    FLOOR_TENSORS,
    FLOOR_FACTS,
    FLOOR_TERMS,
    FLOOR_ESTIMATES,
    SUSPENSIONS,
    FLAGS,
    COHORT_RUNS,
    COHORTS,
    LEADERBOARD,
    RECORD_HISTORY,
    CURRENT_RECORDS,
    COVERAGE,
    META,
)

REVIEWED: tuple[Table, ...] = tuple(table for table in TABLES if table.stage == "reviewed")

EVIDENCE: tuple[Table, ...] = tuple(table for table in TABLES if table.stage == "evidence")


def table(name: str) -> Table:
    """Return the table of that name; KeyError where there is none."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no table {name}")
