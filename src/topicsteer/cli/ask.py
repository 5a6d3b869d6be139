"""Commands on a fitted model: topics, predict, explain, report, suggest, audit."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from typer import Argument, Option

from topicsteer.cli.options import HELP, AsCsv, AsJson, Model, Out, Quiet, Source, reads_texts
from topicsteer.cli.terminal import escape, load, load_quickly, notify, read, show_topics, working, write
from topicsteer.report.plain_tables import columns, plain_csv
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    from topicsteer import TopicModel
    from topicsteer.analysis.explain import Explanation
    from topicsteer.corpora import ReadOptions
    from topicsteer.model.quick import QuickModel


def topics(model: Model, as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """List the topics of a model: name, known or free, labelled documents, share, terms."""
    fitted = load_quickly(model)
    table = fitted.topics_table()
    if as_json:
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    elif as_csv:
        print(plain_csv(table), end="")
    else:
        show_topics(table, f"Topics of {model}", belief=fitted.belief)


@reads_texts
def predict(model: Model, source: Source, out: Out = None, *, reading: "ReadOptions", quiet: Quiet = False) -> None:
    """Predict the topics of new documents: id, predicted topics, membership in each topic and in none of the known."""
    quick = load_quickly(model)
    with working(quiet):
        documents = read(source, reading, quiet=quiet)
        few = quick.answers(documents)
        belongs = quick.memberships(documents.texts) if few else load(model).memberships(documents)[:, 1:].to_numpy()
        found = ["; ".join(names) for names in quick.decide(belongs)]
    if not quick.state_.topics.n_known:
        notify("The model has no known topics, so it predicts none: fit it with labels.", quiet)
    (name, ids), *rest = columns(documents.ids, (*quick.state_.topics.names, NONE), belongs).items()
    table = {name: ids, "predicted": found} | dict(rest)
    if few and out is None:
        print(plain_csv(table), end="")
    else:
        import polars as pl

        write(pl.DataFrame(table), out, quiet)


@reads_texts
def explain(
    model: Model,
    text: Annotated[str, Argument(help=HELP["explain"]["text"])],
    of: Annotated[Path | None, Option(help=HELP["explain"]["of"])] = None,
    *,
    reading: "ReadOptions",
    as_json: AsJson = False,
) -> None:
    """Explain which words put a text, or a document of a file, into which topics."""
    quick = load_quickly(model)
    fitted = quick if of is None and quick.reads_texts else load(model)
    explanation = explained(fitted, text, of, reading)
    if as_json:
        print(json.dumps(explanation.rows(), ensure_ascii=False))
        return
    Console().print(explanation)
    if explanation.names and not fitted.predict([explanation.text])[0]:
        why = "No known topic reaches its threshold"
        notify(f"{why}{' and is likelier than none' if fitted.state_.open else ''}, so predict gives this text none.")


@reads_texts
def report(
    model: Model,
    source: Annotated[Path | None, Argument(help=HELP["report"]["source"])] = None,
    *,
    reading: "ReadOptions",
    out: Annotated[Path, Option("--out", "-o", help=HELP["report"]["out"])] = Path("report.html"),
    title: Annotated[str | None, Option(help=HELP["report"]["title"])] = None,
) -> None:
    """Write a report as one HTML file: topics, map, examples, guidance, settings."""
    fitted = load(model)
    if source is not None:
        fitted.attach(read(source, reading, quiet=True))
    fitted.report(out, title=title or f"Topics of {source.name if source else model}")
    notify(f"The report is in {out}.")


@reads_texts
def suggest(
    model: Model,
    source: Annotated[Path, Argument(help=HELP["suggest"]["source"])],
    n: Annotated[int, Option("-n", min=1, help=HELP["suggest"]["n"])] = 20,
    topic: Annotated[str | None, Option(help=HELP["suggest"]["topic"])] = None,
    how: Annotated[str, Option(help=HELP["suggest"]["how"])] = "useful",
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Suggest documents to label next: id, start of the text, likely topics, reason."""
    fitted = load(model)
    with working(quiet):
        documents = read(source, reading, quiet=quiet)
        table = fitted.suggest(n, documents, topic=topic, how=how)
    write(table, out, quiet, readable=True)
    notify(nothing_suggested(fitted, topic, how), quiet or bool(len(table)))
    if fitted.accepts(documents):
        notify(fitted.attach(documents).stopping_advice().sentence, quiet)


def nothing_suggested(fitted: "TopicModel", topic: str | None, how: str) -> str:
    """The reason why no document is suggested."""
    from topicsteer.analysis.suggest import FEW

    if topic is not None:
        return f"No unlabelled document is given the topic {escape(topic)}."
    if how == "few" and fitted.supervision_.counts.min(initial=FEW) >= FEW:
        return f"Every topic has at least {FEW} labels: choose another way with --how."
    if how in ("few", "typical", "groups"):
        return "No unlabelled document surely has one of these topics: choose another way with --how."
    return "There is no unlabelled document to choose from."


@reads_texts
def audit(
    model: Model,
    source: Annotated[Path | None, Argument(help=HELP["audit"]["source"])] = None,
    n: Annotated[int | None, Option("-n", min=1, help=HELP["audit"]["n"])] = None,
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """List labels, given or missing, most doubtful first: id, topic, label, probability, reason."""
    fitted = load(model)
    if source is not None:
        fitted.attach(read(source, reading, quiet=quiet))
    write(fitted.audit(n), out, quiet, readable=True)


def explained(fitted: "TopicModel | QuickModel", text: str, of: Path | None, reading: "ReadOptions") -> "Explanation":
    """Explain a text, or the document with this id; a training document keeps the weights of the fit."""
    if of is None:
        if os.path.isfile(text):
            raise ValueError(f"{text} is a file: pass a text, - for standard input, or an id with --of {text}.")
        return fitted.explain(sys.stdin.read() if text == "-" else text)
    from topicsteer import TopicModel

    documents = read(of, reading, quiet=True)
    ids = [str(key) for key in documents.ids]
    if text not in ids:
        raise ValueError(f"there is no document with the id {text}; the first ids are {', '.join(ids[:5])}")
    row = ids.index(text)
    if isinstance(fitted, TopicModel) and fitted.accepts(documents):
        return fitted.attach(documents).explain_document(documents.ids[row])
    return fitted.explain(documents.texts[row])
