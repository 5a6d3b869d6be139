"""How the texts of a project become features: its segmenter, and its embeddings next to the project file.

Both are chosen on the command line, never by a page: they name files of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from topicsteer.app.workbench.project import Project
from topicsteer.corpora import Documents
from topicsteer.guidance.embeddings import embed
from topicsteer.model.encoders import MODEL2VEC, Model2Vec, VectorFile, embeddings_named
from topicsteer.system.files import replacing
from topicsteer.system.types import Array
from topicsteer.text.segmenters import segmenter_of

# Value of the setting "embeddings" for vectors in the file next to the project.
VECTORS = "vectors"


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """The segmenter of a project, the name of its embeddings for a fit, and its vectors if they are in a file."""

    segmenter: str | None = None
    embeddings: str | None = None
    vectors: Array | None = None

    @classmethod
    def of(cls, project: Project) -> TextFeatures:
        """The features that were chosen for a project, which is closed if they cannot be used."""
        try:
            return cls._of(project)
        except (ValueError, ImportError):
            project.close()
            raise

    @classmethod
    def _of(cls, project: Project) -> TextFeatures:
        stored = project.settings()
        segmenter, name = stored.get("segmenter"), stored.get("embeddings")
        if segmenter is not None:
            segmenter_of(str(segmenter))
        if name is None:
            return cls(segmenter)
        if name != VECTORS:
            named = embeddings_named(f"{MODEL2VEC}{str(name).removeprefix(MODEL2VEC)}")
            return cls(segmenter, named.source if isinstance(named, Model2Vec) else None)
        file = VectorFile(vector_file(project.path))
        file.check_rows(len(project))
        return cls(segmenter, file.source, file.vectors)


def vector_file(project: Path) -> Path:
    """The file with the vectors of a project."""
    return project.with_name(f"{project.name}.npy")


def choose_features(
    path: Path, documents: Documents, *, segmenter: str | None = None, embeddings: str | None = None
) -> dict[str, str]:
    """Return the settings for a new project; vectors are written to a file next to it.

    Parameters
    ----------
    path : Path
        The project.
    documents : Documents
        The documents with all their columns.
    segmenter, embeddings : str, optional
        As on the command line.
    """
    chosen = {}
    if segmenter is not None:
        segmenter_of(segmenter)
        chosen["segmenter"] = segmenter
    if embeddings is None:
        return chosen
    named = embeddings_named(embeddings)
    if isinstance(named, Model2Vec):
        return chosen | {"embeddings": named.source}
    vectors = embed(named.rows(documents), documents.texts)
    with replacing(vector_file(path)) as part, part.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)
    return chosen | {"embeddings": VECTORS}
