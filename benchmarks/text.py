"""Speed and memory of TextVectorizer, as ratios against scikit-learn's TfidfVectorizer in the same run.

    python benchmarks/text.py --texts 30000
    taskset -c 0 python benchmarks/text.py --texts 300000 --threads 1

The texts have 150 to 200 words, in sentences drawn from the PubMed file in TOPICSTEER_DATA.
"""

import argparse
import gzip
import os
import random
import re
import resource
import time
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from topicsteer.text import TextVectorizer, stop_words


def abstracts(n: int, seed: int = 0) -> list[str]:
    """Return texts of at least 150 words each, made of sentences of real abstracts."""
    data = os.environ.get("TOPICSTEER_DATA")
    if not data:
        raise SystemExit("Set TOPICSTEER_DATA to the folder with pubmed/*.xml.gz.")
    sentences: list[str] = []
    for path in sorted((Path(data) / "pubmed").glob("*.xml.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                if "<AbstractText" in line:
                    sentences += re.split(r"(?<=\.) ", re.sub(r"<[^>]*>", "", line).strip())
    draw = random.Random(seed)
    lengths = {sentence: sentence.count(" ") + 1 for sentence in sentences}
    texts = []
    for _ in range(n):
        text: list[str] = []
        words = 0
        while words < 150:
            text.append(draw.choice(sentences))
            words += lengths[text[-1]]
        texts.append(" ".join(text))
    return texts


def timed(vectorizer: TextVectorizer | TfidfVectorizer, texts: list[str], repeats: int = 1) -> float:
    """Return the seconds of the fastest fit_transform."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        vectorizer.fit_transform(texts)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=30_000)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="leave scikit-learn out")
    options = parser.parse_args()

    texts = abstracts(options.texts)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    same = {
        "min_df": 5,
        "max_df": 0.5,
        "max_features": None,
        "sublinear_tf": True,
    }
    ours = TextVectorizer(**same, stop_words="en", threads=options.threads)
    theirs = TfidfVectorizer(
        **same,
        stop_words=sorted(stop_words("en")),
        token_pattern=r"(?!\d+(?![^\W_]))[^\W_]{2,}",
        dtype=np.float32,
    )
    timed(ours, texts[:100])  # compile
    fast = timed(ours, texts, options.repeats)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = sum(map(len, texts)) / 1e6
    print(f"{len(texts):,} texts, {megabytes:,.0f} MB; process {before / 1e3:,.0f} -> {after / 1e3:,.0f} MB")
    print(f"TextVectorizer   {fast:8.2f} s  {megabytes / fast:8.1f} MB/s  {len(ours.idf_):,} terms")
    if not options.alone:
        slow = timed(theirs, texts, options.repeats)
        difference = abs(ours.transform(texts[:1000]) - theirs.transform(texts[:1000])).max()
        print(f"TfidfVectorizer  {slow:8.2f} s  ratio {slow / fast:.1f}")
        print(f"same terms: {ours.vocabulary_ == theirs.vocabulary_}; largest difference {difference:.0e}")


if __name__ == "__main__":
    main()
