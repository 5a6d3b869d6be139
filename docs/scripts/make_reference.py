"""Generate the command line and settings pages of docs/reference: ``python docs/scripts/make_reference.py``."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import typer

from topicsteer import TopicModel
from topicsteer.app.workbench.project import ProjectSettings
from topicsteer.cli import app
from topicsteer.cli.commands import fit
from topicsteer.model.settings import DEFAULT_FREE, WORDS

FOLDER = Path(__file__).parents[1] / "reference"
PAGE = FOLDER / "cli.md"
SETTINGS_PAGE = FOLDER / "settings.md"
SETTINGS_HEAD = """\
# Settings

All settings with their names and defaults. Everything else is chosen from the labels.

| setting | `TopicModel(...)` | `topicsteer fit` | workbench | default |
|---|---|---|---|---|
"""
# Description, argument of TopicModel, option of `fit`, setting of the workbench.
SETTINGS = [
    ("number of free topics, for subjects without a label", "free_topics", "free", "free topics"),
    ("open: documents may have none of the known topics; closed: each has one", "world", "world", "world"),
    ("names and order of the known topics", "topics", None, None),
    ("parent of each topic below another", "parents", None, None),
    ("separator of labels that are paths in a tree of topics", "path_separator", "path_separator", None),
    ("labels are complete: a labelled document has no other known topics", "complete", "incomplete", "complete"),
    ("keywords that a topic must have", "keywords", None, None),
    ("keywords that a topic must not have", "banned", None, None),
    ("description of a topic", "descriptions", None, None),
    ("conversion of texts to a matrix", "vectorizer", None, None),
    ("meaning of words, from built-in word vectors", "embeddings", "embeddings", None),
    ("random seed", "random_state", "seed", None),
    ("number of threads, None for all cores", "threads", "threads", None),
]
# Settings that the workbench has on the page of each topic.
ON_THE_TOPIC = {"keywords", "banned", "descriptions"}
HEAD = """\
# Command line

This page is generated from `topicsteer --help` and `topicsteer COMMAND --help`. `python -m topicsteer` runs the same
program.

Results go to standard output, everything else to standard error. A failed command prints
one sentence and ends with an [exit code](exit-codes.md); `--debug` adds the traceback.

## Options of several commands

"""
# An option of at least this many commands stands in the first table, and in the others by its name alone.
SEVERAL = 3


# Defaults of settings for which None stands for a value, and shows that the user did not choose one.
MEANING_OF_NONE = {"free_topics": DEFAULT_FREE, "embeddings": WORDS}


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command."""

    name: str
    kind: Any
    info: Any
    default: Any
    required: bool

    @property
    def is_argument(self) -> bool:
        """Whether it is positional."""
        return isinstance(self.info, typer.models.ArgumentInfo)


def reference() -> str:
    """Return the page of commands, with the options of several commands in one table."""
    found = list(commands(app, "topicsteer"))
    counts = Counter(row(option) for _, function in found for option in options(function))
    shared = {line: None for _, function in found for line in map(row, options(function)) if counts[line] >= SEVERAL}
    table = "\n".join(["| | meaning | default |", "|---|---|---|", *shared])
    return HEAD + f"{table}\n" + "".join(section(words, function, set(shared)) for words, function in found)


def settings() -> str:
    """Return the page of settings; raise ValueError if a default is not the same everywhere."""
    python, command = inspect.signature(TopicModel).parameters, inspect.signature(fit).parameters
    missing = set(python) - {row[1] for row in SETTINGS}
    if missing:
        raise ValueError(f"settings without a row: {missing}")
    rows = []
    for description, name, option, setting in SETTINGS:
        default = MEANING_OF_NONE.get(name, python[name].default)
        others = [] if option is None else [MEANING_OF_NONE.get(name, command[option].default)]
        others = [not other if option == "incomplete" else other for other in others]
        others += [] if setting is None else [getattr(ProjectSettings(), setting.replace(" ", "_"))]
        if any(str(other) != str(default) for other in others):
            raise ValueError(f"{name}: the default is {default} in TopicModel, and {others} elsewhere")
        page = setting or ("on the topic" if name in ON_THE_TOPIC else "")
        dashes = f"`--{option.replace('_', '-')}`" if option else ""
        rows.append(f"| {description} | `{name}` | {dashes} | {page} | `{default!r}` |\n")
    return SETTINGS_HEAD + "".join(rows)


def commands(group: typer.Typer, words: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every command of a group with its full name."""
    for command in group.registered_commands:
        if command.callback is not None and not command.hidden:
            yield f"{words} {command.name or command.callback.__name__.replace('_', '-')}", command.callback
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from commands(inner.typer_instance, f"{words} {inner.name}")


def section(words: str, function: Callable[..., Any], shared: set[str]) -> str:
    """Return the section of one command: description, usage, arguments, own options, and names of shared ones."""
    arguments = [parameter for parameter in parameters(function) if parameter.is_argument]
    call = " ".join([words, *map(place, arguments), "[OPTIONS]"])
    rows = [f"| `{argument.name.upper()}` | {cell(argument.info.help or '')} | |" for argument in arguments]
    rows += [line for line in map(row, options(function)) if line not in shared]
    table = "\n".join(["| | meaning | default |", "|---|---|---|", *rows])
    common = ", ".join(f"`{dashed(option)}`" for option in options(function) if row(option) in shared)
    last = f"\nShared options: {common}.\n" if common else ""
    return f"\n## {words}\n\n{inspect.getdoc(function)}\n\n```text\n{call}\n```\n\n{table}\n{last}"


def options(function: Callable[..., Any]) -> list[Parameter]:
    """Return the options of a command."""
    return [parameter for parameter in parameters(function) if not parameter.is_argument]


def row(option: Parameter) -> str:
    """Return the row of an option in a table."""
    return f"| {spelling(option)} | {cell(option.info.help or '')} | {default(option)} |"


def dashed(option: Parameter) -> str:
    """Return the first name of an option."""
    return (names(option) or [f"--{option.name.replace('_', '-')}"])[0]


def parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield the parameters of a command from its signature."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])[:2]
        kinds = [k for k in get_args(kind) if k is not NoneType] or [kind]  # X | None
        required = parameter.default is parameter.empty
        given = None if required else parameter.default
        if not getattr(info, "hidden", False):
            yield Parameter(name, kinds[0], info, given, required)


def place(argument: Parameter) -> str:
    """Return an argument as the usage line shows it, in brackets if it is optional."""
    return argument.name.upper() if argument.required else f"[{argument.name.upper()}]"


def names(option: Parameter) -> list[str]:
    """Return the names of an option; typer keeps the first one as the default."""
    first = [option.info.default] if isinstance(option.info.default, str) else []
    return [*first, *(option.info.param_decls or ())]


def spelling(option: Parameter) -> str:
    """Return the names of an option with the type of its value."""
    plain = option.name.replace("_", "-")
    own = [f"--{plain}", f"--no-{plain}"] if option.kind is bool else [f"--{plain}"]
    shown = ", ".join(f"`{name}`" for name in names(option) or own)
    if option.kind is bool:
        return shown
    words = {int: "number", float: "number", Path: "path", str: "text", list[str]: "text, may be repeated"}
    return f"{shown} *{words.get(option.kind) or ' or '.join(get_args(option.kind))}*"


def default(option: Parameter) -> str:
    """Return the default of an option, or an empty string."""
    if option.default is None or (option.kind is bool and names(option)):
        return ""
    if option.kind is bool:
        return f"`--{'' if option.default else 'no-'}{option.name.replace('_', '-')}`"
    return f"`{getattr(option.default, 'value', option.default)}`"


def cell(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    SETTINGS_PAGE.write_text(settings(), encoding="utf-8")
