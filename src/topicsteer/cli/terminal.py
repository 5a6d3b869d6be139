"""Output of commands: progress, messages, and tables in a terminal or a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import markup
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from topicsteer.analysis.column_formats import MISSING, Column, missing, typed
from topicsteer.system.templates import visible
from topicsteer.system.values import ALL

if TYPE_CHECKING:
    import polars as pl

    from topicsteer.analysis.evaluation import Evaluation
    from topicsteer.system import types


Values = dict[str, list[Any]]
# Heading of an interval.
INTERVAL = "95 % interval"
# Rows of a long list.
LONGEST_LIST = 20


def shares(table: Values) -> Values:
    """Shares, differences or a trend: the interval in one column, and each topic named once.

    Groups of a topic without a share are left out. Differences and changes are in
    percentage points.

    Examples
    --------
    >>> table = {"topic": ["tea", "tea"], "group": ["(all)", "north"], "share": [0.2, 0.3], "low": [0.1, 0.2]}
    >>> shares(table | {"high": [0.3, 0.4]})["95 % interval"]
    ['10.0% to 30.0%', '20.0% to 40.0%']
    >>> shares({"topic": ["tea"], "per": ["month"], "change": [0.02], "low": [-0.01], "high": [0.05]})
    {'topic': ['tea'], 'per': ['month'], 'change in points': ['+2.0'], '95 % interval': ['-1.0 to +5.0']}
    """
    groups = table.get("group", [ALL] * len(table["low"]))
    known = {topic for topic, low in zip(table["topic"], table["low"], strict=True) if not missing(low)}
    kept = [row for row, group in enumerate(groups) if group == ALL or table["topic"][row] in known]
    table = {name: [values[row] for row in kept] for name, values in table.items()}
    found: Values = {}
    for name, values in table.items():
        if name == "low":
            cells = zip(values, table["high"], strict=True)
            in_points = "share" not in table
            found[INTERVAL] = [
                spread(100 * low, 100 * high, "+.1f") if in_points else spread(low, high, ".1%") for low, high in cells
            ]
        elif name in ("difference", "change"):
            found[f"{name} in points"] = [f"{100 * value:+.1f}" for value in values]
        elif name == "topic":
            found[name] = [once if row == 0 or once != values[row - 1] else "" for row, once in enumerate(values)]
        elif name != "high" and not (name in ("group", "documents") and set(table.get("group", [])) == {ALL}):
            found[name] = values
    return found


def comparisons(table: Values) -> Iterator[tuple[str, Values]]:
    """A title and a table for each pair of coders, with each measure and its interval in one column."""
    pairs = list(zip(table["coder"], table["against"], strict=True))
    for coder, against in dict.fromkeys(pairs):
        rows = [row for row, pair in enumerate(pairs) if pair == (coder, against)]
        found: Values = {name: [table[name][row] for row in rows] for name in ("topic", "labels")}
        for measure in ("precision", "recall", "kappa"):
            cells = ([table[f"{measure}{end}"][row] for end in ("", "_low", "_high")] for row in rows)
            found[measure] = [
                spread(value, value, ".2f", same=True) + ("" if missing(low) else f" ({spread(low, high, '.2f', '–')})")
                for value, low, high in cells
            ]
        yield f"{coder} against {against}, with 95 % intervals", found


def only(*names: str) -> Callable[[Values], Values]:
    """A function that keeps some columns, in this order."""
    return lambda table: {name: table[name] for name in names if name in table}


def spread(low: Any, high: Any, digits: str, between: str = " to ", same: bool = False) -> str:
    """Two numbers in one cell; ``same`` writes equal ones once."""
    if missing(low) and missing(high):
        return MISSING
    ends = [MISSING if missing(value) else format(value, digits) for value in (low, high)]
    return ends[0] if same and ends[0] == ends[1] else between.join(ends)


def first(table: Mapping[str, Sequence[Any]], rows: int | None) -> Values:
    """The first rows of a table; None: all."""
    return {name: list(values[:rows]) for name, values in table.items()}


console = Console(stderr=True)
LONGEST = 100_000  # characters of a text
# Seconds until the first sign of life where standard error is no terminal.
SILENCE = 10.0
# Topics in the printed table of an evaluation, if there are more, and of an update.
WEAKEST = 20


@contextmanager
def silence() -> Iterator[None]:
    """Print no messages and no progress inside the ``with`` block."""
    before = console.quiet
    console.quiet = True
    try:
        yield
    finally:
        console.quiet = before


@contextmanager
def working(pause: float = SILENCE) -> Iterator[types.Progress]:
    """Show progress on standard error: one line per stage in a terminal, elsewhere a sign of life now and then."""
    if console.quiet:
        yield lambda *_: None
        return
    if not console.is_terminal:
        yield signs_of_life(pause)
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


def signs_of_life(silence: float) -> types.Progress:
    """Print the present stage after some seconds, and again at growing intervals, so that a log stays short."""
    began = time.monotonic()
    due = began + silence

    def progress(stage: str, done: int, total: int | None, detail: str) -> None:
        nonlocal due, silence
        now = time.monotonic()
        if now < due:
            return
        amount = f" {done:,} of {total:,}" if total else f" {done:,}" if done else ""
        where = escape(f"{stage}{amount}{f', {detail}' if detail else ''}")
        notify(f"[dim]working for {now - began:,.0f} s: {where}[/dim]")
        silence *= 1.5
        due = now + silence

    return progress


def notify(message: str) -> None:
    """Print a message on standard error."""
    console.print(message, highlight=False, soft_wrap=not console.is_terminal)  # a terminal breaks words


def ask(question: str) -> str:
    """The answer to a question in a terminal; empty where nobody can answer."""
    if console.quiet or not sys.stdin.isatty():
        return ""
    notify(question)
    return sys.stdin.readline().strip().lower()


def show(values: Mapping[str, Sequence[object]], title: str = "", columns: Iterable[Column] = ()) -> None:
    """Print a table on standard output; declared columns have their own format."""
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


def show_topics(table: Mapping[str, Sequence[object]], title: str, belief: str = "") -> None:
    """Print a table of topics, and the belief about documents that have none of them; a tree is indented.

    Mean memberships are left out: people would read them as shares.
    """
    from topicsteer.analysis.topics import COLUMNS

    values = as_tree(table) if "parent" in table else first(table, None)
    del values["mean membership"]
    show(values, title, COLUMNS)
    if belief:
        notify(escape(belief))


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


def show_evaluation(result: Evaluation, weakest: int = WEAKEST) -> None:
    """Print the verdict and the table of topics, the weakest ones first; --json has the scores of both methods."""
    from topicsteer.analysis.evaluation import COLUMNS

    notify(escape(result.verdict))
    if not result.judged:
        return
    some, topics, scores = "", result.shown(), result.table()["F1"]
    if len(scores) > weakest:
        order = sorted(range(len(scores)), key=lambda k: (missing(scores[k]), scores[k]))[:weakest]
        topics = {name: [values[k] for k in order] for name, values in topics.items()}
        some = f"\nThe {weakest} weakest of {len(scores)} topics; --json or --out gives all"
    show(topics, f"Topics, on hidden labels{some}", COLUMNS)


def escape(text: str) -> str:
    """Escape markup and control characters."""
    return markup.escape(visible(text, limit=LONGEST))


def write(
    table: pl.DataFrame,
    out: Path | None,
    *,
    readable: Callable[[Values], Values] | None = None,
    rows: int | None = None,
    formats: Iterable[Column] = (),
) -> None:
    """Write a table to a file, or to standard output: as CSV, or drawn in a terminal, with the columns of ``readable``.

    A terminal shows at most ``rows`` rows.
    """
    from topicsteer.report import table_files as sheets

    if out is not None:
        sheets.write_table(table, out, formats)
        notify(f"{len(table):,} rows are in {escape(str(out))}.")
    elif readable is not None and sys.stdout.isatty():
        values = first(readable(table.to_dict(as_series=False)), rows)
        if "text" in values:  # one or two lines; the file has more
            values["text"] = [visible(text, 60) for text in values["text"]]
        show(values, columns=formats)
        if rows is not None and len(table) > rows:
            notify(f"{rows} of {len(table):,} rows. --out FILE writes all of them.")
    else:
        print(sheets.csv(table), end="")
