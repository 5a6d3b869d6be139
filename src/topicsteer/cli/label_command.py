"""The command for labelling."""

import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from topicsteer.cli.options import HELP, Embeddings, PathSeparator, TopicsFile, World, reads
from topicsteer.cli.reading import named_embeddings, read
from topicsteer.cli.terminal import escape, notify, working
from topicsteer.system.files import Scratch

if TYPE_CHECKING:
    from topicsteer.corpora import Documents, ReadOptions


@reads
def label(
    source: Annotated[Path | None, Argument(help=HELP["label"]["source"])] = None,
    *,
    reading: "ReadOptions",
    topics: TopicsFile = None,
    world: World = None,
    path_separator: PathSeparator = None,
    embeddings: Embeddings = None,
    segmenter: Annotated[str | None, Option(help=HELP["label"]["segmenter"])] = None,
    project: Annotated[Path | None, Option(help=HELP["label"]["project"])] = None,
    port: Annotated[int | None, Option(min=0, max=65535, help=HELP["label"]["port"])] = None,
    no_browser: Annotated[bool, Option("--no-browser", help=HELP["label"]["no_browser"])] = False,
    host: Annotated[str, Option(help=HELP["label"]["host"])] = "127.0.0.1",
    password: Annotated[str | None, Option(envvar="TOPICSTEER_PASSWORD", help=HELP["label"]["password"])] = None,
) -> None:
    """Open the workbench: label documents in the browser, watch the topics follow, and correct them."""
    try:
        from topicsteer.app.web.guard import check_address
        from topicsteer.app.web.routes import Server
        from topicsteer.app.workbench.workbench import Workbench, project_path
    except ImportError as error:
        packages = "starlette uvicorn websockets"
        raise ImportError(f"{error}. The workbench needs more packages: pip install {packages}") from error

    check_address(host, password)
    path = project_path(source, project)
    if not path.exists():
        with working() as progress:
            named_embeddings(embeddings)  # refused before the work if it cannot be used
            documents = to_label(source, reading)
            progress("project", 0, None, f"{len(documents):,} documents")
            features = {"segmenter": segmenter, "embeddings": embeddings}
            Workbench.make(path, documents, source=source, path_separator=path_separator, **features)
        notify(f"The project file {path} holds documents, topics and labels.")
    elif embeddings is not None or segmenter is not None:
        raise BadParameter(f"{path} has its own terms and embeddings: choose others in a new project, with --project.")
    end_in_order()
    workbench = Workbench(path, source=source)
    if topics is not None:
        notify(escape(workbench.import_topics("command line", topics, topics.name)))
        if workbench.views.fitted is None:
            workbench.fit()  # words are enough for a first look
    if world is not None:
        workbench.session.change_settings(world=world)

    opener = Scratch()

    def ready(address: str, look: str) -> None:
        notify(workbench.notice or "The workbench runs at this address; press Ctrl-C to stop it.")
        print(address, flush=True)
        notify(f"For people who only look: {look}")
        if not no_browser:
            open_privately(address, opener.path)

    def renewed(address: str) -> None:
        notify(f"Opened. For another browser: {address}")

    try:
        Server(workbench, host, port, password, ready, renewed).run()
    except KeyboardInterrupt:
        notify(f"All labels are saved in {path}.")
    finally:
        workbench.close()
        opener.remove()


def open_privately(address: str, folder: Path) -> None:
    """Open an address in the browser through a file that only this user can read: others can see command lines."""
    import webbrowser

    from topicsteer.system.templates import render

    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(render("app/web/templates/open.html", refresh=f"0; url={address}"))
    webbrowser.open(page.as_uri())


def end_in_order() -> None:
    """Exit on a terminated or closed terminal, so that no process and no temporary folder is left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def to_label(source: Path | None, reading: "ReadOptions") -> "Documents":
    """Documents for a new project; the built-in corpus keeps a few of its labels."""
    from topicsteer.corpora import load_docstrings

    if source is None:
        return load_docstrings().hide_labels(0.95)
    documents = read(source, reading)
    if reading.labels is None and reading.label_file is None and not source.is_dir() and all(documents.labels):
        # A column with a value in every row would leave nothing to label.
        notify("The label column has a value in every row, so it is used for groups. Use --labels to keep it.")
        return read(source, replace(reading, labels=False), quiet=True)
    return documents
