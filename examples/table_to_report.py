"""From a table to named topics and a report.

The table has a column of texts and a column of labels, mostly empty. Labelled documents contain only their topics, the
others follow, and free topics cover the rest.
"""

import polars as pl

from topicsteer import TopicModel
from topicsteer.corpora import load_docstrings

areas = {"clustering", "email", "images", "optimisation"}
corpus = load_docstrings()
corpus = corpus.select(i for i, labels in enumerate(corpus.labels) if areas.issuperset(labels) and labels)
shown = corpus.hide_labels(0.9, seed=0).labels  # one document in ten keeps its labels
table = pl.DataFrame({"id": corpus.ids, "text": corpus.texts, "topic": ["; ".join(labels) for labels in shown]})

model = TopicModel(free_topics=2).fit(table)
print(model)
for row in model.topics.select("topic", "kind", "terms").rows():
    print(*row, sep=" | ")

found = model.memberships()["email"].to_numpy() > 0.5
true = ["email" in labels for labels in corpus.labels]
print(f"email: {sum(found & true)} of {sum(true)} documents found, {sum(found) - sum(found & true)} wrong")

model.report("report.html", title="Docstrings")
print("Written: report.html")
