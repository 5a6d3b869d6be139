"""The routes of the workbench: each reads a typed message, calls the workbench and writes a typed answer."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from topicsteer.app.web import messages
from topicsteer.app.web.guard import HEADER, Guard, OncePerMinute, Session, check_address, limited_protocol
from topicsteer.app.workbench import actions, responses
from topicsteer.app.workbench.actions import Action, Message
from topicsteer.app.workbench.agreement_view import agreement_page, disagreements
from topicsteer.app.workbench.current_model import CurrentModel
from topicsteer.app.workbench.errors import Refused
from topicsteer.app.workbench.views import Selection
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora.readers import limited
from topicsteer.system.failures import Kind, failure
from topicsteer.system.files import Scratch

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
    async def listening(self, listeners: list[Callable[[responses.Notice], None]]) -> AsyncIterator[None]:
        """Listen to a workbench as long as the server runs."""
        self._loop = asyncio.get_running_loop()
        listeners.append(self.send)
        try:
            yield
        finally:
            listeners.remove(self.send)

    def send(self, notice: responses.Notice) -> None:
        """Send a notice to all pages."""
        text = messages.write(notice).decode()
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


# Greatest size of a request body in bytes.
ACTION = 1 << 20
# Greatest size of a file with labels in bytes.
UPLOAD = 32 << 20
# Greatest size of its content in bytes, once unpacked.
UNPACKED = 128 << 20
# Documents whose labels an action returns.
RETURNED = 60
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Files of the report that the page uses too.
SHARED = ("document_map.js", "document_map.css")
PORT = 8765
# Name of the hashes of sessions among the settings of a project.
SESSIONS = "sessions"
# The place of the secret in the page.
NO_SECRET = b'name="topicsteer-secret" content=""'
log = logging.getLogger("topicsteer.app")
M = TypeVar("M")
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def json_response(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a typed answer as JSON."""
    return Response(messages.write(answer), status, headers, "application/json")


# --- pages and questions ---


def query(kind: type[M], answer: Callable[[Workbench, M], object]) -> Callable[[Request], Response]:
    """Return an endpoint that reads a query and answers it in a thread."""

    def endpoint(request: Request) -> Response:
        values = {**request.query_params, **request.path_params}
        message = messages.read_query(values, kind, f"GET {request.url.path}")
        return json_response(answer(request.app.state.workbench, message))

    return endpoint


async def page(request: Request) -> Response:
    """Send a file of the page; the first one of a session has its secret."""
    name = request.path_params.get("name", "index.html")
    if name not in request.app.state.pages or name == "login.html":
        return Response("There is no such page.\n", 404)
    content: bytes = request.app.state.pages[name]
    session: Session | None = request.state.session
    if name == "index.html" and session is not None:
        if request.state.fresh:
            content = content.replace(NO_SECRET, NO_SECRET.replace(b'""', f'"{session.secret}"'.encode()), 1)
        content = content.replace(b"<body>", b'<body class="look">', 1) if session.role == "look" else content
    return Response(content, media_type=KINDS[Path(name).suffix])


def state(workbench: Workbench, message: Message) -> messages.State:
    """Return the state that a page starts with."""
    views, session, fitted = workbench.views, workbench.session, workbench.views.fitted
    who = message.person
    undo = session.undo_state(who)
    return messages.State(
        project=workbench.project.path.name,
        folder=str(workbench.exporter.folder),
        notice=workbench.notice,
        who=who,
        people=session.people,
        undo=undo.undo,
        redo=undo.redo,
        settings=session.settings,
        topics=views.topics(),
        progress=views.progress(),
        fit=workbench.status,
        model=None if fitted is None else model_summary(fitted, session.settings.blind),
    )


def model_summary(fitted: CurrentModel, blind: bool = False) -> responses.ModelSummary:
    """Return the part of a model's description that pages show; in blind mode nothing about its topics."""
    record = fitted.record
    return responses.ModelSummary(
        notes=[] if blind else record.notes,
        seconds=record.seconds,
        labelled=record.labelled,
    )


def next_document(workbench: Workbench, message: messages.NextQuery) -> responses.NextDocument:
    """Return the next document to label."""
    key = messages.topic_key(message.key)
    found = workbench.queue.next(message.person, message.mode, query=message.query, key=key, seen=message.rows)
    if found.row is None:
        return found
    return msgspec.structs.replace(found, document=workbench.views.document(found.row, message.person))


def document(workbench: Workbench, message: messages.DocumentQuery) -> responses.DocumentView | responses.TextPart:
    """Return a document, or a further part of a long one."""
    if message.start is not None:
        return workbench.views.text(message.row, message.start)
    return workbench.views.document(message.row, message.person)


def documents(
    workbench: Workbench, message: messages.DocumentsQuery
) -> responses.DocumentPage | responses.DocumentRows:
    """Return a page of documents, or all rows of the selection."""
    chosen = Selection(message.person, message.query, message.filter, messages.topic_key(message.key))
    if message.all_rows:
        return responses.DocumentRows(workbench.views.rows(chosen))
    return workbench.views.documents(chosen, sort=message.sort, page=message.page)


def download(request: Request) -> Response:
    """Send a file of the export folder."""
    path = request.app.state.workbench.exporter.written(request.path_params["name"])
    headers = {"content-security-policy": "sandbox"}
    return FileResponse(path, filename=path.name, media_type="application/octet-stream", headers=headers)


# --- actions ---


def command(kind: Any, answer: Callable[[Workbench, Any], object]) -> Endpoint:
    """Return an endpoint that reads a message from the body and acts on it in a thread."""

    async def endpoint(request: Request) -> Response:
        body = await read_body(request, ACTION)
        message = messages.read_body(body, kind, f"POST {request.url.path}")
        done = await run_in_threadpool(answer, request.app.state.workbench, message)
        return json_response(messages.Accepted() if done is None else done)

    return endpoint


def act(workbench: Workbench, message: Action) -> messages.Done:
    """Perform an action of a person."""
    who = message.person
    change = workbench.act(who, message)
    match message:
        case actions.Label() | actions.NoneOfThese() | actions.Skip() | actions.Later():
            given = message.documents
        case actions.Answer() | actions.Settle() | actions.WriteNote():
            given = [message.document]
        case _:
            given = change.documents
    rows = list(dict.fromkeys(given))[:RETURNED]
    undo = workbench.session.undo_state(who)
    return messages.Done(
        batch=change.batch,
        repeated=change.repeated,
        touched=len(change.documents),
        note=change.note,
        documents={row: workbench.views.labels(row, who) for row in rows},
        progress=workbench.views.progress(),
        undo=undo.undo,
        redo=undo.redo,
    )


def adopt(workbench: Workbench, message: messages.Adopt) -> messages.Adopted:
    """Make a topic of a free topic or of a group."""
    key = workbench.adopt(
        message.person, message.source, name=message.name, description=message.description, parent=message.parent
    )
    return messages.Adopted(key)


def export(workbench: Workbench, message: messages.WriteExport) -> messages.Exported:
    """Write a file into the export folder."""
    path = workbench.exporter.export(message.kind)
    partial = message.kind in ("labels", "jsonl") and not workbench.session.training().complete
    note = "Fit these with --incomplete: some labels were given before other topics existed." if partial else ""
    if message.kind == "report" and workbench.maps.made is None:
        note = "Without the document map: open the page Map first, and export again."
    return messages.Exported(path.name, path.stat().st_size, note)


def upload(work: Callable[[Workbench, str, Path, str], str]) -> Endpoint:
    """Return an endpoint that puts the body of a request into a file, works on it, and returns a sentence."""

    async def endpoint(request: Request) -> Response:
        message = messages.read_query(dict(request.query_params), messages.UploadQuery, f"POST {request.url.path}")
        name, data = Path(message.name).name[-80:], await read_body(request, UPLOAD)
        ending = "".join(Path(name).suffixes[-2:]).lower()

        def run() -> messages.Imported:
            with Scratch() as folder:  # swept at a later start if this process is killed
                path = folder / f"labels{ending if ending.replace('.', '').isalnum() else ''}"
                path.write_bytes(data)
                with limited(UNPACKED):
                    return messages.Imported(work(request.app.state.workbench, message.person, path, name))

        return json_response(await run_in_threadpool(run))

    return endpoint


# The message and the answer of each request.
Answers: TypeAlias = dict[str, tuple[Any, Callable[..., Any]]]
QUESTIONS: Answers = {
    "/api/state": (Message, state),
    "/api/next": (messages.NextQuery, next_document),
    "/api/documents/{row}": (messages.DocumentQuery, document),
    "/api/documents": (messages.DocumentsQuery, documents),
    "/api/map": (Message, lambda bench, m: bench.document_map()),
    "/api/beginnings": (messages.BeginningsQuery, lambda bench, m: bench.views.beginnings(m.numbers)),
    "/api/agreement": (messages.AgreementQuery, lambda bench, m: agreement_page(bench.session, m.first, m.second)),
    "/api/disagreements": (messages.DisagreementsQuery, lambda bench, m: disagreements(bench.session, m.start)),
}
COMMANDS: Answers = {
    "/api/act": (Action, act),
    "/api/fit": (Message, lambda bench, m: messages.FitStarted(bench.fit())),
    "/api/adopt": (messages.Adopt, adopt),
    "/api/split": (messages.Split, lambda bench, m: bench.split(m.key, m.parts)),
    "/api/cancel": (Message, lambda bench, m: bench.cancel_fit()),
    "/api/export": (messages.WriteExport, export),
}
UPLOADS = {"/api/import": Workbench.import_labels, "/api/topics": Workbench.import_topics}
ROUTES = [
    Route("/", page),
    Route("/pages/{name}", page),
    Route("/exports/{name}", download),
    *(Route(path, query(*both), methods=["GET"]) for path, both in QUESTIONS.items()),
    *(Route(path, command(*both), methods=["POST"]) for path, both in COMMANDS.items()),
    *(Route(path, upload(work), methods=["POST"]) for path, work in UPLOADS.items()),
]


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request; one over the limit is refused."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > limit:
            raise Refused(f"The limit is {limit >> 20} MB. Send less at once.", 413)
    return bytes(data)


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refused) else Refused.status
    return json_response(messages.Problem(str(error)), status)


async def _broken(request: Request, error: Exception) -> Response:
    """Turn any other exception into a status: 400 for text that cannot be encoded, 503 or 507 for the machine."""
    found = failure(error)
    sentence = found.sentence.encode(errors="replace").decode()
    if isinstance(error, UnicodeError | ClientDisconnect):
        return json_response(messages.Problem(sentence), Refused.status)
    log.error("%s %s failed: %s", request.method, request.url.path, sentence, exc_info=error)
    if found.kind is Kind.MACHINE:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "full" in sentence
        return json_response(messages.Problem(f"Nothing was saved: {sentence}."), 507 if full else 503)
    reason = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
    return json_response(messages.Problem(f"The workbench failed with an error: {reason}"), 500)


async def login(request: Request) -> Response:
    """Send the login page, or check a password."""
    guard: Guard = request.app.state.guard
    if request.method == "GET":
        return Response(request.app.state.pages["login.html"], media_type="text/html")
    message = messages.read_body(await read_body(request, ACTION), messages.Login, "POST /login")
    session = guard.try_password(message.password, request.client.host if request.client else "")
    if session is None:
        await asyncio.sleep(0.3)
        raise Refused("This password is wrong.", 403)
    headers = {"set-cookie": guard.set_cookie(session), HEADER: session.secret}
    return json_response(messages.Accepted(), headers=headers)


# --- the server ---


def guarded(
    workbench: Workbench,
    host: str,
    port: int,
    password: str | None = None,
    token: str | None = None,
    renewed: Callable[[str], object] | None = None,
) -> Guard:
    """Return the application behind its guard, with a login page if there is a password."""
    broadcast = Broadcast()
    app = Starlette(
        routes=[*ROUTES, WebSocketRoute("/api/notices", broadcast.serve)],
        exception_handlers={Refused: _refused, Exception: _broken},
        lifespan=lambda app: broadcast.listening(workbench.listeners),
    )
    app.state.workbench = workbench
    folder, shared = files("topicsteer.app").joinpath("pages"), files("topicsteer.report")
    served = [*folder.iterdir(), *(shared.joinpath(name) for name in SHARED)]
    app.state.pages = {page.name: page.read_bytes() for page in served}
    project = workbench.project
    kept = project.settings().get(SESSIONS)
    guard = Guard(app, host, port, password, token, renewed, kept, lambda now: project.set({SESSIONS: now}))
    app.state.guard = guard
    if password:
        app.router.routes.insert(0, Route("/login", login, methods=["GET", "POST"]))
    return guard


def listen(host: str, port: int | None, usual: int = PORT) -> socket.socket:
    """Return a listening socket; without a port, the usual one or, if it is in use, a free one."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, usual if port is None else port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        if port is None:
            return listen(host, 0)
        raise ValueError(f"cannot listen on {host}, port {port}: {error.strerror}; try another --port.") from error
    return sock


class Server(uvicorn.Server):
    """A server that announces its address once it listens, and runs until Ctrl-C or ``should_exit``.

    Parameters
    ----------
    workbench : Workbench
        An open workbench.
    host, port : str, int
        The address. An address that other machines can reach needs a password.
    password : str, optional
        For people who do not have the address with the token.
    ready : callable
        Called when the server listens, with the address, token included, and an address for people who only look.
    renewed : callable
        Called with the next address when one has opened a browser: each serves once.
    """

    def __init__(
        self,
        workbench: Workbench,
        host: str,
        port: int | None,
        password: str | None,
        ready: Callable[[str, str], object],
        renewed: Callable[[str], object],
    ) -> None:
        check_address(host, password)
        self.socket = listen(host, port)
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104
        number = int(self.socket.getsockname()[1])
        place = f"http://{f'[{shown}]' if ':' in shown else shown}:{number}/?token="
        guard = guarded(workbench, host, number, password, renewed=lambda token: renewed(place + token))
        self.ready = partial(ready, place + guard.sessions.token, place + guard.sessions.look_token)
        for name in ("uvicorn.error", "asyncio", log.name):
            logging.getLogger(name).addFilter(OncePerMinute())
        http = limited_protocol(guard.strangers)
        options: dict[str, Any] = {"log_level": "warning", "server_header": False, "timeout_graceful_shutdown": 2}
        super().__init__(uvicorn.Config(guard, http=http, ws="websockets-sansio", ws_max_size=1 << 16, **options))

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until Ctrl-C or ``should_exit``."""
        super().run(sockets or [self.socket])

    async def main_loop(self) -> None:
        """Announce in a thread, because opening a browser takes time, and run until a signal."""
        announcement = asyncio.create_task(asyncio.to_thread(self.ready))
        await super().main_loop()
        await announcement
