"""The definitions and solutions of one trace set, by name: the latest document of a name counts."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pipeline.ingest.state import State
from pipeline.normalize.workload import Operation
from pipeline.sources.listing import Kind
from pipeline.store.snapshots import Snapshot


class Catalog:
    """Documents by name, as the snapshots of a trace set brought them."""

    def __init__(self, load: Callable[[str], Operation]) -> None:
        """Start empty; ``load`` reads the operation of a definition blob."""
        self._load = load
        self._definitions: dict[str, str] = {}
        self._solutions: dict[str, tuple[str, int]] = {}
        self._operations: dict[str, Operation] = {}
        self._certain: dict[Kind, Collection[str]] = {}
        self.ever: set[str] = set()
        """Implementations that any name of this trace set was ever bound to."""

    def apply(self, snapshot: Snapshot, state: State) -> None:
        """Take over the documents of a snapshot whose files are known; the first file of a name counts."""
        seen: set[tuple[Kind, str]] = set()
        for file in snapshot.pull.files:
            if file.sha256 is None or not file.fetched:
                continue
            if file.kind is Kind.DEFINITION and (name := state.definitions.get(file.sha256)) is not None:
                if (file.kind, name) not in seen:
                    seen.add((file.kind, name))
                    self._definitions[name] = file.sha256
            elif file.kind is Kind.SOLUTION and (known := state.solutions.get(file.sha256)) is not None:
                name, digest = known
                if (file.kind, name) not in seen:
                    seen.add((file.kind, name))
                    self.bind_solution(name, digest, snapshot.sequence)

    def bind_definition(self, name: str, blob_sha256: str, operation: Operation | None = None) -> bool:
        """Let a name mean a definition; tell whether that changes anything."""
        changed = self._definitions.get(name) != blob_sha256
        self._definitions[name] = blob_sha256
        if operation is not None:
            self._operations[blob_sha256] = operation
        return changed

    def bind_solution(self, name: str, implementation_digest: str, sequence: int) -> bool:
        """Let a name mean an implementation, unless a later pull gave it another; tell whether anything changes."""
        self.ever.add(implementation_digest)
        bound, since = self._solutions.get(name, (None, 0))
        if sequence < since:
            return False
        self._solutions[name] = (implementation_digest, sequence)
        return bound != implementation_digest

    def trust_only(self, kind: Kind, names: Collection[str]) -> None:
        """Know no other names of a kind for now: what they mean may have changed in a file that is missing."""
        self._certain[kind] = names

    def _is_certain(self, kind: Kind, name: str) -> bool:
        return kind not in self._certain or name in self._certain[kind]

    def definition(self, name: str) -> str | None:
        """Return the blob of a definition, by its upstream name."""
        return self._definitions.get(name)

    def operation(self, name: str) -> Operation | None:
        """Return the operation of a definition, by its upstream name."""
        blob = self._definitions.get(name)
        if blob is None or not self._is_certain(Kind.DEFINITION, name):
            return None
        if blob not in self._operations:
            self._operations[blob] = self._load(blob)
        return self._operations[blob]

    def implementation(self, name: str) -> str | None:
        """Return the digest of a solution's implementation, by its upstream name."""
        bound = self._solutions.get(name)
        return bound[0] if bound and self._is_certain(Kind.SOLUTION, name) else None
