"""For somebody with a document-term matrix: TSNMF in a scikit-learn pipeline, with a grid search over its settings.

In each fold TSNMF gets the labels of the training documents, and the held-out documents are transformed without labels.
The score is the share of held-out labels that are the strongest topic of their document.
"""

import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from topicsteer import TSNMF
from topicsteer.corpora import example_table

frame = pl.read_csv(example_table())
texts = frame["text"].to_list()
labels = [label if label and label != "(none)" and ";" not in label else None for label in frame["topic"]]


def right(pipeline, texts, labels):
    """Share of the labelled documents whose strongest topic is their label."""
    strongest = pipeline[-1].topic_names_[pipeline.transform(texts).argmax(axis=1)]
    hits = [name == label for name, label in zip(strongest, labels, strict=True) if label is not None]
    return sum(hits) / len(hits)


pipeline = make_pipeline(TfidfVectorizer(stop_words="english"), TSNMF(random_state=0))
grid = {"tsnmf__n_components": [6, 9], "tsnmf__label_weight": [None, "balanced"]}
folds = KFold(3, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring=right, cv=folds).fit(texts, labels)
print(f"Best of {len(search.cv_results_['params'])} settings: {search.best_params_}")
print(f"Right on held-out documents: {search.best_score_:.2f}")

words, topics = search.best_estimator_
for name, row in zip(topics.topic_names_[: topics.n_known_], topics.components_, strict=False):
    print(f"{name}: {', '.join(words.get_feature_names_out()[row.argsort()[:-6:-1]])}")
