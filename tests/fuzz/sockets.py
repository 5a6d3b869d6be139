"""Slow sockets without a token, while a person with one labels documents: no error, and a short log."""

import random
import socket
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz._server import TEXTS, running

PIECES = [
    b"",
    b"G",
    b"GET / HTTP/1.1\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /login HTTP/1.1\r\nA: b\r\n",
]


def flood(many, folder, seed=0):
    """Open sockets one by one, each with part of a request, and label a document after every twentieth.

    Returns the number of labels, errors and slowest label in seconds, the sockets still open, and the bytes of the log.
    """
    rng = random.Random(seed)
    labels, errors, slowest, lines = 0, 0, 0.0, []
    with running(folder) as here:
        keeper = here.connect()
        for number in range(many):
            try:
                line = socket.create_connection(("127.0.0.1", here.port), timeout=10)
                line.sendall(rng.choice(PIECES))
                lines.append(line)
            except OSError:
                pass  # the server may close it at once
            for old in rng.sample(lines, min(3, len(lines))):  # some of them trickle on
                try:
                    old.sendall(b"X-A: b\r\n")
                except OSError:
                    old.close()
                    lines.remove(old)
            if number % 20 == 0:
                began = time.monotonic()
                person = keeper if number % 40 else here.connect()  # a page opens new connections too
                try:
                    errors += here.label(person, labels % len(TEXTS), f"r{number}") != 200
                except OSError:
                    person.close()  # an idle connection was closed, as a browser expects
                    try:
                        errors += here.label(person, labels % len(TEXTS), f"r{number}") != 200
                    except OSError:
                        errors += 1
                slowest, labels = max(slowest, time.monotonic() - began), labels + 1
                if person is not keeper:
                    person.close()
        open_now = sum(_is_open(line) for line in lines)
        for line in lines:
            line.close()
        keeper.close()
        size = here.log.stat().st_size
    return labels, errors, slowest, open_now, size


def _is_open(line):
    line.setblocking(False)
    try:
        return line.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


if __name__ == "__main__":
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 2_000
    with tempfile.TemporaryDirectory() as folder:
        labels, errors, slowest, open_now, size = flood(rounds, Path(folder))
    print(
        f"tests.fuzz.sockets: {rounds:,} slow sockets, {open_now} still open; {labels} labels, {errors} errors, ",
        end="",
    )
    print(f"slowest {slowest:.2f} s; log of {size:,} bytes")
    sys.exit(1 if errors else 0)
