"""Two writers, two readers and kills on one model folder: ``python -m tests.fuzz.writers --rounds 500``.

In each round two processes update the model, each with one document of its own, while two others load it again and
again. In half of the rounds a writer is killed at a random moment. A model that cannot be read, or a document that its
writer reported as saved and that is missing, is a failure.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from multiprocessing.connection import Connection, wait
from pathlib import Path

from topicsteer import TopicModel
from topicsteer.corpora import Documents
from topicsteer.model.state import writing
from topicsteer.system.arrays import StorageError

WORDS = ("tea", "leaf", "green", "cup", "milk", "bean", "roast", "coffee", "brew", "sugar", "cream", "pot", "mug")
FORK = multiprocessing.get_context("fork")
# Documents after which the next round starts from the first model again.
MOST = 60


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=6))


def first_model(folder: Path) -> None:
    rng = random.Random(0)
    texts = [text(rng) for _ in range(24)]
    labels = [["tea"] if "tea" in one else ["coffee"] if "coffee" in one else [] for one in texts]
    TopicModel(0, threads=1).fit(Documents([f"first {i}" for i in range(24)], texts, labels)).save(folder)


def write(folder: Path, name: str, turns: bool, seed: int, out: Connection) -> None:
    """Add one document: under the lock, or without it and again after a refusal."""
    warnings.simplefilter("ignore")
    documents = Documents([name], [text(random.Random(seed))])
    out.send("ready")
    try:
        if turns:
            with writing(folder):
                TopicModel.load(folder).update(documents).save(folder)
        else:
            while True:
                model = TopicModel.load(folder).update(documents)
                try:
                    model.save(folder)
                    break
                except StorageError as error:
                    if "was changed by another program" not in str(error):
                        raise
                    out.send("refused")
        out.send("saved")
    except BaseException as error:
        out.send(f"failed: {type(error).__name__}: {error}")


def read(folder: Path, out: Connection) -> None:
    """Load the model until this process is terminated; no document may disappear."""
    seen: set[object] = set()
    try:
        while True:
            ids = set(TopicModel.load(folder).state_.topics.ids)
            out.send("read" if seen <= ids else f"failed: {sorted(map(str, seen - ids))} disappeared")
            seen = ids
    except BaseException as error:
        out.send(f"failed: {type(error).__name__}: {error}")


def start(target, *given) -> tuple[multiprocessing.Process, Connection]:
    mine, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_run, args=(target, *given, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, mine


def _run(target, *given) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    target(*given)


def messages(pipe: Connection, end: float) -> list[str]:
    found = []
    while wait([pipe], max(0, end - time.monotonic())):
        try:
            found.append(pipe.recv())
        except EOFError:
            return found
    return [*found, "failed: it did not end"]


def play(folder: Path, number: int, rng: random.Random) -> Counter[str]:
    """One round; returns the number of each event, and every failure under its message."""
    kills, turns = number % 2 == 1, number % 3 != 2
    events: Counter[str] = Counter()
    readers = [start(read, folder) for _ in range(2)]
    names = [f"{number} {which}" for which in "ab"]
    writers = [start(write, folder, name, turns, 2 * number + i) for i, name in enumerate(names)]
    for _, pipe in writers:
        pipe.recv()
    if kills:
        time.sleep(rng.uniform(0, 0.4))
        os.kill(rng.choice(writers)[0].pid, signal.SIGKILL)
    saved = []
    for name, (process, pipe) in zip(names, writers, strict=True):
        found = messages(pipe, time.monotonic() + 60)
        process.join()
        events["killed"] += process.exitcode == -signal.SIGKILL
        events.update(found)
        saved += [name] * ("saved" in found)
    for process, _ in readers:
        process.terminate()
    for process, pipe in readers:
        process.join()
        events.update(messages(pipe, time.monotonic() + 60))
    ids = Counter(TopicModel.load(folder).state_.topics.ids)
    events.update(f"failed: {name} was lost" for name in saved if not ids[name])
    events.update(f"failed: {name} is there twice" for name in ids if ids[name] > 1)
    return events


def run(rounds: int, seed: int = 0) -> Counter[str]:
    """All rounds; the total number of each event."""
    rng, total = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        for number in range(rounds):
            folder = Path(place) / f"model {number // MOST}"
            if number % MOST == 0:
                first_model(folder)
            total += play(folder, number, rng)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    total = run(given.rounds, given.seed)
    for event, count in total.most_common():
        print(f"{count:7,} {event}")
    return any(event.startswith("failed") for event in total)


if __name__ == "__main__":
    sys.exit(main())
