"""Damaged and odd files of people and programs: each ends in a result or in a message, never in a traceback.

Excel workbooks, codebooks of REFI-QDA, answers of coders and vectors are mutated by bytes, by words of their format,
and inside their containers. `python -m tests.fuzz.files --rounds 3000`
"""

import contextlib
import functools
import io
import json
import random
import warnings
import zipfile

import numpy as np
import xlsxwriter

from tests.fuzz._rounds import main
from topicsteer.corpora import Documents, ReadError, read_table
from topicsteer.corpora.label_files import read_predictions
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.codebook_files import write_codebook
from topicsteer.model.predictor import VectorFile
from topicsteer.model.settings import read_topics

DOCUMENTS = Documents(["a", "b", "c"], ["tea leaves", "coffee beans", "rain"])
# Pieces that a mutation puts into XML, JSON, CSV or a name.
ODD = [
    b"",
    b"\x00",
    b"\xff",
    b"<",
    b"&lt;",
    b"&#0;",
    b"]]>",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    b"-1",
    b"1e999",
    b"NaN",
]
ODD += [
    b"A1048577",
    b"XFE1",
    b"A0",
    b"R1C1",
    b"s",
    b"inlineStr",
    b"e",
    b"99999999999",
    b"\xed\xa0\x80",
    "\u202e".encode(),
]
ODD += [b"../../x", b"[" * 3000, b'"', b"'", b",", b"\n", b"null", b"true", b"(none)", b"gpt", b"topics", b"score"]


def mutated(rng, data):
    """Data with some of its bytes changed, cut out, doubled or replaced by odd pieces."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([0, 1, 1, 4, 40, 400]))
        piece = rng.choice([rng.choice(ODD), bytes(data[start:end]) * 2, rng.randbytes(3), b""])
        data[start:end] = piece
    return bytes(data)


@functools.cache
def workbook():
    """An Excel workbook with text, numbers, dates, a formula, an error and shared strings."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"nan_inf_to_errors": True}) as book:
        sheet, day = book.add_worksheet(), book.add_format({"num_format": "yyyy-mm-dd"})
        sheet.write_row(0, 0, ["id", "text", "label", "day", "sum"])
        for row in range(1, 8):
            sheet.write_row(row, 0, [row, f"green tea {row}", "tea" if row % 2 else "", 45000.25, float("nan")])
            sheet.write_number(row, 3, 45000 + row, day)
            sheet.write_formula(row, 4, "=A1+1", value=row)
        sheet.write_rich_string(8, 1, "black ", book.add_format({"bold": True}), "tea")
        book.add_worksheet("empty")
    return out.getvalue()


def attack_excel(rng, folder):
    """Bytes of the container, or the XML inside it."""
    data = workbook()
    if rng.random() < 0.7:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                if rng.random() < 0.05:
                    continue
                content = old.read(name)
                new.writestr(name, mutated(rng, content) if rng.random() < 0.4 else content)
        data = out.getvalue()
    if rng.random() < 0.5:
        data = mutated(rng, data)
    path = folder / "a.xlsx"
    path.write_bytes(data)
    documents = read_table(path)
    assert all(isinstance(text, str) for text in documents.texts)


def attack_codebook(rng, folder):
    """A codebook of REFI-QDA."""
    topics = (Topic(1, "tea", description="hot"), Topic(2, "green", parent=1), Topic(3, 'a "b" & c'))
    path = folder / "a.qdc"
    path.write_bytes(mutated(rng, write_codebook(Codebook(topics), {1: "#ff0000"}).encode()))
    book = read_topics(path).codebook
    assert Codebook.from_json(book.to_json()) == book


def attack_coder(rng, folder):
    """Answers of a coder, as a table or as JSON lines."""
    rows = [{"id": "a", "topics": ["tea"], "score": 0.5}, {"id": "b", "topics": "coffee; tea", "score": 1}]
    lines = "\n".join(map(json.dumps, rows)), "id,topics,score\na,tea,0.5\nb,coffee;tea,1\nc,(none),\n"
    suffix, text = rng.choice([(".jsonl", lines[0]), (".csv", lines[1])])
    path = folder / f"a{suffix}"
    path.write_bytes(mutated(rng, text.encode()))
    _, report = read_predictions(path, DOCUMENTS)
    assert str(report) is not None


def attack_vectors(rng, folder):
    """A file of vectors."""
    out = io.BytesIO()
    np.save(out, np.random.default_rng(0).normal(size=(3, 4)).astype(rng.choice(["f4", "f8", "i2"])))
    path = folder / "a.npy"
    data = out.getvalue()
    path.write_bytes(
        mutated(rng, data[: rng.choice([80, 128])]) + data[128:] if rng.random() < 0.8 else mutated(rng, data)
    )
    with contextlib.suppress(ValueError):
        assert VectorFile(path).rows(DOCUMENTS).ndim == 2


ATTACKS = (attack_excel, attack_codebook, attack_coder, attack_vectors)


def attack(number, folder):
    """None, or what went wrong."""
    rng = random.Random(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ATTACKS[number % len(ATTACKS)](rng, folder)
        except ReadError as error:
            return None if str(error).strip() else "a message without words"
    return None


if __name__ == "__main__":
    main("tests.fuzz.files", attack, 10_000)
