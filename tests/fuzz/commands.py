"""Fuzzed command lines: odd options, values and files end in a message and an exit code, never in a traceback."""

import contextlib
import functools
import gzip
import io
import json
import os
import random
import shutil
import sys
import warnings
from unittest import mock

import numpy as np
import xlsxwriter

from tests.fuzz._rounds import main
from topicsteer import TopicModel
from topicsteer.cli import commands
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.codebook_files import write_codebook

# Commands with their arguments; demo is left out.
COMMANDS = {
    "fit": ["table"],
    "update": ["model", "table"],
    "evaluate": ["model", "table"],
    "topics": ["model"],
    "predict": ["model", "table"],
    "explain": ["model", "word"],
    "report": ["model", "table"],
    "suggest": ["model", "table"],
    "audit": ["model", "table"],
    "coders": ["model", "table"],
    "edit": ["model", "table"],
    "prevalence": ["model", "table"],
    "label": ["table"],
}
OPTIONS = {
    "column": ["--text", "--labels", "--id"],
    "table": ["--label-file", "--coder"],
    "number": [
        "--free",
        "--seed",
        "--threads",
        "--folds",
        "-n",
        "--memory",
        "--port",
        "--precision",
    ],
    "out": ["--out", "-o", "--report", "--codebook", "--work", "--project", "--disagreements"],
    "word": [
        "--separator",
        "--encoding",
        "--delimiter",
        "--world",
        "--title",
        "--adopt",
        "--rename",
        "--merge",
        "--move",
        "--path-separator",
        "--scheduler",
        "--host",
        "--password",
        "--embeddings",
        "--sheet",
        "--by",
        "--topic",
        "--for",
    ],
    "flag": [
        "--incomplete",
        "--keep-texts",
        "--evaluate",
        "--quiet",
        "-q",
        "--json",
        "--debug",
        "--version",
        "--help",
        "--",
        "--nonsense",
        "--no-browser",
        "--no-new-topics",
        "--no-map",
    ],
}
WORDS = ["", " ", "-", "²", "0", "x" * 3000, "\udcff", "a\x00b"[:1], "free 1=robots", "tea;coffee", "tea", "=", "a=b"]
WORDS += ["free 1", "utf-8", "utf-99", ";", ",", "\t", "ab", "open", "closed", "skip", "raise", "json", "../x", "::1"]
WORDS += [
    "tcp://127.0.0.1:1",
    "10.0.0.300",
    "[red]markup[/red]",
    "[/nope]",
    "%s",
    "日本語",
    "🜚",
    "\u202e",
    "None",
    "model2vec:",
    "model2vec:texts",
    "vectors.npy",
    "objects.npy",
    "ftp://x",
    "nan",
]
NUMBERS = ["0", "1", "2", "3", "-1", "1e3", "1.5", "²", "٣", "", "x", "9" * 400, "-" + "9" * 400, "4GB", "1KB", "nan"]
NUMBERS += ["inf", "0x10", "1_000", "auto", "65536", "2147483648", "9" * 20, "1e400"]
COLUMNS = ["text", "topic", "id", "nothing", "", "²", "Text", "a b", "\udcff", "text,topic", "label"]
ROWS = [
    ("1", "tea leaves in a pot", "tea"),
    ("2", "roasted beans in a mug", "coffee"),
    ("3", "a train on its track", ""),
]


def xlsxwriter_book(path, rows):
    """An Excel workbook."""
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)


@functools.cache
def prepared(folder):
    """A folder with a model, tables good and bad, and other files."""
    here = folder / "prepared"
    here.mkdir()
    rows = [
        (f"d{i}", f"{text} number{i % 7} {text.split()[i % 3]}", topic) for i, (_, text, topic) in enumerate(ROWS * 8)
    ]
    lines = ["id,text,topic", *(f"{a},{b},{c}" for a, b, c in rows)]
    (here / "good.csv").write_text("\n".join(lines))
    (here / "good.jsonl").write_text(
        "\n".join(json.dumps(dict(zip(("id", "text", "topic"), r, strict=True))) for r in rows)
    )
    (here / "mixed.jsonl").write_text(
        '{"id": 1, "text": "tea pot"}\n{"id": "x", "text": "mug"}\n{"id": 2.5, "text": "q"}\n'
    )
    (here / "nested.jsonl").write_text('{"id": [1], "text": {"a": 1}, "topic": [["tea"], 3]}\n' * 5)
    (here / "numbers.csv").write_text("text,topic\n1,2\n3,4\n5,6\n")
    (here / "empty.csv").write_text("")
    (here / "head.csv").write_text("id,text,topic\n")
    (here / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (here / "latin.csv").write_bytes("id,text,topic\n1,café,thé\n2,naïf,thé\n".encode("latin-1"))
    (here / "wrong.parquet").write_bytes(b"PAR1 nothing PAR1")
    (here / "wrong.json").write_text("[" * 5000)
    (here / "cut.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode())[:-30])
    (here / "good.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (here / "wrong.steer").write_bytes(b"SQLite format 3\x00" + b"\x01" * 3000)
    (here / "texts" / "tea").mkdir(parents=True)
    for i in range(5):
        (here / "texts" / "tea" / f"{i}.txt").write_text(f"tea leaves {i}")
    (here / "empty").mkdir()
    np.save(here / "vectors.npy", np.random.default_rng(0).normal(size=(len(rows), 3)))
    np.save(here / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    xlsxwriter_book(here / "good.xlsx", [("id", "text", "topic"), *rows])
    (here / "wrong.xlsx").write_bytes((here / "good.xlsx").read_bytes()[:-400])
    (here / "topics.qdc").write_text(write_codebook(Codebook.of_names(["tea", "coffee"])))
    os.symlink(here / "loop", here / "loop")
    with contextlib.chdir(here):
        assert run(["fit", "good.csv", "--free", "1", "--out", "model", "--keep-texts", "-q"])[0] == 0
    TopicModel.load(here / "model").save(here / "plain", texts=False, updatable=False)
    shutil.copytree(here / "model", here / "broken")
    next((here / "broken").glob("components*")).unlink()
    return here


def run(arguments):
    """Exit code and output of a command in this process; the workbench does not listen, and a cluster does not wait."""
    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["topicsteer", *arguments]),
        mock.patch("topicsteer.app.web.routes.Server.run"),
        mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(b"tea from standard input"))),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        warnings.catch_warnings(),
    ):
        try:
            commands.main()
        except SystemExit as end:
            return end.code or 0, out.getvalue()
    return 0, out.getvalue()


def command_line(rng, here):
    """A random command with its arguments and options."""
    files = sorted(path.name for path in here.iterdir())

    def value(kind):
        if kind == "table" or kind == "model":
            good = ["good.csv", "good.jsonl", "good.xlsx"] if kind == "table" else ["model", "plain"]
            return rng.choice(good if rng.random() < 0.7 else [*files, "nothing", "", "/", "/dev/null", *WORDS])
        if kind == "out":
            return rng.choice(["o.csv", "o.jsonl", "o.parquet", "o.html", "new", "new/deep/o.csv", "model", "/", ""])
        return rng.choice({"column": COLUMNS, "number": NUMBERS, "word": WORDS}[kind])

    name = rng.choice(list(COMMANDS))
    words = [name, *(value(kind) for kind in COMMANDS[name])]
    if rng.random() < 0.1:
        words = words[: rng.randrange(len(words)) + 1]
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
        kind = rng.choice(list(OPTIONS))
        option = rng.choice(OPTIONS[kind])
        given = [] if kind == "flag" else [value(kind)]
        if option == "--threads" and given[0].isdecimal() and int(given[0]) > 4:
            given = ["2"]
        if option == "--free" and given[0].isdecimal() and int(given[0]) > 99:
            given = ["7"]
        words += [f"{option}={given[0]}"] if given and rng.random() < 0.2 else [option, *given]
    if name in ("coders", "prevalence") and rng.random() < 0.9:
        words += ["--coder", f"{rng.choice(['gpt', 'old', 'people', *WORDS])}={value('table')}"]
    if name in ("fit", "label"):
        words += ["--free", "1"] if rng.random() < 0.5 else []
    return [word.replace("\x00", "") for word in words]


def attack(number, folder):
    """Run a random command line in a copy of the folder; return what is wrong with its end."""
    rng = random.Random(number)
    here = folder / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(prepared(folder), here, symlinks=True)
    words = command_line(rng, here)
    with contextlib.chdir(here):
        try:
            code, out = run(words)
        except BaseException as error:
            raise AssertionError(f"{words} raised {error!r}") from error
    if code not in (0, 1, 2, 4) or ("Traceback" in out and "--debug" not in words):
        return f"{words}: exit code {code}\n{out[-3000:]}"
    if code and not out.strip():
        return f"{words}: exit code {code} without a message"
    return None


def patient():
    """Dask gives up at once where nobody listens."""
    with contextlib.suppress(ImportError):
        import dask
        import distributed  # noqa: F401

        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"})
    os.environ["COLUMNS"] = "200"


if __name__ == "__main__":
    patient()
    main("tests.fuzz.commands", attack, 5_000)
