"""Commands that fit a model: fit, update, evaluate, demo."""

import json
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Argument, Exit, Option

from topicsteer.cli import options
from topicsteer.cli.options import HELP, MACHINE_PANEL, reads
from topicsteer.cli.reading import cluster, load, named_embeddings, own_embeddings, read_any, read_corpus, work_folder
from topicsteer.cli.terminal import escape, notify, show_evaluation, show_topics, working, write

if TYPE_CHECKING:
    from topicsteer import TopicModel
    from topicsteer.corpora import Documents, ReadOptions
    from topicsteer.labels.codebook import Codebook
    from topicsteer.model.spool import Spool


# Terms per topic in the printed table.
TERMS = 6


@reads
def fit(
    source: options.Large,
    *,
    reading: "ReadOptions",
    topics: options.TopicsFile = None,
    path_separator: options.PathSeparator = None,
    incomplete: options.Incomplete = False,
    out: Annotated[Path, Option("--out", "-o", help=HELP["fit"]["out"])] = Path("model"),
    free: options.Free = None,
    world: options.World = None,
    embeddings: options.Embeddings = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    keep_texts: Annotated[bool, Option("--keep-texts", help=HELP["fit"]["keep_texts"])] = False,
    report: Annotated[Path | None, Option(help=HELP["fit"]["report"])] = None,
    memory: Annotated[str | None, Option(help=HELP["fit"]["memory"], rich_help_panel=MACHINE_PANEL)] = None,
    work: Annotated[Path | None, Option(help=HELP["fit"]["work"], rich_help_panel=MACHINE_PANEL)] = None,
    scheduler: Annotated[str | None, Option(help=HELP["fit"]["scheduler"], rich_help_panel=MACHINE_PANEL)] = None,
    quiet: options.Quiet = False,
) -> None:
    """Fit a model to a table of texts with some labels, and save it."""
    from topicsteer import TopicModel
    from topicsteer.model.spool import Spool

    with work_folder(out, work) as use, cluster(scheduler, quiet) as client, working(quiet) as progress:
        model = TopicModel(free, world=world, complete=not incomplete, random_state=seed, threads=threads)
        model.set_params(path_separator=path_separator)
        vectors = named_embeddings(embeddings)
        on_disk = client is not None
        documents = read_corpus(source, reading, use, memory, model, on_disk=on_disk, progress=progress, quiet=quiet)
        folder = use() if on_disk or isinstance(documents, Spool) else None
        if topics is not None:
            model.set_params(topics=known_topics(topics, documents, quiet, path_separator))
        model.fit(documents, embeddings=vectors, folder=folder, client=client, progress=progress)
        stop_if_interrupted(model)
        model.save(out, texts=keep_texts)
        if report is not None:
            model.report(report, title=f"Topics of {Path(source).name}", progress=progress)
        table, belief = model.state_.topics.table(TERMS, none=True), model.belief  # while the files on disk exist
        notes = topic_notes(model, topics, path_separator)
    show_topics(table, repr(model)[1:-1], belief=belief, quiet=quiet)
    for note in notes:
        notify(escape(note), quiet)
    command = ["topicsteer", "report", str(out), str(source), "--out", "report.html"]
    after = f"Next: {shlex.join(command)}" if report is None else f"The report is in {report}."
    notify(f"Saved in {out}. {escape(after)}", quiet)


@reads
def update(
    model: options.Model,
    source: Annotated[Path | None, Argument(callback=options.or_standard_input, help=HELP["update"]["source"])] = None,
    *,
    reading: "ReadOptions",
    new_topics: Annotated[bool, Option(help=HELP["update"]["new_topics"])] = True,
    embeddings: options.Embeddings = None,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["update"]["out"])] = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Update a model with new documents, labels for earlier documents (--label-file alone) and new topics."""
    from topicsteer.model.model_files import writing

    out = model if out is None else out
    with writing(out), working(quiet) as progress:  # another update waits, and then starts from this one's result
        fitted = load(model)
        fitted.threads, before = threads, fitted.state_
        reading = reading.after(before.reading)
        documents = read_any(source, reading, fitted, quiet)
        vectors = named_embeddings(embeddings, fitted)
        fitted.update(documents, embeddings=vectors, new_topics=new_topics, progress=progress)
        if fitted.state_ is not before:
            stop_if_interrupted(fitted)
        fitted.save(out, texts=fitted.documents_ is not None)
    table = fitted.state_.topics.table(TERMS, none=True)
    show_topics(table, repr(fitted)[1:-1], belief=fitted.belief, quiet=quiet)
    notify(f"{escape(str(fitted.update_))}. Saved in {out}.", quiet)


def topic_notes(model: "TopicModel", topics: Path | None, path_separator: str | None) -> list[str]:
    """Sentences about keywords that several topics share, and about labels that look like paths."""
    from topicsteer.analysis.label_advice import ambiguity_notes
    from topicsteer.corpora.columns import path_hint

    found = ambiguity_notes(model.state_.topics, model.codebook) if topics is not None else []
    hint = path_hint(map(str, model.codebook.names)) if path_separator is None else ""
    return [*found, *filter(None, [hint])]


@reads
def evaluate(
    source: options.Source,
    *,
    reading: "ReadOptions",
    model: Annotated[Path | None, Option(help=HELP["evaluate"]["model"])] = None,
    path_separator: options.PathSeparator = None,
    incomplete: options.Incomplete = False,
    free: options.Free = None,
    world: options.World = None,
    embeddings: options.Embeddings = None,
    folds: Annotated[int, Option(min=2, help=HELP["evaluate"]["folds"])] = 3,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    memory: options.Memory = None,
    work: options.Work = None,
    as_json: options.AsJson = False,
    out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:
    """Hide labels, predict them, and compare with logistic regression and the nearest centroid."""
    import polars as pl

    from topicsteer import TopicModel

    with work_folder(None, work) as use, working(quiet) as progress:
        fitted = None if model is None else load(model)
        reading = reading if fitted is None else reading.after(fitted.state_.reading)
        judged = TopicModel(complete=not incomplete, random_state=seed) if fitted is None else fitted
        # Options of this command come before the settings of the model.
        given = {"free_topics": free, "world": world, "threads": threads, "path_separator": path_separator}
        judged.set_params(**{name: value for name, value in given.items() if value is not None})
        vectors = named_embeddings(embeddings)
        documents = read_corpus(source, reading, use, memory, judged, progress=progress, quiet=quiet)
        if vectors is None and fitted is not None:
            vectors = own_embeddings(fitted)
        result = judged.evaluate(documents, embeddings=vectors, folds=folds, progress=progress)
    if out is not None:
        write(pl.DataFrame(result.table()), out, quiet)
    if as_json:
        print(json.dumps(result.tables(), ensure_ascii=False))
        return
    show_evaluation(result, quiet)


def known_topics(
    path: Path, documents: "Documents | Spool", quiet: bool, path_separator: str | None = None
) -> "Codebook":
    """The topics of a topics file, followed by topics that only the labels have; probable mistakes are printed."""
    from topicsteer.corpora import Documents
    from topicsteer.labels.codebook import Codebook, Lineage
    from topicsteer.model.topics_file import read_topics

    found = read_topics(path)
    for note in found.notes:
        notify(escape(f"{path}: {note}"), quiet)
    named = documents.topic_names if isinstance(documents, Documents) else documents.documents.topic_names
    lineage = Lineage.of(found.codebook, None, path_separator)
    more = [name for name in dict.fromkeys(map(lineage.topic, named)) if name not in found.codebook.names]
    later = Codebook.of_names([*found.codebook.names, *more], before=found.codebook)
    return Codebook((*found.codebook, *later.topics[len(found.codebook) :]))


def stop_if_interrupted(model: "TopicModel") -> None:
    """End the command after Ctrl-C in a fit; nothing is saved."""
    if model.state_.interrupted:
        notify("Interrupted: nothing was saved.")
        raise Exit(130)


# Topics of the built-in corpus without a single label: free topics should find them.
UNNAMED = ("concurrency", "email", "files and formats", "graphical interfaces", "networking")


def demo(
    out: Annotated[Path, Option("--out", "-o", help=HELP["demo"]["out"])] = Path("report.html"), seed: options.Seed = 0
) -> None:
    """Run the built-in corpus end to end: fit, topics, one document explained, a report."""
    from topicsteer import TopicModel
    from topicsteer.corpora import load_docstrings

    with working() as progress:
        complete = load_docstrings()
        some = complete.hide_labels(0.9, seed)
        labels = [[topic for topic in own if topic not in UNNAMED] for own in some.labels]
        documents = replace(some, labels=labels)
        model = TopicModel(world="open", random_state=seed).fit(documents, progress=progress)
        stop_if_interrupted(model)
    kept = sum(map(bool, labels))
    notify(f"The docstrings of installed packages: {len(labels):,} documents, {kept:,} of them with their labels.")
    table = model.state_.topics.table(TERMS, none=True)
    show_topics(table, "Topics of the built-in corpus", belief=model.belief)
    notify(_truth(table, complete))
    notify("\nAn unlabelled document, explained word by word:\n")
    Console().print(model.explain(documents.texts[documents.ids.index("scipy.linalg.svd")][:600]))
    with working() as progress:
        model.report(out, title="The docstrings of Python's scientific packages", progress=progress)
    here = "topicsteer" if shutil.which("topicsteer") else shlex.quote(sys.argv[0])  # make demo: in .venv
    notify(f"\nThe report is in {out}. Next: {here} label (label in the browser), or {here} fit yours.csv")


def _truth(table: Any, complete: "Documents") -> str:
    """A comparison of the estimate of no known topic with the complete labels."""
    shares = dict(zip(table["kind"], table["share"], strict=True))
    outside = sum(not set(own) - set(UNNAMED) for own in complete.labels) / len(complete)
    return (
        f"Nobody named {', '.join(UNNAMED[:-1])} and {UNNAMED[-1]}: all labels of these topics were removed."
        f" In truth, {outside:.0%} of the documents have no known topic; the estimate is {shares['none']:.0%}."
    )
