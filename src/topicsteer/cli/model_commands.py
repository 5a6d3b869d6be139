"""Commands on a fitted model: topics, predict, explain, report, suggest, audit, edit."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from rich.console import Console
from typer import Argument, BadParameter, Option

from topicsteer.analysis.table_columns import Column
from topicsteer.cli.fit_commands import stop_if_interrupted
from topicsteer.cli.options import HELP, AsCsv, AsJson, Embeddings, Memory, Model, Out, Quiet, Source, reads_texts
from topicsteer.cli.reading import DocumentBlocks, load, load_with_documents, named_embeddings, own_embeddings, read
from topicsteer.cli.terminal import LONGEST_LIST, Values, escape, notify, only, show, show_topics, working, write
from topicsteer.report.table_files import check_suffix
from topicsteer.system.templates import visible
from topicsteer.system.values import NONE, is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from topicsteer import TopicModel
    from topicsteer.analysis.explain import Explanation
    from topicsteer.corpora import Documents, ReadOptions
    from topicsteer.system.types import Progress

    Predicted = tuple[Documents, dict[str, list[Any]]]


def topics(
    model: Model,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    out: Out = None,
    codebook: Annotated[Path | None, Option(help=HELP["topics"]["codebook"])] = None,
    quiet: Quiet = False,
) -> None:
    """List the topics of a model: name, known or free, labelled documents, share, terms."""
    fitted = load(model)
    if codebook is not None:
        write_codebook(fitted, codebook, quiet)
        return
    table = {name: np.asarray(values).tolist() for name, values in fitted.state_.topics.table(none=True).items()}
    if as_json and out is None:
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    elif out is not None or as_csv:
        import polars as pl

        from topicsteer.analysis.topics import COLUMNS

        write(pl.DataFrame(table), out, quiet, formats=COLUMNS)
    else:
        show_topics(table, f"Topics of {model}", belief=fitted.belief, short=False)


def write_codebook(fitted: "TopicModel", path: Path, quiet: bool) -> None:
    """Write the known topics with proposed keywords to a file for ``--topics``."""
    from topicsteer.model.topics_file import write_topics

    check_suffix(path, (".csv", ".jsonl", ".parquet"))  # the formats that --topics reads
    if path.exists():
        raise BadParameter(f"{path} exists: choose another name.")
    write_topics(fitted, path)
    notify(f"The topics are in {path}. Edit it, and pass it to fit or label with --topics {path}.", quiet)


@reads_texts
def predict(
    model: Model,
    source: Source,
    out: Out = None,
    *,
    reading: "ReadOptions",
    embeddings: Embeddings = None,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Predict topics: the rows of the table with predicted topics, and membership in each topic and in none of them.

    A tree of topics also has one column per level.
    """
    fitted, look = load(model), out is None and sys.stdout.isatty()
    as_text = out is None or out.suffix == ".csv"  # these round numbers
    with working(quiet) as progress:
        blocks = DocumentBlocks(source, reading.after(fitted.state_.reading), memory, quiet)
        names = (*fitted.state_.topics.names, NONE)
        if not fitted.state_.topics.n_known:
            notify("The model has no known topics, so it predicts none: fit it with labels.", quiet)
        tables = predicted(fitted, blocks, embeddings, as_text, progress)
        if look:
            seen, rows = beginnings(tables)
        else:
            import polars as pl

            from topicsteer.report.table_files import write_growing

            frames = (pl.DataFrame(table, infer_schema_length=None, strict=False) for _, table in tables)
            rows = write_growing(frames, out, [Column(name, "share") for name in names])
    if look:
        show(seen)
        notify(f"{len(seen['id'])} of {rows:,} rows, without memberships. --out FILE writes everything.", quiet)
    else:
        notify(f"{rows:,} rows are in {escape(str(out))}.", quiet or out is None)


def predicted(
    fitted: "TopicModel", blocks: DocumentBlocks, embeddings: str | None, as_text: bool, progress: "Progress"
) -> "Iterator[Predicted]":
    """Yield each block of documents with its predictions."""
    from topicsteer.model.predictor import VectorFile

    vectors = named_embeddings(embeddings, fitted)
    if isinstance(vectors, VectorFile):
        vectors.check_rows(blocks.rows)
    done = 0
    for documents in blocks:
        E = vectors.vectors[done : done + len(documents)] if isinstance(vectors, VectorFile) else vectors
        found = fitted.predictor_.predict(documents, E)
        yield documents, found.table(as_text=as_text)
        done += len(documents)
        progress("predict", done, blocks.rows, "")


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
    fitted = load(model)
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
    evaluate: Annotated[bool, Option("--evaluate", help=HELP["report"]["evaluate"])] = False,
    embeddings: Embeddings = None,
    no_map: Annotated[bool, Option("--no-map", help=HELP["report"]["no_map"])] = False,
    quiet: Quiet = False,
) -> None:
    """Write a report: topics, map, examples and shares as HTML or Excel, or the paper trail as Markdown (.md)."""
    from topicsteer.model.reports import write_report

    check_suffix(out, (".html", ".htm", ".xlsx", ".md"))
    if out.suffix == ".md" and by:
        raise BadParameter("--by is for .html and .xlsx")
    with working(quiet) as progress:
        fitted = load_with_documents(model, source, reading, quiet=True)
        documents = fitted.documents_
        if (by or evaluate) and documents is None:
            raise ValueError("--by and --evaluate need the training documents: pass their file after the model.")
        found = None
        if evaluate and documents is not None:
            vectors = named_embeddings(embeddings, fitted) or own_embeddings(fitted)
            found = fitted.evaluate(documents, fitted.state_.supervision, embeddings=vectors, progress=progress)
        name = title or f"Topics of {source.name if source else model}"
        if out.suffix == ".md":
            estimated = fitted.findings.prevalence(progress=progress) if shares else None
            fitted.findings.methods(out, evaluation=found, shares=estimated, title=name)
        else:
            content: dict[str, Any] = {"title": name, "by": by or (), "evaluation": found, "progress": progress}
            write_report(fitted, out, shares=shares, map=not no_map, **content)
    notify(f"The report is in {escape(str(out))}.", quiet)


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
    """Suggest documents to label next: id, start of the text, likely topics, reason, and how they were chosen."""
    with working(quiet):
        fitted = load_with_documents(model, source, reading, quiet)
        table = fitted.labels.suggest(n, topic=topic, how=how)
    write(precise(table), out, quiet, readable=only("id", "topics", "why", "text"))
    notify(nothing_suggested(topic, how), quiet or bool(len(table)))
    if not quiet:
        with working() as progress:
            advice = fitted.labels.advice(lambda i, n: progress("learning curve", i - 1, n, ""))
        notify(advice.sentence)


def precise(table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with enough digits of small probabilities."""
    import polars as pl

    digits = [None if value is None else f"{value:.6g}" for value in table["probability"].to_list()]
    return table.with_columns(pl.Series("probability", digits, dtype=pl.String))


def nothing_suggested(topic: str | None, how: str) -> str:
    """The reason why no document is suggested."""
    if topic is not None:
        return f"No unlabelled document is given the topic {escape(topic)}."
    if how == "groups":
        return "No unlabelled document surely has a free topic: choose another way with --how."
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
    fitted = load_with_documents(model, source, reading, quiet)
    rows = LONGEST_LIST if n is None else None
    write(fitted.labels.audit(n), out, quiet, readable=only("id", "why", "text"), rows=rows)


def explained(fitted: "TopicModel", text: str, of: Path | None, reading: "ReadOptions") -> "Explanation":
    """Explain a text, or the document with this id; a training document keeps the weights of the fit."""
    if of is None:
        if os.path.isfile(text):
            raise ValueError(f"{text} is a file: pass a text, - for standard input, or an id with --of {text}.")
        return fitted.explain(sys.stdin.read() if text == "-" else text)
    documents = read(of, reading, fitted, quiet=True)
    ids = [str(key) for key in documents.ids]
    if text not in ids:
        raise ValueError(f"there is no document with the id {text}; the first ids are {', '.join(ids[:5])}")
    row = ids.index(text)
    if fitted.state_.accepts(documents):
        return fitted.attach(documents).explain(id=documents.ids[row])
    return fitted.explain(documents.texts[row])


@reads_texts
def edit(
    model: Model,
    source: Annotated[Path | None, Argument(help=HELP["edit"]["source"])] = None,
    *,
    reading: "ReadOptions",
    adopt: Annotated[str | None, Option(help=HELP["edit"]["adopt"])] = None,
    rename: Annotated[str | None, Option(help=HELP["edit"]["rename"])] = None,
    merge: Annotated[str | None, Option(help=HELP["edit"]["merge"])] = None,
    move: Annotated[str | None, Option(help=HELP["edit"]["move"])] = None,
    cut: Annotated[int | None, Option(min=0, help=HELP["edit"]["cut"])] = None,
    split: Annotated[str | None, Option(help=HELP["edit"]["split"])] = None,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["edit"]["out"])] = None,
    quiet: Quiet = False,
) -> None:
    """Edit the topics of a model: adopt, rename, merge, move or split one, or show another number of free topics."""
    import polars as pl

    from topicsteer.model.edits import Split
    from topicsteer.model.model_files import writing

    edits = {"adopt": adopt, "rename": rename, "merge": merge, "move": move, "cut": cut, "split": split}
    given = {name: value for name, value in edits.items() if value is not None}
    if len(given) != 1 and set(given) != {"split", "adopt"}:  # one edit renumbers the topics that another would name
        raise ValueError(f"choose one of {', '.join(f'--{name}' for name in edits)}; run the command once per edit.")
    out = model if out is None else out
    with writing(out), working(quiet):
        fitted = load(model)
        had_texts = fitted.documents_ is not None
        updatable = fitted.state_.reservoir is not None
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=quiet))
        before = fitted.state_
        found = apply_edit(fitted, given)
        if fitted.state_.estimator is not before.estimator:
            stop_if_interrupted(fitted)
        if fitted.state_ is not before:
            fitted.save(out, texts=had_texts, updatable=updatable)
    if isinstance(found, Split):
        write(pl.DataFrame(found.table()), None, readable=dict)
        command = f'topicsteer edit {model} --split "{split}" --adopt "1=NAME"'
        notify(f"Nothing was changed. Next: {escape(command)}", quiet)
        return
    if found is None:
        show_topics(fitted.state_.topics.table(none=True), repr(fitted)[1:-1], belief=fitted.belief, quiet=quiet)
        notify(f"Saved in {out}.", quiet)
        return
    write(found, None, readable=dict)
    notify(f"{fitted.belief} Saved in {out}.", quiet)
    notify(f"Next: check these documents, and pass them as labels: topicsteer update {out} --label-file FILE", quiet)


def apply_edit(fitted: "TopicModel", given: dict[str, Any]) -> Any:
    """Edit the model; return the groups of a split, or the documents that are proposed for an adopted topic."""
    adopt = given.get("adopt")
    if "split" in given:
        return apply_split(fitted, given["split"], adopt)
    if adopt is not None:
        return proposed(fitted, *pair(adopt))
    name, value = next(iter(given.items()))
    if name == "rename":
        fitted.edit.rename(*pair(value))
    elif name == "merge":
        fitted.edit.merge([topic.strip() for topic in value.split(";" if ";" in value else ",")])
    elif name == "move":
        topic, _, parent = (part.strip() for part in value.partition("="))
        fitted.edit.move(topic, parent or None)
    else:
        check_documents(fitted, "--cut")
        fitted.edit.cut(value)
    return None


def apply_split(fitted: "TopicModel", value: str, adopt: str | None) -> Any:
    """Split a topic, from "topic" or "topic=parts"; adopt one of the groups of a known topic, from "number=name"."""
    from topicsteer.model.edits import Split

    topic, _, number = (part.strip() for part in value.rpartition("="))
    if not topic or not number.isdecimal():
        topic, number = value.strip(), "2"
    check_documents(fitted, "--split")
    found = fitted.edit.split(topic, int(number))
    if not isinstance(found, Split):
        if adopt is not None:
            raise ValueError("--split with --adopt is for groups of a known topic; adopt a free topic by itself.")
        return None
    if adopt is None:
        return found
    group, name = pair(adopt)
    if not group.isdecimal() or not 1 <= int(group) <= len(found.groups):
        raise ValueError(f"there is no group {group!r}: the groups are 1 to {len(found.groups)}.")
    return proposed(fitted, found.groups[int(group) - 1], name)


def proposed(fitted: "TopicModel", topic: Any, name: str) -> Any:
    """Adopt a free topic or a group; return documents to label with it."""
    import polars as pl

    return fitted.edit.adopt(topic, name).with_columns(pl.lit(name).alias("label"))


def check_documents(fitted: "TopicModel", name: str) -> None:
    """Raise an error if a model was loaded without its training documents."""
    if fitted.documents_ is None:
        raise ValueError(f"{name} needs the training documents: pass their file, or fit with --keep-texts.")


def pair(value: str) -> tuple[str, str]:
    """A topic and its new name, from "topic=name"."""
    topic, _, name = (part.strip() for part in value.partition("="))
    if not topic or not name:
        raise ValueError(f'{value!r} is not of the form "topic=name", such as "free 3=robotics".')
    return topic, name
