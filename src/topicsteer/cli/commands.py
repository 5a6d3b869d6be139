"""The commands, their application, and its entry point."""

import io
import json
import logging
import os
import shlex
import shutil
import signal
import sys
import traceback
import warnings
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from typer import Argument, BadParameter, Exit, Option

from topicsteer import __version__
from topicsteer.analysis.column_formats import Column
from topicsteer.cli.reading import (
    HELP,
    MACHINE_PANEL,
    AsJson,
    DocumentBlocks,
    Embeddings,
    Free,
    Incomplete,
    Large,
    Memory,
    MergeSimilar,
    Model,
    Out,
    PathSeparator,
    Quiet,
    Seed,
    Source,
    Threads,
    TopicsFile,
    Work,
    World,
    attach,
    cluster,
    load,
    load_with_documents,
    named_embeddings,
    notify_report,
    one_spelling,
    or_standard_input,
    pair,
    read,
    read_any,
    read_corpus,
    reads,
    reads_texts,
    work_folder,
)
from topicsteer.cli.terminal import (
    LONGEST_LIST,
    Values,
    comparisons,
    escape,
    notify,
    only,
    shares,
    show,
    show_evaluation,
    show_topics,
    silence,
    working,
    write,
)
from topicsteer.report.table_files import check_suffix
from topicsteer.system.failures import Kind, failure
from topicsteer.system.files import Scratch
from topicsteer.system.templates import visible
from topicsteer.system.values import NONE, is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from topicsteer import TopicModel
    from topicsteer.corpora import Documents, ReadOptions
    from topicsteer.labels.coder import Coder
    from topicsteer.system.types import Progress

    Predicted = tuple[Documents, dict[str, list[Any]]]


# Terms per topic in the printed table.
TERMS = 6


@reads
def fit(
    source: Large,
    *,
    reading: "ReadOptions",
    topics: TopicsFile = None,
    path_separator: PathSeparator = None,
    incomplete: Incomplete = False,
    merge_similar: MergeSimilar = None,
    out: Annotated[Path, Option("--out", "-o", help=HELP["fit"]["out"])] = Path("model"),
    free: Free = None,
    world: World = None,
    embeddings: Embeddings = None,
    seed: Seed = 0,
    threads: Threads = None,
    keep_texts: Annotated[bool, Option("--keep-texts", help=HELP["fit"]["keep_texts"])] = False,
    report: Annotated[Path | None, Option(help=HELP["fit"]["report"])] = None,
    memory: Annotated[str | None, Option(help=HELP["fit"]["memory"], rich_help_panel=MACHINE_PANEL)] = None,
    work: Annotated[Path | None, Option(help=HELP["fit"]["work"], rich_help_panel=MACHINE_PANEL)] = None,
    scheduler: Annotated[str | None, Option(help=HELP["fit"]["scheduler"], rich_help_panel=MACHINE_PANEL)] = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table of texts with some labels, and save it."""
    from topicsteer import TopicModel
    from topicsteer.labels.codebook import Codebook, Lineage
    from topicsteer.model.settings import BUILT_IN, WORDS, read_topics
    from topicsteer.model.spool import Spool

    with work_folder(out, work) as use, cluster(scheduler) as client, working() as progress:
        model = TopicModel(free, world=world, complete=not incomplete, random_state=seed, threads=threads)
        model.set_params(path_separator=path_separator, embeddings=BUILT_IN.get(embeddings, WORDS))
        vectors = named_embeddings(embeddings)
        on_disk = client is not None
        documents = read_corpus(source, reading, use, memory, model, on_disk=on_disk, progress=progress)
        folder = use() if on_disk or isinstance(documents, Spool) else None
        given = None if topics is None else read_topics(topics)
        for note in () if given is None else given.notes:
            notify(escape(f"{topics}: {note}"))
        known = None if given is None else given.codebook
        lineage = Lineage.of(known, None, path_separator)
        documents, named = one_spelling(documents, lineage, merge_similar)
        if known is not None:  # topics that only labels have come last
            later = Codebook.of_names(
                [*known.names, *(name for name in named if name not in known.names)], before=known
            )
            model.set_params(topics=Codebook((*known, *later.topics[len(known) :])))
        model.fit(documents, embeddings=vectors, folder=folder, client=client, progress=progress)
        stop_if_interrupted(model)
        model.save(out, texts=keep_texts)
        if report is not None:
            model.report(report, title=f"Topics of {Path(source).name}", progress=progress)
        table, belief = (
            model.state_.topics.table(TERMS, none=True),
            belief_of(model, out, source),
        )  # while the files on disk exist
    if not quiet:
        show_topics(table, repr(model)[1:-1], belief)
    command = ["topicsteer", "report", str(out), str(source), "--out", "report.html"]
    after = f"Next: {shlex.join(command)}" if report is None else f"The report is in {report}."
    notify(f"Saved in {out}. {escape(after)}")


@reads
def update(
    model: Model,
    source: Annotated[Path | None, Argument(callback=or_standard_input, help=HELP["update"]["source"])] = None,
    *,
    reading: "ReadOptions",
    new_topics: Annotated[bool, Option(help=HELP["update"]["new_topics"])] = True,
    merge_similar: MergeSimilar = None,
    embeddings: Embeddings = None,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["update"]["out"])] = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Update a model with new documents, labels for earlier documents (--labels FILE alone) and new topics."""
    from topicsteer.model.settings import Settings
    from topicsteer.model.state import writing

    out = model if out is None else out
    with writing(out), working() as progress:  # another update waits, and then starts from this one's result
        fitted = load(model)
        fitted.threads, before = threads, fitted.state_
        reading = reading.after(before.reading)
        lineage = Settings.of(fitted.get_params()).lineage(fitted.codebook)
        earlier = dict(zip(map(str, fitted.codebook.names), before.supervision.counts.tolist(), strict=True))
        documents, _ = one_spelling(read_any(source, reading, fitted), lineage, merge_similar, earlier)
        vectors = named_embeddings(embeddings, fitted)
        fitted.update(documents, embeddings=vectors, new_topics=new_topics, progress=progress)
        if fitted.state_ is not before:
            stop_if_interrupted(fitted)
        fitted.save(out, texts=fitted.documents_ is not None)
    table = fitted.state_.topics.table(TERMS, none=True)
    if not quiet:
        show_topics(table, repr(fitted)[1:-1], belief_of(fitted, out))
    notify(f"{escape(str(fitted.update_))}. Saved in {out}.")


@reads_texts
def evaluate(
    model: Model,
    source: Annotated[Path | None, Argument(help=HELP["evaluate"]["source"])] = None,
    *,
    reading: "ReadOptions",
    embeddings: Embeddings = None,
    folds: Annotated[int, Option(min=2, help=HELP["evaluate"]["folds"])] = 3,
    memory: Memory = None,
    work: Work = None,
    as_json: AsJson = False,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Hide labels, predict them with everything that the model was fitted with, and compare with a baseline."""
    import polars as pl

    fitted = load(model)
    with work_folder(None, work) as use, working() as progress:
        attach(fitted, source, reading, use, memory, progress)
        vectors = named_embeddings(embeddings, fitted)
        result = fitted.evaluate(embeddings=vectors, folds=folds, progress=progress)
    if out is not None:
        write(pl.DataFrame(result.table()), out)
    if as_json:
        print(json.dumps(result.tables(), ensure_ascii=False))
    elif not quiet:
        show_evaluation(result)


def belief_of(fitted: "TopicModel", model: Path, source: str | Path | None = None) -> str:
    """The belief of a model; where a share is not known, with the command that starts or ends the way to it."""
    from topicsteer.analysis.documents_to_label import FIRST_AT_RANDOM
    from topicsteer.analysis.survey_design import AT_RANDOM

    if not fitted.state_.open:
        return fitted.belief
    table = "TABLE" if source is None else str(source)
    drawn = fitted.state_.label_origin.by_chance.sum() >= FIRST_AT_RANDOM
    options = ["--for", "shares", "-n", str(FIRST_AT_RANDOM), "--out", "next.xlsx"]
    words = ["prevalence", str(model), table] if drawn else ["suggest", str(model), table, *options]
    belief = fitted.belief.replace(f"{AT_RANDOM}.", "label 50 documents at random:")
    return f"{belief} {shlex.join(['topicsteer', *words])}"


def stop_if_interrupted(model: "TopicModel") -> None:
    """End the command after Ctrl-C in a fit; nothing is saved."""
    if model.state_.interrupted:
        notify("Interrupted: nothing was saved.")
        raise Exit(130)


# Topics of the built-in corpus without a single label: free topics should find them.
UNNAMED = ("concurrency", "email", "files and formats", "graphical interfaces", "networking")


def demo(
    out: Annotated[Path, Option("--out", "-o", help=HELP["demo"]["out"])] = Path("report.html"), seed: Seed = 0
) -> None:
    """Run the built-in corpus end to end: fit, topics, one document explained, a report."""
    from topicsteer import TopicModel
    from topicsteer.analysis.prevalence import COLUMNS
    from topicsteer.corpora import load_docstrings
    from topicsteer.labels.supervision import CHOSEN

    with working() as progress:
        complete = load_docstrings()
        some = complete.hide_labels(0.9, seed)
        labels = [[topic for topic in own if topic not in UNNAMED] or [NONE] * bool(own) for own in some.labels]
        chosen = ["random" if own else None for own in labels]
        documents = replace(some, labels=labels, columns={**some.columns, CHOSEN: chosen})
        model = TopicModel(world="open", random_state=seed).fit(documents, progress=progress)
        stop_if_interrupted(model)
    kept = sum(map(bool, labels))
    notify(f"The docstrings of installed packages: {len(labels):,} documents, {kept:,} of them with their labels.")
    table = model.state_.topics.table(TERMS, none=True)
    show_topics(table, "Topics of the built-in corpus", model.belief)
    with working() as progress:
        found = model.findings.shares(progress=progress)
    show(shares(found.table()), "Shares of the topics, from the random labels", COLUMNS)
    notify("\nAn unlabelled document, explained word by word:\n")
    Console().print(model.explain(documents.texts[documents.ids.index("scipy.linalg.svd")][:600]))
    with working() as progress:
        model.report(out, title="The docstrings of Python's scientific packages", progress=progress)
    here = "topicsteer" if shutil.which("topicsteer") else shlex.quote(sys.argv[0])  # make demo: in .venv
    notify(f"\nThe report is in {out}. Next: {here} label (label in the browser), or {here} fit yours.csv")


# --- a fitted model ---


def topics(
    model: Model,
    as_json: AsJson = False,
    out: Out = None,
    codebook: Annotated[Path | None, Option(help=HELP["topics"]["codebook"])] = None,
    quiet: Quiet = False,
) -> None:
    """List the topics of a model: name, known or free, labelled documents, terms."""
    fitted = load(model)
    if codebook is not None:
        write_codebook(fitted, codebook)
        return
    table = {name: np.asarray(values).tolist() for name, values in fitted.state_.topics.table(none=True).items()}
    if as_json and out is None:
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    elif out is not None:
        import polars as pl

        from topicsteer.analysis.topics import COLUMNS

        write(pl.DataFrame(table), out, formats=COLUMNS)
    else:
        show_topics(table, f"Topics of {model}", belief_of(fitted, model))


def write_codebook(fitted: "TopicModel", path: Path) -> None:
    """Write the known topics to a file for ``--topics``."""
    from topicsteer.model.settings import write_topics

    check_suffix(path, (".csv", ".jsonl", ".parquet"))  # the formats that --topics reads
    if path.exists():
        raise BadParameter(f"{path} exists: choose another name.")
    write_topics(fitted, path)
    notify(f"The topics are in {path}. Edit it, and pass it to fit or label with --topics {path}.")


@reads_texts
def predict(
    model: Model,
    source: Source,
    out: Out = None,
    *,
    reading: "ReadOptions",
    embeddings: Embeddings = None,
    quiet: Quiet = False,
) -> None:
    """Predict topics: the rows of the table with predicted topics, and membership in each topic and in none of them."""
    fitted, look = load(model), out is None and sys.stdout.isatty()
    as_text = out is None or out.suffix == ".csv"  # these round numbers
    with working() as progress:
        blocks = DocumentBlocks(source, reading.after(fitted.state_.reading))
        names = (*fitted.state_.topics.names, NONE)
        if not fitted.state_.topics.n_known:
            notify("The model has no known topics, so it predicts none: fit it with labels.")
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
        notify(f"{len(seen['id'])} of {rows:,} rows, without memberships. --out FILE writes everything.")
    elif out is not None:
        notify(f"{rows:,} rows are in {escape(str(out))}.")
    if fitted.state_.topics.n_known:
        notify("Counting the column predicted gives no share of a topic: topicsteer prevalence estimates shares.")


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


def explain(
    model: Model,
    text: Annotated[str, Argument(help=HELP["explain"]["text"])],
    as_json: AsJson = False,
) -> None:
    """Explain which words put a text into which topics."""
    if os.path.isfile(text):
        raise ValueError(f"{text} is a file: pass a text, or - for standard input.")
    fitted = load(model)
    explanation = fitted.explain(sys.stdin.read() if text == "-" else text)
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
    evaluate: Annotated[bool, Option("--evaluate", help=HELP["report"]["evaluate"])] = False,
    embeddings: Embeddings = None,
    no_map: Annotated[bool, Option("--no-map", help=HELP["report"]["no_map"])] = False,
    quiet: Quiet = False,
) -> None:
    """Write a report: topics, map, examples and shares as HTML, or the paper trail as Markdown (.md)."""
    check_suffix(out, (".html", ".htm", ".md"))
    if out.suffix == ".md" and by:
        raise BadParameter("--by is for .html")
    with working() as progress:
        with silence():
            fitted = load_with_documents(model, source, reading)
        documents = fitted.documents_
        if (by or evaluate) and documents is None:
            raise ValueError("--by and --evaluate need the training documents: pass their file after the model.")
        found = None
        if evaluate and documents is not None:
            vectors = named_embeddings(embeddings, fitted)
            found = fitted.evaluate(embeddings=vectors, progress=progress)
        name = title or f"Topics of {source.name if source else model}"
        if out.suffix == ".md":
            estimated = fitted.findings.shares(progress=progress) if fitted.state_.drawn and documents else None
            fitted.findings.methods(out, evaluation=found, shares=estimated, title=name)
        else:
            fitted.report(out, title=name, by=by or (), evaluation=found, map=not no_map, progress=progress)
    notify(f"The report is in {escape(str(out))}.")


@reads_texts
def suggest(
    model: Model,
    source: Annotated[Path, Argument(help=HELP["suggest"]["source"])],
    n: Annotated[int, Option("-n", min=1, help=HELP["suggest"]["n"])] = 20,
    topic: Annotated[str | None, Option(help=HELP["suggest"]["topic"])] = None,
    how: Annotated[Literal["useful", "shares", "random"], Option("--for", help=HELP["suggest"]["how"])] = "useful",
    out: Out = None,
    *,
    reading: "ReadOptions",
    quiet: Quiet = False,
) -> None:
    """Suggest documents to label next: a table with an empty column label, for update --labels or fit --label-file."""
    with working():
        fitted = load_with_documents(model, source, reading)
        table = fitted.labels.suggest(n, topic=topic, how=how)
    write(precise(table), out, readable=only("id", "guess", "why", "text"))
    if out is not None:
        filled = [("update", model, "--labels", out), ("fit", source, "--label-file", out)]
        after = " or ".join(shlex.join(["topicsteer", *map(str, words)]) for words in filled)
        notify(escape(f"Fill in the column label: topics, with ; between them, or {NONE}. Then: {after}"))
    if not len(table):
        why = "There is no unlabelled document to choose from."
        if topic is not None:
            why = f"No unlabelled document is given the topic {escape(topic)}."
        notify(why)


def precise(table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with enough digits of small probabilities."""
    import polars as pl

    digits = [None if value is None else f"{value:.6g}" for value in table["probability"].to_list()]
    return table.with_columns(pl.Series("probability", digits, dtype=pl.String))


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
    fitted = load_with_documents(model, source, reading)
    rows = LONGEST_LIST if n is None else None
    write(fitted.labels.audit(n), out, readable=only("id", "why", "text"), rows=rows)


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
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["edit"]["out"])] = None,
    quiet: Quiet = False,
) -> None:
    """Edit the topics of a model: adopt, rename, merge or move one."""
    from topicsteer.model.state import writing

    edits = {"adopt": adopt, "rename": rename, "merge": merge, "move": move}
    given = {name: value for name, value in edits.items() if value is not None}
    if len(given) != 1:  # one edit renumbers the topics that another would name
        raise ValueError(f"choose one of {', '.join(f'--{name}' for name in edits)}; run the command once per edit.")
    out = model if out is None else out
    with writing(out), working():
        fitted = load(model)
        had_texts = fitted.documents_ is not None
        if source is not None:
            fitted.attach(read(source, reading, fitted))
        found = apply_edit(fitted, given)
        fitted.save(out, texts=had_texts)
    if found is None:
        if not quiet:
            show_topics(fitted.state_.topics.table(none=True), repr(fitted)[1:-1], belief_of(fitted, out, source))
        notify(f"Saved in {out}.")
    else:
        write(found, None, readable=dict)
        notify(escape(f"{belief_of(fitted, out, source)} Saved in {out}."))
        notify(f"Next: check these documents, and pass them as labels: topicsteer update {out} --labels FILE")


def apply_edit(fitted: "TopicModel", given: dict[str, str]) -> Any:
    """Edit the model; return the documents that are proposed for an adopted topic."""
    import polars as pl

    if "rename" in given:
        fitted.edit.rename(*pair(given["rename"]))
    elif "merge" in given:
        topics = given["merge"]
        fitted.edit.merge([topic.strip() for topic in topics.split(";" if ";" in topics else ",")])
    elif "move" in given:
        topic, _, parent = (part.strip() for part in given["move"].partition("="))
        fitted.edit.move(topic, parent or None)
    else:
        topic, name = pair(given["adopt"])
        return fitted.edit.adopt(topic, name).with_columns(pl.lit(name).alias("label"))
    return None


# --- coders and shares ---


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
    with working():
        fitted = load_with_documents(model, source, reading)
        found = read_coders(fitted, coder, reading)
        table, differ = fitted.findings.coders(found), fitted.findings.disagreements(found)
    if disagreements is not None:
        write(differ, disagreements)
    if out is None and sys.stdout.isatty():
        for title, own in comparisons(table.to_dict(as_series=False)):
            show(own, title)
    else:
        write(table, out)
    for name in found:
        notify(escape(summary(name, table, differ, disagreements is None)))


def read_coders(fitted: "TopicModel", given: list[str], reading: "ReadOptions") -> dict[str, "Coder"]:
    """Read the files of ``--coder NAME=FILE``, and print guesses and rows that were not used as they are."""
    from topicsteer.model.findings import coders_of

    files: dict[str, str] = {}
    for name, path in map(pair, given):
        if name in files:
            raise ValueError(f"two coders have the name {name!r}: choose another.")
        files[name] = path
    found = coders_of(fitted, files, report=notify_report)
    return {coder.name: coder for coder in found}


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
    by: Annotated[str | None, Option(help=TEXTS["by"])] = None,
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
    with work_folder(model, work) as use, working() as progress:
        attach(fitted, source, reading, use, memory, progress)
        answers = read_coders(fitted, coder or [], reading)
        found = fitted.findings.shares(by, coders=answers, weight=weight, cluster=cluster, progress=progress)
        shown = {"shares": found.table, "differences": found.differences, "trend": found.trend}[table]()
    write(pl.DataFrame(shown, infer_schema_length=None), out, readable=shares, formats=COLUMNS)
    for sentence in found.sentences:
        colour = "yellow" if sentence.startswith(WARNING) else "default"
        notify(f"[{colour}]{escape(sentence)}[/{colour}]")
    if precision is not None:
        notify(escape(found.advice(precision / 100)))


# --- labelling ---


@reads
def label(
    source: Annotated[Path | None, Argument(help=HELP["label"]["source"])] = None,
    *,
    reading: "ReadOptions",
    topics: TopicsFile = None,
    world: World = None,
    path_separator: PathSeparator = None,
    embeddings: Embeddings = None,
    project: Annotated[Path | None, Option(help=HELP["label"]["project"])] = None,
    backup: Annotated[Path | None, Option(help=HELP["label"]["backup"])] = None,
    port: Annotated[int | None, Option(min=0, max=65535, help=HELP["label"]["port"])] = None,
    no_browser: Annotated[bool, Option("--no-browser", help=HELP["label"]["no_browser"])] = False,
    host: Annotated[str, Option(help=HELP["label"]["host"])] = "127.0.0.1",
    password: Annotated[str | None, Option(envvar="TOPICSTEER_PASSWORD", help=HELP["label"]["password"])] = None,
) -> None:
    """Open the workbench: label documents in the browser, watch the topics follow, and correct them."""
    try:
        from topicsteer.app.web.guard import check_address
        from topicsteer.app.web.routes import Server
        from topicsteer.app.workbench.project import back_up
        from topicsteer.app.workbench.workbench import Workbench, project_path
    except ImportError as error:
        packages = "starlette uvicorn websockets"
        raise ImportError(f"{error}. The workbench needs more packages: pip install {packages}") from error

    check_address(host, password)
    path = project_path(source, project)
    if backup is not None:
        back_up(path, backup)
        notify(f"The copy of {path} is in {backup}.")
        return
    if not path.exists():
        with working() as progress:
            named_embeddings(embeddings)  # refused before the work if it cannot be used
            documents = to_label(source, reading)
            progress("project", 0, None, f"{len(documents):,} documents")
            Workbench.make(path, documents, source=source, path_separator=path_separator, embeddings=embeddings)
        notify(f"The project file {path} holds documents, topics and labels.")
    elif embeddings is not None:
        raise BadParameter(f"{path} has its own embeddings: choose others in a new project, with --project.")
    end_in_order()
    workbench = Workbench(path, source=source, read=lambda table: to_label(table, reading))
    if topics is not None:
        notify(escape(workbench.import_topics("command line", topics, topics.name)))
        if workbench.views.fitted is None:
            workbench.fit()  # words are enough for a first look
    if world is not None:
        workbench.session.change_settings(world=world)

    opener = Scratch()

    def ready(address: str, look: str) -> None:
        notify(workbench.notice or "The workbench runs at this address; press Ctrl-C to stop it.")
        print(address, flush=True)
        notify(f"For people who only look: {look}")
        if not no_browser:
            open_privately(address, opener.path)

    def renewed(address: str) -> None:
        notify(f"Opened. For another browser: {address}")

    try:
        Server(workbench, host, port, password, ready, renewed).run()
    except KeyboardInterrupt:
        notify(f"All labels are saved in {path}.")
    finally:
        workbench.close()
        opener.remove()


def open_privately(address: str, folder: Path) -> None:
    """Open an address in the browser through a file that only this user can read: others can see command lines."""
    import webbrowser

    from topicsteer.system.templates import render

    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(render("app/web/templates/open.html", refresh=f"0; url={address}"))
    webbrowser.open(page.as_uri())


def end_in_order() -> None:
    """Exit on a terminated or closed terminal, so that no process and no temporary folder is left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def to_label(source: Path | None, reading: "ReadOptions") -> "Documents":
    """Documents for a new project; the built-in corpus keeps a few of its labels."""
    from topicsteer.corpora import UnclearLabels, load_docstrings

    if source is None:
        return load_docstrings().hide_labels(0.95)
    try:
        documents = read(source, reading)
    except UnclearLabels as error:  # the workbench starts without labels
        notify(escape(f"{error}. No labels were read."))
        return read(source, replace(reading, labels=False))
    if reading.labels is None and reading.label_file is None and not source.is_dir() and all(documents.labels):
        # A column with a value in every row would leave nothing to label.
        notify("The label column has a value in every row, so it is used for groups. Use --labels to keep it.")
        with silence():
            return read(source, replace(reading, labels=False))
    return documents


# --- the application ---

# Exit codes of failures; 0 is success, and 2 a wrong option.
CODES = {Kind.INPUT: 1, Kind.DEFECT: 3, Kind.MACHINE: 4}
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Options with several values, of all commands and of the report.
REPEATABLE = {"--coder", "--text", "report --by"}
app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)
for command in (fit, report, evaluate, predict, prevalence, suggest, label, coders):
    app.command()(command)
for command in (topics, explain, audit, edit, update, demo):
    app.command(rich_help_panel="More")(command)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"topicsteer {__version__}")
        raise typer.Exit


@app.callback(help="Topics that follow your labels.")
def main_options(
    version: Annotated[bool, typer.Option("--version", callback=print_version, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options before a command; ``--debug`` may stand anywhere, because :func:`main` reads it first."""


def only_once(arguments: list[str]) -> None:
    """Refuse options that are given twice: the parser would drop all values but one."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    names = [word.split("=")[0] for word in arguments if word.startswith("--")]
    for name in names:
        if names.count(name) > 1 and not {name, f"{command} {name}"} & REPEATABLE:
            hint = " Several columns of labels: --labels tea,coffee or --labels 'cs.*'." if name == "--labels" else ""
            raise ValueError(f"{name} is given twice, but only one value can be used.{hint}")


def main() -> None:
    """Run a command; an error prints a sentence and exits with a code of :data:`CODES`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # half of a surrogate pair must not end a command
            stream.reconfigure(errors="backslashreplace")
    words = list(takewhile(lambda word: word != "--", sys.argv[1:]))
    debug, after = "--debug" in words, sys.argv[1 + len(words) :]
    logging.getLogger("topicsteer").setLevel(logging.DEBUG if debug else logging.NOTSET)
    try:
        only_once(words)
        code = run([word for word in words if word != "--debug"] + after)
    except Exception as error:
        code = report_failure(error, debug)
    if code:
        sys.exit(code)


def run(words: list[str]) -> int:
    """Run the command of these words, and return the exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: notify(f"[yellow]warning:[/yellow] {escape(str(message))}")
        try:
            code = app(words)
        except SystemExit as end:
            code = end.code
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            sys.stdout.flush()  # a full disk is an error of this command
        if code == INTERRUPTED:
            notify("interrupted")
    return code if isinstance(code, int) else 0


def report_failure(error: Exception, debug: bool) -> int:
    """Print one sentence about an exception, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has ended
        abandon_output()
        return CODES[Kind.INPUT]
    if debug:
        traceback.print_exception(error)
    found = failure(error)
    more = "" if debug or found.kind is not Kind.DEFECT else ". Run it again with --debug, and report the traceback"
    notify(f"[red]error:[/red] {escape(found.sentence + more)}")
    abandon_output()
    return CODES[found.kind]


def abandon_output() -> None:
    """Discard output that cannot be written, so that Python does not complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
