"""For somebody whose language model has coded all texts: its errors per topic, and shares that they do not bias.

The answers are made up here: every second answer "billing" is lost. They never count as labels.
"""

import polars as pl

from topicsteer import TopicModel
from topicsteer.corpora import example_table

table = example_table()
frame = pl.read_csv(table)
words = {
    "billing": ("invoice", "bill", "paid", "refund", "charge", "card", "payment", "euro"),
    "delivery": ("parcel", "courier", "delivery", "deliver", "tracking", "depot", "driver", "package"),
    "login": ("login", "log in", "password", "account", "code", "sign"),
}
answers = []
for row, text in enumerate(frame["text"]):
    found = [topic for topic, terms in words.items() if any(term in text.lower() for term in terms)]
    answers.append([topic for topic in found if topic != "billing" or row % 2] or ["(none)"])

model = TopicModel(free_topics=3).fit(table)
errors = model.findings.coders({"gpt": answers})
for topic, precision, recall in (
    errors.filter(pl.col("topic").is_in(words)).select("topic", "precision", "recall").rows()
):
    print(f"{topic}: precision {precision:.2f}, recall {recall:.2f}")

shares = model.findings.prevalence(coders={"gpt": answers})
share, low, high = shares.filter(pl.col("topic") == "billing").select("share", "low", "high").row(0)
counted = sum("billing" in answer for answer in answers) / len(answers)
print(f"billing: {counted:.0%} of the answers, in truth about {share:.0%} ({low:.0%} to {high:.0%})")
