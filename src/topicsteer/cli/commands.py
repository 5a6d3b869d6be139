"""The command-line application and its entry point."""

import io
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from topicsteer import __version__
from topicsteer.cli import ask, demo, edit, findings, fit, label, names, shares
from topicsteer.cli.terminal import escape, logging_json, notify
from topicsteer.system.failures import Kind, failure

# Exit codes of failures; 0 is success, and 2 a wrong option.
CODES = {Kind.INPUT: 1, Kind.DEFECT: 3, Kind.MACHINE: 4}
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Options with several values.
REPEATABLE = {"--by", "--coder", "--free-in", "--text"}
HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)
data = typer.Typer(help="Public corpora for experiments.", no_args_is_help=True)
data.command()(label.fetch)
app.add_typer(data, name="data")
app.command()(demo.demo)
for command in (fit.fit, fit.topics_file, fit.update, ask.topics, ask.predict, ask.explain, fit.evaluate):
    app.command()(command)
app.command("map")(ask.document_map)
for command in (ask.report, shares.prevalence, findings.coders, findings.methods):
    app.command()(command)
for command in (ask.suggest, ask.audit, edit.edit, edit.split, names.name, label.label):
    app.command()(command)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"topicsteer {__version__}")
        raise typer.Exit


class LogFormat(StrEnum):
    """Formats of the messages on standard error."""

    text = "text"
    json = "json"


@app.callback(help="Topics that follow your labels.")
def main_options(
    version: Annotated[bool, typer.Option("--version", callback=print_version, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    log: Annotated[LogFormat, typer.Option("--log", help="Messages as text, or as one JSON object per line.")] = (
        LogFormat.text
    ),
    config: Annotated[
        Path | None, typer.Option("--config", help="File with options. Default: topicsteer.toml, if it exists.")
    ] = None,
) -> None:
    """Options before a command, which may stand anywhere; :func:`main` reads them first."""


def only_once(arguments: list[str]) -> None:
    """Refuse options that are given twice: the parser would drop all values but one."""
    names = [word.split("=")[0] for word in takewhile(lambda word: word != "--", arguments) if word.startswith("--")]
    for name in names:
        if names.count(name) > 1 and name not in REPEATABLE:
            hint = " Several columns of labels: --labels tea,coffee or --labels 'cs.*'." if name == "--labels" else ""
            raise ValueError(f"{name} is given twice, but only one value can be used.{hint}")


def main() -> None:
    """Run a command; an error prints a sentence and exits with a code of :data:`CODES`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # half of a surrogate pair must not end a command
            stream.reconfigure(errors="backslashreplace")
    given, words = first_options(sys.argv[1:])
    debug, began, as_json = "--debug" in given, time.monotonic(), given.get("--log") == "json"
    logging.getLogger("topicsteer").setLevel(logging.DEBUG if debug else logging.NOTSET)
    with ExitStack() as stack:
        stack.enter_context(logging_json(as_json))
        try:
            only_once(sys.argv[1:])
            settings, program = file_settings(given.get("--config"), words, as_json)
            as_json = as_json or program.get("log") == "json"
            stack.enter_context(logging_json(as_json))
            code = run(given, words, settings, as_json)
        except Exception as error:
            code = report_failure(error, debug)
        if as_json:
            command = next((word for word in words if word in get_command(app).commands), "topicsteer")  # type: ignore[attr-defined]
            seconds = round(time.monotonic() - began, 3)
            notify(f"{command} ended", level="error" if code else "info", code=code, seconds=seconds)
    if code:
        sys.exit(code)


def first_options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options before a command, wherever they stand, and all other words."""
    words, rest = list(takewhile(lambda word: word != "--", arguments)), []
    after, given = arguments[len(words) :], dict[str, str]()
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--debug":
            given[word] = ""
        elif name in ("--log", "--config") and (equals or words):
            given[name] = value if equals else words.pop(0)
        else:
            rest.append(word)
    return given, rest + after


def file_settings(path: str | None, words: list[str], as_json: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of ``topicsteer.toml`` or of another file, and a note on the settings of this command."""
    from topicsteer.cli.settings_file import NAME, read_settings

    if path is None and not os.path.isfile(NAME):
        return {}, {}
    file, group = Path(NAME if path is None else path), get_command(app)
    settings, program = read_settings(file, group)
    as_json = as_json or program.get("log") == "json"
    name = next((word for word in words if word in settings), "")
    used = settings.get(name, {})
    quiet = bool(used.get("quiet")) or bool({"-q", "--quiet"} & set(words)) or not used
    names = ", ".join(str(option).removeprefix("reading_").replace("_", "-") for option in used)
    with logging_json(as_json):
        notify(f"[dim]Settings from {escape(str(file))}: {escape(names)}[/dim]", quiet)
    return settings, program


def run(given: Mapping[str, str], words: list[str], settings: dict[str, Any], as_json: bool) -> int:
    """Run the command of these words, with the settings of a file as defaults; returns the exit code."""
    front = ["--log", given["--log"]] if "--log" in given else []  # the parser checks its value
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: show_warning(message)
        try:
            code = app([*front, *words], default_map=settings, standalone_mode=not as_json)
        except SystemExit as end:
            code = end.code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception as error:  # a wrong command line, if the parser leaves its message to the log
            if not as_json or not hasattr(error, "format_message"):
                raise
            notify(escape(error.format_message()), level="error")
            code = getattr(error, "exit_code", 2)
        finally:
            sys.stdout.flush()  # a full disk is an error of this command
        notify("interrupted", quiet=code != INTERRUPTED)
    return code if isinstance(code, int) else 0


def show_warning(message: Warning | str) -> None:
    """Print a warning as one line."""
    notify(f"[yellow]warning:[/yellow] {escape(str(message))}", level="warning")


def report_failure(error: Exception, debug: bool) -> int:
    """Print one sentence about an exception, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has ended
        abandon_output()
        return CODES[Kind.INPUT]
    if debug:
        traceback.print_exception(error)
    found = failure(error)
    more = "" if debug or found.kind is not Kind.DEFECT else ". Run it again with --debug, and report the traceback"
    notify(f"[red]error:[/red] {escape(found.sentence + more)}", level="error")
    abandon_output()
    return CODES[found.kind]


def abandon_output() -> None:
    """Discard output that cannot be written, so that Python does not complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
