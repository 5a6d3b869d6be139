"""Write the files beside this one: run it with topicsteer 0.1.0 (commit 26234ae) and never again.

`tests/test_old_files.py` loads them with the code of today and compares the answers, bit for bit.
"""

import json
import sys
from pathlib import Path

import numpy as np

from topicsteer import TopicModel, __version__
from topicsteer.app.session import LabelSession
from topicsteer.app.project import Project
from topicsteer.corpora import Documents

HERE = Path(__file__).parent
WORDS = {
    "tea": "tea leaves green black pot kettle steep brew cup oolong jasmine matcha whisk tannin".split(),
    "coffee": "coffee beans roast espresso grind filter crema arabica robusta barista mug latte press".split(),
    "trains": "train rail station track engine carriage driver signal platform ticket journey gauge".split(),
    "boats": "boat sail harbour mast anchor deck hull wind tide captain rope keel rudder island".split(),
    "none": "garden tomato seed soil compost spade bean row rain harvest bed fence gate worm".split(),
}
COMMON = "day year people time good new old small large morning evening house street town water hand".split()


def texts(n, seed):
    """Documents of a few words, and the topic of each."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    out, topics = [], []
    for _ in range(n):
        name = names[rng.integers(len(names))]
        other = names[rng.integers(len(names))]
        words = [*rng.choice(WORDS[name], 7), *rng.choice(WORDS[other], 2), *rng.choice(COMMON, 5)]
        out.append(" ".join(rng.permutation(words)))
        topics.append(name)
    return out, topics


def labels(topics, every, numbers=None):
    """Every so-maniest document is labelled; none of those without a topic."""
    known = [name for name in WORDS if name != "none"]
    found = [None if topic == "none" or row % every else topic for row, topic in enumerate(topics)]
    return [None if name is None else known.index(name) + 1 for name in found] if numbers else found


def answers(model, new):
    """What a model says of its own and of new documents, as arrays."""
    return {
        "memberships": np.asarray(model.memberships_),
        "new_memberships": model.memberships(new).drop("id").to_numpy()[:, : model.result_.n_known],
        "weights": np.asarray(model.result_.W),
        "new_weights": model.transform(new),
        "H": model.result_.H,
        "cuts": model.cuts_,
        "predicted": np.array(["|".join(names) for names in model.predict(new)]),
        "names": np.array(model.result_.names),
    }


def main():
    if __version__ != "0.1.0":
        sys.exit("run this with topicsteer 0.1.0")
    corpus, topics = texts(160, 1)
    new, _ = texts(30, 2)
    ids = [f"d{row}" for row in range(len(corpus))]
    words = {"pinned": {"tea": ["matcha"]}, "banned": {"coffee": ["mug"]}, "descriptions": {"boats": "sailing boats"}}
    guided = TopicModel(3, **words, threads=1).fit(Documents(ids, corpus), labels(topics, 3))
    guided.save(HERE / "guided", texts=True)
    found = {f"guided_{key}": value for key, value in answers(guided, new).items()}
    later, more = texts(20, 3)
    guided.update(Documents([f"n{row}" for row in range(20)], later), labels(more, 4))
    found |= {f"updated_{key}": value for key, value in answers(guided, new).items()}

    merged = TopicModel(2, threads=1).fit(Documents(ids, corpus), labels(topics, 2))
    merged.merge(["tea", "coffee"], "drinks").rename("boats", "ships")
    merged.save(HERE / "merged")
    found |= {f"merged_{key}": value for key, value in answers(merged, new).items()}

    plain = TopicModel(1, guidance=None, threads=1).fit(corpus, labels(topics, 3, numbers=True))
    plain.save(HERE / "plain", updatable=False)
    found |= {f"plain_{key}": value for key, value in answers(plain, new).items()}
    np.savez_compressed(HERE / "answers.npz", **found)

    path = HERE / "project.steer"
    path.unlink(missing_ok=True)
    Project.create(path, Documents(ids, corpus))
    project = Project.open(path)
    session = LabelSession(project)
    session.import_labels("file: old.csv", {0: ["tea", "boats"], 1: ["coffee"]}, {2: ["tea"]}, source="old.csv")
    session.label("ann", documents=[3, 4], topic=1, state="permitted")
    session.label("bob", documents=[3], topic=2, state="forbidden")
    session.new_topic("ann", name="trains", description="rails")
    session.change_topic("ann", topic=1, name="tea & more", pinned=["matcha"])
    session.none_of_these("bob", documents=[5])
    session.skip("ann", documents=[6])
    session.undo("ann")
    meta = {"keys": [2, 3, 1, 4], "seq": session.seq, "labelled": 5, "seconds": 1.0, "warm": False}
    project.store_model(HERE / "guided", {**meta, "notes": [], "objective": [], "changes": []})
    training = session.training()
    said = {
        "topics": [[t.topic, t.name, t.description, list(t.pinned)] for t in training.topics],
        "labels": {str(row): list(names) for row, names in training.labels.items()},
        "forbidden": {str(row): list(names) for row, names in training.forbidden.items()},
        "seq": session.seq,
    }
    (HERE / "project.json").write_text(json.dumps(said, indent=1) + "\n")
    project.close()


if __name__ == "__main__":
    main()
