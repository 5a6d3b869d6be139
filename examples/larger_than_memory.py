"""Fit a file larger than memory in blocks on disk.

`memory=` limits the memory of the fit. Here it is far too small on purpose, and the topics are the same as in memory.
"""

import tempfile
from pathlib import Path

import polars as pl

from topicsteer import TopicModel
from topicsteer.corpora import load_docstrings

corpus = load_docstrings()
corpus = corpus.select(range(0, len(corpus), 8)).hide_labels(0.5, seed=0)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "docstrings.parquet"
    labels = ["; ".join(names) for names in corpus.labels]
    pl.DataFrame({"id": corpus.ids, "text": corpus.texts, "topics": labels}).write_parquet(path)

    on_disk = TopicModel(free_topics=2).fit(path, memory="1MB")
    in_memory = TopicModel(free_topics=2).fit(path)
    print(on_disk)
    print("The matrix:", on_disk.matrix_.shape, "in", len(on_disk.matrix_), "blocks on disk")
    same = (on_disk.memberships()["email"] - in_memory.memberships()["email"]).abs().max()
    print(f"Largest difference of a membership to the fit in memory: {same:.4f}")

    on_disk.to_parquet(Path(folder) / "tables")  # block by block
    emails = pl.scan_parquet(Path(folder) / "tables/memberships/*.parquet").filter(pl.col("email") > 0.5)
    print("Documents about email:", emails.select(pl.len()).collect().item())
