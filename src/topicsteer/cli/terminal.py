"""What a person sees and gives in the terminal: progress, messages, tables, files that are read and written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich import markup
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from topicsteer.analysis.columns import Column, typed
from topicsteer.system.safe_text import visible

if TYPE_CHECKING:
    import polars as pl

    from topicsteer import TopicModel
    from topicsteer.analysis.evaluate import Evaluation
    from topicsteer.corpora import Documents, ReadOptions, ReadReport
    from topicsteer.system import types

console = Console(stderr=True)
LONGEST = 100_000  # characters of a text
WEAKEST = 20  # topics of an evaluation that are shown where there are more


@contextmanager
def working(quiet: bool = False) -> Iterator[types.Progress]:
    """A progress bar with a line a stage, on standard error if that is a terminal."""
    if quiet or not console.is_terminal:
        yield lambda *_: None
        return
    name, count = TextColumn("{task.description:<10}"), TextColumn("{task.completed:,} {task.fields[detail]}")
    columns = (SpinnerColumn(), name, BarColumn(), count, TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {"reading": bars.add_task("reading", total=None, detail="")}

        def progress(stage: str, done: int, total: int | None, detail: str) -> None:
            if "reading" in tasks:
                bars.remove_task(tasks.pop("reading"))
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, detail="")
            bars.update(tasks[stage], completed=done, total=total, detail=detail)

        yield progress


def say(message: str, quiet: bool = False) -> None:
    """A word to the person, on standard error."""
    if not quiet:
        console.print(message, highlight=False, soft_wrap=True)


def show(
    table: Mapping[str, Sequence[object]] | pl.DataFrame,
    title: str = "",
    quiet: bool = False,
    columns: Iterable[Column] = (),
) -> None:
    """Print a table on standard output; declared columns have their own format."""
    if quiet:
        return
    values = table if isinstance(table, Mapping) else table.to_dict(as_series=False)
    shown = typed(values, columns)
    view = Table(title=escape(title), title_justify="left")
    for column in shown:
        view.add_column(escape(column.name), justify="right" if column.numeric else "left", overflow="fold")
    for row in zip(*values.values(), strict=True):
        cells = (column.format(value, LONGEST) for column, value in zip(shown, row, strict=True))
        view.add_row(*map(markup.escape, cells))
    Console().print(view)


def show_topics(model: TopicModel, title: str = "", *, terms: int = 6, quiet: bool = False) -> None:
    """Print the topics of a model; the default title is its summary."""
    from topicsteer.analysis.topics import COLUMNS

    show(model.result_.table(terms), title or repr(model)[1:-1], quiet, COLUMNS)


def show_evaluation(result: Evaluation, quiet: bool = False) -> None:
    """The tables of an evaluation, from single topics to all, and what they say; only that if they were empty."""
    if not result.judged:
        say(escape(result.verdict), quiet)
        return
    topics, some = result.table(), ""
    many = len(topics["topic"])
    if many > WEAKEST:
        order = sorted(range(many), key=lambda k: topics["F1"][k])[:WEAKEST]
        topics = {name: [values[k] for k in order] for name, values in topics.items()}
        some = f"\nThe {WEAKEST} weakest of {many}; all with --json or --out"
    decided = {name: topics[name] for name in ("topic", "precision", "recall", "F1")}
    ranked = {name: values for name, values in topics.items() if name == "topic" or name not in decided}
    show(ranked, f"Average precision of each topic, on documents whose labels were hidden{some}", quiet)
    show(decided, f"Yes or no of topicsteer{some}", quiet)
    confusion = result.confusion(5)
    if confusion["topic"]:
        show(confusion, "Most frequent confusions", quiet)
    show(result.calibration(), "Calibration error", quiet)
    if result.curve is not None:
        curve = result.learning_curve()
        curve["labelled"] = [round(number) for number in curve["labelled"]]
        show(curve, "Macro average precision with fewer labels", quiet)
    show(result.summary(), "All topics", quiet)
    say("\n".join(escape(text) for text in (result.verdict, result.advice) if text), quiet)


def escape(text: str) -> str:
    """Text as text: no markup, no control characters."""
    return markup.escape(visible(text, limit=LONGEST))


def amount(size: int | None) -> str:
    """A number of bytes that a person reads."""
    size = size or 0
    unit, name = next((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (0, "B")) if size >= unit)
    return f"{size / unit:.1f} {name}" if unit else f"{size} {name}"


# --- files ---


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
