"""A labelling loop: fit, choose documents to label next, label them, fit again.

Here the labels come from the corpus itself; a person would read the suggested documents. `topicsteer label` does the
same in the browser.
"""

from topicsteer import TopicModel
from topicsteer.corpora import load_docstrings

areas = {"clustering", "email", "images", "optimisation", "probability distributions"}
corpus = load_docstrings()
corpus = corpus.select(i for i, names in enumerate(corpus.labels) if names and areas.issuperset(names))
answers = dict(zip(corpus.ids, corpus.labels, strict=True))

labels = {}
for area in sorted(areas):  # start with two documents per topic
    first = [row for row, names in enumerate(corpus.labels) if names == [area]][:2]
    labels |= {row: [area] for row in first}

model = None
for _ in range(4):
    model = TopicModel(free_topics=0).fit(corpus, labels, after=model)
    rows = [row for row in range(len(corpus)) if row not in labels]
    found = model.memberships().drop("id", "(none)").to_numpy().argmax(axis=1)
    right = sum(model.result_.names[found[row]] in corpus.labels[row] for row in rows)
    print(f"{len(labels)} documents labelled: {right / len(rows):.0%} of the others right")
    suggested = model.suggest(10)
    labels |= {corpus.ids.index(name): answers[name] for name in suggested["id"]}

print("A reason to label one next:", suggested["why"][0])
