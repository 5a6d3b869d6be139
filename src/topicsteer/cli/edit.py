"""Commands that edit the topics of a saved model: edit, split."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from topicsteer.cli.fit import stop_if_interrupted
from topicsteer.cli.options import HELP, Model, Quiet, number_or_auto, reads_texts
from topicsteer.cli.terminal import load, notify, read, show_topics, working, write

if TYPE_CHECKING:
    from topicsteer import TopicModel
    from topicsteer.corpora import ReadOptions


@reads_texts
def edit(
    model: Model,
    source: Annotated[Path | None, Argument(help=HELP["edit"]["source"])] = None,
    *,
    reading: "ReadOptions",
    adopt: Annotated[str | None, Option(help=HELP["edit"]["adopt"])] = None,
    rename: Annotated[str | None, Option(help=HELP["edit"]["rename"])] = None,
    merge: Annotated[str | None, Option(help=HELP["edit"]["merge"])] = None,
    move: Annotated[str | None, Option(help=HELP["edit"]["move"])] = None,
    cut: Annotated[int | None, Option(min=0, help=HELP["edit"]["cut"])] = None,
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["edit"]["out"])] = None,
    quiet: Quiet = False,
) -> None:
    """Edit the topics of a model: adopt, rename, merge or move one, or show another number of free topics."""
    from topicsteer.model.files import writing

    edits = {"adopt": adopt, "rename": rename, "merge": merge, "move": move, "cut": cut}
    given = {name: value for name, value in edits.items() if value is not None}
    if len(given) != 1:  # one edit renumbers the free topics that another would name
        raise ValueError(f"choose one of {', '.join(f'--{name}' for name in edits)}; run the command once per edit.")
    out = model if out is None else out
    with writing(out), working(quiet):
        fitted = load(model)
        had_texts, updatable = fitted.documents_ is not None, fitted.state_.reservoir is not None
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=quiet))
        before = fitted.state_.estimator
        proposals = apply_edit(fitted, *given.popitem())
        if fitted.state_.estimator is not before:
            stop_if_interrupted(fitted)
        fitted.save(out, texts=had_texts, updatable=updatable)
    if proposals is None:
        show_topics(fitted.result_.table(none=True), repr(fitted)[1:-1], belief=fitted.belief, quiet=quiet)
        notify(f"Saved in {out}.", quiet)
        return
    write(proposals, None, readable=dict)
    notify(f"{fitted.belief} Saved in {out}.", quiet)
    notify(f"Next: check these documents, and pass them as labels: topicsteer update {out} --label-file FILE", quiet)


@reads_texts
def split(
    model: Model,
    topic: Annotated[str, Argument(help=HELP["split"]["topic"])],
    parts: Annotated[str, Argument(parser=number_or_auto, help=HELP["split"]["parts"])] = "2",
    source: Annotated[Path | None, Argument(help=HELP["split"]["source"])] = None,
    *,
    reading: "ReadOptions",
    out: Annotated[Path | None, Option("--out", "-o", help=HELP["split"]["out"])] = None,
    quiet: Quiet = False,
) -> None:
    """Split a topic: free topics inside a known topic, or the parts of a free topic. No other topic changes."""
    from topicsteer.model.files import writing

    out = model if out is None else out
    with writing(out), working(quiet):
        fitted = load(model)
        had_texts, updatable = fitted.documents_ is not None, fitted.state_.reservoir is not None
        if source is not None:
            fitted.attach(read(source, reading, fitted, quiet=quiet))
        check_documents(fitted, "split")
        before = fitted.state_.estimator
        fitted.split(topic, parts)
        if fitted.state_.estimator is not before:
            stop_if_interrupted(fitted)
        fitted.save(out, texts=had_texts, updatable=updatable)
    show_topics(fitted.result_.table(none=True), repr(fitted)[1:-1], belief=fitted.belief, quiet=quiet)
    notify(f"Saved in {out}.", quiet)


def check_documents(fitted: "TopicModel", name: str) -> None:
    """Raise an error if a model was loaded without its training documents."""
    if fitted.documents_ is None:
        raise ValueError(f"{name} needs the training documents: pass their file, or fit with --keep-texts.")


def apply_edit(fitted: "TopicModel", name: str, value: Any) -> Any:
    """Edit the model; return a table of proposed labels after the adoption of a topic, else None."""
    if name == "cut":
        check_documents(fitted, "--cut")
    if name == "adopt":
        import polars as pl

        topic, new = pair(value)
        return fitted.adopt(topic, new).with_columns(pl.lit(new).alias("label"))
    if name == "rename":
        fitted.rename(*pair(value))
    elif name == "merge":
        fitted.merge([topic.strip() for topic in value.split(";" if ";" in value else ",")])
    elif name == "move":
        topic, _, parent = (part.strip() for part in value.partition("="))
        fitted.move(topic, parent or None)
    else:
        fitted.cut(value)
    return None


def pair(value: str) -> tuple[str, str]:
    """A topic and its new name, from "topic=name"."""
    topic, _, name = (part.strip() for part in value.partition("="))
    if not topic or not name:
        raise ValueError(f'{value!r} is not of the form "topic=name", such as "free 3=robotics".')
    return topic, name
