"""The report as one Excel workbook: the tables of a report, one per sheet."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topicsteer.analysis import effects, prevalence
from topicsteer.analysis.topics import COLUMNS
from topicsteer.report.breakdown import TERM_COLUMNS
from topicsteer.report.excel import write_workbook
from topicsteer.report.page import ReportData
from topicsteer.report.plain_tables import one_type
from topicsteer.system.safe_text import revealed

if TYPE_CHECKING:
    import polars as pl


def sheets(data: ReportData) -> dict[str, pl.DataFrame]:
    """The tables of a report by the names of their sheets; a table without rows is left out."""
    found: dict[str, Mapping[str, Sequence[Any]]] = {
        "topics": data.topics.table(none=True),
        **_shares(data),
        "examples": _examples(data),
        "codebook": data.codebook,
        "guidance": data.guidance,
    }
    if data.evaluation is not None and data.evaluation.judged:
        found |= {"evaluation": data.evaluation.summary(), "evaluation of topics": data.evaluation.table()}
    found["settings"] = {
        "setting": [str(name) for name in data.settings],
        "value": [str(value) for value in data.settings.values()],
    }
    return {name: _frame(table) for name, table in found.items() if len(next(iter(table.values()), ()))}


def write(data: ReportData, path: str | os.PathLike[str]) -> None:
    """Write the workbook; an old file at `path` stays until the new one is complete."""
    write_workbook(sheets(data), path, (*COLUMNS, *prevalence.COLUMNS, *TERM_COLUMNS, *effects.COLUMNS))


def _shares(data: ReportData) -> dict[str, Mapping[str, Sequence[Any]]]:
    """Shares, differences and terms, one sheet each per column."""
    found: dict[str, Mapping[str, Sequence[Any]]] = {}
    for part in data.shares:
        if not part.column:
            found["shares"] = {name: values for name, values in part.table.items() if name != "group"}
            found["assumptions"] = {"assumption": list(part.notes)}
            continue
        name = f"by {part.column}"
        found[name] = part.table
        found[f"{name}, {'trend' if part.period else 'differences'}"] = part.differences
        found[f"{name}, terms"] = part.terms
    return found


def _examples(data: ReportData) -> dict[str, list[Any]]:
    """The example documents of each topic, with their whole texts."""
    rows = [(data.topics.names[k], example) for k, some in sorted(data.examples.items()) for example in some]
    return {
        "topic": [name for name, _ in rows],
        "id": one_type(example.id for _, example in rows),
        "text": [example.text for _, example in rows],
    }


def _frame(table: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """A table of polars, with hidden characters made visible: half of a surrogate pair would be refused."""
    import polars as pl

    return pl.DataFrame(
        {
            revealed(str(name)): [revealed(value) if isinstance(value, str) else value for value in values]
            for name, values in table.items()
        },
        strict=False,
    )
