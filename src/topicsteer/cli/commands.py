"""The command line: each command parses, calls the library and prints."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from topicsteer import __version__
from topicsteer.cli.options import (
    TOPIC_FILE,
    AsCsv,
    AsJson,
    Bad,
    Forbidden,
    Free,
    IdOption,
    Incomplete,
    LabelFile,
    LabelsOption,
    Large,
    Model,
    OnError,
    Out,
    Quiet,
    Seed,
    Separator,
    Source,
    TextColumnOption,
    Threads,
)
from topicsteer.cli.terminal import amount, console, escape, say, show, show_evaluation, working
from topicsteer.system.safe_text import visible

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(help="Public corpora for experiments.", no_args_is_help=True)
app.add_typer(data, name="data")


def print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"topicsteer {__version__}")
        raise typer.Exit


@app.callback(help="Topics that follow your labels.")
def main_options(
    version: Annotated[bool, typer.Option("--version", callback=print_version, help="Print the version.")] = False,
) -> None:
    """What may stand before a command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the report goes.")] = Path("report.html"),
    seed: Seed = 0,
) -> None:
    """The built-in corpus, end to end: fit, topics, one document explained, a report."""
    from topicsteer.corpora import load_docstrings

    with working() as progress:
        documents = load_docstrings().hide_labels(0.9, seed)
        model = new_model(3, seed).fit(documents, progress=progress)
    say(f"{documents}: the docstrings of the installed packages; most had their labels taken away.")
    show(model.result_.table(6), "Topics of the built-in corpus")
    say("\nOne document without a label, explained by its words:\n")
    Console().print(model.explain(documents.texts[documents.ids.index("scipy.linalg.svd")][:600]))
    model.report(out, title="The docstrings of Python's scientific packages")
    here = "topicsteer" if shutil.which("topicsteer") else shlex.quote(sys.argv[0])  # make demo has it in .venv
    say(f"\nThe report is in {out}. Next: {here} label, to label in the browser; or {here} fit yours.csv")


@app.command()
def fit(
    source: Large,
    text: TextColumnOption = None,
    labels: LabelsOption = None,
    id: IdOption = None,
    label_file: LabelFile = None,
    forbidden: Forbidden = None,
    separator: Separator = None,
    incomplete: Incomplete = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")] = Path("model"),
    free: Free = "10",
    seed: Seed = 0,
    threads: Threads = None,
    on_error: OnError = Bad.skip,
    keep_texts: Annotated[bool, typer.Option("--keep-texts", help="Store the documents in the model.")] = False,
    final: Annotated[
        bool, typer.Option("--final", help="Store no words of documents either: the model cannot be updated.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write the HTML report too, to this file.")] = None,
    evaluate: Annotated[bool, typer.Option("--evaluate", help="Evaluate too, for the report.")] = False,
    tables: Annotated[
        Path | None,
        typer.Option(help="Write memberships and topic shares of all documents, as Parquet in this folder."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="What the fit may take, 1GB or more: beyond it, it works on disk. Default: all.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder to work in on disk; it stays. Default: beside the model, while needed.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Work on so many processes of Dask.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Work on a Dask cluster: tcp://host:8786.")] = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table of texts, some of them labelled, and save it."""
    check_folder(out)
    columns = (text, labels, id, label_file, forbidden, separator, on_error)
    with cluster(workers, scheduler, quiet) as client, working(quiet) as progress, room_beside(out, work) as room:
        documents = take(source, columns, room, memory, client is not None, progress, quiet)
        model = new_model(free, seed, threads, incomplete)
        model.fit(documents, folder=room, client=client, progress=progress)
        model.save(out, texts=keep_texts, updatable=not final)
        found = model.evaluate(documents, progress=progress) if evaluate else None
        next_step = write_beside(model, out, source, columns, tables, client, report, found)
        topics = model.result_.table(6)
    show(topics, repr(model)[1:-1], quiet)
    if found is not None:
        show_evaluation(found, quiet)
    say(f"Saved in {out}. {next_step}", quiet)


@app.command()
def update(
    model: Model,
    source: Annotated[
        Path | None, typer.Argument(help="New documents, or known ones with labels: a file or folder, as for fit.")
    ] = None,
    text: TextColumnOption = None,
    labels: LabelsOption = None,
    id: IdOption = None,
    label_file: LabelFile = None,
    forbidden: Forbidden = None,
    separator: Separator = None,
    forget_factor: Annotated[
        float, typer.Option(min=0, max=1, help="What earlier documents count from now on beside the new ones.")
    ] = 1.0,
    grow: Annotated[bool, typer.Option(help="Take in new terms and weigh all anew, or keep the terms.")] = True,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the new model. Default: the old one's.")
    ] = None,
    threads: Threads = None,
    on_error: OnError = Bad.skip,
    quiet: Quiet = False,
) -> None:
    """Go on with a model: new documents, late labels for old ones (--label-file alone), new topics."""
    out = model if out is None else out
    check_folder(out)
    fitted = load(model)
    fitted.threads = threads
    with working(quiet) as progress:
        if source is None:
            documents = late_labels(fitted, label_file, labels, id, forbidden, separator, on_error, quiet)
        else:
            documents = read(source, text, labels, id, label_file, forbidden, separator, on_error, quiet=quiet)
        fitted.update(documents, forget_factor=forget_factor, grow=grow, progress=progress)
        fitted.save(out, texts=fitted.documents_ is not None)
    show(fitted.result_.table(6), repr(fitted)[1:-1], quiet)
    say(f"{escape(str(fitted.update_))}. Saved in {out}.", quiet)


@app.command()
def topics(model: Model, as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """The topics of a model: name, known or free, labelled documents, share, terms."""
    table = load(model).topics
    if as_json:
        print(json.dumps(table.to_dicts(), ensure_ascii=False, indent=1))
    elif as_csv:
        write(table, None)
    else:
        show(table, f"Topics of {model}")


@app.command()
def predict(
    model: Model,
    source: Source,
    out: Out = None,
    text: TextColumnOption = None,
    id: IdOption = None,
    on_error: OnError = Bad.skip,
    quiet: Quiet = False,
) -> None:
    """Topics of new documents: the id, the predicted topics, and the membership in each known topic."""
    import polars as pl

    fitted = load(model)
    with working(quiet):
        documents = read(source, text, False, id, None, None, None, on_error, quiet=quiet)
        table = fitted.memberships(documents)
        found = ["; ".join(names) for names in fitted.predict(documents.texts)]
    if not fitted.result_.n_known:
        say("The model knows no topic by name, so it predicts none: fit it with labels.", quiet)
    write(table.insert_column(1, pl.Series("predicted", found)), out, quiet)


@app.command()
def explain(
    model: Model,
    text: Annotated[str, typer.Argument(help="The text, or - to read it from standard input; with --of, an id.")],
    of: Annotated[Path | None, typer.Option(help="File of documents: explain the one that has this id.")] = None,
    text_column: TextColumnOption = None,
    id: IdOption = None,
    as_json: AsJson = False,
) -> None:
    """Which words put a text, or a document of a file, into which topics."""
    fitted = load(model)
    if of is not None:
        documents = read(of, text_column, False, id, None, None, None, Bad.skip, quiet=True)
        explanation = explain_one(fitted, documents, text)
    else:
        explanation = fitted.explain(given_text(text))
    if as_json:
        print(json.dumps(explanation.rows(), ensure_ascii=False))
        return
    Console().print(explanation)
    if of is None and explanation.names and not fitted.predict([explanation.text])[0]:
        say("No known topic is likely enough for predict to give it to this text.")


@app.command()
def evaluate(
    source: Source,
    text: TextColumnOption = None,
    labels: LabelsOption = None,
    id: IdOption = None,
    label_file: LabelFile = None,
    forbidden: Forbidden = None,
    separator: Separator = None,
    incomplete: Incomplete = False,
    free: Free = "10",
    folds: Annotated[int, typer.Option(min=2, help="Parts in which labels are hidden in turn.")] = 3,
    curve: Annotated[bool, typer.Option(help="Learn from fewer labels too, to tell what more would bring.")] = True,
    seed: Seed = 0,
    threads: Threads = None,
    on_error: OnError = Bad.skip,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=TOPIC_FILE)] = None,
    quiet: Quiet = False,
) -> None:
    """Hide labels, predict them, and compare with logistic regression and the nearest centroid."""
    import polars as pl

    with working(quiet) as progress:
        documents = read(source, text, labels, id, label_file, forbidden, separator, on_error, quiet=quiet)
        model = new_model(free, seed, threads, incomplete)
        result = model.evaluate(documents, folds=folds, curve=curve, progress=progress)
    if out is not None:
        write(pl.DataFrame(result.table()), out, quiet)
    if as_json:
        print(json.dumps(result.tables(), ensure_ascii=False))
        return
    show_evaluation(result, quiet)


@app.command()
def report(
    model: Model,
    source: Annotated[
        Path | None, typer.Argument(help="The documents of the fit, for examples, if the model was saved without.")
    ] = None,
    text: TextColumnOption = None,
    id: IdOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """One self-contained HTML page: topics, map, examples, guidance, settings."""
    fitted = load(model)
    if source is not None:
        fitted.attach(read(source, text, False, id, None, None, None, Bad.skip, quiet=True))
    fitted.report(out, title=title or f"Topics of {source.name if source else model}")
    say(f"The report is in {out}.")


@app.command()
def suggest(
    model: Model,
    source: Annotated[Path, typer.Argument(help="The documents of the fit, or others to choose from.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 20,
    out: Out = None,
    text: TextColumnOption = None,
    id: IdOption = None,
    quiet: Quiet = False,
) -> None:
    """Which documents to label next, and why: id, beginning of the text, likely topics, reason."""
    fitted = load(model)
    with working(quiet):
        documents = read(source, text, False, id, None, None, None, Bad.skip, quiet=quiet)
        table = fitted.suggest(n, documents)
    write(table, out, quiet, readable=True)
    if fitted.fits(documents):
        say(fitted.attach(documents).outlook().sentence, quiet)


@app.command()
def audit(
    model: Model,
    source: Annotated[Path | None, typer.Argument(help="The documents of the fit, to show how they begin.")] = None,
    n: Annotated[int | None, typer.Option("-n", min=1, help="How many. Default: all.")] = None,
    out: Out = None,
    text: TextColumnOption = None,
    id: IdOption = None,
    quiet: Quiet = False,
) -> None:
    """Labels that look wrong or missing, strongest first: id, topic, what was given, probability, reason."""
    fitted = load(model)
    if source is not None:
        fitted.attach(read(source, text, False, id, None, None, None, Bad.skip, quiet=quiet))
    write(fitted.audit(n), out, quiet, readable=True)


@app.command()
def label(
    source: Annotated[
        Path | None,
        typer.Argument(help="File or folder of texts, or a project (.steer). Default: the built-in corpus."),
    ] = None,
    text: TextColumnOption = None,
    labels: LabelsOption = None,
    id: IdOption = None,
    project: Annotated[Path | None, typer.Option(help="The project file. Default: beside the texts, .steer.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Default: 8765, or a free one.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine need --password.")] = (
        "127.0.0.1"
    ),
    password: Annotated[
        str | None, typer.Option(envvar="TOPICSTEER_PASSWORD", help="For people on other machines.")
    ] = None,
    on_error: OnError = Bad.skip,
) -> None:
    """Label documents in the browser, watch the topics follow, correct them: the workbench."""
    try:
        from topicsteer.app.web.guard import check_address
        from topicsteer.app.web.routes import serve
        from topicsteer.app.workbench.workbench import Workbench, project_path
    except ImportError as error:
        raise ImportError(f"{error}. The workbench needs more packages: pip install 'topicsteer[app]'") from error
    from topicsteer.corpora import read_table

    check_address(host, password)
    path = project_path(source, project)
    if not path.exists():
        with working() as progress:
            documents = builtin() if source is None else read(source, text, labels, id, None, None, None, on_error)
            if source is not None and labels is None and not source.is_dir() and all(documents.labels):
                # A column with a value in each row is a group rather than labels: nothing would be left to label.
                say("All documents have a value there: taken as groups, not labels. Name labels with --labels.")
                documents = read_table(source, text=text, labels=False, id=id, on_error=bad_rows(on_error))
            progress("project", 0, None, f"{len(documents):,} documents")
            Workbench.make(path, documents, source=source)
        say(f"The project is {path}: documents, topics and labels are in this one file.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that no process and no folder stays,
    if hasattr(signal, "SIGHUP"):  # also when the terminal is closed
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    workbench = Workbench(path, source=source)

    def ready(address: str) -> None:
        say(workbench.notice or "The workbench is at this address; Ctrl-C ends it.")
        print(address, flush=True)
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    try:
        serve(workbench, host=host, port=port, password=password, ready=ready)
    except KeyboardInterrupt:
        say(f"Everything is in {path}.")
    finally:
        workbench.close()


@data.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="reuters, medline or newsgroups.")],
    folder: Annotated[Path | None, typer.Option(help="Default: $TOPICSTEER_DATA, or a folder of the system.")] = None,
) -> None:
    """Download a public corpus from its home, checked against a known hash."""
    from topicsteer.corpora import fetch

    with working():
        path = fetch(name, folder)
    say(f"{name} is in {path}.")


# --- what the commands share ---


def read(
    source: Any,
    text: str | None,
    labels: str | Literal[False] | None,
    id: str | None,
    label_file: Path | None,
    forbidden: str | None,
    separator: str | None,
    on_error: Bad,
    *,
    quiet: bool = False,
) -> Any:
    """Read a table or folder, and say what was guessed and what was left out."""
    from topicsteer.corpora import attach_labels, read_folder, read_labels, read_table

    mode: Any = bad_rows(on_error)
    columns = {"labels": labels, "id": id, "forbidden": forbidden, "separator": separator, "on_error": mode}
    if isinstance(source, Path) and source.is_dir():
        documents = read_folder(source, labels_from_folders=labels == "folders", on_error=mode)
        if label_file is not None:
            documents = attach_labels(documents, read_labels(label_file, **columns), on_error=mode)
    else:
        documents = read_table(source, text=text, label_file=label_file, **columns)
    say(f"[dim]{escape(str(documents.report))}[/dim]", quiet or not str(documents.report))
    return documents


def bad_rows(on_error: Bad) -> Any:
    """What the library calls it."""
    return on_error.name.rstrip("_")


@contextmanager
def room_beside(out: Path, work: Path | None) -> Iterator[Path]:
    """A folder to work in: the one that was asked for, or one beside the model that goes when all is done."""
    room = work or out.with_name(out.name + ".work")
    yield room
    if work is None and room.exists():
        shutil.rmtree(room)


def take(
    source: Any, columns: Any, room: Path, memory: str | None, distributed: bool, progress: Any, quiet: bool
) -> Any:
    """The corpus in memory; or in blocks on disk, if memory would not do or a cluster is to work on it."""
    from topicsteer.model.spool import memory_needed, spool
    from topicsteer.system.memory import available_memory, in_bytes

    need, limit = memory_needed(source), available_memory() if memory is None else in_bytes(memory)
    fits = limit is None or need <= limit
    there = f"In memory the fit may take {amount(need)}; {amount(limit)} are {'allowed' if memory else 'there'}"
    if (isinstance(source, Path) and source.is_dir()) or (fits and not distributed):
        say(f"{there}: working in memory.", quiet or memory is None)
        return read(source, *columns, quiet=quiet)
    say(f"{there}: working in blocks on disk, in {room}.", quiet or fits)
    text, labels, id, label_file, forbidden, separator, on_error = columns
    found = spool(
        source,
        room / "corpus",
        text=text,
        labels=labels,
        id=id,
        label_file=label_file,
        forbidden=forbidden,
        separator=separator,
        on_error=bad_rows(on_error),
        memory=limit,
        progress=progress,
    )
    report = str(found.documents.report)
    say(f"[dim]{escape(report)}[/dim]", quiet or not report)
    return found


def write_beside(
    model: Any,
    out: Path,
    source: Any,
    columns: Any,
    tables: Path | None,
    client: Any,
    report: Path | None,
    evaluation: Any,
) -> str:
    """Write what was asked for beside the model; what to say of it."""
    said = []
    if tables is not None:
        model.to_parquet(tables, client=client)
        said.append(f"The tables are in {tables}.")
    if report is None:
        text, _, id, *_ = columns
        same = [*(["--text", text] if text else []), *(["--id", id] if id else [])]
        command = shlex.join(["topicsteer", "report", str(out), str(source), *same, "--out", "report.html"])
        return " ".join([*said, f"Next: {escape(command)}"])
    model.report(report, title=f"Topics of {Path(source).name}", evaluation=evaluation)
    return " ".join([*said, f"The report is in {report}."])


@contextmanager
def cluster(workers: int | None, scheduler: str | None, quiet: bool) -> Iterator[Any]:
    """The client of a Dask cluster, here or elsewhere; None if none was asked for."""
    if workers is None and scheduler is None:
        yield None
        return
    if workers is not None and scheduler is not None:
        raise typer.BadParameter("give --workers for processes here, or --scheduler for a cluster, not both")
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Dask is not installed: pip install topicsteer[dask]") from error
    dask: Any = distributed
    if scheduler is not None:
        say(f"[dim]connecting to {escape(scheduler)}[/dim]", quiet)
        try:
            client = dask.Client(scheduler)
        except (OSError, ValueError) as error:
            raise OSError(f"{error}; is that the address that dask scheduler gave when it was started?") from error
        with client:
            yield client
        return
    local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with dask.LocalCluster(**local, host="127.0.0.1") as here, dask.Client(here, direct_to_workers=True) as client:
        say(f"[dim]{workers} worker processes; Dask's dashboard: {here.dashboard_link}[/dim]", quiet)
        yield client


def given_text(text: str) -> str:
    """A text as it stands on the command line, or from standard input."""
    if os.path.isfile(text):
        raise ValueError(f"{text} is a file: give a text, - for standard input, or an id with --of {text}.")
    return sys.stdin.read() if text == "-" else text


def explain_one(fitted: Any, documents: Any, wanted: str) -> Any:
    """The explanation of the document with an id; one of the fit is explained with the weights that it got there."""
    ids = [str(key) for key in documents.ids]
    if wanted not in ids:
        raise ValueError(f"there is no document with the id {wanted}; the ids begin with {', '.join(ids[:5])}")
    row = ids.index(wanted)
    if fitted.fits(documents):
        return fitted.attach(documents).explain_document(documents.ids[row])
    return fitted.explain(documents.texts[row])


def late_labels(
    fitted: Any,
    label_file: Path | None,
    labels: str | None,
    id: str | None,
    forbidden: str | None,
    separator: str | None,
    on_error: Bad,
    quiet: bool,
) -> Any:
    """Labels of known documents, by their ids: documents without texts."""
    from topicsteer.corpora import BadRow, Documents, ReadError, ReadReport, read_labels

    if label_file is None:
        raise ValueError("there is nothing new: give a file of documents, or late labels with --label-file.")
    mode: Any = bad_rows(on_error)
    columns = {"labels": labels, "id": id, "forbidden": forbidden, "separator": separator, "on_error": mode}
    found, known = read_labels(label_file, **columns), set(fitted.result_.ids)
    has: dict[Any, list[str]] = {}
    lacks: dict[Any, list[str]] = {}
    unknown = []
    for record in found.records:
        if record.id is None:
            raise ValueError(f"{label_file}, {record.place}: late labels need the ids of their documents.")
        if record.id not in known:
            unknown.append(BadRow(record.place, f"the model has no document with the id {record.id!r}"))
            continue
        has.setdefault(record.id, []).extend(record.labels)
        lacks.setdefault(record.id, []).extend(record.forbidden)
    report = ReadReport(found.report.source, found.report.guesses, (*found.report.bad_rows, *unknown)).settle(mode)
    if not has:
        raise ReadError(f"no label is about a document of the model\n{report}")
    say(f"[dim]{escape(str(report))}[/dim]", quiet or not str(report))
    return Documents(list(has), [""] * len(has), list(has.values()), forbidden=list(lacks.values()))


def builtin() -> Any:
    """The built-in corpus with a few of its labels, to begin with."""
    from topicsteer.corpora import load_docstrings

    return load_docstrings().hide_labels(0.95)


def new_model(free: int | str, seed: int, threads: int | None = None, incomplete: bool = False) -> Any:
    """An unfitted model."""
    from topicsteer import TopicModel

    return TopicModel(free, complete=not incomplete, random_state=seed, threads=threads)


def check_folder(out: Path) -> None:
    """Refuse a folder that a model cannot be saved to before the work begins."""
    from topicsteer.system.arrays import check_folder

    check_folder(out)


def load(path: Path) -> Any:
    """A saved model."""
    from topicsteer import TopicModel

    return TopicModel.load(path)


def write(table: Any, out: Path | None, quiet: bool = False, *, readable: bool = False) -> None:
    """A table to a file, or to standard output as CSV; one that people read is drawn if they are at a terminal."""
    from topicsteer.report import tables as sheets

    if out is None and readable and sys.stdout.isatty():
        columns = table.to_dict(as_series=False)
        if "text" in columns:  # a line or two of it, the file has more
            columns["text"] = [visible(text, 60) for text in columns["text"]]
        show(columns)
        return
    if out is None:
        print(sheets.csv(table), end="")
        return
    sheets.write_table(table, out)
    say(f"{len(table):,} rows are in {out}.", quiet)


def only_once(arguments: list[str]) -> None:
    """Refuse an option that is given twice: one of its values would be dropped in silence."""
    names = [word.split("=")[0] for word in takewhile(lambda word: word != "--", arguments) if word.startswith("--")]
    for name in names:
        if names.count(name) > 1:
            hint = " Several labels of a document go into one column." if name == "--labels" else ""
            raise ValueError(f"{name} is given twice, and only one of the two would count.{hint}")


def main() -> None:
    """Run a command; what goes wrong with the user's input is said in words, with exit code 1."""
    try:
        only_once(sys.argv[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: say(f"[yellow]warning:[/yellow] {escape(str(message))}")
            app()
    except (ValueError, OSError, ImportError, KeyError, MemoryError, TypeError) as error:
        message = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
        console.print(f"[red]error:[/red] {escape(str(message))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("interrupted")
        sys.exit(130)
