"""The process that fits, seen from the workbench: orders, reports, and `FitProcess`, which starts and ends it.

Orders and reports are JSON objects, one per line; `worker` has the other side.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from topicsteer.analysis.documents_to_label import Doubt
from topicsteer.app.workbench.current_model import GroupShares

# Command that starts the worker.
WORKER = [sys.executable, "-m", "topicsteer.app.workbench.worker"]
# Seconds that the reading thread has to end.
PATIENCE = 4.0


class FitOrder(msgspec.Struct, frozen=True, tag="fit", tag_field="do"):
    """Fit a project.

    Parameters
    ----------
    project : str
        Path of the project file.
    folder : str
        Folder for the files of the model.
    topics : list
        The codebook as JSON.
    labels, forbidden : dict
        Names of topics by row.
    chosen : dict
        How labelled documents were chosen, by row.
    probability : dict
        The probability with which documents were drawn by doubt, by row.
    complete : bool
        Topics that are not among a document's labels are forbidden.
    free : int
        Number of free topics.
    world : "open", "closed" or None
        Whether documents may have none of the topics; None: the fit decides.
    previous : str, optional
        Folder of the last model, for its vocabulary and latent semantics.
    path_separator : str, optional
        Separator of the levels in names that are paths.
    embeddings : str, optional
        Name of the embeddings of the texts.
    """

    project: str
    folder: str
    topics: list[dict[str, Any]]
    labels: dict[int, list[str]]
    forbidden: dict[int, list[str]]
    complete: bool
    free: int
    world: str | None = None
    previous: str | None = None
    chosen: dict[int, str] = {}
    probability: dict[int, float] = {}
    path_separator: str | None = None
    embeddings: str | None = None


class MapOrder(msgspec.Struct, frozen=True, tag="map", tag_field="do"):
    """Lay out some documents of a project, by their rows, for the document map."""

    project: str
    rows: list[int]


class Report(msgspec.Struct, frozen=True, tag_field="at"):
    """A message of the worker."""


class Progressed(Report, frozen=True, tag="progress"):
    """The fit, or the work after it, moved on."""

    stage: str
    done: int
    total: int | None
    detail: str


class Finished(Report, frozen=True, tag="fitted"):
    """The model is saved."""

    folder: str
    seconds: float
    notes: list[str]


class Learnt(Report, frozen=True, tag="learnt", omit_defaults=True):
    """Facts about the last fit that are ready now, for the fields of its `ModelRecord`."""

    checks: list[Doubt] | UnsetType = UNSET
    shares: dict[str, GroupShares] | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """Return the facts by the names of their fields."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


class LaidOut(Report, frozen=True, tag="map"):
    """The layout of the document map, as a project stores it."""

    layout: dict[str, Any]


class Rested(Report, frozen=True, tag="rest"):
    """All work after the fit is done."""


class Failed(Report, frozen=True, tag="failed"):
    """The fit failed."""

    message: str


class Ended(Report, frozen=True, tag="ended"):
    """The process ended in the middle of a fit; sent by `FitProcess`."""

    code: int


Order: TypeAlias = FitOrder | MapOrder
AnyReport: TypeAlias = Progressed | Finished | Learnt | LaidOut | Rested | Failed | Ended
read_order = msgspec.json.Decoder(Order).decode
read_report = msgspec.json.Decoder(AnyReport).decode


def line(message: Order | AnyReport) -> str:
    """Return a message as one line of JSON."""
    return msgspec.json.encode(message).decode() + "\n"


class FitProcess:
    """One fit or layout at a time in a separate process.

    Parameters
    ----------
    on_message : callable
        Called with each report of the worker, in a separate thread.
    """

    def __init__(self, on_message: Callable[[AnyReport], None]) -> None:
        self.on_message = on_message
        self.busy = False
        self.process: Popen[str] | None = None
        self.thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, order: Order) -> bool:
        """Start a piece of work; return False if one is running."""
        with self._lock:
            if self.busy:
                return False
            if self.process is None or self.process.poll() is not None:
                self.process = Popen(WORKER, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, encoding="utf-8")  # noqa: S603
                self.thread = threading.Thread(target=self._read, args=(self.process,), daemon=True)
                self.thread.start()
            self.busy = True
            self._send(self.process, order)
            return True

    def cancel(self) -> bool:
        """Kill the process in the middle of its work, and return whether it worked; the next order starts another."""
        with self._lock:
            if not self.busy:
                return False
            process, self.process, self.busy = self.process, None, False
        if process is not None:
            process.kill()
        return True

    def close(self) -> None:
        """Kill the process."""
        self.busy = False
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(PATIENCE)

    @staticmethod
    def _send(process: Popen[str], order: Order) -> None:
        assert process.stdin is not None  # noqa: S101
        with suppress(OSError, ValueError):  # the reading thread notices that the process ended
            process.stdin.write(line(order))
            process.stdin.flush()

    def _read(self, process: Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            if self.process is not process:  # it was cancelled
                break
            report = read_report(line)
            if isinstance(report, Failed):
                self.busy = False
            self.on_message(report)
        with suppress(OSError), process:  # unsent orders are lost with the process
            code = process.wait()
        if self.busy and self.process is process:
            self.busy = False
            self.on_message(Ended(code))
