"""For an analyst with a table of texts: from a CSV file with some labels to shares by region, and a report.

The labelled messages were drawn at random, so the shares have intervals.
"""

import polars as pl

from topicsteer import TopicModel
from topicsteer.corpora import example_table

table = example_table()  # id, text, region, date and topic; most cells of topic are empty
model = TopicModel(free_topics=3).fit(table)
print(model.belief)

shares = model.findings.prevalence("region")
delivery = shares.filter(pl.col("topic") == "delivery")
for group, share, low, high in delivery.select("group", "share", "low", "high").rows():
    print(f"delivery, {group}: {share:.0%} ({low:.0%} to {high:.0%})")

model.report("report.html", title="Messages", by="region")
print("Written: report.html")
