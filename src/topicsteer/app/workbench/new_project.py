"""New projects from documents, with their labels, segmenter and embeddings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.text_features import choose_features
from topicsteer.app.workbench.text_rules import FILE
from topicsteer.corpora import Documents


def make_project(
    path: Path,
    documents: Documents,
    *,
    source: Path | None = None,
    path_separator: str | None = None,
    segmenter: str | None = None,
    embeddings: str | None = None,
) -> None:
    """Write a new project; labels of the documents become labels of the file, with a separator also a tree.

    The segmenter and the embeddings of the texts are for all fits of the project.
    """
    labels, forbidden = _by_row(documents.labels), _by_row(documents.forbidden)
    name = source.name if source else path.stem
    features = choose_features(path, documents, segmenter=segmenter, embeddings=embeddings)

    def prepare(project: Project) -> None:
        project.set(features)
        session = LabelSession(project)
        if path_separator is not None:
            session.change_settings(FILE + name, path_separator=path_separator)
        if labels or forbidden:
            session.import_labels(FILE + name, labels, forbidden, source=name, separator=path_separator)

    columns = {column: values for column, values in documents.columns.items() if column != embeddings}
    Project.create(path, replace(documents, columns=columns), source=source, prepare=prepare)


def _by_row(names: Sequence[Sequence[str]]) -> dict[int, list[str]]:
    """Return the names of each document that has any."""
    return {row: list(some) for row, some in enumerate(names) if some}
