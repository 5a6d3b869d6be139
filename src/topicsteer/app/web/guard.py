"""Access control for pages and the socket: token or password, Host and Origin."""

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

# Addresses that no other machine can reach.
LOCAL = ("127.0.0.1", "localhost", "::1")
# Wrong passwords allowed per window.
TRIES = 10
# Length of the window in seconds.
WINDOW = 60.0
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
    "Refused: open the address that topicsteer printed when it started, including its token. "
    "Each start has a new address."
)


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
        self.cookie = f"topicsteer-{port}"  # browsers share cookies between ports
        self._open = host not in LOCAL
        self._names = {*LOCAL, host.lower(), socket.gethostname().lower()} if self._open else {*LOCAL}
        self._failures: list[float] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on, or refuse it."""
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

    def _pass(self, scope: Scope, request: HTTPConnection) -> str | None:
        """Return how a request is authorised: "cookie", "bearer" or "token"; None if it is not."""
        if self._matches(request.cookies.get(self.cookie, "")):
            return "cookie"
        if self._matches(request.headers.get("authorization", "").removeprefix("Bearer ")):
            return "bearer"
        visit = scope["type"] == "http" and scope["path"] == "/" and scope["method"] == "GET"
        return "token" if visit and self._matches(request.query_params.get("token", "")) else None

    def _matches(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def set_cookie(self) -> str:
        """Return the cookie that replaces the token in the address."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def try_password(self, password: str) -> bool | None:
        """Return whether a password is right; None after too many attempts."""
        now = time.monotonic()
        self._failures = [at for at in self._failures if now - at < WINDOW]
        if len(self._failures) >= TRIES:
            return None
        right = bool(self.password) and hmac.compare_digest(password.encode(), str(self.password).encode())
        if not right:
            self._failures.append(now)
        return right


def _split(host: str) -> tuple[str, int]:
    """Return name and port of a Host header."""
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "80")
    if not name:
        name, port = port, "80"
    return name.strip("[]"), int(port) if port.isdigit() else -1
