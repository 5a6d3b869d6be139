"""The workbench without HTTP: a project, its session, fits in the background, and listeners for changes."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from topicsteer.app.workbench import fit_messages as messages
from topicsteer.app.workbench.answers import Advised, Changed, FitMoved, FitStatus, Judged, Notice, Refitted
from topicsteer.app.workbench.current_model import CurrentModel, summarise_changes
from topicsteer.app.workbench.errors import Conflict, Invalid
from topicsteer.app.workbench.exports import Exporter
from topicsteer.app.workbench.fit_messages import AnyReport, FitOrder
from topicsteer.app.workbench.fit_process import FitProcess
from topicsteer.app.workbench.project import Project, fingerprint, read_documents
from topicsteer.app.workbench.queue import Queue
from topicsteer.app.workbench.session import ACTIONS, Change, LabelSession
from topicsteer.app.workbench.text_rules import FILE
from topicsteer.app.workbench.views import Views
from topicsteer.corpora import Documents, attach_labels, read_labels
from topicsteer.labels.codebook import Codebook

SUFFIX = ".steer"
# Seconds between two checks of the write-ahead log.
TIDY = 20.0
# Rows listed in a notice of changed documents.
LISTED = 200


class Workbench:
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
        self.session = LabelSession(self.project)
        self.views = Views(self.session)
        self.queue = Queue(self.views)
        self.fitter = FitProcess(self.on_message)
        self.exporter = Exporter(self.views)
        # Called with every notice for the open pages.
        self.listeners: list[Callable[[Notice], None]] = []
        # A warning for everybody who opens a page.
        self.notice = ""
        self.status = FitStatus()
        self._temporary = tempfile.TemporaryDirectory(prefix="topicsteer-", ignore_cleanup_errors=True)
        # Number of the stored model; 0 without one.
        self._model = 0
        # Description of the model that is being fitted.
        self._pending: dict[str, Any] = {}
        self._closed = threading.Event()
        self._restore()
        self._compare(source)
        threading.Thread(target=self._tidy, daemon=True).start()

    @classmethod
    def make(cls, path: Path, documents: Documents, *, source: Path | None = None) -> None:
        """Write a new project; labels of the documents become labels of the file."""
        Project.create(path, documents, source=source)
        labels, forbidden = _by_row(documents.labels), _by_row(documents.forbidden)
        if labels or forbidden:
            name = source.name if source else path.stem
            try:
                with closing(Project.open(path)) as project:
                    LabelSession(project).import_labels(FILE + name, labels, forbidden, source=name)
            except BaseException:
                path.unlink()
                raise

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
        self.project.close()
        self._temporary.cleanup()

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
        self._announce(who, change)
        return change

    def _announce(self, who: str, change: Change) -> None:
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
            found = read_labels(path, on_error="skip")
            documents = attach_labels(read_documents(self.project.path), found, on_error="skip")
        except ValueError as error:
            raise Invalid(f"{name}: {str(error).replace(str(path), name)}") from error
        labels, forbidden = _by_row(documents.labels), _by_row(documents.forbidden)
        if not labels and not forbidden:
            raise Invalid(f"{name}: no label belongs to a document of this project. The ids must be the same.")
        change = self.session.import_labels(who, labels, forbidden, source=name)
        self._announce(who, change)
        return f"Imported labels of {len({*labels, *forbidden}):,} documents from {name}."

    # --- fits ---

    def _fit_if_due(self) -> None:
        after = self.session.settings.refit_after
        seen = self.views.fitted.meta["seq"] if self.views.fitted else 0
        counts = [n for n in self.session.counts.values() if n > 0]
        if after and not self.fitter.busy and len(counts) >= 2 and self.session.changed_since(seen) >= after:
            self.fit()

    def fit(self) -> bool:
        """Start a fit with the current labels; return False if one is running."""
        training, fitted = self.session.training(), self.views.fitted
        free = self.session.settings.free_topics
        if not training.topics and not free:
            raise Conflict("There is nothing to fit. Create a topic and label some documents, or allow free topics.")
        order = FitOrder(
            project=str(self.project.path.resolve()),
            folder=tempfile.mkdtemp(dir=self._temporary.name),
            topics=Codebook(tuple(topic.plain() for topic in training.topics)).to_json(),
            labels=dict(training.labels),
            forbidden=dict(training.forbidden),
            complete=training.complete,
            free=free,
            previous=str(fitted.folder) if fitted else None,
            keys=fitted.keys if fitted else [],
        )
        if not self.fitter.start(order):
            return False
        labelled = len({*training.labels, *training.forbidden})
        self._pending = {"keys": [t.key for t in training.topics], "seq": training.seq, "labelled": labelled}
        self._set_status(FitStatus("fitting", "start"))
        return True

    def on_message(self, report: AnyReport) -> None:
        """Handle a report of the worker; called in a separate thread."""
        match report:
            case messages.Progressed("advise" | "check" as stage):
                self._set_status(FitStatus("checking", stage, self.status.error))
            case messages.Progressed(stage, done, total, detail):
                self._set_status(FitStatus("fitting", stage, done=done, total=total, detail=detail))
            case messages.Rested() if not self.fitter.busy:
                self._set_status(replace(self.status, state="idle", stage=""))
            case messages.Finished():
                try:
                    self._adopt(report)
                except Exception as error:  # a full disk, for example: the last good model stays in use
                    self.fitter.busy = False
                    self._fail(f"The new model could not be loaded: {error}.")
            case messages.Suggested(suggestions, checks):
                self._describe({"suggestions": msgspec.to_builtins(suggestions), "checks": checks})
                self.notify(Advised())
            case messages.StoppingAdvice(sentence):
                self._describe({"outlook": sentence})
                self.notify(Advised())
            case messages.Evaluated(scores):
                self._describe({"judged": msgspec.to_builtins(scores)})
                self.notify(Judged())
                self._fit_if_due()
            case messages.Failed(message):
                self._fail(message)
            case messages.Cancelled():
                self._set_status(FitStatus(message="The fit was cancelled."))
            case messages.Ended(code):
                reason = "it was cancelled" if code == -9 else f"its process ended with code {code}"
                self._fail(f"The fit did not finish: {reason}.")
            case _:
                pass

    def _adopt(self, report: messages.Finished) -> None:
        """Put a new model to use and store it."""
        self._set_status(FitStatus("fitting", "load"))
        old = self.views.fitted
        known = {"seconds": report.seconds, "warm": report.warm, "notes": report.notes, "objective": report.objective}
        fitted = CurrentModel(Path(report.folder), self._pending | known)
        fitted.meta["changes"] = summarise_changes(old, fitted, self.session.topics)
        self.views.fitted = fitted
        self.fitter.busy = False
        self._set_status(FitStatus("checking", "advise"))
        self.notify(Refitted(self.views.progress()))
        self._model = self.project.models.store(fitted.folder, fitted.meta)
        if old is not None:
            shutil.rmtree(old.folder, ignore_errors=True)

    def _describe(self, known: dict[str, Any]) -> None:
        """Add to the description of the last model."""
        if self.views.fitted is not None and self._model:
            self.views.fitted.meta |= known
            self.project.models.describe(self._model, known)

    def _fail(self, why: str) -> None:
        kept = " The last model stays in use." if self.views.fitted else ""
        self._set_status(FitStatus(error=f"{why}{kept}"))

    def _set_status(self, status: FitStatus) -> None:
        self.status = status
        self.notify(FitMoved(status))

    def _restore(self) -> None:
        """Load the last model of the project."""
        models = self.project.models.finished()
        if not models:
            return
        self._model, _, meta = models[-1]
        folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
        try:
            self.project.models.restore(self._model, folder)
            self.views.fitted = CurrentModel(folder, meta)
        except (ValueError, OSError, KeyError) as error:
            self.notice = f"The last fitted model could not be read ({error}). All labels are safe: fit again."


def _by_row(names: Sequence[Sequence[str]]) -> dict[int, list[str]]:
    """Return the names of each document that has any."""
    return {row: list(some) for row, some in enumerate(names) if some}


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
