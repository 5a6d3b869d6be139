"""The workbench without its web side: a project, its session, the fits in the background, and who wants to know."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from topicsteer.app.workbench.decisions import FILE, Refused
from topicsteer.app.workbench.exports import Exporter
from topicsteer.app.workbench.fit_process import Fitter
from topicsteer.app.workbench.fitted import Fitted, account
from topicsteer.app.workbench.project import Project, fingerprint, read_documents
from topicsteer.app.workbench.queue import Queue
from topicsteer.app.workbench.session import ACTIONS, Change, LabelSession
from topicsteer.app.workbench.views import Views
from topicsteer.corpora import Documents, attach_labels, read_labels
from topicsteer.labels.codebook import Codebook

SUFFIX = ".steer"
TIDY = 20.0  # seconds between two looks at the write-ahead log


class Workbench:
    """Everything a server needs; usable without one.

    Parameters
    ----------
    path : Path
        A project.
    source : Path, optional
        The file that its documents came from, to say so if that has changed.
    """

    def __init__(self, path: Path, *, source: Path | None = None) -> None:
        self.project = Project.open(path)
        self.session = LabelSession(self.project)
        self.views = Views(self.session)
        self.queue = Queue(self.views)
        self.fitter = Fitter(self.hear)
        self.exporter = Exporter(self.views)
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        self.notice = ""  # something to tell everybody who opens a page
        self.status: dict[str, Any] = {"state": "idle", "error": ""}
        self._temporary = tempfile.TemporaryDirectory(prefix="topicsteer-", ignore_cleanup_errors=True)
        self._model = 0
        self._order: dict[str, Any] = {}
        self._closed = threading.Event()
        self._restore()
        self._compare(source)
        threading.Thread(target=self._tidy, daemon=True).start()

    @classmethod
    def make(cls, path: Path, documents: Documents, *, source: Path | None = None) -> None:
        """A new project; labels that came with the documents become the labels of the file."""
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
        """Notice that the file of the documents is not as it was."""
        known = self.project.settings().get("source")
        if source is None or not source.is_file() or source.suffix == SUFFIX or not known:
            return
        if fingerprint(source)["sha256"] != known["sha256"]:
            self.notice = (
                f"{source.name} has changed since this project was made. The project works with its own copy of the "
                f"documents; for the new ones make another project with --project."
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

    def tell(self, message: dict[str, Any]) -> None:
        """A message to all pages."""
        for listener in list(self.listeners):
            listener(message)

    # --- what people do ---

    def act(self, who: str, action: str, request: str | None, values: Mapping[str, Any]) -> Change:
        """Do something in the name of a person; everybody who looks on is told."""
        if action not in ACTIONS:
            raise Refused(f"there is no action {action!r}.")
        try:
            change = ACTIONS[action](self.session, who, request=request, **values)
        except TypeError as error:
            raise Refused(f"{action}: {error}") from error
        self._announce(who, change)
        return change

    def _announce(self, who: str, change: Change) -> None:
        if change.again:
            return
        rows = change.documents
        what = {"documents": list(rows[:200]), "many": len(rows) > 200, "topics": change.topics}
        self.tell({"kind": "changed", "who": who, **what, "progress": self.views.progress()})
        if rows:
            self._perhaps_fit()

    def import_labels(self, who: str, path: Path, name: str) -> str:
        """Take over the labels of a file in any form that topicsteer reads."""
        try:
            said = read_labels(path, on_error="skip")
            documents = attach_labels(read_documents(self.project.path), said, on_error="skip")
        except ValueError as error:
            raise Refused(f"{name}: {str(error).replace(str(path), name)}") from error
        labels, forbidden = _by_row(documents.labels), _by_row(documents.forbidden)
        if not labels and not forbidden:
            raise Refused(f"{name}: no label in it belongs to a document of this project; ids must be the same.")
        change = self.session.import_labels(who, labels, forbidden, source=name)
        self._announce(who, change)
        return f"Labels of {len({*labels, *forbidden}):,} documents were taken over from {name}."

    # --- fitting ---

    def _perhaps_fit(self) -> None:
        after = self.session.settings["refit after"]
        seen = self.views.fitted.meta["seq"] if self.views.fitted else 0
        counts = [n for n in self.session.counts.values() if n > 0]
        if after and not self.fitter.busy and len(counts) >= 2 and self.session.fresh(seen) >= after:
            self.fit()

    def fit(self) -> bool:
        """Begin a fit with the labels of now; False if one is running."""
        training, fitted = self.session.training(), self.views.fitted
        free = int(self.session.settings["free topics"])
        if not training.topics and not free:
            raise Refused("There is nothing to fit: make a topic and label some documents, or allow free topics.")
        order = {
            "project": str(self.project.path.resolve()),
            "folder": tempfile.mkdtemp(dir=self._temporary.name),
            "topics": Codebook(tuple(topic.plain() for topic in training.topics)).to_json(),
            "labels": {str(row): names for row, names in training.labels.items()},
            "forbidden": {str(row): names for row, names in training.forbidden.items()},
            "complete": training.complete,
            "free": free,
            "previous": str(fitted.folder) if fitted else None,
            "keys": fitted.keys if fitted else [],
        }
        if not self.fitter.start(order):
            return False
        self._order = order | {"seq": training.seq, "labelled": len({*training.labels, *training.forbidden})}
        self._set_status("fitting", "start", done=0, total=None)
        return True

    def hear(self, message: dict[str, Any]) -> None:
        """What the worker says, in a thread of its own."""
        match message["at"]:
            case "progress" if message["stage"] in ("advise", "check"):
                self._set_status("checking", message["stage"], error=self.status["error"])
            case "rest" if not self.fitter.busy:
                self._set_status(**self.status | {"state": "idle", "stage": ""})
            case "progress":
                known = {key: message[key] for key in ("done", "total", "detail")}
                self._set_status("fitting", message["stage"], **known)
            case "fitted":
                try:
                    self._take_over(message)
                except Exception as error:  # a full disk, say: the last good model stays in use
                    self.fitter.busy = False
                    self._fail(f"The result could not be taken over: {error}")
            case "advised" | "judged" as kind:
                if self.views.fitted is not None and self._model:
                    self.views.fitted.meta |= message["known"]
                    self.project.models.describe(self._model, message["known"])
                self.tell({"kind": kind})
                if kind == "judged":
                    self._perhaps_fit()
            case "failed":
                self._fail(message["message"])
            case "cancelled":
                self._set_status("idle", message="The fit was cancelled.")
            case "ended":
                cancelled = message["code"] == -9
                text = "it was cancelled" if cancelled else f"its process ended with code {message['code']}"
                self._fail(f"The fit did not finish: {text}.")

    def _take_over(self, message: dict[str, Any]) -> None:
        self._set_status("fitting", "load", done=0, total=None)
        order, old = self._order, self.views.fitted
        meta = {"keys": [topic["key"] for topic in order["topics"]], "seq": order["seq"], "labelled": order["labelled"]}
        fitted = Fitted(Path(message["folder"]), meta | message["known"])
        fitted.meta["changes"] = account(old, fitted, self.session.topics)
        self.views.fitted = fitted
        self.fitter.busy = False
        self._set_status("checking", "advise")
        self.tell({"kind": "fitted", "progress": self.views.progress()})
        self._model = self.project.models.store(fitted.folder, fitted.meta)
        if old is not None:
            shutil.rmtree(old.folder, ignore_errors=True)

    def _fail(self, why: str) -> None:
        kept = " The last model stays in use." if self.views.fitted else ""
        self._set_status("idle", error=f"{why}{kept}")

    def _set_status(self, state: str, stage: str = "", **more: object) -> None:
        """Say where the fit is, as far as it is known."""
        self.status = {"state": state, "stage": stage, "error": "", **more}
        self.tell({"kind": "fit", "status": self.status})

    def _restore(self) -> None:
        """Take the last model out of the project."""
        models = self.project.models.finished()
        if not models:
            return
        self._model, _, meta = models[-1]
        folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
        try:
            self.project.models.restore(self._model, folder)
            self.views.fitted = Fitted(folder, meta)
        except (ValueError, OSError, KeyError) as error:
            self.notice = f"The last fitted model could not be read ({error}). The labels are all there: fit again."


def _by_row(names: Sequence[Sequence[str]]) -> dict[int, list[str]]:
    """The names of the documents that have any."""
    return {row: list(some) for row, some in enumerate(names) if some}


def project_path(source: Path | None, project: Path | None = None) -> Path:
    """Where the project of some documents is: as named, or beside them.

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
