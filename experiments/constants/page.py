"""The page of the study."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from experiments.constants.trials import CELLS, CHANGES, CORPORA, cells_of
from experiments.shared.terminal import table

# A smaller change of AP does not matter.
LEAST = 0.002
PAGE = """# Constants

Which tuned numbers of the guide matter? Each is halved and doubled, one at a time. All
candidates of a list change together. A share of a whole above .5 goes half the way to 1 instead of doubling.

`python -m experiments.constants` runs the missing trials and writes this page; `--minutes 20` stops early. It needs the
prepared corpora of [meaning](../meaning/README.md). Code of the guide: `{code}`. {done}

Corpora: {corpora}. Cells: {cells}, and names+1 for constants of few
labels. Built-in word vectors, seed 0. AP is the macro average precision of unlabelled documents. Changes are means over
corpora and cells: known AP / hidden AP. The largest change is that of one corpus, over its cells. Constants of groups
are tried where topics are hidden; nothing else reads them. All constants of `guidance/constants.py` are tried. Not
tried: `TYPICAL_DOCUMENTS`, `TAILS` and `SHARE_IF_UNKNOWN` of the open world, rules for penalties and thresholds, and
limits of work.

{table}

**No cell changes by {least} or more**: {idle}.
"""
Row = dict[str, Any]


def text(rows: list[Row], planned: int, code: str) -> str:
    """The page from the finished trials of one state of the code."""
    own = [row for row in rows if row["seed"] == 0]
    before = {(row["corpus"], row["cell"]): row for row in own if not row["constant"]}
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in own:
        if row["constant"]:
            found[row["constant"]][row["change"]].append(row)
    lines, idle = [], []
    for name, changes in found.items():
        each = [difference for rows in changes.values() for row in rows for difference in differences(row, before)]
        planned_here = len(CHANGES) * len(CORPORA) * len(cells_of(name.split("[")[0]))
        if sum(map(len, changes.values())) == planned_here and max(map(abs, each), default=0.0) < LEAST:
            idle.append(f"`{name}`")
        value = next(iter(changes.values()))[0]["value"]
        means = [change_text(changes[change], before) for change in CHANGES]
        lines.append([f"`{name}`", value, *means, largest(changes, before)])
    done = f"{len(own):,} of {planned:,} trials are done." if len(own) < planned else "All trials are done."
    head = ["constant", "value", "halved", "doubled", "largest"]
    page = PAGE.format(
        code=code,
        done=done,
        corpora=", ".join(CORPORA),
        cells=", ".join(CELLS),
        table=table(head, lines),
        least=f"{LEAST:.3f}".lstrip("0"),
        idle=", ".join(idle) or "none",
    )
    return page if len(own) == planned else page.replace("\n\n", f"\n\n{done}\n\n", 1).replace(f" {done}\n", "\n", 1)


def change_text(rows: list[Row], before: dict[tuple[str, str], Row]) -> str:
    """The changed value, and the mean changes that it makes."""
    return f"{rows[0]['changed']}: {mean_changes(rows, before)}" if rows else ""


def differences(
    row: Row, before: dict[tuple[str, str], Row], measures: tuple[str, ...] = ("known", "hidden")
) -> list[float]:
    """Changes of AP in a cell."""
    base = before.get((row["corpus"], row["cell"]), {})
    return [row[m] - base[m] for m in measures if row[m] is not None and base.get(m) is not None]


def mean_changes(rows: list[Row], before: dict[tuple[str, str], Row]) -> str:
    """Mean change of known and of hidden topics."""
    own = [[d for row in rows for d in differences(row, before, (m,))] for m in ("known", "hidden")]
    return " / ".join(signed(float(np.mean(values))) if values else "–" for values in own)


def largest(changes: dict[str, list[Row]], before: dict[tuple[str, str], Row]) -> str:
    """The largest change of a corpus."""
    found = []
    for change, rows in changes.items():
        for corpus in CORPORA:
            for measure in ("known", "hidden"):
                own = [d for row in rows if row["corpus"] == corpus for d in differences(row, before, (measure,))]
                if own:
                    found.append((float(np.mean(own)), f"{change}, {corpus}, {measure}"))
    value, where = max(found, key=lambda pair: abs(pair[0]), default=(0.0, ""))
    return f"{signed(value)} {where}" if abs(value) >= 0.0005 else "0"


def signed(value: float) -> str:
    """A change with three digits."""
    return f"{value:+.3f}".replace("0.", ".") if abs(value) >= 0.0005 else "0"
