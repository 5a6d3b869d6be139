"""Commands on a fitted model: topics, predict, explain, report, map, suggest, audit."""

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Argument, BadParameter, Option

from topicsteer.analysis.columns import Column
from topicsteer.cli.blocks import DocumentBlocks
from topicsteer.cli.options import (
    HELP,
    AsCsv,
    AsJson,
    Embeddings,
    Memory,
    Model,
    NoMap,
    Out,
    Quiet,
    Source,
    reads_texts,
)
from topicsteer.cli.readable import LONGEST_LIST, Values, only
from topicsteer.cli.terminal import (
    escape,
    load,
    load_quickly,
    named_embeddings,
    notify,
    read,
    show,
    show_topics,
    working,
    write,
)
from topicsteer.report.plain_tables import check_suffix, columns, own_column, plain_csv
from topicsteer.system.safe_text import visible
from topicsteer.system.values import NONE, is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from topicsteer import TopicModel
    from topicsteer.analysis.explain import Explanation
    from topicsteer.corpora import Documents, ReadOptions
    from topicsteer.model.quick import QuickModel
    from topicsteer.system.types import Array, Progress

    # Documents, and the columns of their predictions.
    Predicted = tuple[Documents, dict[str, list[Any]]]


class Purpose(StrEnum):
    """Purposes of labels."""

    prevalence = "prevalence"


def topics(model: Model, as_json: AsJson = False, as_csv: AsCsv = False, out: Out = None, quiet: Quiet = False) -> None:
    """List the topics of a model: name, known or free, labelled documents, share, terms."""
    fitted = load_quickly(model)
    table = fitted.topics_table()
    if out is not None:
        import polars as pl

        from topicsteer.analysis.topics import COLUMNS

        write(pl.DataFrame(table), out, quiet, formats=COLUMNS)
    elif as_json:
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    elif as_csv:
        print(plain_csv(table), end="")
    else:
        show_topics(table, f"Topics of {model}", belief=fitted.belief, short=False)


@reads_texts
def predict(
    model: Model,
    source: Source,
    out: Out = None,
    *,
    reading: "ReadOptions",
    precision: Annotated[float | None, Option(help=HELP["predict"]["precision"])] = None,
    recall: Annotated[float | None, Option(help=HELP["predict"]["recall"])] = None,
    embeddings: Embeddings = None,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Predict topics: the rows of the table with predicted topics, and membership in each topic and in none of them.

    A tree of topics also has one column per level.
    """
    quick, look = load_quickly(model), out is None and sys.stdout.isatty()
    as_text = out is None or out.suffix == ".csv"  # these round numbers
    with working(quiet) as progress:
        blocks = DocumentBlocks(source, reading.after(quick.state_.reading), memory, quiet, keep_all=True)
        names = (*quick.state_.topics.names, NONE)
        if not quick.state_.topics.n_known:
            notify("The model has no known topics, so it predicts none: fit it with labels.", quiet)
        if out is None and embeddings is None and precision is None is recall and quick.answers(range(blocks.rows)):
            few = [(each, predictions(quick, each, quick.memberships(each.texts), None, as_text)) for each in blocks]
            if not look:
                print(*(plain_csv(table) for _, table in few), sep="", end="")
                return
            seen, rows = beginnings(few)
        else:
            del quick  # the whole model needs as much memory again
            tables = predicted(load(model), blocks, embeddings, (precision, recall), as_text, progress, quiet)
            if look:
                seen, rows = beginnings(tables)
            else:
                from topicsteer.report.growing_table import write_growing

                rows = write_growing(frames(tables), out, [Column(name, "share") for name in names])
    if look:
        show(seen)
        notify(f"{len(seen['id'])} of {rows:,} rows, without memberships. --out FILE writes everything.", quiet)
    else:
        notify(f"{rows:,} rows are in {escape(str(out))}.", quiet or out is None)


def predicted(
    fitted: "TopicModel",
    blocks: DocumentBlocks,
    embeddings: str | None,
    goals: tuple[float | None, float | None],
    as_text: bool,
    progress: "Progress",
    quiet: bool,
) -> "Iterator[Predicted]":
    """Each block of documents with its predictions; ``goals`` are a precision or a recall to reach."""
    from topicsteer.model.encoders import VectorFile

    vectors = None if embeddings is None else named_embeddings(embeddings, fitted)
    if isinstance(vectors, VectorFile):
        vectors.check_rows(blocks.rows)
    threshold = None
    if goals != (None, None):
        goal = fitted.goal(precision=goals[0], recall=goals[1], progress=progress)
        threshold = goal.threshold
        notify(f"[{'default' if goal.reached else 'yellow'}]{escape(goal.sentence)}", quiet)
    done = 0
    for documents in blocks:
        own = vectors or named_embeddings(None, fitted, documents)
        E = own.vectors[done : done + len(documents)] if isinstance(own, VectorFile) else own
        belongs = fitted.memberships(documents, embeddings=E)[:, 1:].to_numpy()
        yield documents, predictions(fitted, documents, belongs, threshold, as_text)
        done += len(documents)
        progress("predict", done, blocks.rows, "")


def frames(tables: "Iterable[Predicted]") -> "Iterator[pl.DataFrame]":
    """The tables as DataFrames."""
    import polars as pl

    for _, table in tables:
        yield pl.DataFrame(table, infer_schema_length=None, strict=False)


def beginnings(tables: "Iterable[Predicted]") -> tuple[Values, int]:
    """Ids, predictions and beginnings of the texts of the first rows, for a terminal; and the number of all rows."""
    seen: Values = {"id": [], "predicted": [], "text": []}
    rows = 0
    for documents, table in tables:
        some = slice(0, LONGEST_LIST - len(seen["id"]))
        seen["id"] += map(str, documents.ids[some])
        seen["predicted"] += (answer or "" for answer in table["predicted"][some])
        seen["text"] += ("" if is_missing(text) else visible(text, 48) for text in documents.texts[some])
        rows += len(documents)
    return seen, rows


def predictions(
    fitted: "QuickModel | TopicModel", documents: "Documents", belongs: "Array", threshold: float | None, as_text: bool
) -> dict[str, list[Any]]:
    """The columns of the documents' own table, then the predicted topics and the memberships; empty without a text.

    Free topics without a term have no column.
    """
    filled = [not is_missing(text) for text in documents.texts]
    found = zip(fitted.decide(belongs, threshold), outside(belongs, fitted.state_.topics.n_known), filled, strict=True)
    answers: dict[str, list[Any]] = {
        "predicted": ["; ".join(each) or (NONE if none else "") if full else None for each, none, full in found]
    }
    named = columns(documents.ids, (*fitted.state_.topics.names, NONE), belongs)
    for name in fitted.state_.topics.empty:
        del named[name]
    (key, ids), *rest = named.items()
    levels = fitted.state_.topics.by_level(fitted.decide(belongs, threshold, ancestors=True))
    for name, topics in levels.items():
        if name not in dict(rest):  # a topic may have the name "level 1"
            answers[name] = [each if full else None for each, full in zip(topics, filled, strict=True)]
    for topic, values in rest:
        name = f"{topic} (topic)" if topic == "predicted" else topic
        answers[name] = [float(value) if full else None for value, full in zip(values, filled, strict=True)]
    own = {name: own_column(values, as_text=as_text) for name, values in documents.columns.items()}
    has_ids = documents.reading is not None and bool(documents.reading.id)
    table: dict[str, list[Any]] = {} if has_ids else {key: list(ids)}
    for name, values in own.items():
        while name in table or name in answers:
            name = f"{name} (table)"
        table[name] = values
    return table | answers


def outside(belongs: "Array", n_known: int) -> list[bool]:
    """Whether documents more probably have none of the known topics than any of them, from their memberships."""
    return (belongs[:, -1] > belongs[:, :n_known].max(axis=1)).tolist() if n_known else [False] * len(belongs)


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
    by: Annotated[list[str] | None, Option("--by", help=HELP["report"]["by"])] = None,
    shares: Annotated[bool | None, Option(help=HELP["report"]["shares"])] = None,
    svg: Annotated[Path | None, Option(help=HELP["report"]["svg"])] = None,
    no_map: NoMap = False,
) -> None:
    """Write a report as one HTML file, or as an Excel workbook: topics, map, examples, shares, settings."""
    from topicsteer.model.reports import write_report
    from topicsteer.report import plots

    check_suffix(out, (".html", ".htm", ".xlsx"))
    if svg is not None:
        plots.require()
    fitted = load(model)
    with working() as progress:
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=True))
        if by and fitted.documents_ is None:
            raise ValueError("--by needs the training documents: pass their file after the model.")
        name = title or f"Topics of {source.name if source else model}"
        content: dict[str, Any] = {"title": name, "by": by or (), "progress": progress}
        drawn = write_report(fitted, out, shares=shares, map=not no_map, svg=svg, **content)
    notify(f"The report is in {escape(str(out))}.")
    if svg is not None:
        notify(f"{len(drawn)} charts are in {escape(str(svg))}.")


@reads_texts
def document_map(
    model: Model,
    source: Annotated[Path | None, Argument(help=HELP["map"]["source"])] = None,
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Write the document map as a table for other tools: id, x, y, topic, kind, membership, labelled, text."""
    from topicsteer.analysis.document_map import can_lay_out

    fitted = load(model)
    with working(quiet) as progress:
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=quiet))
        table = fitted.document_map(progress=progress)
    write(table, out, quiet)
    if fitted.documents_ is None:
        notify("Without their texts, documents lie around their topics: pass the training documents too.", quiet)
    elif not can_lay_out():
        notify("Documents lie around their topics. To place them by words: pip install 'topicsteer\\[map]'", quiet)
    if len(table) < len(fitted.result_.ids):
        shown = f"{len(table):,} of {len(fitted.result_.ids):,} documents"
        notify(f"The map has {shown}: all labelled ones, and others at random.", quiet)


@reads_texts
def suggest(
    model: Model,
    source: Annotated[Path, Argument(help=HELP["suggest"]["source"])],
    n: Annotated[int, Option("-n", min=1, help=HELP["suggest"]["n"])] = 20,
    topic: Annotated[str | None, Option(help=HELP["suggest"]["topic"])] = None,
    how: Annotated[str, Option(help=HELP["suggest"]["how"])] = "useful",
    purpose: Annotated[Purpose | None, Option("--for", help=HELP["suggest"]["for"])] = None,
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Suggest documents to label next: id, start of the text, likely topics, reason, and how they were chosen."""
    if purpose is not None and (how != "useful" or topic is not None):
        raise BadParameter("use either --for, --how or --topic")
    how = how if purpose is None else str(purpose)
    fitted = load(model)
    with working(quiet):
        documents = read(source, reading, fitted, quiet=quiet)
        table = fitted.suggest(n, documents, topic=topic, how=how)
    write(precise(table), out, quiet, readable=only("id", "topics", "why", "text"))
    notify(nothing_suggested(fitted, topic, how), quiet or bool(len(table)))
    if not quiet and fitted.accepts(documents):
        with working() as progress:
            advice = fitted.attach(documents).stopping_advice(lambda i, n: progress("learning curve", i - 1, n, ""))
        notify(advice.sentence)


def precise(table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with enough digits of small probabilities."""
    import polars as pl

    digits = [None if value is None else f"{value:.6g}" for value in table["probability"].to_list()]
    return table.with_columns(pl.Series("probability", digits, dtype=pl.String))


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
        fitted.attach(read(source, reading, fitted, quiet=quiet))
    rows = LONGEST_LIST if n is None else None
    write(fitted.audit(n), out, quiet, readable=only("id", "why", "text"), rows=rows)


def explained(fitted: "TopicModel | QuickModel", text: str, of: Path | None, reading: "ReadOptions") -> "Explanation":
    """Explain a text, or the document with this id; a training document keeps the weights of the fit."""
    if of is None:
        if os.path.isfile(text):
            raise ValueError(f"{text} is a file: pass a text, - for standard input, or an id with --of {text}.")
        return fitted.explain(sys.stdin.read() if text == "-" else text)
    from topicsteer import TopicModel

    documents = read(of, reading, fitted, quiet=True)
    ids = [str(key) for key in documents.ids]
    if text not in ids:
        raise ValueError(f"there is no document with the id {text}; the first ids are {', '.join(ids[:5])}")
    row = ids.index(text)
    if isinstance(fitted, TopicModel) and fitted.accepts(documents):
        return fitted.attach(documents).explain_document(documents.ids[row])
    return fitted.explain(documents.texts[row])
