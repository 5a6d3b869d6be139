"""The web side of the workbench: each answer is a few lines around the workbench, which knows nothing of the web."""

import asyncio
import json
import logging
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from topicsteer import __version__
from topicsteer.app.web.guard import Guard, check_address
from topicsteer.app.web.live import Live
from topicsteer.app.workbench.decisions import Refused, person
from topicsteer.app.workbench.views import Selection
from topicsteer.app.workbench.workbench import Workbench

ACTION, UPLOAD = 1 << 20, 32 << 20  # bytes that a request may have
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PORT = 8765
log = logging.getLogger("topicsteer.app")


# --- questions ---


def asked(work: Callable[[Workbench, str, Mapping[str, str]], object]) -> Callable[[Request], Response]:
    """Give who asks, and the values in the address, to some work, and send what comes back; Starlette uses a thread."""

    def endpoint(request: Request) -> Response:
        values = {**request.query_params, **request.path_params}
        return JSONResponse(work(request.app.state.workbench, person(values.get("who")), values))

    return endpoint


async def page(request: Request) -> Response:
    """A file of the page."""
    name = request.path_params.get("name", "index.html")
    if name not in request.app.state.pages or name == "login.html":
        return Response("There is no such page.\n", 404)
    return Response(request.app.state.pages[name], media_type=KINDS[Path(name).suffix])


def state(workbench: Workbench, who: str, values: Mapping[str, str]) -> object:
    """What a page needs to begin with."""
    views, session, fitted = workbench.views, workbench.session, workbench.views.fitted
    known = ("changes", "notes", "seconds", "labelled", "warm")
    return {
        "version": __version__,
        "project": workbench.project.path.name,
        "folder": str(workbench.exporter.folder),
        "notice": workbench.notice,
        "who": who,
        "people": session.people,
        **session.can(who),
        "settings": {**session.settings, "target": session.target},
        "topics": views.topics(),
        "progress": views.progress(),
        "fit": workbench.status,
        "model": None if fitted is None else {key: fitted.meta.get(key) for key in known},
    }


def next_document(workbench: Workbench, who: str, values: Mapping[str, str]) -> object:
    """What to label next."""
    seen = [int(row) for row in values.get("seen", "").split(",") if row.isdigit()][:5_000]
    query, topic = values.get("query", "")[:500], _number(values.get("topic"))
    return workbench.queue.next(who, values.get("mode", "suggested"), query=query, topic=topic, seen=seen)


def document(workbench: Workbench, who: str, values: Mapping[str, str]) -> object:
    """A document, or a further part of a long one."""
    row, views = int(values["row"]), workbench.views
    return views.text(row, _number(values["from"]) or 0) if "from" in values else views.document(row, who)


def documents(workbench: Workbench, who: str, values: Mapping[str, str]) -> object:
    """A page of documents, or the rows of all of them."""
    query, wanted = values.get("query", "")[:500], values.get("filter", "all")
    chosen = Selection(who, query, wanted, topic=_number(values.get("topic")), free=_number(values.get("free")))
    if values.get("rows") == "all":
        return {"rows": workbench.views.rows(chosen)}
    page = _number(values.get("page")) or 0
    return workbench.views.documents(chosen, sort=values.get("sort", "order"), page=page)


def progress(workbench: Workbench, who: str, values: Mapping[str, str]) -> object:
    """How far the labelling is."""
    views = workbench.views
    return {
        "map": views.map(*(360, 430) if values.get("narrow") == "1" else (1040, 560)),
        "curve": views.curve(),
        "coverage": views.topics()["known"],
        "advice": views.advice(),
        "columns": list(views.project.groups),
    }


def groups(workbench: Workbench, who: str, values: Mapping[str, str]) -> object:
    """Topics by the groups of a column."""
    return workbench.views.groups(values.get("column", ""))


def download(request: Request) -> Response:
    """A file of the export folder."""
    path = request.app.state.workbench.exporter.place(request.path_params["name"])
    if not path.is_file():
        raise Refused("This file is not in the export folder; make it again.", 404)
    headers = {"content-security-policy": "sandbox"}
    return FileResponse(path, filename=path.name, media_type="application/octet-stream", headers=headers)


# --- what people do ---


def posted(work: Callable[[Workbench, dict[str, Any]], object]) -> Callable[[Request], Awaitable[Response]]:
    """Give the JSON of a request to some work that is done in a thread, and send what comes back."""

    async def endpoint(request: Request) -> Response:
        body = await read_json(request)
        return JSONResponse(await run_in_threadpool(work, request.app.state.workbench, body))

    return endpoint


def act(workbench: Workbench, body: dict[str, Any]) -> dict[str, Any]:
    """Something that a person does."""
    who, action, values = person(body.get("who")), str(body.get("action")), body.get("values", {})
    name = body.get("request")
    if not isinstance(values, dict) or not (name is None or (isinstance(name, str) and 0 < len(name) <= 64)):
        raise Refused("The request is not one of the workbench's.")
    change = workbench.act(who, action, name, values)
    rows = values.get("documents", ()) if action in ("label", "none", "skip") else change.documents
    labels = {str(row): workbench.views.labels(row, who) for row in list(dict.fromkeys(rows))[:60]}
    done = {"batch": change.batch, "again": change.again, "touched": len(change.documents), "note": change.note}
    return done | {"documents": labels, "progress": workbench.views.progress()} | workbench.session.can(who)


def export(workbench: Workbench, body: dict[str, Any]) -> dict[str, Any]:
    """Write a file into the export folder."""
    path = workbench.exporter.export(str(body.get("kind")), body.get("name") or None)
    opened = body.get("kind") in ("labels", "jsonl") and not workbench.session.training().complete
    note = "Fit these with --incomplete: some labels say nothing of topics that were made later." if opened else ""
    return {"name": path.name, "size": path.stat().st_size, "note": note}


async def upload(request: Request) -> Response:
    """Labels from a file."""
    name = Path(request.query_params.get("name", "labels")).name[-80:]
    who, data = person(request.query_params.get("who")), await read(request, UPLOAD)
    ending = "".join(Path(name).suffixes[-2:]).lower()

    def run() -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"labels{ending if ending.replace('.', '').isalnum() else ''}"
            path.write_bytes(data)
            return request.app.state.workbench.import_labels(who, path, name)

    return JSONResponse({"message": await run_in_threadpool(run)})


ROUTES = [
    Route("/", page),
    Route("/pages/{name}", page),
    Route("/api/state", asked(state)),
    Route("/api/next", asked(next_document)),
    Route("/api/documents/{row:int}", asked(document)),
    Route("/api/documents", asked(documents)),
    Route("/api/progress", asked(progress)),
    Route("/api/groups", asked(groups)),
    Route("/api/act", posted(act), methods=["POST"]),
    Route("/api/fit", posted(lambda workbench, body: {"started": workbench.fit()}), methods=["POST"]),
    Route("/api/cancel", posted(lambda workbench, body: workbench.fitter.cancel()), methods=["POST"]),
    Route("/api/export", posted(export), methods=["POST"]),
    Route("/api/import", upload, methods=["POST"]),
    Route("/exports/{name}", download),
]


async def read(request: Request, limit: int) -> bytes:
    """The body of a request, if it is not too large."""
    too_large = Refused(f"This is more than the {limit >> 20} MB that may be sent.", 413)
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > limit:
            raise too_large
    return bytes(data)


async def read_json(request: Request) -> dict[str, Any]:
    """The body of a request as an object."""
    data = await read(request, ACTION)
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refused("The request is not JSON.") from error
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
    return JSONResponse({"error": str(error)}, error.status if isinstance(error, Refused) else 400)


async def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse({"error": f"Something went wrong in the workbench: {type(error).__name__}: {error}"}, 500)


async def login(request: Request) -> Response:
    """The page on which people give the password."""
    guard: Guard = request.app.state.guard
    if request.method == "GET":
        return Response(request.app.state.pages["login.html"], media_type="text/html")
    given = (await read_json(request)).get("password")
    right = guard.try_password(given) if isinstance(given, str) else False
    if not right:
        await asyncio.sleep(0.3)
        text = "Too many wrong passwords: wait a minute." if right is None else "This is not the password."
        return JSONResponse({"error": text}, 429 if right is None else 403)
    return JSONResponse({"ok": True}, headers={"set-cookie": guard.set_cookie()})


def guarded(workbench: Workbench, host: str, port: int, password: str | None = None, token: str | None = None) -> Guard:
    """The application behind its guard, with the page to log in where there is a password."""
    live = Live()
    app = Starlette(
        routes=[*ROUTES, WebSocketRoute("/api/live", live.serve)],
        exception_handlers={Refused: _refused, Exception: _broken},
        lifespan=lambda app: live.listening(workbench.listeners),
    )
    app.state.workbench = workbench
    app.state.pages = {page.name: page.read_bytes() for page in files("topicsteer.app").joinpath("pages").iterdir()}
    app.state.guard = guard = Guard(app, host, port, password, token)
    if password:
        app.router.routes.insert(0, Route("/login", login, methods=["GET", "POST"]))
    return guard


def listen(host: str, port: int | None) -> socket.socket:
    """A socket to listen on: the usual port or, if it is taken and nobody asked for it, a free one."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, PORT if port is None else port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        if port is None:
            return listen(host, 0)
        raise ValueError(f"cannot listen on {host}, port {port}: {error.strerror}; try another --port.") from error
    return sock


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
    options: dict[str, Any] = {"log_level": "warning", "server_header": False, "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(guard, ws="websockets-sansio", ws_max_size=1 << 16, **options)
    ready(f"http://{f'[{shown}]' if ':' in shown else shown}:{guard.port}/?token={guard.token}")
    uvicorn.Server(config).run(sockets=[sock])
