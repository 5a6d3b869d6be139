"""Starts the worker process, sends it orders, reads its reports and ends it."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen

from topicsteer.app.workbench import fit_messages as messages
from topicsteer.app.workbench.fit_messages import AnyReport, EditOrder, FitOrder, Order

# Seconds that a cancelled fit has to end by itself.
PATIENCE = 4.0


class FitProcess:
    """One fit or edit at a time in a separate process.

    Parameters
    ----------
    on_message : callable
        Called with each report of the worker, in a separate thread.
    """

    def __init__(self, on_message: Callable[[AnyReport], None]) -> None:
        self.on_message = on_message
        self.busy = False
        self._process: Popen[str] | None = None
        # The process that `cancel` has killed.
        self._killed: Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, order: FitOrder | EditOrder) -> bool:
        """Start a fit or an edit; return False if one is running."""
        with self._lock:
            if self.busy:
                return False
            if self._process is None or self._process.poll() is not None:
                command = [sys.executable, "-m", "topicsteer.app.workbench.worker"]
                self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, encoding="utf-8")  # noqa: S603
                self._thread = threading.Thread(target=self._read, args=(self._process,), daemon=True)
                self._thread.start()
            self.busy = True
            self._send(self._process, order)
            return True

    def cancel(self) -> None:
        """Cancel the fit; kill the process if that takes too long."""
        with self._lock:
            process = self._process
            if not self.busy or process is None:
                return
            self._send(process, messages.CancelOrder())

        def kill() -> None:
            if self.busy and self._process is process and process.poll() is None:
                self._killed = process
                process.kill()

        timer = threading.Timer(PATIENCE, kill)
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Kill the process."""
        self.busy = False
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)

    @staticmethod
    def _send(process: Popen[str], order: Order) -> None:
        assert process.stdin is not None  # noqa: S101
        with suppress(OSError, ValueError):  # the reading thread notices that the process ended
            process.stdin.write(messages.line(order))
            process.stdin.flush()

    def _read(self, process: Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            report = messages.read_report(line)
            if isinstance(report, messages.Failed | messages.Cancelled):
                self.busy = False
            self.on_message(report)
        with suppress(OSError), process:  # unsent orders are lost with the process
            code = process.wait()
        if self.busy:
            self.busy = False
            self.on_message(messages.Cancelled() if self._killed is process else messages.Ended(code))
