"""The arguments and options that commands share, each described once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

Command = Callable[..., None]


class Bad(StrEnum):
    """What to do with rows that cannot be read."""

    skip = "skip"
    raise_ = "raise"


Source = Annotated[Path, Argument(help="CSV, TSV, JSONL or Parquet file (also .gz), or a folder of .txt files.")]


def path_or_address(value: str) -> str | Path:
    """A path, unless it is the address of something elsewhere."""
    return value if "://" in value else Path(value)


Large = Annotated[
    str,  # what the parser makes of it: a path, or an address as it was given
    Argument(
        parser=path_or_address,
        help="CSV, TSV, JSONL or Parquet file (also .gz, also an address such as s3://...), or a folder of .txt files.",
    ),
]
Model = Annotated[Path, Argument(help="Folder of a saved model.")]
Incomplete = Annotated[bool, Option("--incomplete", help="Labelled documents may have other topics too.")]


def number_or_auto(value: int | str) -> int | str:
    """A number of free topics, or "auto"."""
    if str(value) != "auto" and not str(value).isdigit():
        raise BadParameter(f'{value} is neither a number from 0 up nor "auto"')
    return value if value == "auto" else int(value)


Free = Annotated[
    str, Option("--free", parser=number_or_auto, help='Number of free topics, for what nobody named, or "auto".')
]
Seed = Annotated[int, Option(help="Seed of everything random.")]
Threads = Annotated[int | None, Option(min=1, help="Default: all cores. The result is the same.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress and no messages, but errors.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
AsCsv = Annotated[bool, Option("--csv", help="Print CSV.")]
Out = Annotated[Path | None, Option("--out", "-o", help="File: .csv, .jsonl or .parquet. Default: print.")]

# --- how a source is read ---

# The fields of ReadOptions as options, each with its help.
READING = {
    "text": "Column of the texts. Default: guessed.",
    "labels": "Column of the labels; of a folder: folders. Default: guessed.",
    "id": "Column of the ids. Default: guessed, or row numbers.",
    "label_file": "Second file with the labels: a table, doccano, Label Studio or Prodigy.",
    "forbidden": "Column of topics that a document does not have.",
    "separator": 'Between labels in a cell, "json" for lists. Default: guessed.',
    "encoding": "Of the file, such as latin-1. Default: found.",
    "delimiter": "Between the fields of a .csv file. Default: guessed.",
    "on_error": "Bad rows: leave them out, or stop.",
}
KINDS = {"label_file": (Path | None, None), "on_error": (Bad, Bad.skip)}  # and defaults of fields that are no text
OF_LABELS = ("labels", "label_file", "forbidden", "separator")


def reads(command: Command, *, labels: bool = True) -> Command:
    """Let a command take the options of reading; they reach it as one ``reading``, a ReadOptions.

    They stand where ``reading`` stands among the command's parameters. Without labels, those of labels are left out
    and no column is taken for labels. Annotations of the other parameters must be types, not strings.
    """
    fields = [name for name in READING if labels or name not in OF_LABELS]

    @wraps(command)
    def run(**given: Any) -> None:
        from topicsteer.corpora import ReadOptions

        chosen = {name: given.pop(f"reading_{name}") for name in fields} | ({} if labels else {"labels": False})
        command(**given, reading=ReadOptions(**chosen | {"on_error": chosen["on_error"].value}))

    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "reading":
            parameters += [_option(name) for name in fields]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _option(name: str) -> inspect.Parameter:
    """A field of ReadOptions as the parameter of a command."""
    kind, default = KINDS.get(name, (str | None, None))
    hint: object = Annotated[kind, Option(f"--{name.replace('_', '-')}", help=READING[name])]
    return inspect.Parameter(f"reading_{name}", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def reads_texts(command: Command) -> Command:
    """Let a command take the options of reading texts, without those of labels."""
    return reads(command, labels=False)
