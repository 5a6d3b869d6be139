"""The command-line application and its entry point."""

import io
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from itertools import takewhile
from typing import Annotated, Literal

import typer
from typer.main import get_command

from topicsteer import __version__
from topicsteer.cli.finding_commands import coders, prevalence
from topicsteer.cli.fit_commands import demo, evaluate, fit, update
from topicsteer.cli.label_command import label
from topicsteer.cli.model_commands import audit, edit, explain, predict, report, suggest, topics
from topicsteer.cli.terminal import escape, logging_json, notify
from topicsteer.system.failures import Kind, failure

# Exit codes of failures; 0 is success, and 2 a wrong option.
CODES = {Kind.INPUT: 1, Kind.DEFECT: 3, Kind.MACHINE: 4}
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Options with several values.
REPEATABLE = {"--by", "--coder", "--text"}
HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)
for command in (fit, report, evaluate, predict, prevalence, suggest, label, coders):
    app.command()(command)
for command in (topics, explain, audit, edit, update, demo):
    app.command(rich_help_panel="More")(command)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"topicsteer {__version__}")
        raise typer.Exit


@app.callback(help="Topics that follow your labels.")
def main_options(
    version: Annotated[bool, typer.Option("--version", callback=print_version, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    log: Annotated[Literal["text", "json"], typer.Option(help="Messages: text, or one JSON object per line.")] = "text",
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
    with logging_json(as_json):
        try:
            only_once(sys.argv[1:])
            code = run(given, words, as_json)
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
        elif name == "--log" and (equals or words):
            given[name] = value if equals else words.pop(0)
        else:
            rest.append(word)
    return given, rest + after


def run(given: Mapping[str, str], words: list[str], as_json: bool) -> int:
    """Run the command of these words, and return the exit code."""
    front = ["--log", given["--log"]] if "--log" in given else []  # the parser checks its value
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: notify(
            f"[yellow]warning:[/yellow] {escape(str(message))}", level="warning"
        )
        try:
            code = app([*front, *words], standalone_mode=not as_json)
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
