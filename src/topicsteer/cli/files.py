"""What commands read and write: tables of documents, models, tables of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from topicsteer.cli.terminal import escape, say, show
from topicsteer.system.safe_text import visible

if TYPE_CHECKING:
    import polars as pl

    from topicsteer import TopicModel
    from topicsteer.corpora import Documents, ReadOptions, ReadReport


def read(source: str | Path, reading: ReadOptions, *, quiet: bool = False) -> Documents:
    """Read a table or folder, and say what was guessed and what was left out."""
    from topicsteer.corpora import read_documents

    documents = read_documents(source, reading)
    say_report(documents.report, quiet)
    return documents


def say_report(report: ReadReport, quiet: bool) -> None:
    """Say what was guessed and what was left out, if there is anything."""
    say(f"[dim]{escape(str(report))}[/dim]", quiet or not str(report))


def load(path: Path) -> TopicModel:
    """A saved model."""
    from topicsteer import TopicModel

    return TopicModel.load(path)


def write(table: pl.DataFrame, out: Path | None, quiet: bool = False, *, readable: bool = False) -> None:
    """A table to a file, or to standard output as CSV; one that people read is drawn if they are at a terminal."""
    from topicsteer.report import tables as sheets

    if out is not None:
        sheets.write_table(table, out)
        say(f"{len(table):,} rows are in {out}.", quiet)
    elif readable and sys.stdout.isatty():
        columns = table.to_dict(as_series=False)
        if "text" in columns:  # a line or two of it, the file has more
            columns["text"] = [visible(text, 60) for text in columns["text"]]
        show(columns)
    else:
        print(sheets.csv(table), end="")
