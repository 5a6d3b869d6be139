"""The command that lets a language model propose names of free topics."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, confirm

from topicsteer.cli.options import HELP, Model, Quiet, reads_texts
from topicsteer.cli.terminal import escape, load, notify, read, show, working

if TYPE_CHECKING:
    from topicsteer.corpora import ReadOptions

# Environment variable with the secret of the server: others can see command lines.
KEY = "TOPICSTEER_CHAT_KEY"


@reads_texts
def name(
    model: Model,
    topics: Annotated[list[str] | None, Argument(help=HELP["name"]["topics"])] = None,
    *,
    reading: "ReadOptions",
    server: Annotated[str, Option(help=HELP["name"]["server"])],
    language_model: Annotated[str, Option("--language-model", help=HELP["name"]["language_model"])],
    examples: Annotated[int, Option(min=0, max=20, help=HELP["name"]["examples"])] = 0,
    of: Annotated[Path | None, Option(help=HELP["name"]["of"])] = None,
    budget: Annotated[int, Option(min=1, help=HELP["name"]["budget"])] = 20,
    timeout: Annotated[float, Option(min=1, help=HELP["name"]["timeout"])] = 60,
    yes: Annotated[bool, Option("--yes", help=HELP["name"]["yes"])] = False,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["name"]["out"])] = None,
    quiet: Quiet = False,
) -> None:
    """Let a language model on a server propose names of free topics. Nothing is sent before you agree."""
    import os

    from topicsteer.model.files import writing
    from topicsteer.model.naming import chat_namer

    ask = chat_namer(server, language_model, key=os.environ.get(KEY), timeout=timeout)
    out = model if out is None else out
    with writing(out):
        fitted = load(model)
        had_texts, updatable = fitted.documents_ is not None, fitted.state_.reservoir is not None
        if of is not None:
            fitted.attach(read(of, reading, fitted, quiet=quiet))
        questions = fitted.name_free_topics(ask, topics or None, budget=budget, examples=examples)
        if not len(questions):
            notify("The model has no free topics, so there is nothing to name.", quiet)
            return
        if not (yes or agreed(list(questions["question"]), server, budget)):
            notify("Nothing was sent, and no name was changed. To send the questions, add --yes.", quiet)
            return
        with working(quiet):
            found = fitted.name_free_topics(ask, topics or None, budget=budget, examples=examples, yes=True)
        fitted.save(out, texts=had_texts, updatable=updatable)
    show(found.drop("question"), "Proposed names", quiet)
    notify(
        f"Saved in {escape(str(out))}. To confirm a name: topicsteer edit {escape(str(out))} --rename OLD=NEW", quiet
    )


def agreed(questions: list[str], server: str, budget: int) -> bool:
    """Show what would be sent, and ask in a terminal whether to send it."""
    print("\n\n".join(questions[:budget]), flush=True)
    number = min(len(questions), budget)
    notify(f"\nThese {number} questions would go to {escape(server)}.")
    return sys.stdin.isatty() and confirm("Send them?", default=False, err=True)
