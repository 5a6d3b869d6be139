"""Move from BERTopic: the same documents and class numbers, and an explanation of one document.

BERTopic takes one class number per document, -1 for unlabelled. topicsteer takes names, and several per document if
needed. A saved model explains any text word by word.
"""

import tempfile

from topicsteer import TopicModel
from topicsteer.corpora import load_docstrings

classes = ["clustering", "email", "images"]
corpus = load_docstrings()
corpus = corpus.select(i for i, names in enumerate(corpus.labels) if names in [[name] for name in classes])
docs = list(corpus.texts)
y = [classes.index(names[0]) if names else -1 for names in corpus.hide_labels(0.9, seed=0).labels]

# BERTopic().fit(docs, y=y) becomes:
model = TopicModel(free_topics=0).fit(docs, [classes[k] if k >= 0 else None for k in y])
print(model)  # get_topic_info() is model.topics
print("email:", ", ".join(model.top_terms("email", 5)))
print("Most of it:", model.top_documents("email", 1)["text"][0])  # get_representative_docs

with tempfile.TemporaryDirectory() as folder:
    model.save(folder)
    saved = TopicModel.load(folder)

explanation = saved.explain("Attach the image to a message and send its headers.")
words = explanation.rows(3)
for topic, share in zip(explanation.names, explanation.shares, strict=True):
    parts = (f"{term} {part:.2f}" for term, part in zip(words["term"], words[topic], strict=True))
    print(f"{topic} {share:.0%}: {', '.join(parts)}")
