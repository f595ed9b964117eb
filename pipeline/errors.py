"""Every error that kernelhouse raises on purpose: one tree, one sentence each.

A message says what is wrong, where (file and line where there is one) and what to do.
The command line prints it after ``kernelhouse:`` and ends with :attr:`KernelhouseError.exit_code`.
"""


class KernelhouseError(Exception):
    """The root: anything that a user or an input can cause."""

    exit_code = 2


class UsageError(KernelhouseError):
    """The request cannot be meant as it stands: an unknown name, an ambiguous prefix, a bad option."""


class SourceError(KernelhouseError):
    """A source of traces cannot be read at all: nothing in the upstream layout, a Hub that does not answer."""


class ManifestError(KernelhouseError):
    """A canonical document breaks its contract: unknown field, duplicate key, bad number."""


class DataDirectoryError(KernelhouseError):
    """The data directory cannot be used: no warehouse yet, a newer format, a damaged part."""


class CorrectionError(KernelhouseError):
    """The reviewed corrections cannot be applied: a malformed entry, an unknown run. Nothing was changed."""


class CheckFailure(KernelhouseError):
    """A check ran and found something wrong: exit status 1."""

    exit_code = 1
