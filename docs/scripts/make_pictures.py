"""Make the pictures of the documentation from real fits: ``python docs/scripts/make_pictures.py``."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from rich._export_format import CONSOLE_SVG_FORMAT

from topicsteer import TSNMF
from topicsteer.corpora import Documents, example_table, load_docstrings
from topicsteer.text import TextVectorizer

PICTURES = Path(__file__).parents[1] / "pictures"
AREAS = {"clustering", "images", "linear algebra", "optimisation", "signals", "sparse matrices", "statistics"}
OURS, PLAIN = "#00796b", "#b85c00"
TEXTS = [
    "green tea leaves",
    "roast coffee beans",
    "tea leaves",
    "roast beans",
    "green tea, roast coffee",
    "cup and saucer",
    "cup of coffee",
]
# Width of the terminal in characters.
WIDTH = 100
BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
LABELS = ["tea", "coffee", None, None, None, None, None]
# Areas above the seven areas, for the picture of a tree.
PARENTS = dict.fromkeys(("images", "signals", "statistics", "clustering"), "data") | dict.fromkeys(
    ("linear algebra", "optimisation", "sparse matrices"), "numbers"
)
# The document in the screenshots of the workbench.
SHOWN = "statistics.correlation"


def seven_areas() -> Documents:
    """Return the docstrings of seven areas, with all their labels."""
    everything = load_docstrings()
    return everything.select(i for i, names in enumerate(everything.labels) if AREAS.issuperset(names))


def factors() -> Figure:
    """Draw X ≈ (W∘L) H for seven short texts, with crosses where a label forbids a topic."""
    vectorizer = TextVectorizer(stop_words="en")
    X = vectorizer.fit_transform(TEXTS)
    model = TSNMF(3, free_in_labelled=False, random_state=0).fit(X, LABELS)
    W, H = model.document_topics_, model.components_
    scale = H.max(axis=1)
    names, terms = [str(name) for name in model.topic_names_], list(vectorizer.get_feature_names_out())
    rows = [f"{text}  [{label}]" if label else text for text, label in zip(TEXTS, LABELS, strict=True)]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[len(terms), 3, len(terms)])
    for ax, values, title in zip(
        axes, (X.toarray(), W * scale, H / scale[:, None]), ("X", "≈   W∘L", "H"), strict=True
    ):
        ax.imshow(values, cmap="GnBu", vmin=0, vmax=1.1)
        ax.set_title(title, fontsize=13)
        ax.tick_params(length=0, labelsize=8)
        ax.spines[:].set_visible(False)
    for ax, labels in zip(axes, (terms, names, terms), strict=True):
        ax.set_xticks(range(len(labels)), labels, rotation=90)
    axes[0].set_yticks(range(len(rows)), rows)
    axes[1].set_yticks([])
    axes[2].set_yticks(range(3), names)
    for i, label in enumerate(LABELS):
        for k, name in enumerate(names):
            if label is not None and name != label:
                axes[1].text(k, i, "×", ha="center", va="center", color=PLAIN, fontsize=12)
    return figure


def objective(documents: Documents) -> Figure:
    """Draw the objective by iteration for both solvers, from the same start."""
    documents = documents.hide_labels(0.9)
    X = TextVectorizer(threads=1).fit_transform(documents.texts)
    figure = Figure(figsize=(6.5, 3), layout="constrained")
    ax = figure.subplots()
    for solver, colour in (("hals", OURS), ("mu", PLAIN)):
        model = TSNMF(solver=solver, init="acol", tol=1e-6, max_iter=60, random_state=0, threads=1)
        with warnings.catch_warnings(action="ignore"):  # it stops at max_iter, on purpose
            history = model.fit(X, documents.labels).objective_history_
        ax.plot(range(1, len(history)), history[1:], color=colour)
        ax.annotate(solver, (8, history[8]), xytext=(6, 4), textcoords="offset points", color=colour)
    return _finish(figure, ax, "iteration", "objective D")


@contextmanager
def _workbench(documents: Documents, **options: Any) -> Iterator[Any]:
    """A page of a workbench on these documents; needs playwright and chromium."""
    from playwright.sync_api import sync_playwright

    from topicsteer.app.workbench.workbench import Workbench

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        path = Path(folder) / "docstrings.steer"
        Workbench.make(path, documents, **options)
        command = [sys.executable, "-m", "topicsteer", "label", str(path), "--no-browser", "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
        try:
            assert server.stdout is not None  # noqa: S101
            page = browser.new_page(viewport={"width": 1280, "height": 760})
            page.goto(server.stdout.readline().strip())
            yield page
        finally:
            browser.close()
            server.terminate()
            server.wait()


def screens(documents: Documents) -> None:
    """Take screenshots of the workbench on the docstrings."""
    with _workbench(documents.hide_labels(0.96)) as page:
        _refit(page)
        page.evaluate(f"location.hash = 'label/{documents.ids.index(SHOWN)}'")
        page.wait_for_timeout(2_000)
        _save(page.screenshot(), "workbench-label.png")
        frames = [page.screenshot()]
        page.keyboard.press("7")  # statistics
        page.wait_for_timeout(1_000)
        frames.append(page.screenshot())
        page.click("#fit")
        page.wait_for_timeout(700)
        frames.append(page.screenshot())
        _refit(page, start=False)
        for name in ("topics", "map"):
            page.click(f'#tabs a[href="#{name}"]')
            if name == "map":
                page.wait_for_selector("canvas", timeout=120_000)
            page.wait_for_timeout(2_000)
            _save(page.screenshot(), f"workbench-{name}.png")
            frames += [page.screenshot()] if name == "topics" else []
        _animate(frames, "workbench-loop.gif")


def tree_screen(documents: Documents) -> None:
    """Take a screenshot of the label pane of a topic tree, with the seven areas below two others."""
    paths = [[f"{PARENTS[name]}/{name}" for name in names] for names in documents.hide_labels(0.9).labels]
    with _workbench(replace(documents, labels=paths), path_separator="/") as page:
        _refit(page)
        page.evaluate(f"location.hash = 'label/{documents.ids.index(SHOWN)}'")
        page.wait_for_timeout(2_000)
        page.keyboard.press("1")
        page.wait_for_timeout(1_000)
        _save(page.screenshot(), "workbench-tree.png")


def _refit(page: Any, start: bool = True) -> None:
    """Fit in the workbench, and wait for topics and suggestions."""
    if start:
        page.click("#fit")
    page.wait_for_selector(".note.news", timeout=120_000)
    page.click(".note .round")
    page.wait_for_selector("#fitting", state="hidden", timeout=120_000)
    page.wait_for_timeout(8_000)  # suggestions come after the topics


def _save(screenshot: bytes, name: str) -> None:
    """Write a screenshot with 256 colours."""
    from PIL import Image

    shown = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
    shown.save(PICTURES / name, optimize=True)


def _animate(screenshots: list[bytes], name: str) -> None:
    """Write screenshots as a slow animation of half their size."""
    from PIL import Image

    images = [Image.open(io.BytesIO(shot)).convert("RGB").crop((0, 0, 1280, 650)) for shot in screenshots]
    halves = [image.resize((image.width // 2, image.height // 2)) for image in images]
    small = [half.quantize(128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE) for half in halves]
    small[0].save(PICTURES / name, save_all=True, append_images=small[1:], duration=1800, loop=0, optimize=True)


def terminal() -> None:
    """Draw three commands of the tutorial in a terminal, and take a screenshot of the report that they write."""
    from rich.console import Console
    from rich.text import Text

    commands = [
        ["fit", "messages.csv", "--free", "3"],
        ["explain", "model", "The courier left my parcel at the wrong house."],
        ["report", "model", "messages.csv", "--out", "report.html"],
    ]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        example_table(Path(folder) / "messages.csv")
        for words in commands:
            console.print(
                f"[green]$[/green] topicsteer {' '.join(w if ' ' not in w else repr(w) for w in words)}",
                highlight=False,
            )
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-m", "topicsteer", *words],
                cwd=folder,
                env=os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1"},
                capture_output=True,
                text=True,
                check=True,
            )
            last = re.split(r"\x1b\[2K", done.stderr)[-1]  # the rest after the progress bars are cleared
            console.print(Text.from_ansi((done.stdout + last).strip("\n")))
        _photograph(Path(folder) / "report.html", "report.png")
    # Rich's own frame loads a font from the network; any monospaced font will do.
    frame = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    picture = console.export_svg(title="topicsteer", code_format=frame, unique_id="terminal")
    (PICTURES / "terminal.svg").write_text(picture.replace("Fira Code", "ui-monospace"), encoding="utf-8")


def _photograph(page: Path, name: str) -> None:
    """Save a screenshot of a page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
        view = browser.new_page(viewport={"width": 1280, "height": 1180})
        view.goto(page.as_uri())
        view.wait_for_timeout(1_000)
        _save(view.screenshot(), name)
        browser.close()


def _finish(figure: Figure, ax: Any, x: str, y: str) -> Figure:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    return figure


def main() -> None:
    """Write all pictures: reproducible figures as SVG, and screenshots."""
    mpl.rcParams.update({"svg.hashsalt": "topicsteer", "font.size": 10, "savefig.facecolor": "white"})
    PICTURES.mkdir(exist_ok=True)
    documents = seven_areas()
    pictures = {"factors": factors(), "objective": objective(documents)}
    for name, figure in pictures.items():
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})
    terminal()
    screens(documents)
    tree_screen(documents)


if __name__ == "__main__":
    main()
