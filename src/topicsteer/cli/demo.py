"""The demo: the built-in corpus from texts to a report, with topics that nobody named."""

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Option

from topicsteer.cli.fit import TERMS, new_model, stop_if_interrupted
from topicsteer.cli.options import HELP, Seed
from topicsteer.cli.terminal import notify, show_topics, working

if TYPE_CHECKING:
    from topicsteer.corpora import Documents

# Topics of the built-in corpus without a single label: free topics should find them.
UNNAMED = ("concurrency", "email", "files and formats", "graphical interfaces", "networking")


def demo(
    out: Annotated[Path, Option("--out", "-o", help=HELP["demo"]["out"])] = Path("report.html"), seed: Seed = 0
) -> None:
    """Run the built-in corpus end to end: fit, topics, one document explained, a report."""
    from topicsteer.corpora import load_docstrings

    with working() as progress:
        complete = load_docstrings()
        some = complete.hide_labels(0.9, seed)
        labels = [[topic for topic in own if topic not in UNNAMED] for own in some.labels]
        documents = replace(some, labels=labels)
        model = new_model(None, seed, world="open").fit(documents, progress=progress)
        stop_if_interrupted(model)
    kept = sum(map(bool, labels))
    notify(f"The docstrings of installed packages: {len(labels):,} documents, {kept:,} of them with their labels.")
    table = model.result_.table(TERMS, none=True)
    show_topics(table, "Topics of the built-in corpus", belief=model.belief)
    notify(_truth(table, complete))
    notify("\nAn unlabelled document, explained word by word:\n")
    Console().print(model.explain(documents.texts[documents.ids.index("scipy.linalg.svd")][:600]))
    with working() as progress:
        model.report(out, title="The docstrings of Python's scientific packages", progress=progress)
    here = "topicsteer" if shutil.which("topicsteer") else shlex.quote(sys.argv[0])  # make demo: in .venv
    notify(f"\nThe report is in {out}. Next: {here} label (label in the browser), or {here} fit yours.csv")


def _truth(table: Any, complete: "Documents") -> str:
    """A comparison of the estimated shares with the complete labels."""
    rows, n = list(zip(table["topic"], table["kind"], table["share"], strict=True)), len(complete)
    true = {topic: sum(topic in own for own in complete.labels) / n for topic in complete.topic_names}
    errors = [abs(share - true[topic]) for topic, kind, share in rows if kind == "known"]
    outside = sum(not set(own) - set(UNNAMED) for own in complete.labels) / n
    estimate = next(share for _, kind, share in rows if kind == "none")
    points = 100 * sum(errors) / len(errors)
    return (
        f"Nobody named {', '.join(UNNAMED[:-1])} and {UNNAMED[-1]}: all labels of these topics were removed."
        f" In truth, {outside:.0%} of the documents have none of the {len(errors)} known topics; the estimate is"
        f" {estimate:.0%}. The shares of known topics are off by {points:.1f} points on average."
    )
