"""The workbench's side of fitting: starts the worker, listens to it, ends it."""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

PATIENCE = 4.0  # seconds that a cancelled fit has to end by itself


class Fitter:
    """One fit at a time in a process of its own.

    Parameters
    ----------
    hear : callable
        Called in a thread of its own with each message of the worker, a dict whose "at" says what it is.
    """

    def __init__(self, hear: Callable[[dict[str, Any]], None]) -> None:
        self.hear = hear
        self.busy = False
        self._process: Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, order: Mapping[str, Any]) -> bool:
        """Begin a fit; False if one is running."""
        with self._lock:
            if self.busy:
                return False
            if self._process is None or self._process.poll() is not None:
                command = [sys.executable, "-m", "topicsteer.app.workbench.worker"]
                self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, encoding="utf-8")  # noqa: S603
                self._thread = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
                self._thread.start()
            self.busy = True
            self._send(self._process, {"do": "fit", **order})
            return True

    def cancel(self) -> None:
        """End the fit: politely, and after some seconds with the process."""
        with self._lock:
            process = self._process
            if not self.busy or process is None:
                return
            self._send(process, {"do": "cancel"})

        def insist() -> None:
            if self.busy and self._process is process and process.poll() is None:
                process.kill()

        timer = threading.Timer(PATIENCE, insist)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """End the process."""
        self.busy = False
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)

    @staticmethod
    def _send(process: Popen[str], message: Mapping[str, Any]) -> None:
        assert process.stdin is not None  # noqa: S101
        with suppress(OSError, ValueError):  # the end of the process is heard by the one who listens
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()

    def _listen(self, process: Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            message = json.loads(line)
            if message["at"] in ("failed", "cancelled"):
                self.busy = False
            self.hear(message)
        with suppress(OSError), process:  # what was not sent will not be
            code = process.wait()
        if self.busy:
            self.busy = False
            self.hear({"at": "ended", "code": code})
