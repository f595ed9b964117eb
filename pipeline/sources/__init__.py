"""Where traces come from: pinned listings of files, and their bytes."""

from pipeline.sources.listing import Blobs, Failure, Kind, ListedFile, Listing, Progress, Pull, Source

__all__ = ["Blobs", "Failure", "Kind", "ListedFile", "Listing", "Progress", "Pull", "Source"]
