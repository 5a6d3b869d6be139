"""The socket of each open page, by which it hears what others do."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

WAITING = 500  # messages that a page may lag behind before it has to come again


class Live:
    """The sockets of all open pages; messages come from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[asyncio.Queue[str | None]] = set()

    @asynccontextmanager
    async def listening(self, listeners: list[Callable[[dict[str, Any]], None]]) -> AsyncIterator[None]:
        """Be one of those who are told, on the loop of now."""
        self._loop = asyncio.get_running_loop()
        listeners.append(self.send)
        try:
            yield
        finally:
            listeners.remove(self.send)

    def send(self, message: dict[str, Any]) -> None:
        """To everybody; a page that does not keep up is let go and comes again."""
        text = json.dumps(message)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, text)

    def _spread(self, text: str) -> None:
        for queue in list(self._queues):
            if queue.qsize() < WAITING:
                queue.put_nowait(text)
            elif queue.qsize() == WAITING:
                queue.put_nowait(None)

    async def serve(self, websocket: WebSocket) -> None:
        """One page, until it goes."""
        await websocket.accept()
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._queues.add(queue)

        async def push() -> None:
            while (text := await queue.get()) is not None:
                await websocket.send_text(text)
            await websocket.close()

        task = asyncio.create_task(push())
        try:
            while True:
                await websocket.receive_text()  # pages say nothing here; this ends when they go
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self._queues.discard(queue)
            task.cancel()
