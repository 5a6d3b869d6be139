"""For somebody coming from BERTopic: the same documents and class numbers, and an explanation of one document.

BERTopic takes one class number per document, -1 for unlabelled. topicsteer takes names, and several per document if
needed.
"""

import polars as pl

from topicsteer import TopicModel
from topicsteer.corpora import example_table

classes = ["billing", "delivery", "login"]
frame = pl.read_csv(example_table())
docs = frame["text"].to_list()
y = [classes.index(label) if label in classes else -1 for label in frame["topic"]]

# BERTopic().fit(docs, y=y) becomes:
model = TopicModel(free_topics=5).fit(docs, [classes[k] if k >= 0 else None for k in y])
print(model)
print("; ".join(model.topics["topic"]))  # get_topic_info() is model.topics
print("login:", ", ".join(model.top_terms("login", 5)))  # get_topic
print("An example:", model.top_documents("login", 1)["text"][0])  # get_representative_docs
print("New text:", model.predict(["the courier lost my parcel"]))  # transform
model.report("report.html")  # visualize_topics, visualize_barchart, visualize_documents

explanation = model.explain("I forgot my password and cannot see the invoice")
words = explanation.rows(3)
for topic, share in zip(explanation.names, explanation.shares, strict=True):
    parts = (f"{term} {part:.2f}" for term, part in zip(words["term"], words[topic], strict=True))
    print(f"{topic} {share:.0%}: {', '.join(parts)}")
