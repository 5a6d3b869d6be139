"""Write the pages of docs/reference that are made from code: ``python docs/scripts/make_reference.py``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import typer

from topicsteer import TopicModel
from topicsteer.app.workbench.session import DEFAULTS
from topicsteer.cli import app
from topicsteer.cli.fit import fit

FOLDER = Path(__file__).parents[1] / "reference"
PAGE = FOLDER / "cli.md"
SETTINGS_PAGE = FOLDER / "settings.md"
SETTINGS_HEAD = """\
# Settings

What can be set, under which name, and what holds if it is not. Everything else is chosen from the labels.

| | `TopicModel(...)` | `topicsteer fit` | workbench | default |
|---|---|---|---|---|
"""
# What it is, the argument of TopicModel, the option of `fit`, the setting of the workbench.
SETTINGS = [
    ("topics for what nobody named", "free_topics", "free", "free topics"),
    ("names and order of the known topics", "topics", None, None),
    ("a document's labels are all its topics", "complete", "incomplete", "complete"),
    ("how labels reach unlabelled documents", "guidance", None, None),
    ("words that a topic must have", "keywords", None, None),
    ("words that a topic must not have", "banned", None, None),
    ("what a topic is about", "descriptions", None, None),
    ("how texts become a matrix", "vectorizer", None, None),
    ("the factorisation", "estimator", None, None),
    ("seed", "random_state", "seed", None),
    ("threads, None for all cores", "threads", "threads", None),
]
BY_HAND = {"keywords", "banned", "descriptions"}  # of the workbench: on the page of the topic
HEAD = """\
# Command line

`topicsteer --help` and `topicsteer COMMAND --help` say the same as this page, which is made from them.
`python -m topicsteer` is another way to call it.

Results go to standard output, everything else to standard error. The exit code is 0 if all went well, 1 if something
is wrong with the input (a message says what), 2 if the command itself is mistyped, and 130 after Ctrl-C.
"""


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
        """Whether it is given by its place and not by its name."""
        return isinstance(self.info, typer.models.ArgumentInfo)


def reference() -> str:
    """The whole page."""
    return HEAD + "".join(section(words, function) for words, function in commands(app, "topicsteer"))


def settings() -> str:
    """The page of settings; a default that is not the same everywhere is an error."""
    python, command = inspect.signature(TopicModel).parameters, inspect.signature(fit).parameters
    missing = set(python) - {row[1] for row in SETTINGS}
    if missing:
        raise ValueError(f"settings without a row: {missing}")
    rows = []
    for what, name, option, setting in SETTINGS:
        default = python[name].default
        others = [] if option is None else [command[option].default]
        others = [not other if option == "incomplete" else other for other in others]
        others += [] if setting is None else [DEFAULTS[setting]]
        if any(str(other) != str(default) for other in others):
            raise ValueError(f"{name}: {default} here and {others} elsewhere")
        page = setting or ("on the topic" if name in BY_HAND else "")
        dashed = f"`--{option}`" if option else ""
        rows.append(f"| {what} | `{name}` | {dashed} | {page} | `{default!r}` |\n")
    return SETTINGS_HEAD + "".join(rows)


def commands(group: typer.Typer, words: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command under a group, with the words that call it."""
    for command in group.registered_commands:
        if command.callback is not None and not command.hidden:
            yield f"{words} {command.name or command.callback.__name__.replace('_', '-')}", command.callback
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from commands(inner.typer_instance, f"{words} {inner.name}")


def section(words: str, function: Callable[..., Any]) -> str:
    """One command: what it does, how it is called, its arguments and options."""
    found = list(parameters(function))
    arguments = [p for p in found if p.is_argument]
    options = [p for p in found if not p.is_argument]
    call = " ".join([words, *map(place, arguments), *(["[OPTIONS]"] if options else [])])
    rows = [f"| `{p.name.upper()}` | {cell(p.info.help or '')} | |" for p in arguments]
    rows += [f"| {spelling(p)} | {cell(p.info.help or '')} | {default(p)} |" for p in options]
    table = "\n".join(["| | meaning | default |", "|---|---|---|", *rows])
    return f"\n## {words}\n\n{inspect.getdoc(function)}\n\n```text\n{call}\n```\n\n{table}\n"


def parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """What a command takes, from its signature."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])[:2]
        kinds = [k for k in get_args(kind) if k is not NoneType] or [kind]  # X | None
        required = parameter.default is parameter.empty
        given = None if required else parameter.default
        if not getattr(info, "hidden", False):
            yield Parameter(name, kinds[0], info, given, required)


def place(argument: Parameter) -> str:
    """An argument in the line that calls a command, in brackets if it may be left out."""
    return argument.name.upper() if argument.required else f"[{argument.name.upper()}]"


def names(option: Parameter) -> list[str]:
    """The names of an option; typer keeps the first of them in the place of a default."""
    first = [option.info.default] if isinstance(option.info.default, str) else []
    return [*first, *(option.info.param_decls or ())]


def spelling(option: Parameter) -> str:
    """The names of an option, and what it takes."""
    dashed = option.name.replace("_", "-")
    own = [f"--{dashed}", f"--no-{dashed}"] if option.kind is bool else [f"--{dashed}"]
    shown = ", ".join(f"`{name}`" for name in names(option) or own)
    if option.kind is bool:
        return shown
    words = {int: "number", float: "number", Path: "path", str: "text"}
    return f"{shown} *{words.get(option.kind) or ' or '.join(choice.value for choice in option.kind)}*"


def default(option: Parameter) -> str:
    """What holds if an option is not given; empty if that is nothing."""
    if option.default is None or (option.kind is bool and names(option)):
        return ""
    if option.kind is bool:
        return f"`--{'' if option.default else 'no-'}{option.name.replace('_', '-')}`"
    return f"`{getattr(option.default, 'value', option.default)}`"


def cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    SETTINGS_PAGE.write_text(settings(), encoding="utf-8")
