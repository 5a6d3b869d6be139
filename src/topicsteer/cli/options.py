"""The arguments and options that commands share, each described once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Bad(StrEnum):
    """What to do with rows that cannot be read."""

    skip = "skip"
    raise_ = "raise"


Source = Annotated[
    Path,
    typer.Argument(help="CSV, TSV, JSONL or Parquet file (also .gz), or a folder of .txt files."),
]


def path_or_address(value: str) -> str | Path:
    """A path, unless it is the address of something elsewhere."""
    return value if "://" in value else Path(value)


Large = Annotated[
    str,  # what the parser makes of it: a path, or an address as it was given
    typer.Argument(
        parser=path_or_address,
        help="CSV, TSV, JSONL or Parquet file (also .gz, also an address such as s3://...), or a folder of .txt files.",
    ),
]
Model = Annotated[Path, typer.Argument(help="Folder of a saved model.")]
TextColumnOption = Annotated[str | None, typer.Option("--text", help="Column of the texts. Default: guessed.")]
LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="Column of the labels; of a folder: folders. Default: guessed.")
]
IdOption = Annotated[str | None, typer.Option("--id", help="Column of the ids. Default: guessed, or row numbers.")]
LabelFile = Annotated[
    Path | None, typer.Option(help="Second file with the labels: a table, doccano, Label Studio or Prodigy.")
]
Forbidden = Annotated[str | None, typer.Option(help="Column of topics that a document does not have.")]
Separator = Annotated[str | None, typer.Option(help='Between labels in a cell, "json" for lists. Default: guessed.')]
Incomplete = Annotated[bool, typer.Option("--incomplete", help="Labelled documents may have other topics too.")]
OnError = Annotated[Bad, typer.Option(help="Bad rows: leave them out, or stop.")]


def number_or_auto(value: int | str) -> int | str:
    """A number of free topics, or "auto"."""
    if str(value) != "auto" and not str(value).isdigit():
        raise typer.BadParameter(f'{value} is neither a number from 0 up nor "auto"')
    return value if value == "auto" else int(value)


Free = Annotated[
    str, typer.Option("--free", parser=number_or_auto, help='Number of free topics, for what nobody named, or "auto".')
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Default: all cores. The result is the same.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages, but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
TOPIC_FILE = "File for the table of topics: .csv, .jsonl or .parquet."
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File: .csv, .jsonl or .parquet. Default: print.")]
