"""Access control for pages and the socket: session or password, Host and Origin."""

import ipaddress
import logging
import socket
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from topicsteer.app.web.connections import Strangers
from topicsteer.app.web.sessions import Attempts, Session, Sessions, same
from topicsteer.app.workbench.errors import TooManyAttempts

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
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        password: str | None = None,
        token: str | None = None,
        renewed: Callable[[str], object] | None = None,
    ) -> None:
        check_address(host, password)
        self.app = app
        self.port = port
        self.password = password
        self.sessions, self.strangers = Sessions(token), Strangers()
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
        if not self._own_host(host):
            return "Refused: the request names another host than the workbench."
        origin = headers.get("origin")
        unsafe = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            return "Refused: the request comes from another page."
        by_script = "authorization" in headers  # a foreign page cannot set it without a preflight request
        if unsafe and origin is None and not by_script:
            return "Refused: the request has no Origin header."
        site = headers.get("sec-fetch-site", "none")
        visit = headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/" and not unsafe
        if site not in ("none", "same-origin") and not visit:
            return "Refused: the request comes from another page."
        return None

    def _own_host(self, host: str) -> bool:
        name, port = _split(host.lower())
        if port != self.port or name in self._names:
            return port == self.port
        try:  # unlike a name, a numeric address cannot be rebound to another machine
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._open

    def _session(self, scope: Scope, request: HTTPConnection) -> Session | None:
        """The session of a request: by its cookie and the secret of the page, or by the secret alone."""
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if bearer:
            return self.sessions.of_secret(bearer)
        session = self.sessions.of_cookie(request.cookies.get(self.cookie, ""))
        page = scope["type"] == "http" and not scope["path"].startswith(("/api/", "/exports/"))
        if session is None or page:
            return session
        offered = request.headers.get("sec-websocket-protocol", "").split(",")[-1].strip()
        return session if same(request.headers.get(HEADER, offered), session.secret) else None

    def set_cookie(self, session: Session) -> str:
        """Return the cookie that replaces the token in the address."""
        return f"{self.cookie}={session.cookie}; Path=/; HttpOnly; SameSite=Strict"

    def try_password(self, password: str, address: str = "") -> Session | None:
        """Return a session for the right password, or None.

        Raises
        ------
        TooManyAttempts
            After too many wrong passwords from this address.
        """
        if self._attempts.blocked(address):
            raise TooManyAttempts("Too many wrong passwords. Wait a minute, then try again.")
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
