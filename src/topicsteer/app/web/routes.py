"""The web side of the workbench: each answer is a few lines around the workbench, which knows nothing of the web."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from topicsteer import __version__
from topicsteer.app.web.guard import Guard, check_address
from topicsteer.app.workbench.session import Refused, person
from topicsteer.app.workbench.workbench import Workbench

ACTION, UPLOAD = 1 << 20, 32 << 20  # bytes that a request may have
WAITING = 500  # messages that a page may lag behind before it has to come again
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PORT = 8765
log = logging.getLogger("topicsteer.app")


def application(workbench: Workbench) -> Starlette:
    """The pages and answers of a workbench, not yet guarded."""
    pages = {
        p.name: (p.read_bytes(), KINDS[Path(p.name).suffix])
        for p in files("topicsteer.app").joinpath("pages").iterdir()
    }
    views = workbench.views
    live = Live()

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in pages or name == "login.html":
            return Response("There is no such page.\n", 404)
        return Response(pages[name][0], media_type=pages[name][1])

    async def state(request: Request) -> Response:
        who = person(request.query_params.get("who", ""))
        return await answer(lambda: full_state(workbench, who))

    async def next_document(request: Request) -> Response:
        q = request.query_params
        seen = [int(row) for row in q.get("seen", "").split(",") if row.isdigit()][:5_000]
        options: dict[str, Any] = {
            "mode": q.get("mode", "suggested"),
            "query": q.get("query", "")[:500],
            "topic": _number(q.get("topic")),
        }
        return await answer(lambda: views.next(person(q.get("who", "")), seen=seen, **options))

    async def document(request: Request) -> Response:
        row, q = int(request.path_params["row"]), request.query_params
        if "from" in q:
            return await answer(lambda: views.text(row, _number(q["from"]) or 0))
        return await answer(lambda: views.document(row, person(q.get("who", ""))))

    async def documents(request: Request) -> Response:
        q = request.query_params
        chosen: dict[str, Any] = {
            "query": q.get("query", "")[:500],
            "filter": q.get("filter", "all"),
            "topic": _number(q.get("topic")),
            "free": _number(q.get("free")),
        }
        who = person(q.get("who", ""))
        if q.get("rows") == "all":
            return await answer(lambda: {"rows": views.rows(who, **chosen)})
        page = _number(q.get("page")) or 0
        return await answer(lambda: views.documents(who, sort=q.get("sort", "order"), page=page, **chosen))

    async def progress(request: Request) -> Response:
        narrow = request.query_params.get("narrow") == "1"
        width, height = (360, 430) if narrow else (1040, 560)
        return await answer(
            lambda: {
                "map": views.map(width, height),
                "curve": views.curve(),
                "coverage": views.coverage(),
                "advice": views.advice(),
                "columns": views.columns(),
            }
        )

    async def groups(request: Request) -> Response:
        return await answer(lambda: views.groups(request.query_params.get("column", "")))

    async def act(request: Request) -> Response:
        body = await read_json(request)
        who, action, values = person(body.get("who")), str(body.get("action")), body.get("values", {})
        name = body.get("request")
        if not isinstance(values, dict) or not (name is None or (isinstance(name, str) and 0 < len(name) <= 64)):
            raise Refused("The request is not one of the workbench's.")

        def run() -> dict[str, Any]:
            change = workbench.act(who, action, name, values)
            rows = values.get("documents", ()) if action in ("label", "none", "skip") else change.documents
            few = list(dict.fromkeys(rows))[:60]
            can = workbench.session.can(who)
            return {
                "batch": change.batch,
                "again": change.again,
                "touched": len(change.documents),
                "documents": {str(row): views.labels(row, who) for row in few},
                "undo": can[0],
                "redo": can[1],
                "progress": views.progress(),
                "note": change.note,
            }

        return await answer(run)

    async def fit(request: Request) -> Response:
        await read_json(request)
        return await answer(lambda: {"started": workbench.fit()})

    async def cancel(request: Request) -> Response:
        await read_json(request)
        workbench.cancel()
        return JSONResponse({})

    async def export(request: Request) -> Response:
        body = await read_json(request)

        def run() -> dict[str, Any]:
            path = workbench.exporter.export(str(body.get("kind")), body.get("name") or None)
            opened = body.get("kind") in ("labels", "jsonl") and not workbench.session.training().complete
            note = (
                "Fit these with --incomplete: some labels say nothing of topics that were made later." if opened else ""
            )
            return {"name": path.name, "size": path.stat().st_size, "note": note}

        return await answer(run)

    async def download(request: Request) -> Response:
        path = workbench.exporter.place(request.path_params["name"])
        if not path.is_file():
            return JSONResponse({"error": "This file is not in the export folder; make it again."}, 404)
        return FileResponse(
            path,
            filename=path.name,
            media_type="application/octet-stream",
            headers={"content-security-policy": "sandbox"},
        )

    async def upload(request: Request) -> Response:
        q = request.query_params
        name = Path(q.get("name", "labels")).name[-80:]
        who = person(q.get("who", ""))
        data = await read(request, UPLOAD)
        ending = "".join(Path(name).suffixes[-2:]).lower()

        def run() -> dict[str, Any]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"labels{ending if ending.replace('.', '').isalnum() else ''}"
                path.write_bytes(data)
                return {"message": workbench.import_labels(who, path, name)}

        return await answer(run)

    async def socket_route(websocket: WebSocket) -> None:
        await live.serve(websocket)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        live.loop = asyncio.get_running_loop()
        workbench.listeners.append(live.send)
        try:
            yield
        finally:
            workbench.listeners.remove(live.send)

    routes = [
        Route("/", page),
        Route("/pages/{name}", page),
        Route("/api/state", state),
        Route("/api/next", next_document),
        Route("/api/documents/{row:int}", document),
        Route("/api/documents", documents),
        Route("/api/progress", progress),
        Route("/api/groups", groups),
        Route("/api/act", act, methods=["POST"]),
        Route("/api/fit", fit, methods=["POST"]),
        Route("/api/cancel", cancel, methods=["POST"]),
        Route("/api/export", export, methods=["POST"]),
        Route("/api/import", upload, methods=["POST"]),
        Route("/exports/{name}", download),
        WebSocketRoute("/api/live", socket_route),
    ]
    handlers: dict[Any, Any] = {Refused: _refused, Exception: _broken}
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


def full_state(workbench: Workbench, who: str) -> dict[str, Any]:
    """What a page needs to begin with."""
    views, session = workbench.views, workbench.session
    undo, redo = session.can(who)
    fitted = views.fitted
    known = ("changes", "notes", "seconds", "labelled", "warm")
    return {
        "version": __version__,
        "project": workbench.project.path.name,
        "folder": str(workbench.exporter.folder),
        "notice": workbench.notice,
        "who": who,
        "people": session.people,
        "undo": undo,
        "redo": redo,
        "settings": {**session.settings, "target": session.target},
        "topics": views.topics(),
        "progress": views.progress(),
        "fit": workbench.status,
        "model": None if fitted is None else {key: fitted.meta.get(key) for key in known},
    }


class Live:
    """The sockets of all open pages; messages come from any thread."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.queues: set[asyncio.Queue[str | None]] = set()

    def send(self, message: dict[str, Any]) -> None:
        """To everybody; a page that does not keep up is let go and comes again."""
        text = json.dumps(message)
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._spread, text)

    def _spread(self, text: str) -> None:
        for queue in list(self.queues):
            if queue.qsize() < WAITING:
                queue.put_nowait(text)
            elif queue.qsize() == WAITING:
                queue.put_nowait(None)

    async def serve(self, websocket: WebSocket) -> None:
        """One page, until it goes."""
        await websocket.accept()
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.queues.add(queue)

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
            self.queues.discard(queue)
            task.cancel()


async def answer(work: Callable[[], Any]) -> Response:
    """Do the work in a thread and send what comes back."""
    return JSONResponse(await run_in_threadpool(work))


async def read(request: Request, limit: int) -> bytes:
    """The body of a request, if it is not too large."""
    too_large = Refused(f"This is more than the {limit >> 20} MB that may be sent.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > limit:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_large
        parts.append(part)
    return b"".join(parts)


async def read_json(request: Request) -> dict[str, Any]:
    """The body of a request as an object."""
    try:
        body = json.loads(await read(request, ACTION) or b"{}")
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, Refused) else Refused("The request is not JSON.") from error
    if not isinstance(body, dict):
        raise Refused("The request is not an object of JSON.")
    return body


def _number(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    if not text.removeprefix("-").isdigit() or len(text) > 12:
        raise Refused(f"{text[:20]!r} is not a number.")
    return int(text)


async def _refused(request: Request, error: Exception) -> Response:
    status = 413 if "more than the" in str(error) else 400
    return JSONResponse({"error": str(error)}, status)


async def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse({"error": f"Something went wrong in the workbench: {type(error).__name__}: {error}"}, 500)


def guarded(workbench: Workbench, host: str, port: int, password: str | None = None, token: str | None = None) -> Guard:
    """The application behind its guard, with the page to log in where there is a password."""
    app = application(workbench)
    guard = Guard(app, host, port, password, token)

    async def login(request: Request) -> Response:
        if request.method == "GET":
            return Response(
                files("topicsteer.app").joinpath("pages", "login.html").read_bytes(), media_type="text/html"
            )
        given = (await read_json(request)).get("password")
        right = guard.try_password(given) if isinstance(given, str) else False
        if not right:
            await asyncio.sleep(0.3)
            text = "Too many wrong passwords: wait a minute." if right is None else "This is not the password."
            return JSONResponse({"error": text}, 429 if right is None else 403)
        return JSONResponse({"ok": True}, headers={"set-cookie": guard.set_cookie()})

    if password:
        app.router.routes.insert(0, Route("/login", login, methods=["GET", "POST"]))
    return guard


def listen(host: str, port: int | None) -> socket.socket:
    """A socket to listen on: the usual port or, if it is taken and nobody asked for it, a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (PORT, 0) if port is None else (port,):
        sock = socket.socket(family)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, wanted))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            if wanted == 0 or port is not None:
                raise ValueError(
                    f"cannot listen on {host}, port {wanted}: {error.strerror}; try another --port."
                ) from error
    raise AssertionError


def serve(
    workbench: Workbench,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    password: str | None = None,
    ready: Callable[[str], object] = print,
) -> None:
    """Serve until Ctrl-C.

    Parameters
    ----------
    workbench : Workbench
        What is served.
    host, port : str, int
        Where. Another address than this machine's own needs a password.
    password : str, optional
        What people type who do not have the token.
    ready : callable
        Called with the address, token included, when the server listens.
    """
    check_address(host, password)
    sock = listen(host, port)
    guard = guarded(workbench, host, int(sock.getsockname()[1]), password)
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104
    config = uvicorn.Config(
        guard,
        log_level="warning",
        ws="websockets-sansio",
        ws_max_size=1 << 16,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    server = uvicorn.Server(config)
    ready(f"http://{f'[{shown}]' if ':' in shown else shown}:{guard.port}/?token={guard.token}")
    server.run(sockets=[sock])
