"""Arguments and options that several commands share."""

import codecs
import inspect
import shutil
import sys
import tomllib
import warnings
from collections.abc import Callable
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Context, Option

from topicsteer.report.table_files import check_suffix

Command = Callable[..., None]
# Panels of --help, next to the options of the command itself.
TABLE_PANEL, MACHINE_PANEL = "Reading the table", "Memory and speed"
HELP: dict[str, dict[str, str]] = tomllib.loads(files("topicsteer.cli").joinpath("help.toml").read_text("utf-8"))


# First bytes of tables on standard input, and the suffix that their reader expects; everything else is CSV.
BEGINNINGS = {b"PAR1": ".parquet", b"{": ".jsonl", b"[": ".json", b"PK\x03\x04": ".xlsx"}


def or_standard_input(context: Context, path: Path | None) -> Path | None:
    """The path; for "-", a copy of standard input, which is removed when the command ends.

    Tables are read more than once, to choose the columns first, so a pipe cannot be read as it is.
    """
    if path is None or str(path) != "-":
        return path
    from topicsteer.cli.terminal import call
    from topicsteer.system.files import Scratch

    stream = sys.stdin.buffer
    head = stream.read(1 << 16)
    begins = head.removeprefix(codecs.BOM_UTF8).lstrip()
    suffix = next((suffix for mark, suffix in BEGINNINGS.items() if begins.startswith(mark)), ".csv")
    copy: Path = context.with_resource(Scratch()) / f"stdin{suffix}"
    call(copy, "standard input")
    with copy.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return copy


Source = Annotated[Path, Argument(callback=or_standard_input, help=HELP["shared"]["source"])]
Memory = Annotated[str | None, Option(help=HELP["shared"]["memory"], rich_help_panel=MACHINE_PANEL)]
Work = Annotated[Path | None, Option(help=HELP["shared"]["work"], rich_help_panel=MACHINE_PANEL)]


def path_or_address(value: str) -> str | Path:
    """A path, or an address such as s3://..."""
    return value if "://" in value else Path(value)


# The parser returns a path, or the address unchanged.
Large = Annotated[str, Argument(parser=path_or_address, help=HELP["shared"]["large"])]
Model = Annotated[Path, Argument(help=HELP["shared"]["model"])]
Incomplete = Annotated[bool, Option("--incomplete", help=HELP["shared"]["incomplete"])]


def number_or_auto(value: int | str) -> int | str:
    """A number of free topics, or "auto"."""
    if str(value) != "auto" and not (str(value).isdecimal() and len(str(value)) < 10):
        raise BadParameter(f'{value} is neither a number (0 or more) nor "auto"')
    return value if value == "auto" else int(value)


Free = Annotated[str | None, Option("--free", parser=number_or_auto, help=HELP["shared"]["free"])]
PathSeparator = Annotated[str | None, Option("--path-separator", help=HELP["shared"]["path_separator"])]
World = Annotated[Literal["open", "closed"] | None, Option("--world", help=HELP["shared"]["world"])]
TopicsFile = Annotated[Path | None, Option("--topics", help=HELP["shared"]["topics_file"])]
Embeddings = Annotated[str | None, Option("--embeddings", help=HELP["shared"]["embeddings"])]
Seed = Annotated[int, Option(help=HELP["shared"]["seed"])]
Threads = Annotated[int | None, Option(min=1, help=HELP["shared"]["threads"], rich_help_panel=MACHINE_PANEL)]


def hide_warnings(context: Context, value: bool) -> bool:
    """With --quiet, warnings are not printed until the command ends."""
    if value:
        context.with_resource(warnings.catch_warnings(action="ignore"))
    return value


Quiet = Annotated[bool, Option("--quiet", "-q", callback=hide_warnings, help=HELP["shared"]["quiet"])]
AsJson = Annotated[bool, Option("--json", help=HELP["shared"]["as_json"])]
AsCsv = Annotated[bool, Option("--csv", help=HELP["shared"]["as_csv"])]


def table_file(path: Path | None) -> Path | None:
    """The file for a table; a wrong suffix or folder is refused before the work begins."""
    if path is not None:
        check_suffix(path)
    return path


Out = Annotated[Path | None, Option("--out", "-o", callback=table_file, help=HELP["shared"]["out"])]

# --- reading options ---

# Help texts of the reading options, by field of ReadOptions.
READING = HELP["reading"]
# Type and default of the fields that are not plain strings.
KINDS: dict[str, tuple[Any, Any]] = {"text": (list[str] | None, None), "label_file": (Path | None, None)}
# Fields that only matter for labels.
OF_LABELS = ("labels", "label_file", "forbidden", "separator")


def reads(command: Command, *, labels: bool = True) -> Command:
    """Add the reading options to a command, which receives them as one argument ``reading``, a ReadOptions.

    The options replace ``reading`` in the command's parameters. With ``labels=False`` there are no label options, and
    no column is read as labels. Annotations of the other parameters must be types, not strings.
    """
    fields = [name for name in READING if labels or name not in OF_LABELS]

    @wraps(command)
    def run(**given: Any) -> None:
        from topicsteer.corpora import ReadOptions

        chosen = {name: given.pop(f"reading_{name}") for name in fields} | ({} if labels else {"labels": False})
        command(**given, reading=ReadOptions(**chosen))

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
    """The command parameter for a field of ReadOptions."""
    kind, default = KINDS.get(name, (str | None, None))
    option = Option(f"--{name.replace('_', '-')}", help=READING[name], rich_help_panel=TABLE_PANEL)
    hint: object = Annotated[kind, option]
    return inspect.Parameter(f"reading_{name}", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def reads_texts(command: Command) -> Command:
    """Add the reading options to a command, without the label options."""
    return reads(command, labels=False)
