"""Compile all kernels, also the kernels of UMAP, and keep the machine code. Otherwise each process compiles them."""

import numpy as np

from topicsteer import TopicModel
from topicsteer.analysis.map_layout import lay_out, obstacle
from topicsteer.nmf import kernels
from topicsteer.text import TextVectorizer


def main() -> None:
    """Compile for both floating-point types; a small fit and a small map compile the rest."""
    for dtype in (np.float32, np.float64):
        kernels.prepare(dtype)
    texts = [f"{word} {word} word{number % 7}" for number in range(40) for word in ("green tea", "black coffee")]
    TextVectorizer(lemmatizer=str.lower).fit_transform(texts)
    TopicModel(0).fit(texts, ["tea", "coffee"] * 20 + [None] * 40)
    if not obstacle(50):
        lay_out(np.random.default_rng(0).random((50, 5)).astype(np.float32))


if __name__ == "__main__":
    main()
