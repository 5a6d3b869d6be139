"""The workbench without HTTP: a project, its session, fits in the background, and listeners for changes."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from topicsteer.app.workbench import fit_process as messages
from topicsteer.app.workbench import responses
from topicsteer.app.workbench.actions import Action, NewTopic, apply, plan
from topicsteer.app.workbench.current_model import CurrentModel, ModelRecord
from topicsteer.app.workbench.errors import FILE, Conflict, Invalid
from topicsteer.app.workbench.exports import Exporter
from topicsteer.app.workbench.fit_process import AnyReport, FitOrder, FitProcess
from topicsteer.app.workbench.imports import (
    GivenLabels,
    draws_of,
    import_labels,
    import_topics,
    kept_labels,
    read_given_labels,
)
from topicsteer.app.workbench.label_queue import Queue
from topicsteer.app.workbench.map_view import MapMaker, map_points
from topicsteer.app.workbench.project import Project, fingerprint, read_documents
from topicsteer.app.workbench.responses import FitStatus, Notice
from topicsteer.app.workbench.session import Change, LabelSession
from topicsteer.app.workbench.views import Views
from topicsteer.corpora import Documents, read_table
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import CHOSEN, PROBABILITY
from topicsteer.model.predictor import MODEL2VEC, Model2Vec, VectorFile, embeddings_named, for_documents
from topicsteer.model.settings import BUILT_IN, read_topics
from topicsteer.model.topic_model import TopicModel
from topicsteer.system.files import Scratch, replacing
from topicsteer.system.types import Array
from topicsteer.text.meaning import embed

SUFFIX = ".steer"
# Rows listed in a notice of changed documents.
LISTED = 200
# Documents of a free topic or group that are proposed as labels.
PROPOSED = 10
# Greatest number of parts of a known topic.
MOST_PARTS = 50
# Value of the setting "embeddings" for vectors in the file next to the project.
VECTORS = "vectors"


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """The embeddings of a project: their name for a fit, and the vectors if they are in a file.

    They are chosen on the command line, never by a page: they name files of this machine.
    """

    embeddings: str | None = None
    vectors: Array | None = None

    @classmethod
    def of(cls, project: Project) -> TextFeatures:
        """Return the features that were chosen for a project, or raise if they cannot be used."""
        name = project.settings().get("embeddings")
        if name in BUILT_IN:
            return cls(name)
        if name != VECTORS:
            named = embeddings_named(f"{MODEL2VEC}{str(name).removeprefix(MODEL2VEC)}")
            return cls(named.source if isinstance(named, Model2Vec) else None)
        file = VectorFile(vector_file(project.path))
        file.check_rows(len(project))
        return cls(file.source, file.vectors)


def vector_file(project: Path) -> Path:
    """The file with the vectors of a project."""
    return project.with_name(f"{project.name}.npy")


def choose_embeddings(path: Path, documents: Documents, embeddings: str | None) -> dict[str, str]:
    """Return the settings for a new project; vectors are written to a file next to it.

    Parameters
    ----------
    path : Path
        The project.
    documents : Documents
        The documents with all their columns.
    embeddings : str or None
        As on the command line.
    """
    if embeddings is None or embeddings in BUILT_IN:
        return {} if BUILT_IN[embeddings] else {"embeddings": "none"}
    named = embeddings_named(embeddings)
    if isinstance(named, Model2Vec):
        return {"embeddings": named.source}
    vectors = embed(named.rows(documents), documents.texts)
    with replacing(vector_file(path)) as part, part.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)
    return {"embeddings": VECTORS}


def make_project(
    path: Path,
    documents: Documents,
    *,
    source: Path | None = None,
    path_separator: str | None = None,
    embeddings: str | None = None,
) -> None:
    """Write a new project; labels of the documents become labels of the file, with a separator also a tree.

    The embeddings of the texts are for all fits of the project.
    """
    given = labels_of_rows(documents, range(len(documents)), path_separator)
    name = source.name if source else path.stem
    chosen = choose_embeddings(path, documents, embeddings)

    def prepare(project: Project) -> None:
        project.set(chosen)
        session = LabelSession(project)
        if path_separator is not None:
            session.change_settings(path_separator=path_separator)
        if given.rows:
            import_labels(session, FILE + name, [given], source=name)

    columns = {column: values for column, values in documents.columns.items() if column != embeddings}
    Project.create(path, replace(documents, columns=columns), source=source, prepare=prepare)


def labels_of_rows(
    documents: Documents, rows: Sequence[int], separator: str | None = None, first: int = 0
) -> GivenLabels:
    """Return the labels of some rows of a table and their origin, numbered from ``first`` in the project."""
    both = (documents.labels, documents.forbidden)
    has, lacks = ({first + k: list(names[row]) for k, row in enumerate(rows) if names[row]} for names in both)
    own = sorted({*has, *lacks})
    table = {name: documents.columns[name] for name in (CHOSEN, PROBABILITY) if name in documents.columns}
    columns = {name: [values[rows[k - first]] for k in own] for name, values in table.items()}
    return GivenLabels(has, lacks, separator=separator, draws=draws_of(own, columns))


def has_changed(project: Project, source: Path) -> bool:
    """Return whether the file with the documents of a project has changed."""
    known = project.settings().get("source")
    if not known or not source.is_file() or source.suffix == SUFFIX:
        return False
    return bool(fingerprint(source)["sha256"] != known["sha256"])


def take_new_rows(project: Project, source: Path, read: Callable[[Path], Documents]) -> str:
    """Add rows of a changed table whose ids are new, with their labels; return a sentence about them.

    Known documents stay as they are, also where the table has another text or no such row any more.
    """
    changed = f"{source.name} has changed since this project read it. "
    if project.settings().get("embeddings") == VECTORS:
        return f"{changed}Its new rows have no embeddings here: create another project for them, with --project."
    try:
        documents = read(source)
    except ValueError as error:
        return f"{changed}Its new rows were not taken, because it cannot be read: {error}"
    old = read_documents(project.path)
    texts = dict(zip(map(str, old.ids), old.texts, strict=True))
    shared = [row for row, name in enumerate(documents.ids) if str(name) in texts]
    other = sum(texts[str(documents.ids[row])] != documents.texts[row] for row in shared)
    if 2 * other > len(shared) or not shared:
        return f"{changed}Its new rows were not taken: most ids belong to other texts. Name the column of ids: --id."
    new = sorted({*range(len(documents))} - {*shared})
    first = len(project)
    project.add(documents, new, source)
    given = labels_of_rows(documents, new, first=first)
    if given.rows:
        import_labels(LabelSession(project), FILE + source.name, [given], source=source.name)
    gone = len(texts) - len(shared)
    parts = [f"{len(new):,} new documents of {source.name} are in the project."]
    if other:
        parts.append(f"{other:,} known ones have another text in the table, and keep the old one.")
    if gone:
        parts.append(f"{gone:,} are not in the table any more, and stay.")
    return " ".join([*parts, "Go on at random: the list gives out as many of the new ones as of the others."])


class Workbench:
    """A project with its session, queue, fits and exports; usable without a server.

    Parameters
    ----------
    path : Path
        A project.
    source : Path, optional
        The file with the documents. New rows become documents; ``notice`` has a sentence about them.
    read : callable, optional
        Reads the file. Default: `read_table`.
    """

    def __init__(
        self, path: Path, *, source: Path | None = None, read: Callable[[Path], Documents] = read_table
    ) -> None:
        self.project = Project.open(path)
        # A message to everybody who opens a page.
        self.notice = ""
        # Embeddings of the documents.
        try:
            if source is not None and has_changed(self.project, source):
                self.notice = take_new_rows(self.project, source, read)
            self.features = TextFeatures.of(self.project)
        except (ValueError, ImportError):
            self.project.close()
            raise
        self.session = LabelSession(self.project)
        self.views = Views(self.session)
        self.queue = Queue(self.views)
        self.fitter = FitProcess(self.on_message)
        self.maps = MapMaker(self.views, lambda status: self.notify(responses.Mapped(status)))
        self.exporter = Exporter(self.views, self.maps)
        # Called with every notice for the open pages.
        self.listeners: list[Callable[[Notice], None]] = []
        self.status = FitStatus()
        # Whether the project is closed.
        self._closed = False
        self.temporary = Scratch()
        # Number of the stored model; 0 without one.
        self.stored_model = 0
        # Record of the model that is being fitted.
        self.pending = ModelRecord([])
        # Set when labels or the model changed, until memberships follow them; and the thread for that.
        self._moved = threading.Event()
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._restore()
        self._follower.start()

    make = staticmethod(make_project)

    def close(self) -> None:
        """End the worker and close the project."""
        self.fitter.close()
        self._closed = True
        self._moved.set()
        self._follower.join()
        self.maps.close()
        self.project.close()
        self.temporary.remove()

    def notify(self, notice: Notice) -> None:
        """Send a notice to all open pages."""
        for listener in list(self.listeners):
            listener(notice)

    # --- actions of people ---

    def act(self, who: str, action: Action) -> Change:
        """Apply an action of a person and notify all open pages."""
        change = apply(self.session, who, action)
        self.announce(who, change)
        return change

    def announce(self, who: str, change: Change) -> None:
        """Notify all open pages of a change, and fit if that is due."""
        if change.repeated:
            return
        rows = change.documents
        progress = self.views.progress()
        self.notify(responses.Changed(who, list(rows[:LISTED]), len(rows) > LISTED, change.topics, progress))
        self._moved.set()
        if rows:
            self._fit_if_due()

    def import_labels(self, who: str, path: Path, name: str) -> str:
        """Import the labels of a file in any supported format; return a sentence, and a line per row left out."""
        try:
            given, left_out = read_given_labels(path, read_documents(self.project.path))
        except ValueError as error:
            raise Invalid(f"{name}: {str(error).replace(str(path), name)}") from error
        rows = {row for own in given for row in own.rows}
        with self.session.lock:
            left_out += kept_labels(self.session, given)
        if not rows:
            raise Invalid(f"{name}: no label belongs to a document of this project. The ids must be the same.")
        self.announce(who, import_labels(self.session, who, given, source=name))
        people = given[1:]
        by = f", given by {', '.join(own.owner for own in people[:5])}{', …' * (len(people) > 5)}" if people else ""
        lines = [f"Imported labels of {len(rows):,} documents from {name}{by}."]
        if left_out:
            lines += [f"{len(left_out):,} rows were not taken:", *left_out]
        return "\n".join(lines)

    def import_topics(self, who: str, path: Path, name: str) -> str:
        """Add the topics and words of a topics file or codebook; return sentences about it, and probable mistakes."""
        before = len(self.session.live)
        try:
            found = read_topics(path)
        except ValueError as error:
            reason = str(error).replace(str(path), name)
            raise Invalid(reason if reason.startswith(name) else f"{name}: {reason}") from error
        self.announce(who, import_topics(self.session, who, found.codebook, source=name))
        return " ".join([f"{len(self.session.live) - before:,} new topics from {name}.", *found.notes[:8]])

    # --- the document map ---

    def document_map(self) -> responses.MapPage:
        """Return the points of the document map; the first call starts its layout. Blind mode has none."""
        if self.session.settings.blind:
            raise Conflict("Blind mode hides the map, since it shows predictions. The page Settings has the setting.")
        layout = self.maps.layout()
        return responses.MapPage(None if layout is None else map_points(self.views, layout), self.maps.status)

    # --- memberships that follow labels ---

    def _follow(self) -> None:
        """Let memberships and suggestions follow labels; labels that arrive meanwhile are the next turn."""
        while self._moved.wait() and not self._closed:
            self._moved.clear()
            try:
                self._use_live()
            except Exception as error:  # the last memberships stay in use
                problem = f"Predictions do not follow labels until the next fit: {error}."
                self.set_status(msgspec.structs.replace(self.status, error=problem))

    def _use_live(self) -> None:
        """Put memberships under the present labels to use, unless a new fit arrived meanwhile; then suggestions."""
        fitted = self.views.fitted
        now = None if fitted is None else self._under_labels(fitted)
        with self.session.lock:
            if self.views.fitted is not fitted:
                return
            self.views.fitted = now
        self.notify(responses.Advised())
        if now is not None:
            now.suggestions = now.suggest()

    def _under_labels(self, fitted: CurrentModel) -> CurrentModel:
        return fitted.under(self.session.supervision(fitted.supervision, fitted.keys))

    # --- fits ---

    def _fit_if_due(self) -> None:
        after = self.session.settings.refit_after
        seen = self.views.fitted.record.seq if self.views.fitted else 0
        counts = [n for n in self.session.counts.values() if n > 0]
        if after and not self.fitter.busy and len(counts) >= 2 and self.session.changed_since(seen) >= after:
            self.fit()

    def fit(self) -> bool:
        """Start a fit with the current labels; return False if one is running."""
        training, fitted = self.session.training(), self.views.fitted
        settings = self.session.settings
        free = settings.free_topics
        separator = settings.path_separator
        if not self.session.tree.has_paths(separator):  # some names that contain it are no paths
            separator = None
        if not training.topics and not free:
            raise Conflict("There is nothing to fit. Create a topic and label some documents, or allow free topics.")
        order = FitOrder(
            project=str(self.project.path.resolve()),
            folder=tempfile.mkdtemp(dir=self.temporary.path),
            topics=Codebook(tuple(topic.plain() for topic in training.topics)).to_json(),
            labels=dict(training.labels),
            forbidden=dict(training.forbidden),
            complete=training.complete,
            free=free,
            world=settings.world,
            previous=str(fitted.folder) if fitted else None,
            chosen=self.session.chosen(),
            probability=self.session.origins.probabilities(self.session.labelled),
            path_separator=separator,
            embeddings=self.features.embeddings,
        )
        if not self.fitter.start(order):
            return False
        labelled = len({*training.labels, *training.forbidden})
        self.pending = ModelRecord([t.key for t in training.topics], training.seq, labelled)
        self.set_status(FitStatus("fitting", "start"))
        return True

    def cancel_fit(self) -> None:
        """Cancel the running fit."""
        loading = self.status.stage == "load"  # the fit is over
        self.set_status(FitStatus() if not loading and self.fitter.cancel() else self.status)

    # --- new topics from free topics and from groups; the next fit has them ---

    def adopt(
        self, who: str, source: str | Sequence[int], *, name: str, description: str = "", parent: int | None = None
    ) -> int:
        """Make a topic of a free topic or of the documents of a group; return its key.

        No document is labelled: some are proposed as labels. Documents that were labelled with none of the topics stay
        so, unless the model gives them the free topic: these are proposed first, most probable first.
        """
        with self.session.lock:
            none = self.session.none_rows()
            if isinstance(source, str):
                fitted = self.views.fitted_or_refuse()
                none = fitted.ranked(source, none)
                rows = [*none, *fitted.proposals(source, PROPOSED)]
            else:
                rows, none = self.session.check_rows(source), []
            batch, events = plan(self.session, who, NewTopic(name=name, description=description, parent=parent))
            change = self.session.commit(batch, [*events, *self.session.extended_none(none)])
            key = max(topic.key for topic in self.session.live)
        if self.views.fitted is not None:
            self.views.fitted.record.proposed[key] = rows
            self._store_record()
        self.announce(who, change)
        return key

    def split(self, key: int, parts: int) -> list[responses.GroupView]:
        """Find groups of the documents of a known topic; nothing changes."""
        fitted, topic = self.views.fitted_or_refuse(), self.session.topic(key)
        if not 2 <= parts <= MOST_PARTS:
            raise Invalid(f"A topic is split into 2 to {MOST_PARTS} parts, not {parts}.")
        if key not in fitted.column:
            raise Conflict(f"“{topic.name}” is not part of a fit yet. Fit first.")
        if self.session.settings.blind:
            raise Conflict("Blind mode hides the groups of topics. The page Settings has the setting.")
        documents, name = read_documents(self.project.path), self.features.embeddings
        vectors = None if name in BUILT_IN else for_documents(name, documents)
        E = None if vectors is None else embed(vectors, documents.texts)
        model = TopicModel.load(fitted.folder, embeddings=E).attach(documents)
        try:
            groups = model.edit.split(fitted.column[key], parts).groups
        except ValueError as error:
            raise Conflict(f"“{topic.name}” cannot be split: {error}") from error
        return [self.views.group(group.terms, group.rows.tolist(), PROPOSED) for group in groups]

    # --- reports of the worker ---

    def on_message(self, report: AnyReport) -> None:
        """Handle a report of the worker; called in a separate thread."""
        match report:
            case messages.Progressed("advise" | "shares" as stage):
                self.set_status(FitStatus("checking", stage, self.status.error))
            case messages.Progressed(stage, done, total, detail) if self.fitter.busy:  # else it was cancelled
                self.set_status(FitStatus("fitting", stage, done=done, total=total, detail=detail))
            case messages.Rested() if not self.fitter.busy:
                self.set_status(msgspec.structs.replace(self.status, state="idle", stage=""))
                self._fit_if_due()
            case messages.Finished():
                try:
                    self._use(report)
                except Exception as error:  # the last good model stays in use
                    self.fitter.busy = False
                    self._fail(f"The new model could not be loaded: {error}.")
            case messages.Learnt():
                self._describe(report.given())
                self._fit_if_due()  # labels that arrived during the fit
            case messages.Failed(message):
                self._fail(message)
            case messages.Ended(code):
                self._fail(f"The fit did not finish: {_reason_of_end(code)}.")
            case _:
                pass

    def _use(self, report: messages.Finished) -> None:
        """Put the model of a fit to use, announce it, and then store it, which takes longer.

        Proposals for topics that have no labels yet are kept.
        """
        self.set_status(FitStatus("fitting", "load"))
        old = self.views.fitted
        before = old.record.proposed if old else {}
        record = msgspec.structs.replace(
            self.pending,
            seconds=report.seconds,
            notes=report.notes,
            proposed={key: rows for key, rows in before.items() if not self.session.counts[key]},
        )
        fitted = CurrentModel(Path(report.folder), record, self.features.vectors)
        fitted = self._under_labels(fitted)
        with self.session.lock:
            self.views.fitted = fitted
        self._moved.set()
        self.stored_model = 0  # it is not stored yet
        self.fitter.busy = False
        self.notify(responses.Refitted(self.views.progress()))
        status = FitStatus("checking", "advise")
        self.set_status(status)
        try:
            self.stored_model = self.project.models.store(fitted.folder, fitted.record)
        except Exception as error:  # a full disk, for example
            problem = f"The new model is in use, but could not be stored: {error}. Free some disk space, and fit again."
            self.set_status(msgspec.structs.replace(status, error=problem))
        if old is not None:
            shutil.rmtree(old.folder, ignore_errors=True)

    def _describe(self, known: Mapping[str, object]) -> None:
        """Add to the record of the last model, and notify all open pages."""
        if self.views.fitted is not None:
            for name, value in known.items():
                setattr(self.views.fitted.record, name, value)
            self._store_record()
        self.notify(responses.Advised())

    def _store_record(self) -> None:
        if self.views.fitted is not None and self.stored_model:
            self.project.models.describe(self.stored_model, self.views.fitted.record)

    def _fail(self, why: str) -> None:
        kept = " The last model stays in use." if self.views.fitted else ""
        self.set_status(FitStatus(error=f"{why}{kept}"))

    def set_status(self, status: FitStatus) -> None:
        """Set the state of the fit, and notify all open pages."""
        self.status = status
        self.notify(responses.FitMoved(status))

    def _restore(self) -> None:
        """Load the last model of the project."""
        last = self.project.models.last()
        if last is None:
            return
        self.stored_model, record = last
        folder = Path(tempfile.mkdtemp(dir=self.temporary.path))
        try:
            self.project.models.restore(self.stored_model, folder)
            fitted = CurrentModel(folder, record, self.features.vectors)
            if len(fitted.values) == self.session.n:
                self.views.fitted = self._under_labels(fitted)
                self._moved.set()
            else:  # of fewer documents
                self.fit()
        except (ValueError, OSError, KeyError) as error:
            self.notice = f"The last fitted model could not be read ({error}). All labels are safe: fit again."


def _reason_of_end(code: int) -> str:
    """Why a process ended that nobody cancelled.

    Examples
    --------
    >>> _reason_of_end(1)
    'its process ended with code 1'
    """
    if code != -9:
        return f"its process ended with code {code}"
    return (
        "its process was killed. A likely cause is too little memory: close other programs, and look for a memory limit"
    )


def project_path(source: Path | None, project: Path | None = None) -> Path:
    """Return the path of a project: as given, or next to the documents.

    Examples
    --------
    >>> project_path(Path("texts/articles.csv.gz")).as_posix()
    'texts/articles.steer'
    >>> project_path(None).as_posix()
    'docstrings.steer'
    """
    if project is not None or source is None:
        return project or Path(f"docstrings{SUFFIX}")
    if source.suffix == SUFFIX:
        return source
    name = source.name.removesuffix(".gz")
    return source.with_name((Path(name).stem if not source.is_dir() else name) + SUFFIX)
