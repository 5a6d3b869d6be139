"""Who may talk to the workbench: token or password, Host and Origin, on pages and on the socket alike."""

import hmac
import ipaddress
import secrets
import socket
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

# This machine's own addresses, which no other machine can reach
LOCAL = ("127.0.0.1", "localhost", "::1")
TRIES, WINDOW = 10, 60.0  # passwords that may be tried in so many seconds
# The page may load its own files and nothing else, run no inline script and be framed by nobody.
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
LOGIN = ("/login", "/pages/login.js", "/pages/style.css")
UNKNOWN = (
    "Refused: open the address that topicsteer printed when it started, with its token. "
    "After a restart the address is a new one."
)


def check_address(host: str, password: str | None) -> None:
    """Refuse to be reached by other machines without a password."""
    if host not in LOCAL and not password:
        raise ValueError(
            f"{host} can be reached by other machines: give a password (--password), or leave --host away."
        )


class Guard:
    """ASGI middleware that lets through what comes from the workbench's own page, by a person who may.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    host, port
        Where the server listens.
    password : str, optional
        For people who do not have the address with the token.
    token : str, optional
        Default: a random one.
    """

    def __init__(
        self, app: ASGIApp, host: str, port: int, password: str | None = None, token: str | None = None
    ) -> None:
        check_address(host, password)
        self.app = app
        self.port = port
        self.password = password
        self.token = token or secrets.token_urlsafe(24)
        self.cookie = f"topicsteer-{port}"  # cookies do not tell ports apart
        self._open = host not in LOCAL
        self._names = {*LOCAL, host.lower(), socket.gethostname().lower()} if self._open else {*LOCAL}
        self._failures: list[float] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        reason, who = self.refusal(scope, request.headers), self._pass(scope, request)
        app: ASGIApp = self.app
        if reason is not None:
            app = PlainTextResponse(reason + "\n", 403)
        elif who is None and not (self.password and scope["type"] == "http" and scope["path"] in LOGIN):
            login = self.password and scope["path"] == "/"
            app = RedirectResponse("/login", 303) if login else PlainTextResponse(UNKNOWN + "\n", 403)
        if app is not self.app and scope["type"] == "websocket":
            app = WebSocketClose(1008)

        async def wrapped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if who == "token" and app is self.app:
                    headers.append("set-cookie", self.set_cookie())
            await send(message)

        await app(scope, receive, wrapped)

    def refusal(self, scope: Scope, headers: Headers) -> str | None:
        """Why a request may not even be looked at: it was sent to another name, or by another page."""
        host = headers.get("host", "")
        if not self._own_host(host):
            return "Refused: the request names a host that is not the workbench's."
        origin = headers.get("origin")
        unsafe = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            return "Refused: the request comes from another page."
        by_hand = "authorization" in headers  # a page of others cannot set it without being asked first
        if unsafe and origin is None and not by_hand:
            return "Refused: the request does not say which page it comes from."
        site = headers.get("sec-fetch-site", "none")
        visit = headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/" and not unsafe
        if site not in ("none", "same-origin") and not visit:
            return "Refused: the request comes from another page."
        return None

    def _own_host(self, host: str) -> bool:
        name, port = _split(host.lower())
        if port != self.port or name in self._names:
            return port == self.port
        try:  # an address in numbers cannot be made to mean another machine, as a name can
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._open

    def _pass(self, scope: Scope, request: HTTPConnection) -> str | None:
        """How a request shows that it may: by "cookie", "bearer" or "token"; None if it does not."""
        if self._matches(request.cookies.get(self.cookie, "")):
            return "cookie"
        if self._matches(request.headers.get("authorization", "").removeprefix("Bearer ")):
            return "bearer"
        visit = scope["type"] == "http" and scope["path"] == "/" and scope["method"] == "GET"
        return "token" if visit and self._matches(request.query_params.get("token", "")) else None

    def _matches(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def set_cookie(self) -> str:
        """The cookie that a browser keeps in place of the token."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def try_password(self, password: str) -> bool | None:
        """Whether a password is right; None if too many were tried."""
        now = time.monotonic()
        self._failures = [at for at in self._failures if now - at < WINDOW]
        if len(self._failures) >= TRIES:
            return None
        right = bool(self.password) and hmac.compare_digest(password.encode(), str(self.password).encode())
        if not right:
            self._failures.append(now)
        return right


def _split(host: str) -> tuple[str, int]:
    """Name and port of a Host header."""
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "80")
    if not name:
        name, port = port, "80"
    return name.strip("[]"), int(port) if port.isdigit() else -1
