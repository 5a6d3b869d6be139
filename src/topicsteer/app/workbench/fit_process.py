"""The workbench's side of fitting: starts the worker, listens to it, ends it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
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
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, order: Mapping[str, Any]) -> bool:
        """Begin a fit; False if one is running."""
        with self._lock:
            if self.busy:
                return False
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "topicsteer.app.workbench.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    encoding="utf-8",
                )
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

    def done(self) -> None:
        """What the worker was asked for is there."""
        self.busy = False

    def close(self) -> None:
        """End the process."""
        self.busy = False
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)

    @staticmethod
    def _send(process: subprocess.Popen[str], message: Mapping[str, Any]) -> None:
        assert process.stdin is not None  # noqa: S101
        with suppress(OSError, ValueError):  # the end of the process is heard by the one who listens
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            message = json.loads(line)
            if message["at"] in ("failed", "cancelled"):
                self.done()
            self.hear(message)
        code = process.wait()
        process.stdout.close()
        if process.stdin is not None:
            with suppress(OSError):  # what was not sent will not be
                process.stdin.close()
        if self.busy:
            self.done()
            self.hear({"at": "ended", "code": code})
