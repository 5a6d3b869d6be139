"""Connections that have not shown a token are few and short, and floods of them do not fill the log."""

import asyncio
import logging
import time
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

# Seconds that a connection may stay open without a valid request.
SECONDS = 10.0
# Open connections without a valid request; beyond this number the oldest one is closed.
MOST_STRANGERS = 200
# Seconds between two equal lines of the log.
QUIET = 60.0

Peer = tuple[str, int]


class Strangers:
    """The open connections that have not shown a token yet.

    Parameters
    ----------
    most : int
        Their greatest number.
    seconds : float
        Their longest life.
    """

    def __init__(self, most: int = MOST_STRANGERS, seconds: float = SECONDS) -> None:
        self._most, self._seconds = most, seconds
        self._open: OrderedDict[Peer, tuple[asyncio.BaseTransport, asyncio.TimerHandle]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, peer: Peer, transport: asyncio.BaseTransport) -> None:
        """Note a new connection; the oldest one is closed if there are too many."""
        self.gone(peer)
        while len(self._open) >= self._most:
            self._close(next(iter(self._open)))
        timer = asyncio.get_running_loop().call_later(self._seconds, self._close, peer)
        self._open[peer] = transport, timer

    def trust(self, peer: object) -> None:
        """Forget a connection that has shown a token: it may stay open."""
        if isinstance(peer, tuple | list) and len(peer) >= 2:
            self.gone((str(peer[0]), int(peer[1])))

    def gone(self, peer: Peer) -> None:
        """Forget a connection."""
        _, timer = self._open.pop(peer, (None, None))
        if timer is not None:
            timer.cancel()

    def _close(self, peer: Peer) -> None:
        transport, timer = self._open.pop(peer)
        timer.cancel()
        transport.abort() if isinstance(transport, asyncio.Transport) else transport.close()


def limited_protocol(strangers: Strangers) -> type[Any]:
    """The protocol of uvicorn for connections that are noted as strangers until the guard trusts them."""

    class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """HTTP with a limit on strangers."""

        _peer: Peer | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            """Note the connection."""
            found = transport.get_extra_info("peername")
            if isinstance(found, tuple):
                self._peer = str(found[0]), int(found[1])
                strangers.opened(self._peer, transport)
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget the connection."""
            if self._peer is not None:
                strangers.gone(self._peer)
            super().connection_lost(exc)

    return Protocol


class OncePerMinute(logging.Filter):
    """Lets equal lines pass once per minute, and without tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        key, now = (record.name, str(record.msg)[:200]), time.monotonic()
        if now - self._last.get(key, -QUIET) < QUIET:
            return False
        if len(self._last) > 1_000:
            self._last.clear()
        self._last[key] = now
        if not logging.getLogger("topicsteer").isEnabledFor(logging.DEBUG):
            record.exc_info = record.exc_text = None
        return True
