"""A client of the chat-completions protocol, which most servers of language models speak."""

import json
from dataclasses import dataclass, field
from email.message import Message
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

# Largest answer of a server, in bytes.
LARGEST = 1 << 20


class _NoRedirect(HTTPRedirectHandler):
    """Refuse redirections: text and key go to the address that the user named, and nowhere else."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        return None


@dataclass(frozen=True)
class ChatServer:
    """A server that speaks the chat-completions protocol.

    Parameters
    ----------
    url : str
        Its address up to the version, such as ``http://localhost:11434/v1``.
    model : str
        The model that answers.
    key : str, optional
        The secret that the server asks for.
    timeout : float, default=60
        Seconds to wait for an answer.

    Examples
    --------
    >>> ChatServer("http://localhost:11434/v1/", "some-model").address
    'http://localhost:11434/v1/chat/completions'
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"{self.url!r} is not the address of a server: it begins with http:// or https://.")

    @property
    def address(self) -> str:
        """Where questions are sent."""
        return f"{self.url.rstrip('/')}/chat/completions"

    def ask(self, question: str) -> str:
        """The answer to one question, with as little chance as the server permits.

        Raises
        ------
        ConnectionError
            If the server does not answer, or not in this protocol.
        """
        body = {"model": self.model, "messages": [{"role": "user", "content": question}], "temperature": 0}
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = Request(self.address, json.dumps(body).encode(), headers, method="POST")  # noqa: S310, see __post_init__
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout) as reply:
                found = reply.read(LARGEST + 1)
        except HTTPError as error:
            with error:
                reason = error.read(200).decode("utf-8", "replace").strip()
            raise ConnectionError(f"{self.address} refused with the status {error.code}: {reason}") from None
        except (URLError, TimeoutError, OSError) as error:
            raise ConnectionError(f"{self.address} does not answer ({getattr(error, 'reason', error)}).") from None
        return answer_of(found, self.address)


def answer_of(body: bytes, address: str) -> str:
    """The text in an answer of a server.

    Raises
    ------
    ConnectionError
        If the answer is too long, or of another protocol.
    """
    try:
        answer = json.loads(body)["choices"][0]["message"]["content"] if len(body) <= LARGEST else None
    except (ValueError, LookupError, TypeError, RecursionError):
        answer = None
    if not isinstance(answer, str):
        raise ConnectionError(f"{address} did not answer in the chat-completions protocol.")
    return answer
