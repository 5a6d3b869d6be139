"""The command for shares of topics."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from topicsteer.cli import readable
from topicsteer.cli.findings import CoderFiles, read_coders
from topicsteer.cli.large import work_folder
from topicsteer.cli.options import HELP, MACHINE_PANEL, Model, Out, Quiet, reads_texts
from topicsteer.cli.terminal import amount, escape, load, notify, notify_report, read, working, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from topicsteer import TopicModel
    from topicsteer.corpora import ReadOptions
    from topicsteer.system.types import Progress

TEXTS = HELP["prevalence"]


class Tables(StrEnum):
    """Tables of shares."""

    shares = "shares"
    differences = "differences"
    trend = "trend"


@reads_texts
def prevalence(
    model: Model,
    source: Annotated[Path | None, Argument(help=TEXTS["source"])] = None,
    *,
    reading: "ReadOptions",
    by: Annotated[list[str] | None, Option("--by", help=TEXTS["by"])] = None,
    weight: Annotated[str | None, Option(help=TEXTS["weight"])] = None,
    cluster: Annotated[str | None, Option(help=TEXTS["cluster"])] = None,
    coder: CoderFiles = None,
    table: Annotated[Tables, Option(help=TEXTS["table"])] = Tables.shares,
    precision: Annotated[float | None, Option(help=TEXTS["precision"])] = None,
    no_missing: Annotated[bool, Option("--no-missing", help=TEXTS["no_missing"])] = False,
    memory: Annotated[str | None, Option(help=TEXTS["memory"], rich_help_panel=MACHINE_PANEL)] = None,
    work: Annotated[Path | None, Option(help=TEXTS["work"], rich_help_panel=MACHINE_PANEL)] = None,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Estimate how frequent each topic is, in all documents and in groups, with intervals from the labels."""
    import polars as pl

    from topicsteer.analysis.prevalence import COLUMNS, WARNING

    if precision is not None and not 0 < precision < 100:
        raise BadParameter("--precision takes percentage points, such as 2")
    if table is not Tables.shares and not by:
        raise BadParameter(f"--table {table} compares groups: add --by with a column")
    fitted = load(model)
    with work_folder(model, work) as use, working(quiet) as progress:
        if source is not None:
            attach(fitted, source, reading, use, memory, progress, quiet)
        found = fitted.prevalence(
            by or None,
            weight=weight,
            cluster=cluster,
            coders=read_coders(fitted, coder or [], reading, quiet),
            missing=not no_missing,
            progress=progress,
        )
        shown = {Tables.shares: found.table, Tables.differences: found.differences, Tables.trend: found.trend}[table]()
    write(pl.DataFrame(shown, infer_schema_length=None), out, quiet, readable=readable.shares, formats=COLUMNS)
    for sentence in found.sentences:
        colour = "yellow" if sentence.startswith(WARNING) else "default"
        notify(f"[{colour}]{escape(sentence)}[/{colour}]", quiet)
    if precision is not None:
        notify(escape(found.advice(precision / 100)), quiet)


def attach(
    fitted: "TopicModel",
    source: Path,
    reading: "ReadOptions",
    use: "Callable[[], Path]",
    memory: str | None,
    progress: "Progress",
    quiet: bool,
) -> None:
    """Attach the training documents: in memory, or in blocks on disk if memory is too small."""
    from topicsteer.model.spool import memory_needed, put_on_disk
    from topicsteer.system.memory import available_memory, in_bytes

    need, limit = memory_needed(source), available_memory() if memory is None else in_bytes(memory)
    if limit is None or need <= limit or source.is_dir():
        fitted.attach(read(source, reading, fitted, quiet=quiet))
        return
    notify(f"The documents need about {amount(need)} of memory: working in blocks on disk.", quiet)
    reading = reading.after(fitted.state_.reading)
    spooled = put_on_disk(source, use() / "corpus", reading, fitted.new_vectorizer(), memory=limit, progress=progress)
    notify_report(spooled.documents.report, quiet)
    fitted.attach(spooled)
