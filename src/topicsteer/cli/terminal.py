"""Terminal output: progress, messages, tables; reading and writing of files."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich import markup
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from topicsteer.analysis.columns import Column, typed
from topicsteer.cli.readable import Values, first, one_line_each
from topicsteer.system.safe_text import visible

if TYPE_CHECKING:
    import polars as pl

    from topicsteer import TopicModel
    from topicsteer.analysis.evaluate import Evaluation
    from topicsteer.corpora import Documents, ReadOptions, ReadReport
    from topicsteer.model.encoders import NamedEmbeddings
    from topicsteer.model.quick import QuickModel
    from topicsteer.model.spool import Spool
    from topicsteer.system import types

console = Console(stderr=True)
LONGEST = 100_000  # characters of a text
# Seconds until the first sign of life where standard error is no terminal.
SILENCE = 10.0
# Whether messages are lines of JSON.
_log = {"json": False}
# Temporary files, and what messages call them.
_aliases: dict[str, str] = {}
# Topics in the printed table of an evaluation, if there are more.
WEAKEST = 20
# Results of an evaluation that a terminal does not show.
MORE = (
    "More: topicsteer evaluate --json has baselines per topic, confusions, calibration and the learning curve; fit "
    "--report FILE --evaluate draws them."
)


@contextmanager
def working(quiet: bool = False) -> Iterator[types.Progress]:
    """Show progress on standard error: one line per stage in a terminal, elsewhere a sign of life now and then."""
    if quiet:
        yield lambda *_: None
        return
    if _log["json"] or not console.is_terminal:
        with signs_of_life() as progress:
            yield progress
        return
    name, count = TextColumn("{task.description:<10}"), TextColumn("{task.completed:,} {task.fields[detail]}")
    columns = (SpinnerColumn(), name, BarColumn(), count, TimeElapsedColumn(), TimeRemainingColumn())
    # Results in a file or a pipe are no part of the display.
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bars:
        tasks = {"reading": bars.add_task("reading", total=None, detail="")}

        def progress(stage: str, done: int, total: int | None, detail: str) -> None:
            if "reading" in tasks:
                bars.remove_task(tasks.pop("reading"))
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, detail="")
            bars.update(tasks[stage], completed=done, total=total, detail=detail)

        yield progress


@contextmanager
def signs_of_life() -> Iterator[types.Progress]:
    """Print the present stage after some seconds, and again at growing intervals, so that a log stays short."""
    began, ended = time.monotonic(), threading.Event()
    now: list[tuple[str, int, int | None, str]] = [("reading", 0, None, "")]

    def progress(stage: str, done: int, total: int | None, detail: str) -> None:
        now[0] = stage, done, total, detail

    def speak() -> None:
        pause = SILENCE
        while not ended.wait(pause):
            stage, done, total, detail = now[0]
            amount = f" {done:,} of {total:,}" if total else f" {done:,}" if done else ""
            where = escape(f"{stage}{amount}{f', {detail}' if detail else ''}")
            seconds = time.monotonic() - began
            notify(
                f"[dim]working for {seconds:,.0f} s: {where}[/dim]",
                level="progress",
                stage=stage,
                done=done,
                total=total,
                seconds=round(seconds, 1),
            )
            pause *= 1.5

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        ended.set()
        thread.join()


def notify(message: str, quiet: bool = False, *, level: str = "info", **fields: object) -> None:
    """Print a message on standard error; a log of JSON lines has its level and further fields too."""
    if quiet:
        return
    for path, name in _aliases.items():
        message = message.replace(path, name)
    if not _log["json"]:
        console.print(message, highlight=False, soft_wrap=not console.is_terminal)  # a terminal breaks words
        return
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    plain = markup.render(message).plain.strip().removeprefix(f"{level}: ")
    line = {"time": now, "level": level, "message": plain} | fields
    print(json.dumps(line, ensure_ascii=False), file=sys.stderr, flush=True)


def call(path: Path, name: str) -> None:
    """Let messages call a file by a name instead of its path."""
    _aliases[str(path)] = name


@contextmanager
def logging_json(wanted: bool = True) -> Iterator[None]:
    """Write every message as one JSON object per line, for programs that collect logs."""
    before, _log["json"] = _log["json"], wanted
    try:
        yield
    finally:
        _log["json"] = before


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
    view = Table()
    for column in shown:
        side: Literal["left", "right"] = "right" if column.numeric else "left"
        view.add_column(escape(column.name), justify=side, overflow="fold", no_wrap=column.numeric)
    for row in zip(*values.values(), strict=True):
        cells = (column.format(value, LONGEST) for column, value in zip(shown, row, strict=True))
        view.add_row(*map(markup.escape, cells))
    console = Console()
    if title:  # rich would fold it to the width of the table
        console.print(escape(title), style="table.title", highlight=False)
    console.print(view)


def show_topics(
    table: Mapping[str, Sequence[object]], title: str, *, belief: str = "", short: bool = True, quiet: bool = False
) -> None:
    """Print a table of topics, and the belief about documents that have none of them; a tree is indented.

    ``short``: one line per topic, with as many terms as fit.
    """
    from topicsteer.analysis.topics import COLUMNS

    values = as_tree(table) if "parent" in table else first(table, None)
    show(one_line_each(values, COLUMNS, Console().width) if short else values, title, quiet, COLUMNS)
    notify(escape(belief), quiet or not belief)


def as_tree(table: Mapping[str, Sequence[object]]) -> dict[str, list[object]]:
    """A table of topics with children below their parents, and indented names in place of the level and the parent.

    Examples
    --------
    >>> as_tree({"topic": ["chess", "sport", "arts"], "level": [2, 1, 1], "parent": ["sport", "", ""]})
    {'topic': ['sport', '└ chess', 'arts']}
    """
    below: dict[object, list[int]] = {}
    for row, parent in enumerate(table["parent"]):
        below.setdefault(parent, []).append(row)
    order, left = [], list(reversed(below.get("", [])))
    while left:
        order.append(left.pop())
        left += reversed(below.get(table["topic"][order[-1]], []))
    found = {name: [values[row] for row in order] for name, values in table.items() if name not in ("level", "parent")}
    levels = [int(str(table["level"][row])) for row in order]
    found["topic"] = [
        "  " * (level - 2) + "└ " * (level > 1) + str(name) for level, name in zip(levels, found["topic"], strict=True)
    ]
    return found


def show_seconds(seconds: Mapping[str, float]) -> None:
    """Print the seconds of each stage of a fit, and their sum."""
    for name, value in (*seconds.items(), ("all", sum(seconds.values()))):
        notify(f"{value:8.2f} s  {escape(name)}")


def show_evaluation(result: Evaluation, quiet: bool = False) -> None:
    """Print the scores of single topics and of all topics, and the verdict; --json and the report have more."""
    from topicsteer.analysis.evaluate import OURS

    if not result.judged:
        notify(escape(result.verdict), quiet)
        return
    every, some = result.table(), ""
    named = {OURS: "average precision"}
    names = ("topic", "level", "labelled", OURS, "precision", "recall", "F1")
    topics = {named.get(name, name): every[name] for name in names if name in every}
    many = len(topics["topic"])
    if many > WEAKEST:
        order = sorted(range(many), key=lambda k: topics["F1"][k])[:WEAKEST]
        topics = {name: [values[k] for k in order] for name, values in topics.items()}
        some = f"\nThe {WEAKEST} weakest of {many} topics; --json or --out gives all"
    show(topics, f"Topics, on hidden labels{some}", quiet)
    summary = result.summary()
    short = [row for row, measure in enumerate(summary["measure"]) if measure.endswith(("average precision", "F1"))]
    show({name: [values[row] for row in short] for name, values in summary.items()}, "All topics", quiet)
    notify("\n".join(escape(text) for text in (result.verdict, result.advice, MORE) if text), quiet)


def escape(text: str) -> str:
    """Escape markup and control characters."""
    return markup.escape(visible(text, limit=LONGEST))


def amount(size: int | None) -> str:
    """A number of bytes in a readable unit."""
    size = size or 0
    unit, name = next((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (0, "B")) if size >= unit)
    return f"{size / unit:.1f} {name}" if unit else f"{size} {name}"


# --- files ---


def read(
    source: str | Path,
    reading: ReadOptions,
    model: TopicModel | QuickModel | None = None,
    *,
    quiet: bool = False,
    keep_all: bool = False,
) -> Documents:
    """Read a table or folder, with the columns of a model, and print the guesses and the skipped rows."""
    from topicsteer.corpora import read_documents

    reading = reading if model is None else reading.after(model.state_.reading)
    documents = read_documents(source, reading, keep_all=keep_all)
    notify_report(documents.report, quiet)
    return documents


def notify_report(report: ReadReport, quiet: bool) -> None:
    """Print the guesses and the skipped rows of a report, if there are any."""
    notify(f"[dim]{escape(str(report))}[/dim]", quiet or not str(report))


def load(path: Path) -> TopicModel:
    """Load a saved model."""
    from topicsteer import TopicModel

    model = TopicModel.load(path)
    model.frames_ = "polars"  # commands do not load pandas
    return model


def named_embeddings(
    name: str | None, fitted: TopicModel | None = None, documents: Documents | Spool | None = None
) -> NamedEmbeddings | None:
    """The embeddings of --embeddings, or of the column that a model remembers; refused for a model without any."""
    from topicsteer.model.encoders import embeddings_named, remembered_column

    if name is None:
        columns = getattr(documents, "columns", {})
        return None if fitted is None else remembered_column(fitted.state_.encoder, columns)
    if fitted is not None and not fitted.state_.encoder and not fitted.uses_embeddings:
        raise ValueError("this model was fitted without embeddings: leave out --embeddings, or fit it again with them.")
    return embeddings_named(name)


def needed_embeddings(fitted: TopicModel, documents: Documents | Spool) -> NamedEmbeddings | None:
    """The embeddings that a fitted model remembers, for an evaluation; an error if it needs others."""
    from topicsteer.model.encoders import missing_embeddings, remembered

    found = named_embeddings(None, fitted, documents) or remembered(fitted.state_.encoder)
    if found is None and fitted.uses_embeddings:
        raise ValueError(missing_embeddings(fitted.state_.encoder))
    return found


def load_quickly(path: Path) -> QuickModel:
    """Load a saved model for its topics, or for a few texts."""
    from topicsteer.model.quick import QuickModel

    return QuickModel.load(path)


def write(
    table: pl.DataFrame,
    out: Path | None,
    quiet: bool = False,
    *,
    readable: Callable[[Values], Values] | None = None,
    rows: int | None = None,
    formats: Iterable[Column] = (),
) -> None:
    """Write a table to a file, or to standard output: as CSV, or drawn in a terminal, with the columns of ``readable``.

    A terminal shows at most ``rows`` rows.
    """
    from topicsteer.report import tables as sheets

    if out is not None:
        sheets.write_table(table, out, formats)
        notify(f"{len(table):,} rows are in {escape(str(out))}.", quiet)
    elif readable is not None and sys.stdout.isatty():
        values = first(readable(table.to_dict(as_series=False)), rows)
        if "text" in values:  # one or two lines; the file has more
            values["text"] = [visible(text, 60) for text in values["text"]]
        show(values, columns=formats)
        if rows is not None and len(table) > rows:
            notify(f"{rows} of {len(table):,} rows. --out FILE writes all of them.", quiet)
    else:
        print(sheets.csv(table), end="")
