"""For a data scientist: a DataFrame, embeddings, hidden labels, and the memberships in a scikit-learn model.

The embeddings are random projections of counted letters, so that the example needs no download. A sentence encoder
takes their place: `embeddings=SentenceTransformer("all-MiniLM-L6-v2")`.
"""

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer

from topicsteer import TopicModel
from topicsteer.corpora import example_table


def encode(texts):
    """One vector per text, from its runs of three letters."""
    counts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), vocabulary=RUNS).fit_transform(texts)
    return counts @ np.random.default_rng(0).standard_normal((len(RUNS), 32))


frame = pl.read_csv(example_table())
RUNS = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3)).fit(frame["text"]).get_feature_names_out()

for name, embeddings in (("words", None), ("words and embeddings", encode)):
    model = TopicModel(free_topics=3).fit(frame, embeddings=embeddings)
    print(f"{name}: average precision {model.evaluate().macro['topicsteer']:.2f}")

features = model.memberships(frame).join(frame, on="id")  # columns for any other model
for region, mean in features.group_by("region").agg(pl.col("delivery").mean()).sort("region").rows():
    print(f"delivery, {region}: mean membership {mean:.2f}")
print(model.predict(["cannot log in to my acount"]))
