"""Execution: how steps run: one writer at a time, and failures that say what the command line says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from pipeline.defs.resources import DataResource
from pipeline.errors import KernelhouseError, SourceError
from pipeline.ingest.pull import explained

WRITER = "writer"
"""Pool of every step that writes to the data directory. Its limit of 1 is set in ``deploy/*/dagster.yaml``, since
Dagster keeps limits with the instance."""

GPU = "gpu"
"""Pool of the steps that measure on the GPU: two at once would measure each other."""

FAILURE_TAG = "kernelhouse/failure"
"""Tag of a failed run: the sentence, so that it stands in the list of runs."""


@contextmanager
def failures(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, data: DataResource) -> Iterator[None]:
    """Turn errors raised on purpose into failures; only a source may do better the next time, so only it is retried."""
    try:
        with explained(data.directory):
            yield
    except KernelhouseError as error:
        sentence = " ".join(str(error).split())
        context.instance.add_run_tags(context.run.run_id, {FAILURE_TAG: sentence})
        raise dg.Failure(description=sentence, allow_retries=isinstance(error, SourceError)) from error
