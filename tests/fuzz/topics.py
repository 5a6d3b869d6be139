"""Random topics files with parents: each ends in a codebook or in a message, never in a traceback.

`python -m tests.fuzz.topics --rounds 2000`
"""

import random

from tests.fuzz._rounds import main
from topicsteer.corpora import ReadError
from topicsteer.labels.codebook import Codebook, topic_columns
from topicsteer.model.settings import read_topics

# Cells: names that repeat, so that parents meet them, and odd ones.
NAMES = [
    "a",
    "b",
    "c",
    "a/b",
    "a/b/c",
    " a ",
    "A",
    "",
    "(none)",
    "-1",
    "nan",
    "3",
    "3.0",
    "é",
    "'=x",
    '"',
    "\x00",
    "a;b",
    "\u202e",
]
HEADERS = ["topic", "Parent", "parent", "PARENT", "name", "description", "keywords", "banned", "", "colour", "level"]
DELIMITERS = [",", ";", "\t", "|"]


def table(rng):
    """The text of a topics file, mostly well formed."""
    delimiter = rng.choice(DELIMITERS)
    headers = (
        ["topic", "parent", *rng.sample(HEADERS, rng.randrange(4))] if rng.random() < 0.8 else rng.choices(HEADERS, k=3)
    )
    rows = [
        [rng.choice(NAMES) for _ in range(max(len(headers) + rng.choice([0, 0, 0, -1, 1]), 1))]
        for _ in range(rng.randrange(9))
    ]
    return "\n".join(delimiter.join(row) for row in [headers, *rows])


def attack(number, folder):
    """None, or what went wrong."""
    rng = random.Random(number)
    path = folder / "topics.csv"
    data = table(rng).encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        data = bytes(rng.randrange(256) for _ in range(40)) + data
    path.write_bytes(data)
    try:
        book = read_topics(path).codebook
    except ReadError as error:
        return None if str(error).strip() else "a message without words"
    if Codebook.from_json(book.to_json()) != book:
        return "the codebook is not the same after JSON"
    return None if "topic" in topic_columns(book) else "there is no column of topics"


if __name__ == "__main__":
    main("tests.fuzz.topics", attack, 10_000)
