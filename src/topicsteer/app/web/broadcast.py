"""The sockets of all open pages, which receive every notice of the workbench."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.websockets import WebSocket, WebSocketDisconnect

from topicsteer.app.web.messages import write
from topicsteer.app.workbench.answers import Notice

# Notices that a page may lag behind before its socket is closed; the page then connects again.
WAITING = 500
# Close code of a socket on which the page sent something: pages only receive.
UNSUPPORTED = 1003


class Broadcast:
    """Sends notices from any thread to all open pages."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[asyncio.Queue[str | None]] = set()

    @asynccontextmanager
    async def listening(self, listeners: list[Callable[[Notice], None]]) -> AsyncIterator[None]:
        """Listen to a workbench as long as the server runs."""
        self._loop = asyncio.get_running_loop()
        listeners.append(self.send)
        try:
            yield
        finally:
            listeners.remove(self.send)

    def send(self, notice: Notice) -> None:
        """Send a notice to all pages."""
        text = write(notice).decode()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._enqueue, text)

    def _enqueue(self, text: str) -> None:
        for queue in list(self._queues):
            if queue.qsize() < WAITING:
                queue.put_nowait(text)
            elif queue.qsize() == WAITING:
                queue.put_nowait(None)

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one page until it closes its socket."""
        offered = websocket.scope.get("subprotocols", [])
        await websocket.accept("topicsteer" if "topicsteer" in offered else None)
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._queues.add(queue)

        async def push() -> None:
            while (text := await queue.get()) is not None:
                await websocket.send_text(text)
            await websocket.close()

        task = asyncio.create_task(push())
        try:
            await websocket.receive_text()  # returns only if the page sends something
            await websocket.close(UNSUPPORTED, "Send requests to /api/act: this socket only sends notices.")
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self._queues.discard(queue)
            task.cancel()
