"""A small data directory, whole and consistent, made from rows: three operations, seven runs, one record held back.

* ``grouped_gemm_..._masked``: two runs of a baseline, as on a public page: 147.3 µs and 153.2 µs.
* ``gemm_n128_k2048``: on one workload a generated kernel beats the baseline and a third run failed; a second
  workload and a second GPU have one run each.
* ``rmsnorm_h128``: never measured.

One implementation carries a hostile name (an escape sequence, a bidi control).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.ingest.pull import derive
from pipeline.manifests import canonical_text, digest_of, sha256_of
from pipeline.manifests.keys import comparison_key
from pipeline.sources.listing import Kind, ListedFile, Pull
from pipeline.store.arrow import arrow_schema
from pipeline.store.blobs import BlobStore
from pipeline.store.layout import DataDirectory
from pipeline.store.parts import BlobRecords, Commit, write_commit, write_part
from pipeline.store.snapshots import record_snapshot
from pipeline.store.tables import table

GROUPED = "grouped_gemm_fp8_fp4_m_masked_g4_n2048_k2048"
GEMM = "gemm_n128_k2048"
UNMEASURED = "rmsnorm_h128"
HOSTILE = "evil\x1b[31m\u202ekernel"
REVISION = "da915083d4c7c5e61aa3005e3d17ae488e0fc71c"
REPOSITORY = "https://example.org/traces"
TRACE_FILE = "traces/baseline/gemm/all.jsonl"
LOG = "compiled, then crashed"

_API = "kernelindex.dev/v1alpha1"
_MS = 1_000_000


def _manifest(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


@dataclass
class Warehouse:
    """Rows by table, and what they were made from."""

    rows: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    records: list[bytes] = field(default_factory=list)

    def operation(self, name: str, axes: dict[str, Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> str:
        spec = {
            "family": "gemm",
            "axes": axes,
            "inputs": [_argument(*item) for item in inputs.items()],
            "outputs": [_argument(*item) for item in outputs.items()],
            "semantics": {"mutation": "none", "determinism": "unspecified"},
        }
        manifest = _manifest("OperationSpec", name.replace("_", "-"), spec, title=name)
        return self._add(
            "operations",
            manifest,
            name=name,
            slug=name.replace("_", "-"),
            family="gemm",
            op_type="gemm",
            tags=["stage:test"],
            description=f"What {name} computes.\nIn two lines.",
            definition_sha256=sha256_of(name.encode()),
            source_path=f"definitions/gemm/{name}.json",
        )

    def workload(self, operation: str, axes: dict[str, int], tensors: dict[str, tuple[str, list[int]]]) -> str:
        spec = {
            "operationSpecDigest": operation,
            "axes": axes,
            "tensors": {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in tensors.items()},
            "scalars": {"expected_m": {"dtype": "int32", "value": 256}},
            "correctness": {"comparator": "sol_execbench_eval"},
        }
        digest = self._add(
            "workloads",
            _manifest("WorkloadCase", "workload", spec),
            operation_digest=operation,
            axes=json.dumps(axes, sort_keys=True),
            shape_summary=", ".join(f"{axis} = {value}" for axis, value in axes.items()),
            dtypes=sorted({dtype for dtype, _ in tensors.values()}),
        )
        self.rows["workload_tensors"] += [
            {
                "workload_digest": digest,
                "role": "input",
                "position": position,
                "name": name,
                "dtype": dtype,
                "shape": shape,
                "generator": "random",
            }
            for position, (name, (dtype, shape)) in enumerate(tensors.items())
        ]
        self.rows["workload_inputs"].append(
            {
                "benchmark": next(
                    row["name"] for row in self.rows["operations"] if row["operation_digest"] == operation
                ),
                "workload_uuid": digest[7:19],
                "workload_digest": digest,
                "inputs_sha256": sha256_of(digest.encode()),
                "tensor_files": False,
            }
        )
        return digest

    def implementation(self, operation: str, name: str, author: str = "baseline", language: str = "python") -> str:
        row = next(row for row in self.rows["operations"] if row["operation_digest"] == operation)
        content = f"# {name}".encode()
        spec = {
            "operation": {"specDigest": operation},
            "callable": {"language": language, "path": "main.py", "symbol": "run"},
            "support": {"hardwareArchitectures": ["sm_100"], "productsTested": ["NVIDIA B200"], "dtypes": ["bf16"]},
            "source": {"contentDigest": sha256_of(content), "fileName": "main.py", "sizeBytes": len(content)},
            "licensing": {"declared": "Apache-2.0", "concluded": "Apache-2.0"},
            "projectRevision": {"commit": REVISION, "repository": REPOSITORY},
        }
        return self._add(
            "implementations",
            _manifest("ImplementationRevision", "implementation", spec, title=name),
            operation_digest=operation,
            definition=row["name"],
            name=name,
            author=author,
            role="baseline" if author == "baseline" else "llm-generated",
            language=language,
            license="Apache-2.0",
            source_available=True,
            source_path=f"solutions/{author}/gemm/{row['name']}/main.json",
            solution_sha256=sha256_of(f"{author}/{name}".encode()),
            sources_sha256=sha256_of(b"sources of " + content),
            repository=REPOSITORY,
            first_revision=REVISION,
        )

    def environment(self, product: str) -> str:
        spec = {
            "hardware": {"vendor": "nvidia", "product": product, "architecture": "unknown"},
            "software": {
                "cudaToolkit": "13.0",
                "framework": {"name": "pytorch", "version": "2.11.0+cu130"},
                "libraries": {"triton": "3.6.0"},
            },
        }
        name = f"{product}, torch 2.11.0+cu130"
        return self._add("environments", _manifest("ExecutionEnvironment", "e", spec), name=name, hardware=product)

    def protocol(self) -> str:
        spec = {
            "harness": {"name": "flashinfer-bench", "repository": "https://github.com/flashinfer-ai/flashinfer-bench"},
            "measurement": {"timer": "harness_reported", "primaryStatistic": "mean"},
            "correctness": {
                "reference": "definition reference implementation",
                "comparator": "flashinfer_bench_eval",
            },
            "comparability": {"family": "flashinfer_bench_trace"},
        }
        return self._add("protocols", _manifest("BenchmarkProtocol", "p", spec), name="flashinfer-bench, mean")

    def run(
        self,
        workload: str,
        implementation: str,
        environment: str,
        protocol: str,
        latency_ns: int | None,
        observed: str,
        *,
        status: str = "passed",
        reference_ms: float | None = None,
        log: str | None = None,
    ) -> str:
        bound = next(row for row in self.rows["workloads"] if row["workload_digest"] == workload)
        benchmark = next(
            row["name"] for row in self.rows["operations"] if row["operation_digest"] == bound["operation_digest"]
        )
        metrics = {} if latency_ns is None else {"latency_ms": latency_ns / _MS}
        if reference_ms is not None and latency_ns is not None:
            metrics |= {"reference_latency_ms": reference_ms, "speedup_factor": reference_ms * _MS / latency_ns}
        spec: dict[str, Any] = {
            "workloadDigest": workload,
            "implementationDigest": implementation,
            "environmentDigest": environment,
            "protocolDigest": protocol,
            "status": status,
            "observedAt": observed,
            "sourceNative": {"source": "flashinfer-bench", "benchmark": benchmark, "metrics": metrics},
        }
        if latency_ns is not None:
            spec["timing"] = {"primaryStatistic": "mean", "latencyNs": {"mean": latency_ns}}
            spec["correctness"] = {
                "comparator": "sol_execbench_eval",
                "maximumAbsoluteError": 0,
                "maximumRelativeError": 0.25,
            }
        log_digest = None
        if log is not None:
            log_digest = sha256_of(log.encode())
            spec["evidence"] = {"logs": {"uri": f"kernelindex:artifact/{log_digest}", "digest": log_digest}}
        product = next(row["hardware"] for row in self.rows["environments"] if row["environment_digest"] == environment)
        statistic = None if latency_ns is None else "mean"
        digest = self._add(
            "runs",
            _manifest("BenchmarkRun", "r", spec),
            operation_digest=bound["operation_digest"],
            workload_digest=workload,
            implementation_digest=implementation,
            protocol_digest=protocol,
            environment_digest=environment,
            comparison_key=comparison_key(
                operation=bound["operation_digest"],
                workload=workload,
                protocol=protocol,
                environment=environment,
                correctness=sha256_of(canonical_text({"correctness": {"comparator": "sol_execbench_eval"}})),
                metric=f"latency:{statistic}:ns" if statistic else "none",
            ),
            source="flashinfer-bench",
            benchmark=benchmark,
            status=status,
            hardware=product,
            primary_statistic=statistic,
            latency_ns=latency_ns,
            reference_latency_ms=metrics.get("reference_latency_ms"),
            speedup_factor=metrics.get("speedup_factor"),
            max_absolute_error=None if latency_ns is None else 0.0,
            max_relative_error=None if latency_ns is None else 0.25,
            log_digest=log_digest,
            observed_at=_instant(observed),
            ingested_at=_instant("2026-07-01T00:00:00.000Z"),
        )
        if latency_ns is not None:
            self.rows["measurements"].append(
                {
                    "run_digest": digest,
                    "metric": "latency",
                    "statistic": "mean",
                    "unit": "ns",
                    "value": float(latency_ns),
                    "sample_count": None,
                }
            )
        self._observe(digest, implementation, workload, log)
        return digest

    def _observe(self, run: str, implementation: str, workload: str, log: str | None) -> None:
        record = json.dumps({"run": run, "log": log}).encode()
        offset = sum(len(each) + 1 for each in self.records)
        self.records.append(record)
        self.rows["observations"].append(
            {
                "observation_sha256": sha256_of(record),
                "implementation_digest": implementation,
                "run_digest": run,
                "source_file": TRACE_FILE,
                "source_line": len(self.records),
                "byte_offset": offset,
                "size_bytes": len(record),
                "workload_uuid": workload[7:19],
                "inputs_sha256": sha256_of(workload.encode()),
                "timezone_assumed": False,
                "error_not_finite": False,
                "legacy_forms": [],
            }
        )
        if log is not None:
            self.rows["artifacts"].append(
                {
                    "digest": sha256_of(log.encode()),
                    "kind": "log",
                    "media_type": "text/plain",
                    "size_bytes": len(log),
                    "license": "Apache-2.0",
                    "byte_offset": offset,
                    "pointer": "/log",
                }
            )

    def _add(self, into: str, manifest: dict[str, Any], **row: Any) -> str:
        digest = digest_of(manifest)
        [key] = table(into).key
        self.rows[into].append({key: digest, "manifest": canonical_text(manifest).decode(), **row})
        return digest

    def write(self, data: DataDirectory, scratch: Path) -> None:
        """Write blobs, snapshot, parts, commit and database as an ingest of the trace file would."""
        data.prepare()
        held = b'{"broken'
        source = scratch / "all.jsonl"
        source.write_bytes(b"\n".join([*self.records, held]) + b"\n")
        blob, size = BlobStore(data.blobs).add_file(source)
        files = (
            ListedFile(TRACE_FILE, Kind.TRACE, size, blob, fetched=True),
            ListedFile("blob/w.safetensors", Kind.TENSOR, 10, sha256_of(b"tensor")),
        )
        pull = Pull("directory", "flashinfer-bench", REPOSITORY, REVISION, (), files)
        snapshot = record_snapshot(data, pull, (), _instant("2026-07-01T00:00:00.000Z"))
        counts = {
            "records": len(self.records) + 1,
            "added": len(self.records),
            "already_known": 0,
            "duplicates": 0,
            "quarantined": 1,
        }
        accounting = {
            "sequence": 1,
            "files": 2,
            "files_read": 1,
            "files_unchanged": 0,
            "files_quarantined": 0,
            "files_not_fetched": 1,
            "workload_records": 0,
            "freed": 0,
            **counts,
        }
        rows = dict(self.rows)
        rows["snapshots"] = [
            {
                "source": pull.source,
                "adapter": pull.adapter,
                "repository": pull.repository,
                "revision": pull.revision,
                "authors": [],
                "sequence": 1,
                "fetched_at": snapshot.fetched_at,
                "files": 2,
                "bytes": size + 10,
                "complete": True,
            }
        ]
        rows["ingests"] = [accounting]
        rows["source_files"] = [
            {
                "path": file.path,
                "kind": file.kind.value,
                "sha256": file.sha256,
                "size_bytes": file.size_bytes,
                "fetched": file.fetched,
                "locator": None,
            }
            for file in files
        ]
        rows["quarantine"] = [
            {
                "kind": "trace",
                "from_document": False,
                "source_file": TRACE_FILE,
                "source_line": len(self.records) + 1,
                "byte_offset": sum(len(each) + 1 for each in self.records),
                "size_bytes": len(held),
                "raw_sha256": sha256_of(held),
                "reason": "INVALID_JSON",
                "detail": "the record is no JSON",
                "sequence": 1,
            }
        ]
        rows["drift"] = [{"source_file": TRACE_FILE, "path": "evaluation.extra", "occurrences": 3}]
        parts = tuple(
            write_part(data, table(name), _arrow(name, given, snapshot.snapshot_id, blob), snapshot)
            for name, given in rows.items()
        )
        records = {(Kind.TRACE, blob): BlobRecords(len(self.records) + 1, 0, (sha256_of(held),))}
        commit = Commit(snapshot.snapshot_id, 1, accounting, records, parts)
        write_commit(data, commit, snapshot)
        derive(data, data.database)


def _arrow(name: str, rows: list[dict[str, Any]], snapshot_id: str, blob: str) -> pa.Table:
    shared = {"snapshot_id": snapshot_id, "blob_sha256": blob, "scope": REPOSITORY}
    names = [column.name for column in table(name).part_columns]
    complete = [{column: row[column] if column in row else shared[column] for column in names} for row in rows]
    return pa.Table.from_pylist(complete, schema=arrow_schema(table(name)))


def _argument(name: str, argument: tuple[str, list[str] | None]) -> dict[str, Any]:
    dtype, shape = argument
    if shape is None:
        return {"name": name, "scalar": {"dtype": dtype}}
    return {"name": name, "tensor": {"dtype": dtype, "shape": shape}}


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=None)


def make(data: DataDirectory, scratch: Path) -> dict[str, str]:
    """Make the data directory and return the digests of its runs and other objects by a short name."""
    house = Warehouse()
    variable = {"role": "variable", "type": "integer"}
    grouped = house.operation(
        GROUPED,
        {
            "g": {"role": "constant", "type": "integer", "value": 4},
            "k": {"role": "constant", "type": "integer", "value": 2048},
            "max_m": variable,
            "n": {"role": "constant", "type": "integer", "value": 2048},
            "k_half": {"role": "derived", "type": "integer", "expression": "k // 2"},
        },
        {"a_fp8": ("fp8_e4m3", ["g", "max_m", "k"]), "b_fp4": ("int8", ["g", "n", "k_half"]), "m": ("int32", None)},
        {"c": ("bf16", ["g", "max_m", "n"])},
    )
    gemm = house.operation(
        GEMM,
        {"m": variable, "n": {"role": "constant", "type": "integer", "value": 128}},
        {"a": ("bf16", ["m", "n"]), "b": ("bf16", ["n", "n"])},
        {"c": ("bf16", ["m", "n"])},
    )
    house.operation(UNMEASURED, {"h": variable}, {"x": ("bf16", ["h"])}, {"y": ("bf16", ["h"])})
    wide = house.workload(
        grouped,
        {"max_m": 512},
        {
            "a_fp8": ("fp8_e4m3", [4, 512, 2048]),
            "a_scale": ("fp32", [4, 512, 16]),
            "b_fp4": ("int8", [4, 2048, 1024]),
            "b_scale": ("fp32", [4, 2048, 64]),
            "masked_m": ("int32", [4]),
        },
    )
    small = house.workload(gemm, {"m": 64}, {"a": ("bf16", [64, 128]), "b": ("bf16", [128, 128])})
    large = house.workload(gemm, {"m": 1024}, {"a": ("bf16", [1024, 128]), "b": ("bf16", [128, 128])})
    deep = house.implementation(grouped, f"deepgemm_{GROUPED}")
    cublas = house.implementation(gemm, "cublas_n128", language="cuda")
    evil = house.implementation(gemm, HOSTILE, author="some-model", language="triton")
    b200, h100 = house.environment("NVIDIA B200"), house.environment("NVIDIA H100 80GB HBM3")
    protocol = house.protocol()
    day = "2026-06-0{}T21:33:43.574Z".format
    digests = {
        "grouped_slow": house.run(wide, deep, b200, protocol, 153_200, day(5), reference_ms=1.337605),
        "grouped_fast": house.run(wide, deep, b200, protocol, 147_300, day(6), reference_ms=1.4346),
        "baseline": house.run(small, cublas, b200, protocol, 20_000, day(1), reference_ms=0.04),
        "winner": house.run(small, evil, b200, protocol, 10_000, day(2), reference_ms=0.04),
        "failed": house.run(small, evil, b200, protocol, None, day(3), status="runtime_error", log=LOG),
        "large": house.run(large, cublas, b200, protocol, 1_539_891, day(4)),
        "hopper": house.run(small, cublas, h100, protocol, 30_000, day(4)),
    }
    house.write(data, scratch)
    return digests | {
        "grouped": grouped,
        "gemm": gemm,
        "evil": evil,
        "wide": wide,
        "b200": b200,
        "protocol": protocol,
        "log": sha256_of(LOG.encode()),
        "blob": "sha256:" + hashlib.sha256((scratch / "all.jsonl").read_bytes()).hexdigest(),
    }
