"""The command-line application and its entry point."""

import io
import logging
import os
import sys
import traceback
import warnings
from itertools import takewhile
from typing import Annotated

import typer

from topicsteer import __version__
from topicsteer.cli.finding_commands import coders, prevalence
from topicsteer.cli.fit_commands import demo, evaluate, fit, update
from topicsteer.cli.label_command import label
from topicsteer.cli.model_commands import audit, edit, explain, predict, report, suggest, topics
from topicsteer.cli.terminal import escape, notify
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
) -> None:
    """Options before a command; ``--debug`` may stand anywhere, because :func:`main` reads it first."""


def only_once(arguments: list[str]) -> None:
    """Refuse options that are given twice: the parser would drop all values but one."""
    names = [word.split("=")[0] for word in arguments if word.startswith("--")]
    for name in names:
        if names.count(name) > 1 and name not in REPEATABLE:
            hint = " Several columns of labels: --labels tea,coffee or --labels 'cs.*'." if name == "--labels" else ""
            raise ValueError(f"{name} is given twice, but only one value can be used.{hint}")


def main() -> None:
    """Run a command; an error prints a sentence and exits with a code of :data:`CODES`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # half of a surrogate pair must not end a command
            stream.reconfigure(errors="backslashreplace")
    words = list(takewhile(lambda word: word != "--", sys.argv[1:]))
    debug, after = "--debug" in words, sys.argv[1 + len(words) :]
    logging.getLogger("topicsteer").setLevel(logging.DEBUG if debug else logging.NOTSET)
    try:
        only_once(words)
        code = run([word for word in words if word != "--debug"] + after)
    except Exception as error:
        code = report_failure(error, debug)
    if code:
        sys.exit(code)


def run(words: list[str]) -> int:
    """Run the command of these words, and return the exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: notify(f"[yellow]warning:[/yellow] {escape(str(message))}")
        try:
            code = app(words)
        except SystemExit as end:
            code = end.code
        except KeyboardInterrupt:
            code = INTERRUPTED
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
    notify(f"[red]error:[/red] {escape(found.sentence + more)}")
    abandon_output()
    return CODES[found.kind]


def abandon_output() -> None:
    """Discard output that cannot be written, so that Python does not complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
