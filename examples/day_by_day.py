"""Update a saved model day by day, without the old texts.

Each day has new documents, some with labels. The second day introduces a new topic. Known topics keep their names and
positions.
"""

import tempfile

from topicsteer import TopicModel
from topicsteer.corpora import load_docstrings

corpus = load_docstrings()


def day(number, areas):
    """Every third document of some areas, one in five with its label."""
    rows = [i for i, names in enumerate(corpus.labels) if names and areas.issuperset(names)]
    return corpus.select(rows[number::3]).hide_labels(0.8, seed=number)


with tempfile.TemporaryDirectory() as folder:
    TopicModel(free_topics=1).fit(day(0, {"clustering", "email"})).save(folder)
    for number in (1, 2):
        model = TopicModel.load(folder).update(day(number, {"clustering", "email", "images"}))
        print(f"Day {number}: {model.update_}")
        model.save(folder)

    model = TopicModel.load(folder)
    print(model)
    print("Topics:", "; ".join(model.topics["topic"]))
    print("Predicted:", model.predict(["Rotate the image and filter its pixels."])[0])
