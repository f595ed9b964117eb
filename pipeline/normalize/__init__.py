"""From upstream documents to canonical manifests: one module a kind, pure functions, no I/O."""
