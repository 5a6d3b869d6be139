"""Where rows and W live: in memory, on disk, or on the workers of a Dask cluster."""

from topicsteer.backends.opening import as_rows, on_cluster, on_disk
from topicsteer.backends.weight_folder import mapped

__all__ = ["as_rows", "mapped", "on_cluster", "on_disk"]
