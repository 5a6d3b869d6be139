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
from topicsteer.cli import ask, edit, findings, fit, label, shares
from topicsteer.cli.terminal import console, escape, notify
from topicsteer.system.failures import Kind, failure

# Exit codes of failures; 0 is success, and 2 a wrong option.
CODES = {Kind.INPUT: 1, Kind.DEFECT: 3, Kind.MACHINE: 4}
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Options with several values.
REPEATABLE = {"--by", "--coder", "--free-in"}
HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)
data = typer.Typer(help="Public corpora for experiments.", no_args_is_help=True)
data.command()(label.fetch)
app.add_typer(data, name="data")
for command in (fit.demo, fit.fit, fit.topics_file, fit.update, ask.topics, ask.predict, ask.explain, fit.evaluate):
    app.command()(command)
app.command("map")(ask.document_map)
for command in (ask.report, shares.prevalence, findings.coders, findings.methods):
    app.command()(command)
for command in (ask.suggest, ask.audit, edit.edit, edit.split, label.label):
    app.command()(command)


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
    """Options before a command."""


def only_once(arguments: list[str]) -> None:
    """Refuse options that are given twice: the parser would drop all values but one."""
    names = [word.split("=")[0] for word in takewhile(lambda word: word != "--", arguments) if word.startswith("--")]
    for name in names:
        if names.count(name) > 1 and name not in REPEATABLE:
            hint = " Several labels per document go into one column." if name == "--labels" else ""
            raise ValueError(f"{name} is given twice, but only one value can be used.{hint}")


def main() -> None:
    """Run a command; an error prints a sentence and exits with a code of :data:`CODES`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # half of a surrogate pair must not end a command
            stream.reconfigure(errors="backslashreplace")
    arguments = list(takewhile(lambda word: word != "--", sys.argv[1:]))
    debug = "--debug" in arguments
    sys.argv[1:] = [word for word in arguments if word != "--debug"] + sys.argv[1 + len(arguments) :]
    logging.getLogger("topicsteer").setLevel(logging.DEBUG if debug else logging.NOTSET)
    try:
        only_once(sys.argv[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: notify(f"[yellow]warning:[/yellow] {escape(str(message))}")
            try:
                app()
            except SystemExit as end:
                notify("interrupted", quiet=end.code != INTERRUPTED)
                raise
            finally:
                sys.stdout.flush()  # a full disk is an error of this command
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has ended
        abandon_output()
        sys.exit(CODES[Kind.INPUT])
    except Exception as error:
        if debug:
            traceback.print_exc()
        found = failure(error)
        more = "" if debug or found.kind is not Kind.DEFECT else ". Run it again with --debug, and report the traceback"
        console.print(f"[red]error:[/red] {escape(found.sentence + more)}", highlight=False, soft_wrap=True)
        abandon_output()
        sys.exit(CODES[found.kind])


def abandon_output() -> None:
    """Discard output that cannot be written, so that Python does not complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
