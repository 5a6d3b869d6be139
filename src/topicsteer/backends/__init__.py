"""Where rows and W live: in memory, on disk, or on the workers of a Dask cluster."""

from topicsteer.backends.opening import as_rows, in_one_file, on_cluster, on_disk

__all__ = ["as_rows", "in_one_file", "on_cluster", "on_disk"]
