"""The process that lays out the document map: ``python -m topicsteer.app.workbench.map_process PROJECT FOLDER``.

It reads the rows of the documents from ``rows.npy`` in the folder, and writes their places to ``places.npy``. The
places depend on the texts only, so points do not move when labels change. Progress and the end are lines of JSON on
standard output.
"""

import os
import sys
from pathlib import Path
from typing import TextIO

import msgspec
import numpy as np

from topicsteer.analysis import document_map as maps
from topicsteer.app.workbench.project import read_documents
from topicsteer.text import TextVectorizer


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the process: documents that have a place, or the end with the width of the map, or with an error."""

    done: int = 0
    total: int = 0
    aspect: float = 0.0
    error: str = ""


read_line = msgspec.json.Decoder(Line).decode


def make_layout(project: Path, folder: Path, out: TextIO) -> None:
    """Lay out the documents of a project; errors are reported."""

    def send(line: Line) -> None:
        out.write(msgspec.json.encode(line).decode() + "\n")
        out.flush()

    try:
        rows = np.load(folder / "rows.npy", allow_pickle=False)
        texts = read_documents(project).texts
        send(Line(0, len(rows)))
        X = TextVectorizer().fit_transform([texts[i] for i in rows])
        points = maps.features(maps.latent_semantics(X))
        places, aspect = maps.lay_out(points, progress=lambda _, done, total, __: send(Line(done, total or 0)))
        np.save(folder / "places.npy", places)
        send(Line(len(rows), len(rows), aspect))
    except Exception as error:  # any error is reported: the workbench goes on without a map
        send(Line(error=f"{error}" or type(error).__name__))


def main() -> None:
    """Lay out the documents; the output of libraries goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(10)  # people who label have priority
    make_layout(Path(sys.argv[1]), Path(sys.argv[2]), out)


if __name__ == "__main__":
    main()
