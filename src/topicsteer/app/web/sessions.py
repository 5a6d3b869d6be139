"""Sessions: a token of an address is exchanged for a cookie and a second secret.

Browsers send a cookie to every port of a host, so another server on this machine may learn it. A request therefore also
carries a secret that the page keeps in its own storage, which browsers separate by port.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Literal

Role = Literal["edit", "look"]
# Wrong passwords allowed per window and address.
TRIES = 10
# Length of the window in seconds.
WINDOW = 60.0
# Sessions that are kept; the oldest one ends first.
MOST_SESSIONS = 1_000
# Addresses whose wrong passwords are remembered.
MOST_ADDRESSES = 10_000


def new_secret() -> str:
    """24 random bytes as text."""
    return secrets.token_urlsafe(24)


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
    """

    cookie: str = field(default_factory=new_secret)
    secret: str = field(default_factory=new_secret)
    role: Role = "edit"


class Sessions:
    """All sessions of a server, and the tokens that open new ones.

    Parameters
    ----------
    token : str, optional
        The first one-time token; default: a random one. A used token is replaced by a new one.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token = token or new_secret()
        self.look_token = new_secret()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

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
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def of_cookie(self, cookie: str) -> Session | None:
        """The session of a cookie."""
        return self._sessions.get(cookie)

    def of_secret(self, secret: str) -> Session | None:
        """The session of a secret, for scripts without cookies."""
        return next((one for one in list(self._sessions.values()) if same(secret, one.secret)), None)


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
    """The address, or the network of one IPv6 subscriber, who has many addresses."""
    try:
        return str(ip_network(f"{address}/64", strict=False)) if ip_address(address).version == 6 else address
    except ValueError:
        return address
