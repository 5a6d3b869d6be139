"""TSNMF in a scikit-learn pipeline, with a grid search over its settings.

A classifier follows the topics, so that a score can be computed. In each fold TSNMF gets the labels of the training
documents, and the held-out documents are transformed without labels.
"""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from topicsteer import TSNMF
from topicsteer.corpora import load_docstrings

areas = {"clustering", "email", "images"}
corpus = load_docstrings()
corpus = corpus.select(i for i, labels in enumerate(corpus.labels) if len(labels) == 1 and labels[0] in areas)
names = [labels[0] for labels in corpus.labels]

pipeline = Pipeline(
    [
        ("words", TfidfVectorizer(stop_words="english", min_df=3)),
        ("topics", TSNMF(random_state=0)),
        ("classes", LogisticRegression()),
    ]
)
grid = {"topics__n_components": [3, 6], "topics__label_weight": [None, "balanced"]}
search = GridSearchCV(pipeline, grid, cv=3).fit(corpus.texts, names)
print(f"Best of {len(search.cv_results_['params'])} settings: {search.best_params_}")
print(f"Accuracy on held-out documents: {search.best_score_:.2f}")

topics = search.best_estimator_["topics"]
terms = search.best_estimator_["words"].get_feature_names_out()
for name, row in zip(topics.topic_names_[: topics.n_known_], topics.components_, strict=False):
    print(f"{name}: {', '.join(terms[row.argsort()[:-6:-1]])}")
