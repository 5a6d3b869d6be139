"""Documents that have none of the known topics, from texts to tables."""

import re

import numpy as np
import polars as pl
import pytest
from problems import planted_texts
from scipy.optimize import linear_sum_assignment

from topicsteer import TopicModel

pytestmark = pytest.mark.slow

SIZE, KNOWN = 60, 4
TEXTS = planted_texts(8, SIZE)
TOPIC = np.repeat(np.arange(8), SIZE)
NAMES = [f"t{k}" for k in range(KNOWN)]


def labels(n_topics=KNOWN, per_topic=10, start=0):
    return [f"t{k}" if k < n_topics and start <= i % SIZE < start + per_topic else None for i, k in enumerate(TOPIC)]


@pytest.fixture(scope="module")
def fitted():
    return TopicModel(KNOWN).fit(TEXTS, labels())


@pytest.fixture
def model(fitted, tmp_path):
    """A copy that may be changed."""
    fitted.save(tmp_path / "model", texts=True)
    return TopicModel.load(tmp_path / "model")


def matched(table, names):
    """Planted topic of each column by the Hungarian method, and the share of its documents that prefer the column."""
    best = table.select(names).to_numpy().argmax(axis=1)
    hits = np.array([[(best[k == TOPIC] == c).mean() for k in range(8)] for c in range(len(names))])
    rows, planted = linear_sum_assignment(-hits)
    return planted, hits[rows, planted]


def test_the_model_believes_in_an_open_world(fitted):
    assert fitted.state_.open
    assert fitted.belief.startswith("Some documents have none of your 4 topics. How many is not known: label 50")
    table = fitted.memberships()
    assert table.columns == ["id", *NAMES, *fitted.state_.topics.names[KNOWN:], "(none)"]
    none = table["(none)"].to_numpy()
    assert none[TOPIC >= KNOWN].mean() > 0.9
    assert none[TOPIC < KNOWN].mean() < 0.1
    planted, hits = matched(table, list(fitted.state_.topics.names))
    assert planted[:KNOWN].tolist() == [0, 1, 2, 3]
    assert hits.min() > 0.9
    given = np.array([name is not None for name in labels()])
    assert (none[given] == 0).all()


def test_shares_are_those_of_documents(fitted):
    means = fitted.topics["mean membership"]
    assert np.abs(8 * np.asarray(means) - 1).mean() < 0.1
    np.testing.assert_allclose(means, fitted.memberships().drop("id", "(none)").to_numpy().mean(axis=0), rtol=1e-6)
    assert fitted.memberships()["(none)"].mean() == pytest.approx(0.5, abs=0.05)


def test_a_document_of_an_unnamed_topic_gets_no_topic(fitted):
    new = planted_texts(8, 5, seed=0)
    found = fitted.predict(TEXTS)
    outside = [found[i] for i in np.flatnonzero(TOPIC >= KNOWN)]
    assert sum(bool(topics) for topics in outside) <= 0.1 * len(outside)
    inside = [(f"t{TOPIC[i]}" in found[i]) for i in np.flatnonzero(TOPIC < KNOWN)]
    assert np.mean(inside) > 0.95
    belongs = fitted.memberships(new).drop("id").to_numpy()
    assert belongs.shape == (40, 9)
    assert fitted.state_.judge(belongs).decisions(fitted.state_.names) == fitted.predict(new)


def test_free_topics_read_from_weights_are_those_of_memberships(fitted):
    _, hits = matched(fitted.document_topics, list(fitted.state_.topics.names))
    assert hits.min() > 0.9


def test_a_closed_world_has_no_none_and_auto_finds_no_free_topic():
    model = TopicModel("auto").fit(TEXTS, labels(8))
    assert not model.state_.open
    assert len(model.state_.topics) == 8
    assert model.belief == "Every document seems to have one of your 8 topics."
    assert model.memberships()["(none)"].max() == 0
    declared = TopicModel(2, world="closed").fit(TEXTS, labels())
    assert declared.belief == "Every document has one of your 4 topics, as declared."
    assert not declared.state_.open
    with pytest.raises(ValueError, match='world must be "open", "closed" or None'):
        TopicModel(world="flat").fit(TEXTS, labels())


def test_known_memberships_do_not_depend_on_the_number_of_free_topics(fitted):
    other = TopicModel(6).fit(TEXTS, labels())
    np.testing.assert_array_equal(other.state_.known_memberships, fitted.state_.known_memberships)


def test_free_topics_are_merged_without_learning_again(model):
    before = model.memberships()
    names = list(model.state_.topics.names[KNOWN : KNOWN + 2])
    whole = before.select(names).to_numpy().max(axis=1)
    model.edit.merge(names, "together")
    np.testing.assert_allclose(model.memberships()["together"], whole, atol=1e-6)
    model.edit.merge(["t0", "together"])
    expected = np.maximum(before["t0"].to_numpy(), whole)
    np.testing.assert_allclose(model.memberships()["t0"], expected, atol=1e-6)
    rest = before["(none)"].to_numpy() - before.select(names).to_numpy().sum(axis=1)
    np.testing.assert_allclose(model.memberships()["(none)"], np.maximum(rest, 0), atol=1e-6)
    np.testing.assert_allclose(model.memberships(TEXTS[30:33])["t0"], expected[30:33], atol=1e-5)
    with pytest.raises(ValueError, match="is a free topic: adopt it first"):
        model.edit.split("free 1")


def test_a_free_topic_is_adopted_without_labels(model):
    name = model.state_.topics.names[KNOWN + 1]
    free = model.memberships()[name].to_numpy()
    planted = np.bincount(TOPIC[np.argsort(-free)[:20]]).argmax()
    labelled = model.state_.supervision.labelled.sum()
    proposals = model.edit.adopt("free 2", "robotics", n=5)
    assert model.state_.topics.names[KNOWN] == "robotics"
    assert model.state_.topics.n_known == KNOWN + 1
    assert model.codebook.keys == (1, 2, 3, 4, 5)
    assert proposals.columns == ["id", "membership", "text"]
    assert (TOPIC[proposals["id"].to_numpy()] == planted).all()
    assert model.state_.supervision.labelled.sum() == labelled
    np.testing.assert_allclose(model.memberships()["robotics"], free)
    found = model.predict([TEXTS[i] for i in np.flatnonzero(planted == TOPIC)])
    assert np.mean([topics == ["robotics"] for topics in found]) > 0.9
    assert model.belief.startswith("Some documents have none of your 5 topics.")
    assert model.memberships()["(none)"].mean() == pytest.approx(3 / 8, abs=0.05)
    assert sum(map(len, model.edit.split("robotics", 2).groups)) > 30
    for wrong in ("robotics", "t0"):
        with pytest.raises(ValueError, match="it is a known topic"):
            model.edit.adopt(wrong, "x")
    with pytest.raises(ValueError, match="belongs to another topic"):
        model.edit.adopt("free 1", "t0")
    closed = TopicModel(2, world="closed").fit(TEXTS, labels())
    with pytest.raises(ValueError, match="label some of its documents instead"):
        closed.edit.adopt("free 1", "x")


def test_an_edited_model_is_saved_loaded_and_updated(model, tmp_path):
    model.edit.adopt("free 1", "adopted")
    model.edit.merge(["t1", model.state_.topics.names[KNOWN + 1]])
    model.save(tmp_path / "edited", texts=True)
    again = TopicModel.load(tmp_path / "edited")
    assert again.memberships().equals(model.memberships())
    assert again.memberships(TEXTS[:9]).equals(model.memberships(TEXTS[:9]))
    assert again.belief == model.belief
    again.update(planted_texts(8, 3, seed=0)[:6], ["t0", None, None, "t1", None, None])
    assert again.state_.open
    assert again.state_.topics.names[: KNOWN + 1] == (*NAMES, "adopted")


def test_an_update_keeps_the_free_topics(model):
    before = model.memberships()
    new = planted_texts(8, 70)
    late = [text for i, text in enumerate(new) if i % 70 >= 60]
    model.update(late, [f"t{i // 10}" if i < 40 and i % 10 < 3 else None for i in range(80)])
    assert model.state_.topics.names == tuple(before.columns[1:-1])
    after = model.memberships()
    best, now = (
        table.select(model.state_.topics.names[KNOWN:]).to_numpy()[:480].argmax(axis=1) for table in (before, after)
    )
    assert (best == now)[TOPIC >= KNOWN].mean() > 0.95
    none = after["(none)"].to_numpy()[480:]
    assert none[40:].mean() > 0.8
    assert none[:40].mean() < 0.2


def test_a_refit_of_an_open_world_is_a_fit_from_scratch(fitted):
    later = TopicModel(KNOWN).fit(TEXTS, labels(per_topic=12), after=fitted)
    cold = TopicModel(KNOWN).fit(TEXTS, labels(per_topic=12))
    for name, array in cold.state_.arrays().items():
        np.testing.assert_array_equal(later.state_.arrays()[name], array, err_msg=name)


def test_free_topics_come_back_with_other_seeds_and_more_labels(fitted):
    top = [set(fitted.top_terms(k)) for k in range(KNOWN, 8)]
    for seed, per_topic in ((3, 10), (0, 15)):
        other = TopicModel(KNOWN, random_state=seed).fit(TEXTS, labels(per_topic=per_topic))
        again = [set(other.top_terms(k)) for k in range(KNOWN, len(other.state_.topics))]
        overlap = np.array([[len(a & b) / 10 for b in again] for a in top])
        rows, columns = linear_sum_assignment(-overlap)
        assert (overlap[rows, columns] >= 0.5).mean() >= 0.8


def test_an_evaluation_of_labels_that_were_not_drawn_at_random_is_no_estimate():
    given = labels(per_topic=12)
    inside_only = TopicModel(4).fit(TEXTS, given).evaluate()
    assert inside_only.verdict.startswith("This is no estimate for the corpus: 0 hidden labels")
    assert "No precision is known" in inside_only.verdict
    assert np.isnan(inside_only.table()["precision"]).all()
    assert inside_only.tables()["topics"]["precision"] == [None] * KNOWN
    for i in np.flatnonzero(TOPIC >= KNOWN)[::30]:
        given[i] = "(none)"
    found = TopicModel(4).fit(TEXTS, given).evaluate()
    assert found.verdict.startswith("This is no estimate for the corpus")
    assert np.isfinite(found.table()["precision"]).all()


def test_an_evaluation_of_random_labels_has_the_precision_of_the_corpus():
    """Labels that were chosen among the surest documents take part in the fit, and not in the scores."""
    truth = labels(per_topic=len(TEXTS))
    order = np.random.default_rng(0).permutation(len(TEXTS))
    random, chosen = order[:120], [i for i in order[120:] if truth[i]][:60]
    given = [(truth[i] or "(none)") if i in {*random.tolist(), *chosen} else None for i in range(len(TEXTS))]
    how = ["random" if i in random else "suggested 2" if i in chosen else None for i in range(len(TEXTS))]
    table = pl.DataFrame({"text": TEXTS, "label": given, "chosen": how})
    model = TopicModel(4).fit(table, "label", text="text")
    found = model.evaluate()
    unlabelled = np.array([name is None for name in given])
    predicted = [topics[:1] for topics in model.predict(TEXTS)]
    right = np.array([topics == [name] for topics, name in zip(predicted, truth, strict=True)])[unlabelled]
    precision = right.sum() / np.array([bool(topics) for topics in predicted])[unlabelled].sum()
    said = re.match(r"Scores of 1.. documents \(drawn at random\): precision \S+ \((.*)–(.*)\), recall", found.scope)
    assert float(said[1]) <= precision <= float(said[2])


def test_an_evaluation_has_the_keywords_of_the_model(fitted):
    """Keywords of the wrong topics make the scores worse."""
    wrong = {name: fitted.top_terms((k + 1) % KNOWN, 8) for k, name in enumerate(NAMES)}
    plain, misled = (TopicModel(0, keywords=given).fit(TEXTS, labels(per_topic=2)) for given in (None, wrong))
    assert misled.evaluate().macro["topicsteer"] < plain.evaluate().macro["topicsteer"]


@pytest.mark.parametrize("world", [None, "open"])
def test_an_evaluation_of_a_corpus_without_unlabelled_documents(world):
    texts = ["green tea leaves", "roast coffee beans", "the train was late"] * 8
    found = TopicModel(0, world=world).fit(texts, ["tea", "coffee", "(none)"] * 8).evaluate()
    assert found.scope.startswith("Scores of 24 documents (the whole corpus)")
    assert found.labelled == 24


@pytest.mark.parametrize("per_topic", [3, 10])
def test_labels_with_yes_only_are_nearly_as_good_as_complete_ones(per_topic):
    complete = labels(8, per_topic)
    yes = np.full((len(TEXTS), 8), np.nan)
    for i, name in enumerate(complete):
        if name is not None:
            yes[i, TOPIC[i]] = 1
    for given, options in ((yes, {}), (complete, {"complete": False})):
        whole = TopicModel(0, world="closed").fit(TEXTS, complete)
        model = TopicModel(0, world="closed", **options).fit(TEXTS, given)
        hits = [(m.state_.known_memberships.argmax(axis=1) == TOPIC).mean() for m in (model, whole)]
        assert hits[0] >= 0.93 * hits[1]


@pytest.mark.parametrize("few", [3, 5])
def test_a_topic_with_fewer_labels_than_the_others_keeps_its_documents(few):
    given = [f"t{k}" if k < KNOWN and i % SIZE < (few if k == 0 else 10) else None for i, k in enumerate(TOPIC)]
    model = TopicModel(4).fit(TEXTS, given)
    assert model.state_.open
    has = np.array(["t0" in topics for topics in model.predict(TEXTS)])
    assert has[TOPIC == 0].mean() > 0.8
    assert has[TOPIC != 0].mean() < 0.02


def test_marked_outsiders_without_free_topics_are_no_mistake():
    texts = ["green tea leaves", "roast coffee beans", "the train was late"] * 10
    labels = ["tea", "coffee", "(none)"] * 5 + [None] * 15
    model = TopicModel(free_topics=0).fit(texts, labels)  # a warning would be an error
    assert model.state_.topics.n_known == 2
