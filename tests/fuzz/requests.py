"""Raw requests with odd lines, headers, paths, queries and bodies: a status below 500, or a closed connection."""

import random
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.fuzz._rounds import main
from tests.fuzz._server import running

# Paths of requests that change something.
CHANGES = ("/api/act", "/api/fit", "/api/adopt", "/api/split", "/api/cancel", "/api/export", "/api/import", "/login")
METHODS = ["GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "BREW", "get", ""]
PATHS = [
    "/",
    "/login",
    "/api/state",
    "/api/next",
    "/api/documents",
    "/api/documents/3",
    "/api/documents/{}",
    "/api/act",
]
PATHS += ["/api/progress", "/api/groups", "/api/fit", "/api/adopt", "/api/split", "/api/cancel", "/api/export"]
PATHS += ["/api/import"]
PATHS += ["/exports/{}", "/pages/{}", "/pages/app.js", "/api/notices", "/{}", "//", "/api/../", "*"]
ODD = ["²", "٣", "9" * 5000, "-1", "1e9", "%00", "%ff", "%ed%a0%80", "\\ud800", "..%2f..", "%252e", "a" * 3000, "", "+"]
ODD += ["null", "true", "[]", "{}", "%0d%0aX: y", "'", '"', "<script>", "1;2", "%F0%9F%92%A9", "0x10", " ", "%", "%zz"]
NAMES = [
    "who",
    "page",
    "row",
    "start",
    "query",
    "filter",
    "key",
    "sort",
    "all_rows",
    "narrow",
    "column",
    "seen",
    "mode",
]
NAMES += ["name", "token", "x"]
VALUES = ["ann", "1", "0", "all", "suggested", "order", "a.csv", "a.csv.gz", "a.parquet", "a.json", "a.jsonl"]
BODIES = [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, b'{"who": "ann", "action": "undo"}', b"0" * 200_000]
BODIES += [
    b'{"who": "ann", "action": "label", "documents": [0], "key": 1, "state": "permitted"}',
    b'{"who": "ann", "action": "label", "documents": [%d], "key": 1, "state": "permitted"}' % 10**30,
    b'{"who": "ann", "action": "label", "documents": [-1], "key": 99999999999999999999, "state": "permitted"}',
    b'{"who": "\\ud800", "action": "new topic", "name": "\\udfff tea"}',
    b'{"who": "ann", "action": "new topic", "name": "' + b"x" * 5000 + b'"}',
    b'{"who": "ann", "action": "settings", "overlap": 1e400}',
    b'{"who": "ann", "action": "settings", "free_topics": 1e18}',
    b'{"who": "ann", "kind": "labels", "name": "../../x"}',
    b'{"who": "ann", "kind": "labels", "name": "\\ud800"}',
    b'{"who": "ann", "edit": "split", "key": 99999999999999999999999}',
    b"id,label\nd1,tea\nd2,\xff\n",
    b"\x1f\x8b\x08\x00broken",
    b"PAR1 nothing PAR1",
]
_stack, _servers = ExitStack(), []


def server():
    """The workbench of this process, started at the first request."""
    if not _servers:
        folder = Path(_stack.enter_context(tempfile.TemporaryDirectory()))
        _servers.append(_stack.enter_context(running(folder)))
    return _servers[0]


def raw(rng, here):
    """A request as bytes: right, or with one or two odd parts."""
    usual = f"127.0.0.1:{here.port}"
    parts = ["method", "path", "query", "host", "access", "origin", "header", "body", "length", "cut"]
    odd = set(rng.sample(parts, rng.choice([0, 1, 1, 2])))

    def part(name, good, bad):
        return rng.choice(bad) if name in odd else good

    path = rng.choice(PATHS).replace("{}", part("path", rng.choice(VALUES), ODD))
    change = path.startswith(CHANGES)
    given = {"who": "ann"} | ({"column": "text"} if path == "/api/groups" else {})
    if "query" in odd:
        given |= {rng.choice(NAMES): rng.choice([*ODD, *VALUES]) for _ in range(rng.randrange(1, 4))}
    path += "" if change and "query" not in odd else "?" + "&".join(f"{k}={v}" for k, v in given.items())
    host = part(
        "host", usual, [f"127.0.0.1:²{here.port}", "127.0.0.1:²", "[::1", "", "x" * 300, "127.0.0.1:" + "9" * 5000]
    )
    headers = [("host", host), ("connection", "close")]
    access = [("cookie", here.cookie), ("x-topicsteer", here.secret)]
    headers += part("access", access, [[], [("cookie", "²")], [("cookie", here.cookie), ("x-topicsteer", "²")]])
    headers.append(("origin", part("origin", f"http://{usual}", ["null", "²", "http://evil.example"])))
    if "header" in odd:
        name = rng.choice(["cookie", "authorization", "sec-fetch-site", "x", "upgrade", "transfer-encoding", "expect"])
        headers.append((name, rng.choice([*ODD, "upgrade", "websocket", "chunked"])))
    body = rng.choice(BODIES) if change or "body" in odd else b""
    headers.append(("content-length", part("length", len(body), [0, 3, "²", "-1", "9" * 30])))
    rng.shuffle(headers)
    head = f"{part('method', 'POST' if change else 'GET', METHODS)} {path} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
    data = head.encode(rng.choice(["utf-8", "latin-1"]), "replace") + body
    return data[: rng.randrange(len(data))] if "cut" in odd else data


def attack(number, folder):
    """Send one raw request; the server must answer below 500 or close, and still be there."""
    here, rng = server(), random.Random(number)
    data = raw(rng, here)
    with socket.create_connection(("127.0.0.1", here.port), timeout=2) as line:
        line.sendall(data)
        answer = b""
        while part := _receive(line):
            answer += part
    words = answer.split(b" ", 2)
    status = int(words[1]) if answer.startswith(b"HTTP/") and len(words) > 1 else 0
    if status >= 500:
        return f"{data[:600]!r}\n{answer[-600:]!r}"
    if here.process.poll() is not None:
        return f"the server ended with {here.process.returncode} after {data[:600]!r}"
    if "Traceback" in here.log.read_text():
        text = here.log.read_text()
        here.log.write_text("")
        return f"{data[:600]!r}\n{text[-3000:]}"
    return None


def _receive(line):
    try:
        return line.recv(1 << 16)
    except (ConnectionResetError, TimeoutError):  # it waits for the rest of the request
        return b""


if __name__ == "__main__":
    with _stack:
        main("tests.fuzz.requests", attack, 1_000)
