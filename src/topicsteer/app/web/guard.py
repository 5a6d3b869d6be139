"""Access to the workbench: sessions and passwords, limits on strangers, and checks of Host and Origin.

A token of an address is exchanged for a cookie and a second secret. Browsers send a cookie to every port of a host, so
another server on this machine may learn it. A request therefore also carries a secret that the page keeps in its own
storage, which browsers separate by port. The project keeps the hashes of both, so that a restarted workbench lets an
open tab in again.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, Literal, TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from topicsteer.app.workbench.errors import Refused

Role = Literal["edit", "look"]
# Hash of the secret, and role, by the hash of the cookie.
Kept: TypeAlias = dict[str, tuple[str, Role]]
# Wrong passwords allowed per window and address.
TRIES = 10
# Length of the window in seconds.
WINDOW = 60.0
# Sessions per role; the oldest one ends first, so people who look end no session of people who edit.
MOST_SESSIONS = 1_000
# Sessions per role that a restarted workbench lets in again.
MOST_KEPT = 50
# Addresses whose wrong passwords are remembered.
MOST_ADDRESSES = 10_000


def new_secret() -> str:
    """24 random bytes as text."""
    return secrets.token_urlsafe(24)


def hashed(*secrets: str) -> str:
    """The hash of random texts, which nobody can turn back."""
    return hashlib.sha256("\0".join(secrets).encode(errors="surrogatepass")).hexdigest()


def same(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode(errors="surrogatepass"))


@dataclass(frozen=True)
class Session:
    """A browser that has shown a token or a password.

    Parameters
    ----------
    cookie : str
        Sent by the browser, to any port of this host.
    secret : str
        Sent by the page in a header.
    role : {"edit", "look"}
        Whether changes are permitted.
    proof : str
        Hash of the secret, which a restarted server does not know.
    """

    cookie: str = field(default_factory=new_secret)
    secret: str = field(default_factory=new_secret)
    role: Role = "edit"
    proof: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "proof", self.proof or hashed(self.secret))


class Sessions:
    """All sessions of a server, and the tokens that open new ones.

    Parameters
    ----------
    token : str, optional
        The first one-time token; default: a random one. A used token is replaced by a new one.
    password : str
        Sessions of a server with another password have ended.
    kept : mapping
        Hashes of the sessions of the last server.
    keep : callable
        Called with the hashes of the sessions, to store them.
    """

    def __init__(
        self,
        token: str | None = None,
        password: str = "",
        kept: Kept | None = None,
        keep: Callable[[Kept], object] = lambda kept: None,
    ) -> None:
        self.token = token or new_secret()
        self.look_token = new_secret()
        self._sessions: dict[str, Session] = {}
        self._password, self._kept, self._keep = password, dict(kept or {}), keep

    def exchange(self, token: str) -> Session | None:
        """A new session for a token; None for a wrong or used one. The token for people who only look stays valid."""
        if same(token, self.look_token):
            return self.start("look")
        if not same(token, self.token):
            return None
        self.token = new_secret()
        return self.start()

    def start(self, role: Role = "edit") -> Session:
        """A new session."""
        session = Session(role=role)
        self._sessions[session.cookie] = session
        self._kept[hashed(session.cookie, self._password)] = (session.proof, role)
        own = [cookie for cookie, other in self._sessions.items() if other.role == role]
        for cookie in own[:-MOST_SESSIONS]:
            del self._sessions[cookie]
        own = [cookie for cookie, (_, other) in self._kept.items() if other == role]
        for cookie in own[:-MOST_KEPT]:
            del self._kept[cookie]
        self._keep(dict(self._kept))
        return session

    def of_cookie(self, cookie: str) -> Session | None:
        """The session of a cookie, of this server or of the last one."""
        if cookie not in self._sessions and (kept := self._kept.get(hashed(cookie, self._password))):
            proof, role = kept
            self._sessions[cookie] = Session(cookie, "", role, proof)
        return self._sessions.get(cookie)


class Attempts:
    """Wrong passwords, counted per address: one person's mistakes lock nobody else out."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def blocked(self, address: str) -> bool:
        """Whether an address has had too many attempts."""
        now = time.monotonic()
        return len([at for at in self._failures.get(_network(address), ()) if now - at < WINDOW]) >= TRIES

    def failed(self, address: str) -> None:
        """Count a wrong password."""
        now, key = time.monotonic(), _network(address)
        self._failures[key] = [*(at for at in self._failures.pop(key, ()) if now - at < WINDOW), now]
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)


def _network(address: str) -> str:
    """The address, or the network of one IPv6 subscriber, who has many addresses; IPv4 may be written as IPv6."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    known = getattr(known, "ipv4_mapped", None) or known
    return str(known if known.version == 4 else ip_network((known, 64), strict=False))


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


# Addresses that no other machine can reach.
LOCAL = ("127.0.0.1", "localhost", "::1")
# Header with the secret of the page, and the name of the socket's protocol, after which the same secret follows.
HEADER, PROTOCOL = "x-topicsteer", "topicsteer"
# Longest path and query of an address, in bytes.
LONGEST = 60_000
# The page loads only its own files, runs no inline script, and cannot be framed.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# Paths that need no token if there is a password.
LOGIN = ("/login", "/pages/login.js", "/pages/style.css")
UNKNOWN = (
    "Refused: open the address that topicsteer printed last, including its token. "
    "Each address opens one browser; a new one is printed then."
)
READ_ONLY = "Refused: this link is for looking only. Ask for an address that permits changes."
log = logging.getLogger("topicsteer.app")


def check_address(host: str, password: str | None) -> None:
    """Raise an error if other machines can reach the address and there is no password."""
    if host not in LOCAL and not password:
        raise ValueError(f"{host} can be reached by other machines: set a password with --password, or omit --host.")


class Guard:
    """ASGI middleware that accepts only requests of the workbench's own page with a valid token.

    Parameters
    ----------
    app : ASGI application
        The guarded application.
    host, port
        The address of the server.
    password : str, optional
        For people who do not have the address with the token.
    token : str, optional
        The first one-time token. Default: a random one.
    renewed : callable, optional
        Called with the next one-time token when one is used.
    kept, keep : optional
        As in `Sessions`.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        password: str | None = None,
        token: str | None = None,
        renewed: Callable[[str], object] | None = None,
        kept: Kept | None = None,
        keep: Callable[[Kept], object] = lambda kept: None,
    ) -> None:
        check_address(host, password)
        self.app = app
        self.port = port
        self.password = password
        self.sessions, self.strangers = Sessions(token, password or "", kept, keep), Strangers()
        self.renewed = renewed
        self.cookie = f"topicsteer-{port}"  # browsers share cookies between ports
        self._open = host not in LOCAL
        self._names = {*LOCAL, host.lower(), socket.gethostname().lower()} if self._open else {*LOCAL}
        self._attempts = Attempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on, or refuse it; whatever goes wrong ends in a status."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        app, session, fresh = self._admit(scope)
        begun = False

        async def wrapped(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if session is not None and fresh and app is self.app:
                    headers.append("set-cookie", self.set_cookie(session))
                    headers[HEADER] = session.secret
            await send(message)

        scope.setdefault("state", {})["session"] = session
        scope["state"]["fresh"] = fresh
        try:
            await app(scope, receive, wrapped)
        except ClientDisconnect:
            return
        except Exception as error:  # the application has answered and noted it, or cannot
            log.error("a request failed (%s)", type(error).__name__, exc_info=error)
            if not begun and scope["type"] == "http":
                await PlainTextResponse("The workbench failed.\n", 500)(scope, receive, wrapped)

    def _admit(self, scope: Scope) -> tuple[ASGIApp, Session | None, bool]:
        """The application or a refusal, the session of a request, and whether it is new."""
        request = HTTPConnection(scope)

        def refuse(reason: str, status: int) -> ASGIApp:
            return WebSocketClose(1008) if scope["type"] == "websocket" else PlainTextResponse(reason + "\n", status)

        if len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")) > LONGEST:
            return refuse("Refused: the address is too long.", 414), None, False
        reason = self.refusal(scope, request.headers)
        if reason is not None:
            return refuse(reason, 403), None, False
        session = self._session(scope, request)
        visit = scope["type"] == "http" and scope["path"] == "/" and scope["method"] == "GET"
        fresh = False
        if visit and (token := request.query_params.get("token", "")):
            opened = self.sessions.exchange(token)
            session, fresh = opened or session, opened is not None
            if opened is not None and opened.role == "edit" and self.renewed is not None:
                self.renewed(self.sessions.token)
        if session is None:
            if self.password and scope["type"] == "http" and scope["path"] in LOGIN:
                return self.app, None, False
            login = self.password and scope["path"] == "/"
            return RedirectResponse("/login", 303) if login else refuse(UNKNOWN, 403), None, False
        self.strangers.trust(scope.get("client"))
        if session.role == "look" and scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            return refuse(READ_ONLY, 403), session, False
        return self.app, session, fresh

    def refusal(self, scope: Scope, headers: Headers) -> str | None:
        """Return the reason to refuse a request by its headers: a foreign host or a foreign page."""
        host = headers.get("host", "")
        if not self.own_host(host):
            return "Refused: the request names another host than the workbench."
        origin = headers.get("origin")
        unsafe = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            return "Refused: the request comes from another page."
        if unsafe and origin is None:
            return "Refused: the request has no Origin header."
        site = headers.get("sec-fetch-site", "none")
        visit = headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/" and not unsafe
        if site not in ("none", "same-origin") and not visit:
            return "Refused: the request comes from another page."
        return None

    def own_host(self, host: str) -> bool:
        """Return whether a Host header names this workbench."""
        name, port = _split(host.lower())
        if port != self.port or name in self._names:
            return port == self.port
        try:  # unlike a name, a numeric address cannot be rebound to another machine
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._open

    def _session(self, scope: Scope, request: HTTPConnection) -> Session | None:
        """The session of a request, by its cookie and the secret of the page."""
        session = self.sessions.of_cookie(request.cookies.get(self.cookie, ""))
        page = scope["type"] == "http" and not scope["path"].startswith(("/api/", "/exports/"))
        if session is None or page:
            return session
        offered = request.headers.get("sec-websocket-protocol", "").split(",")[-1].strip()
        return session if same(hashed(request.headers.get(HEADER, offered)), session.proof) else None

    def set_cookie(self, session: Session) -> str:
        """Return the cookie that replaces the token in the address."""
        return f"{self.cookie}={session.cookie}; Path=/; HttpOnly; SameSite=Strict"

    def try_password(self, password: str, address: str = "") -> Session | None:
        """Return a session for the right password, or None.

        Raises
        ------
        Refused
            After too many wrong passwords from this address.
        """
        if self._attempts.blocked(address):
            raise Refused("Too many wrong passwords. Wait a minute, then try again.", 429)
        if self.password and same(password, self.password):
            return self.sessions.start()
        self._attempts.failed(address)
        return None


def _split(host: str) -> tuple[str, int]:
    """Return name and port of a Host header."""
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "80")
    if not name:
        name, port = port, "80"
    return name.strip("[]"), int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1
