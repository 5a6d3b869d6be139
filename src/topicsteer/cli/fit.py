"""Commands that fit a model: fit, update, evaluate."""

import json
import shlex
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Exit, Option

from topicsteer.cli.blocks import read_any
from topicsteer.cli.large import cluster, read_corpus, work_folder
from topicsteer.cli.options import (
    HELP,
    MACHINE_PANEL,
    AsJson,
    Embeddings,
    Free,
    FreeIn,
    Incomplete,
    Large,
    Memory,
    Model,
    NoMap,
    PathSeparator,
    Quiet,
    Seed,
    Segmenter,
    Source,
    Threads,
    TopicsFile,
    Unfinished,
    Verbose,
    Work,
    World,
    number_or_auto,
    or_standard_input,
    reads,
    table_file,
)
from topicsteer.cli.readable import changes
from topicsteer.cli.terminal import (
    escape,
    load,
    named_embeddings,
    needed_embeddings,
    notify,
    notify_report,
    show,
    show_evaluation,
    show_seconds,
    show_topics,
    working,
    write,
)

if TYPE_CHECKING:
    from topicsteer import TopicModel
    from topicsteer.corpora import Documents, ReadOptions
    from topicsteer.labels.codebook import Codebook
    from topicsteer.model.settings import FreeTopics
    from topicsteer.model.spool import Spool
    from topicsteer.model.state import FittedState

# Terms per topic in the printed table.
TERMS = 6
# Topics at most in the printed table of an update.
CHANGES = 20


@reads
def fit(
    source: Large,
    *,
    reading: "ReadOptions",
    topics: TopicsFile = None,
    path_separator: PathSeparator = None,
    incomplete: Incomplete = False,
    out: Annotated[Path, Option("--out", "-o", help=HELP["fit"]["out"])] = Path("model"),
    free: Free = None,
    free_in: FreeIn = None,
    world: World = None,
    embeddings: Embeddings = None,
    segmenter: Segmenter = None,
    seed: Seed = 0,
    threads: Threads = None,
    keep_texts: Annotated[bool, Option("--keep-texts", help=HELP["fit"]["keep_texts"])] = False,
    final: Annotated[bool, Option("--final", help=HELP["fit"]["final"])] = False,
    report: Annotated[Path | None, Option(help=HELP["fit"]["report"])] = None,
    no_map: NoMap = False,
    evaluate: Annotated[bool, Option("--evaluate", help=HELP["fit"]["evaluate"])] = False,
    tables: Annotated[Path | None, Option(help=HELP["fit"]["tables"])] = None,
    memory: Annotated[str | None, Option(help=HELP["fit"]["memory"], rich_help_panel=MACHINE_PANEL)] = None,
    work: Annotated[Path | None, Option(help=HELP["fit"]["work"], rich_help_panel=MACHINE_PANEL)] = None,
    workers: Annotated[int | None, Option(min=1, help=HELP["fit"]["workers"], rich_help_panel=MACHINE_PANEL)] = None,
    scheduler: Annotated[str | None, Option(help=HELP["fit"]["scheduler"], rich_help_panel=MACHINE_PANEL)] = None,
    save_unfinished: Unfinished = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table of texts with some labels, and save it."""
    with work_folder(out, work) as use, cluster(workers, scheduler, quiet) as client, working(quiet) as progress:
        wanted: FreeTopics = {None: free, **dict(map(free_inside, free_in))} if free_in else free
        model = new_model(wanted, seed, threads, incomplete, world, segmenter)
        model.set_params(path_separator=path_separator)
        vectors = named_embeddings(embeddings)
        terms = model.new_vectorizer()
        documents, folder = read_corpus(source, reading, use, memory, client, progress, quiet, terms)
        if topics is not None:
            model.set_params(topics=known_topics(topics, documents, quiet, path_separator))
        model.fit(documents, embeddings=vectors, folder=folder, client=client, progress=progress)
        stop_if_interrupted(model, save=save_unfinished)
        model.save(out, texts=keep_texts, updatable=not final)
        found = model.evaluate(documents, embeddings=vectors, progress=progress) if evaluate else None
        if tables is not None:
            model.to_parquet(tables, client=client)
        if report is not None:
            title = f"Topics of {Path(source).name}"
            model.report(report, title=title, evaluation=found, map=not no_map, progress=progress)
        table, belief = model.result_.table(TERMS, none=True), model.belief  # while the files on disk exist
        notes = topic_notes(model, topics, path_separator)
    show_topics(table, repr(model)[1:-1], belief=belief, quiet=quiet)
    if verbose:
        show_seconds(model.stage_seconds_)
    if found is not None:
        show_evaluation(found, quiet)
    for note in notes:
        notify(escape(note), quiet)
    notify(saved_files(out, tables, report, source), quiet)
    if model.interrupted:
        raise Exit(130)


@reads
def update(
    model: Model,
    source: Annotated[Path | None, Argument(callback=or_standard_input, help=HELP["update"]["source"])] = None,
    *,
    reading: "ReadOptions",
    forget_factor: Annotated[float, Option(min=0, max=1, help=HELP["update"]["forget_factor"])] = 1.0,
    grow: Annotated[bool, Option(help=HELP["update"]["grow"])] = True,
    new_topics: Annotated[bool, Option(help=HELP["update"]["new_topics"])] = True,
    embeddings: Embeddings = None,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["update"]["out"])] = None,
    threads: Threads = None,
    save_unfinished: Unfinished = False,
    quiet: Quiet = False,
) -> None:
    """Update a model with new documents, labels for earlier documents (--label-file alone) and new topics."""
    from topicsteer.model.files import writing

    out = model if out is None else out
    with writing(out), working(quiet) as progress:  # another update waits, and then starts from this one's result
        fitted = load(model)
        fitted.threads, before = threads, fitted.state_
        reading = reading.after(before.reading)
        documents = late_labels(fitted, reading, quiet) if source is None else read_any(source, reading, quiet)
        vectors = named_embeddings(embeddings, fitted, documents)
        fitted.update(
            documents,
            embeddings=vectors,
            forget_factor=forget_factor,
            grow=grow,
            new_topics=new_topics,
            progress=progress,
        )
        interrupted = fitted.state_ is not before and fitted.interrupted
        if interrupted:
            stop_if_interrupted(fitted, save=save_unfinished)
        fitted.save(out, texts=fitted.documents_ is not None)
    show_changes(fitted, before, quiet)
    notify(f"{escape(str(fitted.update_))}. Saved in {out}.", quiet)
    if interrupted:
        raise Exit(130)


def topic_notes(model: "TopicModel", topics: Path | None, path_separator: str | None) -> list[str]:
    """Sentences about keywords that several topics share, and about labels that look like paths."""
    from topicsteer.analysis.keyword_advice import ambiguity_notes
    from topicsteer.corpora.label_files.paths import path_hint

    found = ambiguity_notes(model.result_, model.codebook) if topics is not None else []
    hint = path_hint(map(str, model.codebook.names)) if path_separator is None else ""
    return [*found, *filter(None, [hint])]


def show_changes(fitted: "TopicModel", before: "FittedState", quiet: bool) -> None:
    """Print the topics that an update changed, largest change of the share first, and the belief."""
    from topicsteer.analysis.compare import compare

    table = compare(fitted.result_, before.topics).table(changed=True)
    del table["before"], table["similarity"]
    size = [abs((now or 0) - (was or 0)) for now, was in zip(table["share"], table["share_before"], strict=True)]
    order = sorted(range(len(size)), key=lambda k: -size[k])[:CHANGES]
    some = f"; the {CHANGES} largest changes" if len(size) > CHANGES else ""
    title = f"{repr(fitted)[1:-1]}\n{len(size)} of {len(fitted.result_)} topics changed{some}"
    if order:
        show(changes({name: [values[k] for k in order] for name, values in table.items()}), title, quiet)
    else:
        notify(escape(title), quiet)
    notify(escape(fitted.belief), quiet)


@reads
def evaluate(
    source: Source,
    *,
    reading: "ReadOptions",
    model: Annotated[Path | None, Option(help=HELP["evaluate"]["model"])] = None,
    path_separator: PathSeparator = None,
    incomplete: Incomplete = False,
    free: Free = None,
    world: World = None,
    embeddings: Embeddings = None,
    segmenter: Segmenter = None,
    folds: Annotated[int, Option(min=2, help=HELP["evaluate"]["folds"])] = 3,
    curve: Annotated[bool, Option(help=HELP["evaluate"]["curve"])] = True,
    seed: Seed = 0,
    threads: Threads = None,
    memory: Memory = None,
    work: Work = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, Option("--out", "-o", callback=table_file, help=HELP["evaluate"]["out"])] = None,
    quiet: Quiet = False,
) -> None:
    """Hide labels, predict them, and compare with logistic regression and the nearest centroid."""
    import polars as pl

    with work_folder(None, work) as use, working(quiet) as progress:
        fitted = None if model is None else load(model)
        reading = reading if fitted is None else reading.after(fitted.state_.reading)
        judged = new_model(free, seed, threads, incomplete, world, segmenter) if fitted is None else fitted
        if fitted is not None and segmenter is not None:
            raise BadParameter("--model has its own terms: use either --model or --segmenter")
        vectors = named_embeddings(embeddings)
        documents, _ = read_corpus(source, reading, use, memory, None, progress, quiet, judged.new_vectorizer())
        if vectors is None and fitted is not None:
            vectors = needed_embeddings(fitted, documents)
        if fitted is not None:  # its settings, except for options of this command
            given = {"free_topics": free, "world": None if world is None else str(world), "threads": threads}
            judged.set_params(**{name: value for name, value in given.items() if value is not None})
        if path_separator is not None:
            judged.set_params(path_separator=path_separator)
        result = judged.evaluate(documents, embeddings=vectors, folds=folds, curve=curve, progress=progress)
    if out is not None:
        write(pl.DataFrame(result.table()), out, quiet)
    if as_json:
        print(json.dumps(result.tables(), ensure_ascii=False))
        return
    show_evaluation(result, quiet)


def topics_file(
    model: Model,
    out: Annotated[Path, Option("--out", "-o", help=HELP["topics_file"]["out"])] = Path("topics.csv"),
    force: Annotated[bool, Option("--force", help=HELP["topics_file"]["force"])] = False,
    quiet: Quiet = False,
) -> None:
    """Write the known topics of a model, with proposed keywords, to a file for --topics."""
    from topicsteer.model.topics_file import write_topics
    from topicsteer.report.plain_tables import check_suffix

    check_suffix(out, (".csv", ".jsonl", ".parquet"))  # the formats that --topics reads
    if out.exists() and not force:
        raise BadParameter(f"{out} exists: choose another name with --out, or replace it with --force.")
    write_topics(load(model), out)
    notify(f"The topics are in {out}. Edit it, and pass it to fit or label with --topics {out}.", quiet)


def known_topics(
    path: Path, documents: "Documents | Spool", quiet: bool, path_separator: str | None = None
) -> "Codebook":
    """The topics of a topics file, followed by topics that only the labels have; probable mistakes are printed."""
    from topicsteer.corpora import Documents
    from topicsteer.labels.codebook import Codebook
    from topicsteer.labels.lineage import Lineage
    from topicsteer.model.topics_file import read_topics

    found = read_topics(path)
    for note in found.notes:
        notify(escape(f"{path}: {note}"), quiet)
    named = documents.topic_names if isinstance(documents, Documents) else documents.documents.topic_names
    lineage = Lineage.of(found.codebook, None, path_separator)
    more = [name for name in dict.fromkeys(map(lineage.topic, named)) if name not in found.codebook.names]
    later = Codebook.of_names([*found.codebook.names, *more], before=found.codebook)
    return Codebook((*found.codebook, *later.topics[len(found.codebook) :]))


def free_inside(value: str) -> tuple[str, int | str]:
    """A topic and the number of free topics inside it, from "topic=number"."""
    topic, _, number = (part.strip() for part in value.rpartition("="))
    if not topic:
        raise ValueError(f'--free-in {value!r} is not of the form "topic=number", such as "sport=3".')
    return topic, number_or_auto(number)


def new_model(
    free: "FreeTopics",
    seed: int,
    threads: int | None = None,
    incomplete: bool = False,
    world: str | None = None,
    segmenter: str | None = None,
) -> "TopicModel":
    """An unfitted model."""
    from topicsteer import TopicModel
    from topicsteer.text import TextVectorizer
    from topicsteer.text.segmenters import segmenter_of

    world = None if world is None else str(world)  # an enum is no plain value
    model = TopicModel(free, world=world, complete=not incomplete, random_state=seed, threads=threads)
    if segmenter is not None:
        segmenter_of(segmenter)  # a missing package is found before the work
        model.set_params(vectorizer=TextVectorizer(segmenter=segmenter, threads=threads))
    return model


def stop_if_interrupted(model: "TopicModel", *, save: bool | None = None) -> None:
    """End the command after Ctrl-C in a fit, unless its unfinished result is to be saved; None: there is no option."""
    if model.interrupted and not save:
        hint = "" if save is None else " To save the topics of an interrupted fit, use --save-unfinished."
        notify(f"Interrupted: nothing was saved.{hint}")
        raise Exit(130)


def saved_files(out: Path, tables: Path | None, report: Path | None, source: str | Path) -> str:
    """List the written files, and the command for a report."""
    saved = f"Saved in {out}. " + (f"The tables are in {tables}. " if tables else "")
    if report:
        return f"{saved}The report is in {report}."
    command = ["topicsteer", "report", str(out), str(source), "--out", "report.html"]
    return f"{saved}Next: {escape(shlex.join(command))}"


def late_labels(fitted: "TopicModel", reading: "ReadOptions", quiet: bool) -> "Documents":
    """Late labels of known documents, as documents without texts."""
    from topicsteer.corpora import BadRow, Documents, ReadError, read_labels
    from topicsteer.corpora.label_files.records import other_spellings
    from topicsteer.system.values import check_none

    if reading.label_file is None:
        raise ValueError("nothing to update: pass a file of documents, or late labels with --label-file.")
    columns = {name: value for name, value in reading.given().items() if name not in ("text", "label_file", "sheet")}
    found, known = read_labels(reading.label_file, **columns), {str(key): key for key in fitted.result_.ids}
    has: dict[Hashable, list[str]] = {}
    lacks: dict[Hashable, list[str]] = {}
    unknown = []
    for record in found.records:
        if record.id is None:
            raise ValueError(f"{reading.label_file}, {record.place}: late labels need the ids of their documents.")
        spellings = (str(record.id), *other_spellings(str(record.id)))
        key = next((known[one] for one in spellings if one in known), None)
        if key is None:
            unknown.append(BadRow(record.place, f"the model has no document with the id {record.id!r}"))
            continue
        try:
            check_none([*has.get(key, []), *record.labels])
        except ValueError as error:
            unknown.append(BadRow(record.place, f"with its earlier labels, the document has {error}"))
            continue
        has.setdefault(key, []).extend(record.labels)
        lacks.setdefault(key, []).extend(record.forbidden)
    report = replace(found.report, bad_rows=(*found.report.bad_rows, *unknown)).raise_for_bad_rows(reading.on_error)
    if not has:
        raise ReadError(f"no label matches a document of the model\n{report}")
    notify_report(report, quiet)
    return Documents(list(has), [""] * len(has), list(has.values()), forbidden=list(lacks.values()))
