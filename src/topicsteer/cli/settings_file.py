"""Options of commands from a file: ``topicsteer.toml`` in the current folder, or the file of --config.

A table of the file has the options of one command. Options above the first table are for all commands that have them.
The command line has the last word.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "topicsteer.toml"
# Options before the command, which a file may set too.
GLOBAL = ("log",)


def options(group: Any) -> dict[str, dict[str, Any]]:
    """The options of each command by their names without dashes: "label-file" is --label-file."""
    found = {}
    for name, command in _commands(group):
        given = [parameter for parameter in command.params if parameter.param_type_name == "option"]
        found[name] = {_long(option): option for option in given if option.name != "help"}
    return found


def read_settings(path: Path, group: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Defaults of the parameters of each command, and settings of the program; a wrong name or value is an error.

    Parameters
    ----------
    path : Path
    group : Group
        The command line application.
    """
    known = options(group)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not valid TOML ({error})") from None
    tables = dict(_tables({name: value for name, value in content.items() if isinstance(value, dict)}, known))
    shared = {_name(name): value for name, value in content.items() if not isinstance(value, dict)}
    everywhere = {*GLOBAL, *(option for given in known.values() for option in given)}
    for name in shared:
        if name not in everywhere:
            raise ValueError(f"{path}: no command has an option {name!r}{_near(name, everywhere)}")
    found: dict[str, Any] = {}
    for name in tables:
        if name not in known:
            raise ValueError(f"{path}: there is no command {name!r}{_near(name, known)}")
    for command, given in known.items():
        own = {_name(name): value for name, value in tables.get(command, {}).items()}
        for name in own:
            if name not in given:
                raise ValueError(f"{path}: {command} has no option {name!r}{_near(name, given)}")
        chosen = {name: value for name, value in shared.items() if name in given} | own
        *groups, last = command.split(".")
        inner = found
        for name in groups:
            inner = inner.setdefault(name, {})
        inner[last] = {given[name].name: _checked(path, command, given[name], chosen[name]) for name in chosen}
    return found, {name: shared[name] for name in GLOBAL if name in shared}


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """All commands; a command of a group has the name of the group before its own: "data.fetch"."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name}.")
        else:
            yield f"{before}{name}", command


def _tables(content: Mapping[str, Any], known: Iterable[str], before: str = "") -> Iterator[tuple[str, Any]]:
    """All tables by the names of their commands."""
    for name, table in content.items():
        if isinstance(table, dict) and any(command.startswith(f"{before}{name}.") for command in known):
            yield from _tables(table, known, f"{before}{name}.")
        else:
            yield f"{before}{name}", table


def _checked(path: Path, command: str, option: Any, value: object) -> object:
    """A value of the type that an option has; its command checks the rest."""
    values = value if option.multiple and isinstance(value, list) else [value]
    expected = "true or false" if option.is_flag else "a text or a number"
    for one in values:
        if isinstance(one, bool) != bool(option.is_flag) or not isinstance(one, bool | str | int | float):
            shown = str(one).lower() if isinstance(one, bool) else repr(one)
            raise ValueError(f"{path}: {_long(option)} of {command} is {shown}; expected {expected}")
    return list(values) if option.multiple else value


def _long(option: Any) -> str:
    return str(max(option.opts, key=len)).lstrip("-")


def _name(name: str) -> str:
    return name.replace("_", "-")


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
