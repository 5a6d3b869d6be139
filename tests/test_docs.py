"""Every block of every page runs: files are written, Python is a doctest, commands are run, what is shown appears.

The blocks of a page run in their order, in one folder. `...` stands for anything. On pages about the table of messages
numbers may be off by a hundredth, for the arithmetic of other machines.
"""

import doctest
import importlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from topicsteer.cli import commands as cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
LOOSE = {"tutorial.md", "how-to/free-topics.md", "how-to/findings.md", "known-limitations.md"}
AS_PROGRAMS = {"index.md"}  # its commands start as a reader would start them
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Where the numbers of the README and the docs that look like this come from.
MEASURED = {
    "experiments/meaning/README.md": r"(?<=\| )\.\d{3}(?= \|)",
    "benchmarks/README.md": r"\d+(?:\.\d)?×|1/\d+",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def squeeze(text):
    """Text without what the width of a table changes."""
    return " ".join(re.sub(r"([─━═])\1+", r"\1", text).split())


def near(shown, got):
    """Whether two numbers differ by a hundredth at most."""
    a, b = (float(text.replace(",", "")) for text in (shown, got))
    return abs(a - b) <= max(0.01 * max(abs(a), abs(b)), 0.01 if "." in shown else 1)


def appears(shown, got, loose):
    """Whether an output is as shown, `...` standing for anything; loose: with numbers that are near."""
    shown, got = squeeze(shown), squeeze(got)
    pieces = re.split(r"(\.\.\.)" if not loose else rf"(\.\.\.|{NUMBER.pattern})", shown)
    wild = {"...": ".*?"}
    pattern = "".join(wild.get(p) or (f"({NUMBER.pattern})" if i % 2 else re.escape(p)) for i, p in enumerate(pieces))
    found = re.fullmatch(pattern, got)
    numbers = [p for i, p in enumerate(pieces) if i % 2 and p != "..."]
    return found is not None and all(near(a, b) for a, b in zip(numbers, found.groups(), strict=True))


class Checker(doctest.OutputChecker):
    """A doctest's checker with the same idea of what was shown."""

    def __init__(self, loose):
        self.loose = loose

    def check_output(self, want, got, optionflags):
        return super().check_output(want, got, optionflags) or appears(want, got, self.loose)


def run_python(code, names, page, loose):
    """Run a block of `>>>` lines; names are kept for the next block of the page."""
    test = doctest.DocTestParser().get_doctest(code, names, page, page, 0)
    test.globs = names
    output = []
    result = doctest.DocTestRunner(Checker(loose), optionflags=FLAGS).run(test, out=output.append, clear_globs=False)
    assert result.attempted, f"{page}: a pycon block without >>>"
    assert not result.failed, "".join(output)


def run_shell(command):
    """Exit code and output of a command in a shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "PATH": path},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    return done.returncode, done.stdout


def run_here(command, monkeypatch):
    """Exit code and output of a topicsteer command in this process: a start of Python takes longer than most fits."""
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    output, code = io.StringIO(), 0
    with redirect_stdout(output), redirect_stderr(output):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    return code, output.getvalue()


def run_commands(block, page, loose, monkeypatch):
    """Run the `$ ` lines of a block; the lines below each must appear in its output, in their order."""
    monkeypatch.setenv("COLUMNS", "88")
    monkeypatch.setenv("NO_COLOR", "1")
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        here = command.startswith("topicsteer ") and page not in AS_PROGRAMS and not re.search("[|<>;&]", command)
        code, output = run_here(command, monkeypatch) if here else run_shell(command)
        assert code == 0, f"{page}: $ {command}\n{output}"
        lines = iter(output.splitlines())
        for line in filter(None, map(str.strip, shown.splitlines())):
            assert line == "..." or any(appears(line, got, loose) for got in lines), (
                f"{page}: $ {command}\nnot in its output: {line}\nwhich is\n{output}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loose, names = page in LOOSE, {}
    for language, title, block in FENCE.findall((DOCS / page).read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(block, encoding="utf-8")
        elif language == "pycon":
            run_python(block, names, page, loose)
        elif language == "console":
            run_commands(block, page, loose, monkeypatch)
        else:
            assert language == "text", f"{page}: a block of {language or 'nothing'} would not be run"


def test_made_pages_are_up_to_date():
    made = runpy.run_path(str(DOCS / "scripts" / "make_reference.py"))
    for page, content in ((made["PAGE"], made["reference"]()), (made["SETTINGS_PAGE"], made["settings"]())):
        assert page.read_text(encoding="utf-8") == content, "run python docs/scripts/make_reference.py"


@pytest.mark.parametrize("folder", [".", "docs", "benchmarks", "experiments"])
def test_links_lead_somewhere(folder):
    pages = (ROOT / folder).rglob("*.md") if folder in ("docs", "experiments") else (ROOT / folder).glob("*.md")
    links = [
        (page.relative_to(ROOT), link)
        for page in pages
        for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert links or folder == "benchmarks"
    assert not [(str(page), link) for page, link in links if not (ROOT / page.parent / link).exists()]


def test_options_of_the_docs_exist():
    made = runpy.run_path(str(DOCS / "scripts" / "make_reference.py"))
    options = {"--debug", "--help"}
    options |= {"--x", "--y", "--tls-ca-file", "--tls-cert", "--tls-key"}  # of other programs
    for _, function in made["commands"](made["app"], "topicsteer"):
        for option in made["options"](function):
            options.update(re.findall(r"`(--[a-z-]+)`", made["spelling"](option)))
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        named = set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", page.read_text(encoding="utf-8")))
        assert named <= options, page.name


def test_names_of_the_reference_exist():
    named = {name for page in DOCS.rglob("*.md") for name in re.findall(r"(?m)^::: ([\w.]+)", page.read_text("utf-8"))}
    assert len(named) > 30
    for name in named:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_compared_numbers_are_measured():
    plain = {name: (ROOT / name).read_text(encoding="utf-8").replace("*", "") for name in MEASURED}
    pages = [ROOT / "README.md", DOCS / "how-well.md", DOCS / "how-to" / "embeddings.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages).replace("*", "")
    numbers = [(name, number) for name, pattern in MEASURED.items() for number in re.findall(pattern, text)]
    missing = [(name, number) for name, number in numbers if number not in plain[name]]
    assert not missing
    assert len(numbers) >= 30


def test_pictures_are_small_and_used():
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size < 100_000
        assert f"pictures/{picture.name}" in text


def test_a_page_that_loads_from_the_network_is_found(tmp_path):
    check = runpy.run_path(str(DOCS / "scripts" / "check_site.py"))
    page = tmp_path / "page.html"
    page.write_text('<a href="https://example.org">a link is fine</a><img src="a.png">')
    assert check["main"](tmp_path) == 0
    page.write_text('<script src="//example.org/x.js"></script><style>@import "https://example.org/x.css"</style>')
    assert check["main"](tmp_path) == 1


@pytest.mark.parametrize(
    ("shown", "got", "loose", "same"),
    [
        ("a ... b", "a 1 2 b", False, True),
        ("a 1", "a 2", False, False),
        ("│ tea │ 0.710 │", "│ tea   │ 0.719 │", True, True),
        ("│ tea │ 0.710 │", "│ tea   │ 0.750 │", True, False),
        ("1,260 texts", "1,270 texts", True, True),
        ("┏━━┓", "┏━━━━━┓", False, True),
    ],
)
def test_what_counts_as_shown(shown, got, loose, same):
    assert appears(shown, got, loose) is same


def test_tests_that_the_docs_name_exist():
    named = {name for page in DOCS.rglob("*.md") for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))}
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 10
    assert named <= set(re.findall(r"def (test_\w+)", tests))


def test_every_promise_of_the_threat_model_names_tests_that_exist():
    page = (DOCS / "explanation" / "threats.md").read_text("utf-8")
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    written = set(re.findall(r"def (test_\w+)", tests))
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    promises = [row for row in rows if row[-1].strip() != "tested in" and set(row[-1]) != {"-"}]
    assert len(promises) > 40
    for *promise, tested in promises:
        names, files = re.findall(r"`(test_\w+)`", tested), re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)", tested)
        assert names or files or tested.strip().startswith("the same"), promise
        assert set(names) <= written, promise
        assert all((ROOT / name).is_file() for name in files), promise
    assert set(re.findall(r"`(test_\w+)`", page)) <= written
    assert page.count("**Not promised.**") + page.count("**Not defended.**") == 3
