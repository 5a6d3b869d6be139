"""Commands for findings: coders against labels, and shares of topics."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from topicsteer.cli.options import HELP, MACHINE_PANEL, Model, Out, Quiet, reads_texts
from topicsteer.cli.reading import load, load_with_documents, notify_report, read_corpus, work_folder
from topicsteer.cli.terminal import comparisons, escape, notify, shares, show, working, write

if TYPE_CHECKING:
    from topicsteer import TopicModel
    from topicsteer.corpora import ReadOptions
    from topicsteer.labels.coder import Coder


CoderFiles = Annotated[list[str] | None, Option("--coder", help=HELP["shared"]["coder"])]
Articles = Annotated[Path | None, Argument(help=HELP["shared"]["training"])]


@reads_texts
def coders(
    model: Model,
    source: Articles = None,
    coder: CoderFiles = None,
    disagreements: Annotated[Path | None, Option(help=HELP["coders"]["disagreements"])] = None,
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Compare coders, such as a language model, with the labels and with each other: precision, recall, κ, α."""
    if not coder:
        raise ValueError("name a coder and the file with its answers: --coder gpt=predictions.csv")
    with working(quiet):
        fitted = load_with_documents(model, source, reading, quiet)
        found = read_coders(fitted, coder, reading, quiet)
        table, differ = fitted.findings.coders(found), fitted.findings.disagreements(found)
    if disagreements is not None:
        write(differ, disagreements, quiet)
    if out is None and sys.stdout.isatty():
        for title, own in comparisons(table.to_dict(as_series=False)):
            show(own, title)
    else:
        write(table, out, quiet)
    for name in found:
        notify(escape(summary(name, table, differ, disagreements is None)), quiet)


def read_coders(fitted: "TopicModel", given: list[str], reading: "ReadOptions", quiet: bool) -> dict[str, "Coder"]:
    """Read the files of ``--coder NAME=FILE``, and print guesses and rows that were not used as they are."""
    from topicsteer.labels.coder import check_coder_name
    from topicsteer.model.findings import answered_documents, lineage_of, read_coder

    documents, topics = answered_documents(fitted), fitted.state_.supervision.topics
    how: dict[str, Any] = {"on_error": reading.on_error, "lineage": lineage_of(fitted)}
    found: dict[str, Coder] = {}
    for pair in given:
        name, separator, path = pair.partition("=")
        if not separator or not path:
            raise ValueError(f'{pair!r} is not of the form "name=file", such as "gpt=predictions.csv".')
        name = check_coder_name(name)
        if name in found:
            raise ValueError(f"two coders have the name {name!r}: choose another.")
        found[name], report = read_coder(name, path, documents, topics, **how)
        notify_report(report, quiet)
    return found


def summary(name: str, table: Any, differ: Any, hint: bool) -> str:
    """One sentence per coder: common documents, and documents of disagreement."""
    rows = zip(*(table[column].to_list() for column in ("coder", "against", "documents")), strict=True)
    common = max((number for coder, against, number in rows if (coder, against) == (name, "people")), default=0)
    if not common:
        return f"{name}: no labelled document has an answer of this coder, so its errors are not known."
    wrong = differ["coder"].to_list().count(name)
    more = " --disagreements FILE lists them." if hint and wrong else ""
    have = "labelled document has" if common == 1 else "labelled documents have"
    return f"{name}: {common:,} {have} an answer; people and coder disagree on {wrong:,}.{more}"


TEXTS = HELP["prevalence"]


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
    table: Annotated[Literal["shares", "differences", "trend"], Option(help=TEXTS["table"])] = "shares",
    precision: Annotated[float | None, Option(help=TEXTS["precision"])] = None,
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
    if table != "shares" and not by:
        raise BadParameter(f"--table {table} compares groups: add --by with a column")
    fitted = load(model)
    with work_folder(model, work) as use, working(quiet) as progress:
        if source is not None:
            reading = reading.after(fitted.state_.reading)
            fitted.attach(read_corpus(source, reading, use, memory, fitted, progress=progress, quiet=quiet))
        answers = read_coders(fitted, coder or [], reading, quiet)
        found = fitted.findings.prevalence(
            by or None, coders=answers, weight=weight, cluster=cluster, progress=progress
        )
        shown = {"shares": found.table, "differences": found.differences, "trend": found.trend}[table]()
    write(pl.DataFrame(shown, infer_schema_length=None), out, quiet, readable=shares, formats=COLUMNS)
    for sentence in found.sentences:
        colour = "yellow" if sentence.startswith(WARNING) else "default"
        notify(f"[{colour}]{escape(sentence)}[/{colour}]", quiet)
    if precision is not None:
        notify(escape(found.advice(precision / 100)), quiet)
