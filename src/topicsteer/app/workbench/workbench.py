"""The workbench without HTTP: a project, its session, fits in the background, and listeners for changes."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from topicsteer.app.workbench import fit_messages as messages
from topicsteer.app.workbench import team  # noqa: F401  # its actions
from topicsteer.app.workbench.actions import ACTIONS
from topicsteer.app.workbench.answers import (
    Advised,
    Changed,
    FitMoved,
    FitStatus,
    Judged,
    MapPage,
    Mapped,
    Notice,
    Refitted,
)
from topicsteer.app.workbench.changes import Change
from topicsteer.app.workbench.coders import CoderShelf
from topicsteer.app.workbench.copies import Copies
from topicsteer.app.workbench.current_model import CurrentModel, summarise_changes
from topicsteer.app.workbench.document_map import MapMaker, map_points
from topicsteer.app.workbench.errors import Conflict, Invalid
from topicsteer.app.workbench.exports import Exporter
from topicsteer.app.workbench.fit_messages import AnyReport, FitOrder
from topicsteer.app.workbench.fit_process import FitProcess
from topicsteer.app.workbench.free_edits import FreeEdits
from topicsteer.app.workbench.label_import import read_given_labels
from topicsteer.app.workbench.new_project import make_project
from topicsteer.app.workbench.project import Project, fingerprint, read_documents
from topicsteer.app.workbench.queue import Queue
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.text_features import TextFeatures
from topicsteer.app.workbench.topic_import import import_topics
from topicsteer.app.workbench.views import Views
from topicsteer.labels.codebook import Codebook
from topicsteer.model.topics_file import read_topics
from topicsteer.system.files import Scratch

SUFFIX = ".steer"
# Seconds between two checks of the write-ahead log.
TIDY = 20.0
# Rows listed in a notice of changed documents.
LISTED = 200


class Workbench(FreeEdits):
    """A project with its session, queue, fits and exports; usable without a server.

    Parameters
    ----------
    path : Path
        A project.
    source : Path, optional
        The file with the documents; ``notice`` warns if it has changed.
    """

    def __init__(self, path: Path, *, source: Path | None = None) -> None:
        self.project = Project.open(path)
        # Segmenter and embeddings of the documents.
        self.features = TextFeatures.of(self.project)
        self.session = LabelSession(self.project)
        self.views = Views(self.session)
        self.views.copies = Copies(self.project)
        self.queue = Queue(self.views)
        self.fitter = FitProcess(self.on_message)
        self.maps = MapMaker(self.views, lambda status: self.notify(Mapped(status)))
        self.exporter = Exporter(self.views, self.maps)
        self.coders = CoderShelf(self.session)
        # Called with every notice for the open pages.
        self.listeners: list[Callable[[Notice], None]] = []
        # A warning for everybody who opens a page.
        self.notice = ""
        self.status = FitStatus()
        # Whether another fit starts at the end of the present one, and whether that is one from scratch.
        self._again: bool | None = None
        self.temporary = Scratch()
        # Number of the stored model; 0 without one.
        self._model = 0
        # Description of the model that is being fitted.
        self.pending: dict[str, Any] = {}
        self._closed = threading.Event()
        self._restore()
        self._compare(source)
        threading.Thread(target=self._tidy, daemon=True).start()

    make = staticmethod(make_project)

    def _compare(self, source: Path | None) -> None:
        """Set the notice if the file with the documents has changed."""
        known = self.project.settings().get("source")
        if source is None or not source.is_file() or source.suffix == SUFFIX or not known:
            return
        if fingerprint(source)["sha256"] != known["sha256"]:
            self.notice = (
                f"{source.name} has changed since this project was created. The project keeps its own copy of the "
                f"documents. To label the new ones, create another project with --project."
            )

    def close(self) -> None:
        """End the worker and close the project."""
        self._closed.set()
        self.fitter.close()
        self.maps.close()
        self.project.close()
        self.temporary.remove()

    def _tidy(self) -> None:
        while not self._closed.wait(TIDY):
            self.project.tidy()

    def notify(self, notice: Notice) -> None:
        """Send a notice to all open pages."""
        for listener in list(self.listeners):
            listener(notice)

    # --- actions of people ---

    def act(self, who: str, action: str, request: str | None, values: Mapping[str, Any]) -> Change:
        """Perform an action of a person and notify all open pages."""
        change = ACTIONS[action](self.session, who, request=request, **values)
        self.announce(who, change)
        return change

    def announce(self, who: str, change: Change) -> None:
        """Notify all open pages of a change, and fit if that is due."""
        if change.repeated:
            return
        rows = change.documents
        progress = self.views.progress()
        self.notify(Changed(who, list(rows[:LISTED]), len(rows) > LISTED, change.topics, progress))
        if rows:
            self._fit_if_due()

    def import_labels(self, who: str, path: Path, name: str) -> str:
        """Import the labels of a file in any supported format; return a sentence about it."""
        try:
            given = read_given_labels(path, read_documents(self.project.path))
        except ValueError as error:
            raise Invalid(f"{name}: {str(error).replace(str(path), name)}") from error
        rows = {row for own in given for row in own.rows}
        if not rows:
            raise Invalid(f"{name}: no label belongs to a document of this project. The ids must be the same.")
        (labels, forbidden, open_rows, _, separator), *people = given
        change = self.session.import_labels(
            who, labels, forbidden, source=name, open_rows=open_rows, people=people, separator=separator
        )
        self.announce(who, change)
        by = f", given by {', '.join(own.owner for own in people[:5])}{', …' * (len(people) > 5)}" if people else ""
        return f"Imported labels of {len(rows):,} documents from {name}{by}."

    # --- the document map ---

    def document_map(self) -> MapPage:
        """Return the points of the document map; the first call starts its layout. Blind mode has none."""
        if self.session.settings.blind:
            raise Conflict("Blind mode hides the map, since it shows predictions. The page Export has the setting.")
        layout = self.maps.layout()
        return MapPage(None if layout is None else map_points(self.views, layout), self.maps.status)

    # --- fits ---

    def import_topics(self, who: str, path: Path, name: str) -> tuple[str, ...]:
        """Add the topics and words of a topics file; return notes on probable mistakes."""
        try:
            found = read_topics(path)
        except ValueError as error:
            reason = str(error).replace(str(path), name)
            raise Invalid(reason if reason.startswith(name) else f"{name}: {reason}") from error
        self.announce(who, import_topics(self.session, who, found.codebook, source=name))
        return found.notes

    def add_topics(self, who: str, path: Path, name: str) -> str:
        """Add the topics of a topics file or codebook; return a sentence about it."""
        before = len(self.session.live)
        notes = self.import_topics(who, path, name)
        return " ".join([f"{len(self.session.live) - before:,} new topics from {name}.", *notes[:8]])

    def _fit_if_due(self) -> None:
        after = self.session.settings.refit_after
        seen = self.views.fitted.meta["seq"] if self.views.fitted else 0
        counts = [n for n in self.session.counts.values() if n > 0]
        if after and not self.fitter.busy and len(counts) >= 2 and self.session.changed_since(seen) >= after:
            self.fit()

    def fit(self, *, scratch: bool = False) -> bool:
        """Start a fit with the current labels; if one is running, start it at its end and return False.

        Parameters
        ----------
        scratch : bool
            Compute vocabulary and latent semantics again.
        """
        training, fitted = self.session.training(), self.views.fitted
        settings = self.session.settings
        free = settings.free_topics
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
            scratch=scratch,
            chosen=self.session.chosen(),
            path_separator=self._path_separator(),
            free_inside=self.free_inside(),
            segmenter=self.features.segmenter,
            embeddings=self.features.embeddings,
        )
        if not self.fitter.start(order):
            self._again = bool(self._again) or scratch
            self.set_status(self.status)
            return False
        self._again = None
        labelled = len({*training.labels, *training.forbidden})
        self.pending = {"keys": [t.key for t in training.topics], "seq": training.seq, "labelled": labelled}
        self.set_status(FitStatus("fitting", "start"))
        return True

    def _path_separator(self) -> str | None:
        """Return the separator for a model, if all names that contain it are paths."""
        separator = self.session.settings.path_separator
        return separator if self.session.tree.has_paths(separator) else None

    def cancel_fit(self) -> None:
        """Cancel the running fit, and the one that waits for its end."""
        self._again = None
        self.fitter.cancel()

    def _fit_again(self) -> None:
        """Start the fit that waits for the end of another one."""
        scratch, self._again = self._again, None
        if scratch is not None and self.fitter.busy:
            self._again = scratch
        elif scratch is not None:
            with suppress(Conflict):  # the last topic was deleted meanwhile
                self.fit(scratch=scratch)

    # --- reports of the worker ---

    def on_message(self, report: AnyReport) -> None:
        """Handle a report of the worker; called in a separate thread."""
        self._handle(report)
        self._fit_again()

    def _handle(self, report: AnyReport) -> None:
        match report:
            case messages.Progressed("read" | "edit") if "seq" not in self.pending:
                self.set_status(FitStatus("fitting", "edit"))
            case messages.Progressed("advise" | "check" | "shares" as stage):
                self.set_status(FitStatus("checking", stage, self.status.error))
            case messages.Progressed(stage, done, total, detail):
                self.set_status(FitStatus("fitting", stage, done=done, total=total, detail=detail))
            case messages.Rested() if not self.fitter.busy:
                self.set_status(replace(self.status, state="idle", stage=""))
                self._fit_if_due()  # labels that arrived during an edit
            case messages.Finished():
                try:
                    self._adopt(report)
                except Exception as error:  # the last good model stays in use
                    self.fitter.busy = False
                    self._fail(f"The new model could not be loaded: {error}.")
            case messages.Edited(folder):
                try:
                    self._use(Path(folder), self._edited_meta(), FitStatus())
                except Exception as error:  # as after a fit
                    self.fitter.busy = False
                    self._fail(f"The edited model could not be loaded: {error}.")
            case messages.Suggested(suggestions, checks):
                self.describe({"suggestions": msgspec.to_builtins(suggestions), "checks": checks})
                self.notify(Advised())
                self._fit_if_due()  # labels that arrived during the fit
            case messages.StoppingAdvice(sentence):
                self.describe({"outlook": sentence})
                self.notify(Advised())
            case messages.Evaluated(scores):
                self.describe({"judged": msgspec.to_builtins(scores)})
                self.notify(Judged())
            case messages.Shared(shares):
                self.describe({"shares": shares})
                self.notify(Advised())
            case messages.Failed(message):
                self._fail(message)
            case messages.Cancelled():
                self.set_status(FitStatus(message="The fit was cancelled."))
            case messages.Ended(code):
                self._fail(f"The fit did not finish: {_reason_of_end(code)}.")
            case _:
                pass

    def _adopt(self, report: messages.Finished) -> None:
        """Put the model of a fit to use; proposals for topics that have no labels yet are kept."""
        self.set_status(FitStatus("fitting", "load"))
        known = {"seconds": report.seconds, "warm": report.warm, "notes": report.notes, "objective": report.objective}
        before = self.views.fitted.meta.get("proposed", {}) if self.views.fitted else {}
        proposed = {key: rows for key, rows in before.items() if not self.session.counts[int(key)]}
        self._use(Path(report.folder), self.pending | known | {"proposed": proposed}, FitStatus("checking", "advise"))

    def _edited_meta(self) -> dict[str, Any]:
        """The description of an edited model: that of the last fit, except that the learning curve has it already."""
        meta = self.views.fitted.meta if self.views.fitted else {}
        return {name: value for name, value in meta.items() if name not in ("judged", "shares", "split")} | self.pending

    def _use(self, folder: Path, meta: dict[str, Any], status: FitStatus) -> None:
        """Put a model to use, announce it, and then store it, which takes longer."""
        old = self.views.fitted
        fitted = CurrentModel(folder, meta, self.features.vectors)
        fitted.meta.setdefault("changes", summarise_changes(old, fitted, self.session.topics))
        self.views.fitted, self._model = fitted, 0  # it is not stored yet
        self.keep_free_inside()
        self.fitter.busy = False
        self.notify(Refitted(self.views.progress()))
        self.set_status(status)
        try:
            self._model = self.project.models.store(fitted.folder, fitted.meta)
        except Exception as error:  # a full disk, for example
            problem = f"The new model is in use, but could not be stored: {error}. Free some disk space, and fit again."
            self.set_status(replace(status, error=problem))
        if old is not None:
            shutil.rmtree(old.folder, ignore_errors=True)

    def describe(self, known: dict[str, Any]) -> None:
        """Add to the description of the last model."""
        if self.views.fitted is not None:
            self.views.fitted.meta |= known
        if self.views.fitted is not None and self._model:
            self.project.models.describe(self._model, known)

    def _fail(self, why: str) -> None:
        kept = " The last model stays in use." if self.views.fitted else ""
        self.set_status(FitStatus(error=f"{why}{kept}"))

    def set_status(self, status: FitStatus) -> None:
        """Set the state of the fit, and notify all open pages."""
        self.status = status = replace(status, queued=self._again is not None)
        self.notify(FitMoved(status))

    def _restore(self) -> None:
        """Load the last model of the project."""
        models = self.project.models.finished()
        if not models:
            return
        self._model, _, meta = models[-1]
        folder = Path(tempfile.mkdtemp(dir=self.temporary.path))
        try:
            self.project.models.restore(self._model, folder)
            self.views.fitted = CurrentModel(folder, meta, self.features.vectors)
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
