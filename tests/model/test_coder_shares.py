"""Coders in the shares of a fitted model, and in the paper trail."""

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents

N = 400
WORDS = {name: " ".join(f"{name}{letter}" for letter in "abcdefghijklmnop") for name in ("tea", "coffee", "chess")}


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(2).choice(list(WORDS), N, p=[0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def model(truth):
    generator = np.random.default_rng(1)
    every = " ".join(WORDS.values()).split()
    texts = [" ".join([*generator.choice(WORDS[name].split(), 1), *generator.choice(every, 5)]) for name in truth]
    labels = {int(row): truth[row] for row in generator.choice(N, 60, replace=False)}
    documents = Documents([f"d{i}" for i in range(N)], texts, [[labels[i]] if i in labels else [] for i in range(N)])
    return TopicModel(free_topics=0, world="closed").fit(documents, chosen="random")


def width(found):
    return (found.high - found.low)[0]


def test_a_good_coder_narrows_and_a_random_one_does_no_harm(model, truth):
    generator = np.random.default_rng(3)
    alone = model.findings.shares()
    good = model.findings.shares(coders={"copy": list(truth)})
    bad = model.findings.shares(coders={"dice": list(generator.choice(list(WORDS), N))})
    assert (width(good) < 0.75 * width(alone)).all()
    assert (width(bad) <= 1.03 * width(alone)).all()
    shares = [(truth == name).mean() for name in good.topics]
    assert ((good.low[0] <= shares) & (shares <= good.high[0])).all()
    assert good.labels.tolist() == alone.labels.tolist()  # answers are never labels
    assert "The answers of the coder copy take part in the shares." in good.sentences[-1]


def test_a_coder_that_saw_the_labels_changes_nothing(model, truth):
    labelled = model.state_.supervision.labelled
    cheat = [name if known else None for name, known in zip(truth, labelled, strict=True)]
    found, alone = model.findings.shares(coders={"cheat": cheat}), model.findings.shares()
    assert width(found).tolist() == width(alone).tolist()
    assert "as if it had seen the labels" in found.sentences[-1]


def test_the_paper_trail_has_the_shares(model, truth):
    coders = {"copy": list(truth)}
    found = model.findings.shares(coders=coders)
    page = model.findings.methods(shares=found)
    name = found.topics[int(np.argmax(found.share[0]))]
    k = found.topics.index(name)
    numbers = f"{found.share[0, k]:.1%} | {found.low[0, k]:.1%} | {found.high[0, k]:.1%}"
    assert any(line.startswith(f"| {name} ") and numbers in line for line in page.splitlines())
    assert "how documents were chosen: 60 at random" in page


def test_the_origin_of_labels_is_in_the_paper_trail(truth):
    n = 60
    chosen = ["random"] * 20 + ["suggested"] * 10 + [None] * 30
    table = pl.DataFrame(
        {
            "id": range(n),
            "text": [f"{WORDS[name]} {i % 7}" for i, name in enumerate(truth[:n])],
            "topics": [str(name) if i < 30 else None for i, name in enumerate(truth[:n])],
            "chosen": chosen,
        }
    )
    page = TopicModel(free_topics=0, world="closed").fit(table).findings.methods()
    assert "- how documents were chosen: 20 at random, 10 by a suggestion or a person" in page


def test_a_column_of_the_attached_table_is_never_taken_for_labels(truth):
    texts = [f"{WORDS[name]} {i % 7}" for i, name in enumerate(truth[:60])]
    table = pl.DataFrame({"id": range(60), "text": texts, "region": ["north", "south"] * 30})
    model = TopicModel(free_topics=0, world="closed").fit(table, {i: str(truth[i]) for i in range(30)})
    assert model.attach(table).findings.shares("region").groups == ("(all)", "north", "south")
