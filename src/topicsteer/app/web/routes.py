"""The routes of the workbench: each reads a typed message, calls the workbench and writes a typed answer."""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute

from topicsteer import __version__
from topicsteer.analysis.belief import DECLARE_OPEN
from topicsteer.app.web import messages
from topicsteer.app.web.broadcast import Broadcast
from topicsteer.app.web.connections import OncePerMinute, limited_protocol
from topicsteer.app.web.guard import HEADER, Guard, check_address
from topicsteer.app.web.sessions import Session
from topicsteer.app.workbench.agreement import agreement_page, disagreements
from topicsteer.app.workbench.answers import (
    AgreementPage,
    Beginning,
    CoderPage,
    DisagreementPage,
    DocumentPage,
    DocumentRows,
    DocumentView,
    GroupTable,
    MapPage,
    ModelSummary,
    NextDocument,
    ProgressPage,
    TextPart,
)
from topicsteer.app.workbench.current_model import CurrentModel
from topicsteer.app.workbench.errors import NotFound, Refused, TooLarge, WrongPassword
from topicsteer.app.workbench.groups import group_table
from topicsteer.app.workbench.progress import progress_page
from topicsteer.app.workbench.selection import Selection
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora.readers.limits import limited
from topicsteer.system.failures import Kind, failure
from topicsteer.system.files import Scratch

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
SHARED = ("document_map.js", "document_map.css", "save_svg.js")
PORT = 8765
# The place of the secret in the page.
NO_SECRET = b'name="topicsteer-secret" content=""'
log = logging.getLogger("topicsteer.app")
M = TypeVar("M")


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


def state(workbench: Workbench, message: messages.StateQuery) -> messages.State:
    """Return the state that a page starts with."""
    views, session, fitted = workbench.views, workbench.session, workbench.views.fitted
    who = message.person
    undo = session.undo_state(who)
    return messages.State(
        version=__version__,
        project=workbench.project.path.name,
        folder=str(workbench.exporter.folder),
        notice=workbench.notice,
        who=who,
        people=session.people,
        undo=undo.undo,
        redo=undo.redo,
        settings=session.current_settings,
        topics=views.topics(),
        progress=views.progress(),
        fit=workbench.status,
        model=None if fitted is None else model_summary(fitted, session.settings.blind),
    )


def model_summary(fitted: CurrentModel, blind: bool = False) -> ModelSummary:
    """Return the part of a model's description that pages show; in blind mode nothing about its topics."""
    meta = fitted.meta
    return ModelSummary(
        changes=[] if blind else meta.get("changes", []),
        notes=[] if blind else meta.get("notes", []),
        seconds=meta.get("seconds", 0.0),
        labelled=meta.get("labelled", 0),
        warm=meta.get("warm", False),
        belief="" if blind else fitted.model.belief.replace(DECLARE_OPEN, "declare it in the settings (page Export)"),
        edited=meta.get("edited", False),
    )


def next_document(workbench: Workbench, message: messages.NextQuery) -> NextDocument:
    """Return the next document to label."""
    key = messages.topic_key(message.key)
    found = workbench.queue.next(message.person, message.mode, query=message.query, key=key, seen=message.rows)
    return found if found.row is None else replace(found, document=workbench.views.document(found.row, message.person))


def document(workbench: Workbench, message: messages.DocumentQuery) -> DocumentView | TextPart:
    """Return a document, or a further part of a long one."""
    if message.start is not None:
        return workbench.views.text(message.row, message.start)
    return workbench.views.document(message.row, message.person)


def documents(workbench: Workbench, message: messages.DocumentsQuery) -> DocumentPage | DocumentRows:
    """Return a page of documents, or all rows of the selection."""
    chosen = Selection(message.person, message.query, message.filter, messages.topic_key(message.key))
    if message.all_rows:
        return DocumentRows(workbench.views.rows(chosen))
    return workbench.views.documents(chosen, sort=message.sort, page=message.page)


def progress(workbench: Workbench, message: messages.ProgressQuery) -> ProgressPage:
    """Return the page "Progress"."""
    return progress_page(workbench.views, message.narrow)


def groups(workbench: Workbench, message: messages.GroupsQuery) -> GroupTable:
    """Return topics by the groups of a column."""
    return group_table(workbench.views, message.column)


def document_map(workbench: Workbench, message: messages.MapQuery) -> MapPage:
    """Return the document map."""
    return workbench.document_map()


def beginnings(workbench: Workbench, message: messages.BeginningsQuery) -> list[Beginning]:
    """Return ids and beginnings of some documents."""
    return workbench.views.beginnings(message.numbers)


def download(request: Request) -> Response:
    """Send a file of the export folder."""
    path = request.app.state.workbench.exporter.path_of(request.path_params["name"])
    if not path.is_file():
        raise NotFound("This file is not in the export folder. Create it again on the page Export.")
    headers = {"content-security-policy": "sandbox"}
    return FileResponse(path, filename=path.name, media_type="application/octet-stream", headers=headers)


# --- actions ---


def command(kind: Any, answer: Callable[[Workbench, Any], object]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads a message from the body and acts on it in a thread."""

    async def endpoint(request: Request) -> Response:
        body = await read_body(request, ACTION)
        message = messages.read_body(body, kind, f"POST {request.url.path}")
        return json_response(await run_in_threadpool(answer, request.app.state.workbench, message))

    return endpoint


def act(workbench: Workbench, message: messages.AnyAction) -> messages.Done:
    """Perform an action of a person."""
    who = message.person
    change = workbench.act(who, message.kind, message.request, message.values())
    given: list[int] | None = None
    match message:
        case messages.Label() | messages.NoneOfThese() | messages.Skip() | messages.Later():
            given = message.documents
        case messages.Answer() | messages.Settle() | messages.WriteNote():
            given = [message.document]
    rows = list(dict.fromkeys(change.documents if given is None else given))[:RETURNED]
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


def fit(workbench: Workbench, message: messages.StartFit) -> messages.FitStarted:
    """Start a fit."""
    return messages.FitStarted(workbench.fit(scratch=message.scratch))


def edit_free(workbench: Workbench, message: messages.FreeEdit) -> messages.FreeEdited:
    """Edit free topics."""
    match message:
        case messages.AdoptFree():
            about = {"name": message.name, "description": message.description}
            return messages.FreeEdited(workbench.adopt(message.person, message.key, **about))
        case messages.MergeFree():
            workbench.merge_free(message.key, message.into)
            return messages.FreeEdited(message.into if isinstance(message.into, int) else None)
        case messages.SplitFree():
            workbench.split_free(message.key)
        case messages.SplitKnown():
            workbench.split_known(message.key, message.parts)
        case messages.CutFree():
            workbench.cut_free(message.person, message.number)
    return messages.FreeEdited()


def cancel(workbench: Workbench, message: messages.CancelFit) -> messages.Accepted:
    """Cancel the fit."""
    workbench.cancel_fit()
    return messages.Accepted()


def export(workbench: Workbench, message: messages.WriteExport) -> messages.Exported:
    """Write a file into the export folder."""
    path = workbench.exporter.export(message.kind, message.name or None)
    partial = message.kind in ("labels", "jsonl") and not workbench.session.training().complete
    note = "Fit these with --incomplete: some labels were given before other topics existed." if partial else ""
    if message.kind == "report" and workbench.maps.made is None:
        note = "Without the document map: open the page Map first, and export again."
    return messages.Exported(path.name, path.stat().st_size, note)


async def upload(request: Request) -> Response:
    """Import the labels of a file."""
    message = messages.read_query(dict(request.query_params), messages.ImportQuery, "POST /api/import")
    workbench: Workbench = request.app.state.workbench
    return await read_upload(request, message.name, partial(workbench.import_labels, message.person))


async def upload_topics(request: Request) -> Response:
    """Import the topics of a file."""
    message = messages.read_query(dict(request.query_params), messages.ImportTopicsQuery, "POST /api/topics")
    workbench: Workbench = request.app.state.workbench
    return await read_upload(request, message.name, partial(workbench.add_topics, message.person))


async def add_coder(request: Request) -> Response:
    """Add the answers of a coder from a file."""
    message = messages.read_query(dict(request.query_params), messages.AddCoderQuery, "POST /api/coders")
    workbench: Workbench = request.app.state.workbench
    return await read_upload(request, message.name, lambda path, name: workbench.coders.add(path, name, message.coder))


async def read_upload(request: Request, given: str, work: Callable[[Path, str], str]) -> Response:
    """Put the body of a request into a file, work on it under its name, and return a sentence."""
    name, data = Path(given).name[-80:], await read_body(request, UPLOAD)
    ending = "".join(Path(name).suffixes[-2:]).lower()

    def run() -> messages.Imported:
        with Scratch() as folder:  # swept at a later start if this process is killed
            path = folder / f"labels{ending if ending.replace('.', '').isalnum() else ''}"
            path.write_bytes(data)
            with limited(UNPACKED):
                return messages.Imported(work(path, name))

    return json_response(await run_in_threadpool(run))


def agreement(workbench: Workbench, message: messages.AgreementQuery) -> AgreementPage:
    """Return the agreement between people."""
    return agreement_page(workbench.session, message.first, message.second)


def differing(workbench: Workbench, message: messages.DisagreementsQuery) -> DisagreementPage:
    """Return open disagreements."""
    return disagreements(workbench.session, message.start)


def coders(workbench: Workbench, message: messages.CodersQuery) -> CoderPage:
    """Return all coders, compared with the labels."""
    return workbench.coders.page()


def remove_coder(workbench: Workbench, message: messages.RemoveCoder) -> messages.Accepted:
    """Remove a coder."""
    workbench.coders.remove(message.coder)
    return messages.Accepted()


ROUTES = [
    Route("/", page),
    Route("/pages/{name}", page),
    Route("/api/state", query(messages.StateQuery, state)),
    Route("/api/next", query(messages.NextQuery, next_document)),
    Route("/api/documents/{row}", query(messages.DocumentQuery, document)),
    Route("/api/documents", query(messages.DocumentsQuery, documents)),
    Route("/api/progress", query(messages.ProgressQuery, progress)),
    Route("/api/map", query(messages.MapQuery, document_map)),
    Route("/api/beginnings", query(messages.BeginningsQuery, beginnings)),
    Route("/api/groups", query(messages.GroupsQuery, groups)),
    Route("/api/act", command(messages.AnyAction, act), methods=["POST"]),
    Route("/api/fit", command(messages.StartFit, fit), methods=["POST"]),
    Route("/api/free", command(messages.FreeEdit, edit_free), methods=["POST"]),
    Route("/api/cancel", command(messages.CancelFit, cancel), methods=["POST"]),
    Route("/api/export", command(messages.WriteExport, export), methods=["POST"]),
    Route("/api/import", upload, methods=["POST"]),
    Route("/api/topics", upload_topics, methods=["POST"]),
    Route("/api/agreement", query(messages.AgreementQuery, agreement)),
    Route("/api/disagreements", query(messages.DisagreementsQuery, differing)),
    Route("/api/coders", query(messages.CodersQuery, coders), methods=["GET"]),
    Route("/api/coders", add_coder, methods=["POST"]),
    Route("/api/coders/remove", command(messages.RemoveCoder, remove_coder), methods=["POST"]),
    Route("/exports/{name}", download),
]


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request; one over the limit is refused."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > limit:
            raise TooLarge(f"The limit is {limit >> 20} MB. Send less at once.")
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
        raise WrongPassword("This password is wrong.")
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
    app.state.guard = guard = Guard(app, host, port, password, token, renewed)
    if password:
        app.router.routes.insert(0, Route("/login", login, methods=["GET", "POST"]))
    return guard


def listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; without a port, the usual one or, if it is in use, a free one."""
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
    ready: Callable[[str, str], object] = print,
    renewed: Callable[[str], object] = print,
) -> None:
    """Serve until Ctrl-C.

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
    check_address(host, password)
    sock = listen(host, port)
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104
    options: dict[str, Any] = {"log_level": "warning", "server_header": False, "timeout_graceful_shutdown": 2}
    port = int(sock.getsockname()[1])
    place = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/?token="
    guard = guarded(workbench, host, port, password, renewed=lambda token: renewed(place + token))
    config = uvicorn.Config(
        guard, http=limited_protocol(guard.strangers), ws="websockets-sansio", ws_max_size=1 << 16, **options
    )
    for name in ("uvicorn.error", "asyncio", log.name):
        logging.getLogger(name).addFilter(OncePerMinute())
    sessions = guard.sessions
    _Server(config, partial(ready, place + sessions.token, place + sessions.look_token)).run(sockets=[sock])


class _Server(uvicorn.Server):
    """A server that announces its address once it listens and handles signals."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self.ready = ready

    async def main_loop(self) -> None:
        """Announce in a thread, because opening a browser takes time, and run until a signal."""
        announcement = asyncio.create_task(asyncio.to_thread(self.ready))
        await super().main_loop()
        await announcement
