"""The commands that bring documents and labels together: label, data fetch."""

import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from topicsteer.cli.options import HELP, reads
from topicsteer.cli.terminal import read, say, working

if TYPE_CHECKING:
    from topicsteer.corpora import Documents, ReadOptions


@reads
def label(
    source: Annotated[Path | None, Argument(help=HELP["label"]["source"])] = None,
    *,
    reading: "ReadOptions",
    project: Annotated[Path | None, Option(help=HELP["label"]["project"])] = None,
    port: Annotated[int | None, Option(min=0, max=65535, help=HELP["label"]["port"])] = None,
    no_browser: Annotated[bool, Option("--no-browser", help=HELP["label"]["no_browser"])] = False,
    host: Annotated[str, Option(help=HELP["label"]["host"])] = "127.0.0.1",
    password: Annotated[str | None, Option(envvar="TOPICSTEER_PASSWORD", help=HELP["label"]["password"])] = None,
) -> None:
    """Label documents in the browser, watch the topics follow, correct them: the workbench."""
    try:
        from topicsteer.app.web.guard import check_address
        from topicsteer.app.web.routes import serve
        from topicsteer.app.workbench.workbench import Workbench, project_path
    except ImportError as error:
        raise ImportError(f"{error}. The workbench needs more packages: pip install 'topicsteer[app]'") from error

    check_address(host, password)
    path = project_path(source, project)
    if not path.exists():
        with working() as progress:
            documents = to_label(source, reading)
            progress("project", 0, None, f"{len(documents):,} documents")
            Workbench.make(path, documents, source=source)
        say(f"The project is {path}: documents, topics and labels are in this one file.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that no process and no folder stays,
    if hasattr(signal, "SIGHUP"):  # also when the terminal is closed
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    workbench = Workbench(path, source=source)

    def ready(address: str) -> None:
        say(workbench.notice or "The workbench is at this address; Ctrl-C ends it.")
        print(address, flush=True)
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    try:
        serve(workbench, host=host, port=port, password=password, ready=ready)
    except KeyboardInterrupt:
        say(f"Everything is in {path}.")
    finally:
        workbench.close()


def to_label(source: Path | None, reading: "ReadOptions") -> "Documents":
    """The documents of a new project; of the built-in corpus, with a few of its labels to begin with."""
    from topicsteer.corpora import load_docstrings

    if source is None:
        return load_docstrings().hide_labels(0.95)
    documents = read(source, reading)
    if reading.labels is None and reading.label_file is None and not source.is_dir() and all(documents.labels):
        # A column with a value in each row is a group rather than labels: nothing would be left to label.
        say("All documents have a value there: taken as groups, not labels. Name labels with --labels.")
        return read(source, replace(reading, labels=False), quiet=True)
    return documents


def fetch(
    name: Annotated[str, Argument(help=HELP["fetch"]["name"])],
    folder: Annotated[Path | None, Option(help=HELP["fetch"]["folder"])] = None,
) -> None:
    """Download a public corpus from its home, checked against a known hash."""
    from topicsteer.corpora import fetch

    with working():
        path = fetch(name, folder)
    say(f"{name} is in {path}.")
