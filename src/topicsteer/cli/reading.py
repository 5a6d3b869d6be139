"""Options that commands share, and the models and documents that commands read with them."""

from __future__ import annotations

import codecs
import inspect
import shutil
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from rich.filesize import decimal
from typer import Argument, BadParameter, Context, Option

from topicsteer.cli.terminal import ask, escape, notify, silence
from topicsteer.report.table_files import check_suffix
from topicsteer.system.files import Busy, Scratch
from topicsteer.system.values import NONE, fold, is_missing

if TYPE_CHECKING:
    from distributed import Client

    from topicsteer import TopicModel
    from topicsteer.corpora import Documents, EmptyTable, ReadOptions, ReadReport
    from topicsteer.labels.codebook import Lineage
    from topicsteer.model.predictor import NamedEmbeddings
    from topicsteer.model.spool import Spool
    from topicsteer.system.types import Progress

Command = Callable[..., None]
T = TypeVar("T")
# Panels of --help, next to the options of the command itself.
TABLE_PANEL, MACHINE_PANEL = "Reading the table", "Memory and speed"
HELP: dict[str, dict[str, str]] = tomllib.loads(files("topicsteer.cli").joinpath("help.toml").read_text("utf-8"))


# First bytes of tables on standard input, and the suffix that their reader expects; everything else is CSV.
BEGINNINGS = {b"PAR1": ".parquet", b"{": ".jsonl", b"[": ".json", b"PK\x03\x04": ".xlsx"}


def or_standard_input(context: Context, path: Path | None) -> Path | None:
    """The path; for "-", a copy of standard input, which is removed when the command ends.

    Tables are read more than once, to choose the columns first, so a pipe cannot be read as it is.
    """
    if path is None or str(path) != "-":
        return path
    stream = sys.stdin.buffer
    head = stream.read(1 << 16)
    begins = head.removeprefix(codecs.BOM_UTF8).lstrip()
    suffix = next((suffix for mark, suffix in BEGINNINGS.items() if begins.startswith(mark)), ".csv")
    copy: Path = context.with_resource(Scratch()) / f"standard input{suffix}"
    with copy.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return copy


Source = Annotated[Path, Argument(callback=or_standard_input, help=HELP["shared"]["source"])]
Memory = Annotated[str | None, Option(help=HELP["shared"]["memory"], rich_help_panel=MACHINE_PANEL)]
Work = Annotated[Path | None, Option(help=HELP["shared"]["work"], rich_help_panel=MACHINE_PANEL)]


Large = Annotated[Path, Argument(help=HELP["shared"]["large"])]
Model = Annotated[Path, Argument(help=HELP["shared"]["model"])]
Incomplete = Annotated[bool, Option("--incomplete", help=HELP["shared"]["incomplete"])]


def number_or_auto(value: int | str) -> int | str:
    """A number of free topics, or "auto"."""
    if str(value) != "auto" and not (str(value).isdecimal() and len(str(value)) < 10):
        raise BadParameter(f'{value} is neither a number (0 or more) nor "auto"')
    return value if value == "auto" else int(value)


Free = Annotated[str | None, Option("--free", parser=number_or_auto, help=HELP["shared"]["free"])]
PathSeparator = Annotated[str | None, Option("--path-separator", help=HELP["shared"]["path_separator"])]
World = Annotated[Literal["open", "closed"] | None, Option("--world", help=HELP["shared"]["world"])]
TopicsFile = Annotated[Path | None, Option("--topics", help=HELP["shared"]["topics_file"])]
Embeddings = Annotated[str | None, Option("--embeddings", help=HELP["shared"]["embeddings"])]
Seed = Annotated[int, Option(help=HELP["shared"]["seed"])]
Threads = Annotated[int | None, Option(min=1, help=HELP["shared"]["threads"], rich_help_panel=MACHINE_PANEL)]


def be_quiet(context: Context, value: bool) -> bool:
    """With --quiet, no message and no warning is printed until the command ends."""
    if value:
        context.with_resource(silence())
        context.with_resource(warnings.catch_warnings(action="ignore"))
    return value


Quiet = Annotated[bool, Option("--quiet", "-q", callback=be_quiet, help=HELP["shared"]["quiet"])]
MergeSimilar = Annotated[str | None, Option(help=HELP["shared"]["merge_similar"], rich_help_panel=TABLE_PANEL)]
AsJson = Annotated[bool, Option("--json", help=HELP["shared"]["as_json"])]


def table_file(path: Path | None) -> Path | None:
    """The file for a table; a wrong suffix or folder is refused before the work begins."""
    if path is not None:
        check_suffix(path)
    return path


Out = Annotated[Path | None, Option("--out", "-o", callback=table_file, help=HELP["shared"]["out"])]

# --- reading options ---

# Help texts of the reading options, by field of ReadOptions.
READING = HELP["reading"]
# Type and default of the fields that are not plain strings.
KINDS: dict[str, tuple[Any, Any]] = {
    "text": (list[str] | None, None),
}
# Fields that only matter for labels.
OF_LABELS = ("labels", "label_file", "separator")


def reads(command: Command, *, labels: bool = True) -> Command:
    """Add the reading options to a command, which receives them as one argument ``reading``, a ReadOptions.

    The options replace ``reading`` in the command's parameters. With ``labels=False`` there are no label options, and
    no column is read as labels. Annotations of the other parameters must be types, not strings.
    """
    fields = [name for name in READING if labels or name not in OF_LABELS]

    @wraps(command)
    def run(**given: Any) -> None:
        from topicsteer.corpora import ReadOptions

        chosen = {name: given.pop(f"reading_{name}") for name in fields} | ({} if labels else {"labels": False})
        if (given_file := chosen.get("label_file")) and not Path(given_file).exists():
            path, *own = given_file.split(",")
            chosen |= {"label_file": path, "label_options": dict(map(pair, own))}
        command(**given, reading=ReadOptions(**chosen))

    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "reading":
            parameters += [_option(name) for name in fields]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def pair(value: str) -> tuple[str, str]:
    """Two names, from "topic=name"."""
    left, _, right = (part.strip() for part in value.partition("="))
    if not left or not right:
        raise ValueError(f'{value!r} is not of the form "name=value", such as "free 3=robotics" or "gpt=answers.csv".')
    return left, right


def _option(name: str) -> inspect.Parameter:
    """The command parameter for a field of ReadOptions."""
    kind, default = KINDS.get(name, (str | None, None))
    option = Option(f"--{name.replace('_', '-')}", help=READING[name], rich_help_panel=TABLE_PANEL)
    hint: object = Annotated[kind, option]
    return inspect.Parameter(f"reading_{name}", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def reads_texts(command: Command) -> Command:
    """Add the reading options to a command, without the label options."""
    return reads(command, labels=False)


# --- models and documents of a command ---


@contextmanager
def work_folder(out: Path | None, work: Path | None) -> Iterator[Callable[[], Path]]:
    """Yield a function that reserves a folder for temporary files: the user's, or one that is deleted at the end.

    That one is next to the model ``out``; without a model it is a temporary folder of the system.
    """
    from topicsteer.system.arrays import check_folder

    if out is not None:
        check_folder(out)
    scratch = Scratch(work or (None if out is None else out.with_name(out.name + ".work")))
    used = ExitStack()

    def use() -> Path:
        used.enter_context(scratch.in_use())
        return scratch.path

    with used:
        yield use
        if work is None and scratch.claimed:
            with suppress(Busy):  # of another fit
                use()
                scratch.remove()


def read_corpus(
    source: str | Path,
    reading: ReadOptions,
    use: Callable[[], Path],
    memory: str | None,
    model: TopicModel,
    *,
    on_disk: bool = False,
    progress: Progress,
) -> Documents | Spool:
    """Read the corpus of a model into memory, or spool it if memory is too small or ``on_disk`` is set."""
    from topicsteer.model.settings import Settings
    from topicsteer.model.spool import memory_needed, spool
    from topicsteer.system.memory import available_memory, in_bytes

    need = memory_needed(source)
    limit = available_memory() if memory is None else in_bytes(memory)
    fits = limit is None or need <= limit
    allowed = "allowed" if memory else "available"
    sizes = f"The fit may need {decimal(need)} of memory; {decimal(limit or 0)} are {allowed}"
    if not fits:
        notify(f"{sizes}: working in blocks on disk, in {use()}.")
    elif memory is not None and not on_disk:
        notify(f"{sizes}: working in memory.")
    if Path(source).is_dir() or (fits and not on_disk):
        return read(source, reading)
    terms = Settings.of(model.get_params()).new_vectorizer()
    spooled = with_labels(
        reading,
        lambda reading: spool(source, use() / "corpus", reading, vectorizer=terms, memory=limit, progress=progress),
    )
    notify_report(spooled.documents.report)
    return spooled


def attach(
    fitted: TopicModel,
    source: Path | None,
    reading: ReadOptions,
    use: Callable[[], Path],
    memory: str | None,
    progress: Progress,
) -> None:
    """Attach the training documents to a loaded model, if their file is given; on disk if memory is too small."""
    if source is not None:
        fitted.attach(read_corpus(source, reading.after(fitted.state_.reading), use, memory, fitted, progress=progress))


def with_labels(reading: ReadOptions, read: Callable[[ReadOptions], T]) -> T:
    """Read a source; if its column of labels is not clear, ask in a terminal and fail elsewhere."""
    from topicsteer.corpora import UnclearLabels

    try:
        return read(reading)
    except UnclearLabels as error:
        choices = [*error.choices, "none"]
        listed = ", ".join(f"{number} {escape(name)}" for number, name in enumerate(choices, 1))
        answer = ask(f"Which column holds the labels? Number of: {listed}")
        if not answer.isdecimal() or not 1 <= int(answer) <= len(choices):
            raise
        return read(replace(reading, labels=choices[int(answer) - 1]))


def one_spelling(
    corpus: Documents | Spool,
    lineage: Lineage,
    merge_similar: str | None,
    known: Mapping[str, int] | None = None,
) -> tuple[Documents | Spool, list[Hashable]]:
    """List other spellings and near misses of labels, and merge near misses on request, or by a file.

    Returns the corpus, and the topics of its labels.

    ``known`` are the numbers of earlier labels per topic.
    """
    from topicsteer.corpora import Documents
    from topicsteer.labels.forms import label_counts
    from topicsteer.labels.spelling import near_misses

    documents = corpus if isinstance(corpus, Documents) else corpus.documents
    if merge_similar not in (None, "all"):
        documents = documents.renamed(read_label_map(Path(str(merge_similar))))
    counts = label_counts(documents.labels) + label_counts(documents.forbidden)
    lineage = lineage.spelled(counts)
    names: Counter[str] = Counter()
    for written, count in counts.items():
        names[str(lineage.topic(written))] += count
    other = [f"{written} ({n:,}) → {lineage.topic(written)}" for written, n in counts.items() if written not in names]
    if other:
        notify(f"[dim]Other spellings, read as one name: {escape(', '.join(sorted(other)))}[/dim]")
    found = [miss for miss in near_misses(names + Counter(known)) if miss.written in names]
    if found:
        notify("Similar labels: " + escape(", ".join(f"{number}. {miss}" for number, miss in enumerate(found, 1))))
        answer = "y" if merge_similar == "all" else ask("Merge them? y (all), n (none), or their numbers, such as 1 3")
        merged = [miss for number, miss in enumerate(found, 1) if answer == "y" or str(number) in answer.split()]
        if not merged:
            notify("They stay topics of their own: --merge-similar all merges all, --merge-similar FILE some.")
        # A near miss of a near miss ends at its right name, because names with fewer labels come first.
        target: dict[str, str] = {}
        for miss in reversed(merged):
            target[fold(miss.written)] = target.get(fold(miss.name), miss.name)
        documents = documents.renamed(target)
    topics = [name for name in dict.fromkeys(map(lineage.topic, documents.topic_names)) if name != NONE]
    return documents if isinstance(corpus, Documents) else replace(corpus, documents=documents), topics


def read_label_map(path: Path) -> dict[str, str]:
    """The names of topics by the folded spellings of their labels, from a table with the columns label and topic."""
    from topicsteer.corpora import ReadError, ReadOptions
    from topicsteer.corpora.readers import load_table

    table = load_table(path, ReadOptions())
    if missing := [name for name in ("label", "topic") if name not in table.columns]:
        raise ReadError(f"{path}: there is no column {missing[0]!r}; expected the columns 'label' and 'topic'")
    rows = zip(table.column("label"), table.column("topic"), strict=True)
    return {
        fold(str(label)): str(topic).strip() for label, topic in rows if not (is_missing(label) or is_missing(topic))
    }


@contextmanager
def cluster(scheduler: str | None) -> Iterator[Client | None]:
    """Yield the client of a running Dask cluster; None without one."""
    if scheduler is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Dask is not installed: pip install 'dask[distributed]'") from error
    dask: Any = distributed
    notify(f"[dim]connecting to {escape(scheduler)}[/dim]")
    try:
        client = dask.Client(scheduler)
    except (OSError, ValueError) as error:
        raise OSError(f"{error}; use the address that 'dask scheduler' prints when it starts.") from error
    with client:
        yield client


class DocumentBlocks:
    """The documents of a source, block by block, one per row. A source without rows is one block without documents.

    Parameters
    ----------
    source : Path
        A file, or a folder, which is one block.
    reading : ReadOptions

    Attributes
    ----------
    rows : int
        Number of rows, good and bad.
    """

    def __init__(self, source: Path, reading: ReadOptions) -> None:
        from topicsteer.corpora import EmptyTable, TableStream

        self._blocks: TableStream | list[Documents]
        try:
            if source.is_dir():
                self._blocks = [read(source, reading)]
                self.rows = len(self._blocks[0])
            else:
                self._blocks = TableStream(source, reading, keep_all=True)
                self.rows = self._blocks.rows
        except EmptyTable as error:
            self._blocks, self.rows = [no_rows(source, error)], 0

    def __iter__(self) -> Iterator[Documents]:
        """Yield the blocks, and print guesses and skipped rows at the end."""
        yield from self._blocks
        if not isinstance(self._blocks, list):
            notify_report(self._blocks.report)


def no_rows(source: Path, found: EmptyTable) -> Documents:
    """No documents, but the columns of their table, with a message: an empty table is no failure."""
    from topicsteer.corpora import Documents, ReadOptions

    notify(f"{escape(str(source))} has no rows.")
    columns: dict[str, list[object]] = {name: [] for name in found.columns}
    return Documents([], [], columns=columns, numbered=True, reading=ReadOptions(id=found.id))


def read_any(source: Path | None, reading: ReadOptions, fitted: TopicModel) -> Documents:
    """Read the documents of an update: none of a table without rows, and late labels alone without a table."""
    from topicsteer.corpora import EmptyTable

    if source is None:
        return late_labels(fitted, reading)
    try:
        return read(source, reading)
    except EmptyTable as error:
        return no_rows(source, error)


def late_labels(fitted: TopicModel, reading: ReadOptions) -> Documents:
    """Late labels of known documents, as documents without texts."""
    from topicsteer.corpora import Documents, Labels, ReadReport, attach_labels
    from topicsteer.corpora.label_files import OWN_OPTIONS, read_label_file

    if reading.label_file is None and isinstance(reading.labels, str) and Path(reading.labels).is_file():
        reading = replace(reading, label_file=Path(reading.labels), labels=None)
    if reading.label_file is None:
        raise ValueError("nothing to update: pass a file of documents, or late labels with --labels FILE.")
    given = {name: value for name, value in reading.given().items() if name in OWN_OPTIONS and value is not None}
    found = read_label_file(replace(reading, id=None, label_options=given | dict(reading.label_options or {})))
    for record in found.records:
        if record.id is None:
            raise ValueError(f"{reading.label_file}, {record.place}: late labels need the ids of their documents.")
    by_id = Labels([replace(record, text=None) for record in found.records], found.report)
    ids = list(fitted.state_.topics.ids)
    known = Documents(ids, [""] * len(ids), report=ReadReport(str(reading.label_file)))
    late = attach_labels(known, by_id)
    notify_report(late.report)
    return late.select(row for row in range(len(ids)) if late.labels[row] or late.forbidden[row])


def read(source: str | Path, reading: ReadOptions, model: TopicModel | None = None) -> Documents:
    """Read a table or folder, with the columns of a model, and print the guesses and the skipped rows."""
    from topicsteer.corpora import read_documents

    reading = reading if model is None else reading.after(model.state_.reading)
    documents = with_labels(reading, lambda reading: read_documents(source, reading))
    notify_report(documents.report)
    return documents


def notify_report(report: ReadReport) -> None:
    """Print the guesses and the skipped rows of a report, if there are any."""
    if str(report):
        notify(f"[dim]{escape(str(report))}[/dim]")


def load(path: Path) -> TopicModel:
    """Load a saved model."""
    from topicsteer import TopicModel

    return TopicModel.load(path, frames="polars")  # commands do not load pandas


def load_with_documents(path: Path, source: Path | None, reading: ReadOptions) -> TopicModel:
    """Load a saved model, with its training documents if their file is given."""
    fitted = load(path)
    return fitted if source is None else fitted.attach(read(source, reading, fitted))


def named_embeddings(name: str | None, fitted: TopicModel | None = None) -> NamedEmbeddings | None:
    """The embeddings of --embeddings for a fit, or for new texts of a fitted model; None without a file or encoder."""
    from topicsteer.model.predictor import embeddings_named
    from topicsteer.model.settings import BUILT_IN

    if name is None:
        return None
    if fitted is not None:
        own = str(fitted.state_.encoder.get("source") or fitted.embeddings or "none")
        if name != own and (name in BUILT_IN or own in BUILT_IN):
            raise ValueError(f"this model was fitted with --embeddings {own}: leave out the option, or fit it again.")
    return None if name in BUILT_IN else embeddings_named(name)
