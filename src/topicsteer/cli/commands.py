"""The command-line application and its entry point."""

import sys
import warnings
from itertools import takewhile
from typing import Annotated

import typer

from topicsteer import __version__
from topicsteer.cli import ask, edit, fit, label
from topicsteer.cli.terminal import console, escape, notify

HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)
data = typer.Typer(help="Public corpora for experiments.", no_args_is_help=True)
data.command()(label.fetch)
app.add_typer(data, name="data")
for command in (fit.demo, fit.fit, fit.topics_file, fit.update, ask.topics, ask.predict, ask.explain, fit.evaluate):
    app.command()(command)
for command in (ask.report, ask.suggest, ask.audit, edit.edit, label.label):
    app.command()(command)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(f"topicsteer {__version__}")
        raise typer.Exit


@app.callback(help="Topics that follow your labels.")
def main_options(
    version: Annotated[bool, typer.Option("--version", callback=print_version, help="Print the version.")] = False,
) -> None:
    """Options before a command."""


def only_once(arguments: list[str]) -> None:
    """Refuse repeated options: the parser would drop all values but one."""
    names = [word.split("=")[0] for word in takewhile(lambda word: word != "--", arguments) if word.startswith("--")]
    for name in names:
        if names.count(name) > 1:
            hint = " Several labels per document go into one column." if name == "--labels" else ""
            raise ValueError(f"{name} is given twice, but only one value can be used.{hint}")


def main() -> None:
    """Run a command; an error in the user's input prints a message and exits with code 1."""
    try:
        only_once(sys.argv[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: notify(f"[yellow]warning:[/yellow] {escape(str(message))}")
            app()
    except (ValueError, OSError, ImportError, KeyError, MemoryError, TypeError) as error:
        message = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
        console.print(f"[red]error:[/red] {escape(str(message))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("interrupted")
        sys.exit(130)
