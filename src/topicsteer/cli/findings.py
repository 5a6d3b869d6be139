"""Commands that turn a model into findings: coders, methods."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from topicsteer.cli.options import HELP, Model, Out, Quiet, reads_texts
from topicsteer.cli.readable import comparisons
from topicsteer.cli.terminal import escape, load, notify, notify_report, read, show, working, write

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
    memberships: Annotated[Path | None, Option(help=HELP["coders"]["memberships"])] = None,
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Compare coders, such as a language model, with the labels and with each other: precision, recall, κ, α."""
    if not coder:
        raise ValueError("name a coder and the file with its answers: --coder gpt=predictions.csv")
    fitted = load(model)
    with working(quiet) as progress:
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=quiet))
        found = read_coders(fitted, coder, reading, quiet)
        table, differ = fitted.coders(found), fitted.disagreements(found)
        belongs = fitted.memberships_with(found, progress=progress) if memberships else None
    if belongs is not None:
        write(belongs, memberships, quiet)
    if disagreements is not None:
        write(differ, disagreements, quiet)
    if out is None and sys.stdout.isatty():
        for title, own in comparisons(table.to_dict(as_series=False)):
            show(own, title)
    else:
        write(table, out, quiet)
    for name in found:
        notify(escape(summary(name, table, differ, disagreements is None)), quiet)


@reads_texts
def methods(
    model: Model,
    source: Articles = None,
    coder: CoderFiles = None,
    measure: Annotated[bool, Option(help=HELP["methods"]["measure"])] = True,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["methods"]["out"])] = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Write the paper trail: a paragraph to paste, and numbers on corpus, labels, agreement, settings and shares."""
    fitted = load(model)
    with working(quiet) as progress:
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=quiet))
        found = read_coders(fitted, coder or [], reading, quiet)
        evaluation = shares = None
        if measure and fitted.documents_ is not None and fitted.supervision_.labelled.any():
            evaluation = fitted.evaluate(fitted.documents_, fitted.supervision_, curve=False, progress=progress)
            shares = fitted.prevalence(coders=found, progress=progress)
        page = fitted.methods(out, coders=found, evaluation=evaluation, shares=shares, title=f"Methods of {model}")
    if out is None:
        print(page, end="")
    else:
        notify(f"The page is in {escape(str(out))}.", quiet)


def read_coders(fitted: "TopicModel", given: list[str], reading: "ReadOptions", quiet: bool) -> dict[str, "Coder"]:
    """Read the files of ``--coder NAME=FILE``, and print guesses and rows that were not used as they are."""
    from topicsteer.labels.coder import check_coder_name
    from topicsteer.model.coders import answered_documents, lineage_of, read_coder

    documents, found = answered_documents(fitted), dict[str, "Coder"]()
    for pair in given:
        name, separator, path = pair.partition("=")
        if not separator or not path:
            raise ValueError(f'{pair!r} is not of the form "name=file", such as "gpt=predictions.csv".')
        name = check_coder_name(name)
        if name in found:
            raise ValueError(f"two coders have the name {name!r}: choose another.")
        found[name], report = read_coder(
            name, path, documents, fitted.supervision_.topics, on_error=reading.on_error, lineage=lineage_of(fitted)
        )
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
