"""Where rows and weights live: in memory, on disk, on a Dask cluster."""
