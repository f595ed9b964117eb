"""The benchmark of kernelhouse: synthetic trace sets, and what an ingest of them costs. Run it with ``make bench``."""
