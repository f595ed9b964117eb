"""kernelhouse: a warehouse of public GPU-kernel benchmark traces.

The rooms, in the direction that data flows, are described in ARCHITECTURE.md.
"""

__version__ = "0.1.0"
