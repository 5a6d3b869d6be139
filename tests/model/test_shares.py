"""Shares of a fitted model: cross-fitted, the same in memory and on disk, by groups, from files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.backends.block_folder import BlockFolder
from topicsteer.corpora import Documents
from topicsteer.guidance.guide import side_by_side
from topicsteer.labels.forest import FLAT
from topicsteer.labels.supervision import Kind
from topicsteer.model import pipeline
from topicsteer.model.cross_fit import Hidden, clusters_of, known_and_none, same_but_texts, without
from topicsteer.model.labelling import training_corpus
from topicsteer.model.settings import Settings
from topicsteer.model.spool import spool

pytestmark = pytest.mark.slow

WORDS = {"tea": "leaves pot kettle brew cup", "coffee": "beans roast espresso grind mug", "rail": "train track signal"}
FILLERS = [f"word{i}" for i in range(120)]


def relearn(model, supervision):
    """The guide learnt from other labels of the same documents."""
    settings = Settings.of(model.get_params())
    hidden = Hidden(training_corpus(model), settings, pipeline.reuse_of(model.predictor_, choice=True))
    return hidden.guide(supervision)


def pile(n=400, seed=0):
    """Texts with their topics; a third has the topic tea, and some have two topics or none."""
    rng = np.random.default_rng(seed)
    topics = [
        [name for name, share in zip(WORDS, (0.35, 0.25, 0.1), strict=True) if rng.random() < share] for _ in range(n)
    ]
    texts = [
        " ".join([*(w for name in own for w in rng.choice(WORDS[name].split(), 2)), *rng.choice(FILLERS, 6)])
        for own in topics
    ]
    return texts, topics


def documents(n=400, labelled=120, seed=0):
    texts, topics = pile(n, seed)
    rng = np.random.default_rng(seed + 1)
    rows = set(rng.permutation(n)[:labelled].tolist())
    labels = [(own or ["(none)"]) if row in rows else [] for row, own in enumerate(topics)]
    columns = {
        "region": [["north", "south"]["tea" in own or rng.random() < 0.3] for own in topics],
        "date": [f"2024-{1 + row % 6:02}-03" for row in range(n)],
        "w": rng.random(n).round(3).tolist(),
        "author": [f"a{row % 50}" for row in range(n)],
        "chosen": ["random" if row in rows else None for row in range(n)],
    }
    return Documents([f"d{i}" for i in range(n)], texts, labels, columns), topics


@pytest.fixture(scope="module")
def fitted():
    given, topics = documents()
    return TopicModel(2, world="open").fit(given), topics


def test_the_shares_of_all_topics_and_of_none(fitted):
    model, topics = fitted
    found = model.findings.shares()
    table = pl.DataFrame(found.table())
    assert table.columns == ["topic", "group", "share", "low", "high", "documents", "labels"]
    assert table["topic"].to_list() == [*model.state_.topics.names, "(none)"]
    for name in ("tea", "coffee", "rail", "(none)"):
        row = table.row(by_predicate=pl.col("topic") == name, named=True)
        truth = np.mean([name in own or (name == "(none)" and not own) for own in topics])
        assert row["low"] <= truth <= row["high"]
        assert row["labels"] == 120
        assert row["documents"] == 400
    free = table.filter(pl.col("topic").is_in(model.state_.free_names))
    assert free["low"].null_count() == len(free) == len(model.state_.free_names)
    assert free["share"].null_count() == len(free)  # a figure without an interval is no share


def test_labelled_documents_are_predicted_without_their_labels(fitted):
    model, _ = fitted
    evidence = model.findings.evidence()
    sample, predictions = evidence.sample, evidence.predictions[0]
    folds = sample.folds(5, model.random_state)
    assert np.bincount(folds).tolist() == [24] * 5
    X, known = model.matrix_, len(model.codebook)
    mean = np.zeros_like(predictions.every)
    for fold in range(5):
        guide = relearn(model, without(model.state_.supervision, sample.rows[folds == fold]))
        own = known_and_none(guide, guide.probabilities(X), known, FLAT)
        mean += own / 5
        np.testing.assert_allclose(predictions.labelled[folds == fold], own[sample.rows[folds == fold]], atol=1e-6)
    np.testing.assert_allclose(predictions.every, mean, atol=1e-6)


def test_guides_side_by_side_are_the_guides(fitted):
    model, _ = fitted
    guides = [
        relearn(model, without(model.state_.supervision, np.flatnonzero(model.state_.supervision.labelled)[k::3]))
        for k in range(3)
    ]
    X = model.matrix_
    for guide, found in zip(guides, side_by_side(guides, X), strict=True):
        np.testing.assert_allclose(found, guide.probabilities(X), atol=1e-6)


def test_guides_with_embeddings_side_by_side():
    texts, topics = pile(200)
    E = np.array([[name in own for name in WORDS] for own in topics]) + 0.1
    labels = {row: topics[row] or ["(none)"] for row in range(60)}
    model = TopicModel(1, world="closed").fit(texts, labels, chosen="random", embeddings=E)
    assert model.guide_.embedding
    guides = [model.guide_, relearn(model, without(model.state_.supervision, np.arange(20)))]
    X = model.matrix_
    for guide, found in zip(guides, side_by_side(guides, X, embeddings=E), strict=True):
        np.testing.assert_allclose(found, guide.probabilities(X, embeddings=E), atol=1e-6)
    assert np.isfinite(model.findings.shares().low).any()


def test_groups_from_one_value_per_document(fitted):
    model, _ = fitted
    halves = pd.Series(["first", "second"], name="half").repeat(200)
    found = model.findings.shares(halves)
    assert found.groups == ("(all)", "first", "second")
    assert found.by.column == "half"
    assert model.findings.shares(["first"] * 200 + ["second"] * 200).groups == found.groups
    with pytest.raises(ValueError, match="there are 2 groups for 400 documents"):
        model.findings.shares(["first", "second"])


def test_groups_differences_and_trends(fitted):
    model, topics = fitted
    found = model.findings.shares("region")
    assert repr(found).startswith(f"<Prevalence: {len(found.topics)} topics of ")
    assert "in 2 groups by region" in repr(found)
    assert found.groups == ("(all)", "north", "south")
    differences = pl.DataFrame(found.differences()).filter(topic="tea")
    region = np.array(model.documents_.columns["region"])
    tea = np.array(["tea" in own for own in topics])
    truth = tea[region == "north"].mean() - tea[region == "south"].mean()
    assert differences["low"][0] <= truth <= differences["high"][0] < 0
    assert differences["clear"].to_list() == [True]
    by_month = model.findings.shares("date:month")
    assert by_month.groups[1:] == tuple(f"2024-0{m}" for m in range(1, 7))
    assert len(by_month.differences()["topic"]) == 4 * 5
    trend = pl.DataFrame(by_month.trend())
    assert set(trend["per"]) == {"month"}
    assert (trend["low"] < trend["change"]).all()
    with pytest.raises(ValueError, match="a trend needs groups by time"):
        found.trend()


def test_a_group_with_fewer_than_ten_random_labels_has_no_share(fitted):
    model, _ = fitted
    rows = np.flatnonzero(model.state_.supervision.labelled)
    few, enough = set(rows[:9].tolist()), set(rows[9:20].tolist())
    group = ["few" if row in few else "enough" if row in enough else "rest" for row in range(400)]
    found = model.findings.shares(group)
    table = pl.DataFrame(found.table()).filter(topic="tea")
    known = dict(zip(table["group"], zip(table["labels"], table["share"], table["low"], strict=True), strict=True))
    assert known["few"] == (9, None, None)
    assert known["enough"][0] == 11
    assert None not in known["enough"]
    assert "Groups with fewer than 10 labels drawn by chance have no share: few (9)." in found.sentences
    differences = pl.DataFrame(found.differences())
    assert "few" not in {*differences["group"], *differences["other"]}


def test_differences_are_sorted_by_certainty(fitted):
    model, _ = fitted
    table = pl.DataFrame(model.findings.shares("date:month").differences())
    sizes = table["difference"].abs()
    inner = pl.select(pl.when(table["difference"] > 0).then(table["low"]).otherwise(table["high"])).to_series()
    certainty = sizes / (table["difference"] - inner).abs()
    assert certainty.is_sorted(descending=True)
    assert not sizes.is_sorted(descending=True)


def test_none_is_calibrated_to_random_labels_alone():
    """Labels of documents with a topic, chosen by hand, do not move the share without one."""
    given, topics = documents(600, 150)
    tea = [row for row, own in enumerate(topics) if own == ["tea"] and not given.labels[row]][:60]
    labels = [topics[row] if row in tea else own for row, own in enumerate(given.labels)]
    columns = {"chosen": ["suggested 2" if row in tea else given.columns["chosen"][row] for row in range(600)]}
    means = {}
    for name, more in (("random", columns), ("unknown", {})):
        model = TopicModel(2, world="open").fit(Documents(given.ids, given.texts, labels, more))
        means[name] = float(model.state_.memberships[:, -1].mean())
        assert (model.guide_.none.tolist() == [1, 0]) == (name == "unknown")
    truth = np.mean([not own for own in topics])
    assert abs(means["random"] - truth) < 0.06


def test_a_trend_is_a_line_through_the_shares(fitted):

    model, _ = fitted
    found = model.findings.shares("date:month")
    days = np.array([day.toordinal() for day in found.by.starts])
    share = found.share.copy()
    share[1:, 0] = 0.1 + 0.02 * (days - days[0]) / 30.4
    table = replace(found, share=share).trend()
    assert table["change"][table["topic"].index(found.topics[0])] == pytest.approx(0.02)


def test_sentences_tell_what_is_assumed(fitted):
    model, _ = fitted
    assert model.findings.shares().sentences[0] == "Labels: 120 drawn at random."
    given, _ = documents()
    plain = Documents(given.ids, given.texts, given.labels)
    found = TopicModel(1).fit(plain, chosen="random").findings.shares()
    assert found.sentences[0] == "Labels: 120 drawn at random."
    assert not any("Warning" in line for line in found.sentences)


def test_labels_of_unknown_origin_give_no_share():
    given, _ = documents()
    found = TopicModel(1).fit(Documents(given.ids, given.texts, given.labels)).findings.shares()
    assert np.isnan(found.share).all()
    assert found.sentences[0].startswith("No label is known to be drawn at random, so no share is known")
    assert 'fit(..., chosen="random")' in found.sentences[0]


def test_a_whole_corpus_needs_no_draw():
    texts, topics = pile(200)
    found = TopicModel(0).fit(texts, [own[:1] or ["(none)"] for own in topics]).findings.shares()
    share = np.mean([own[:1] == ["rail"] for own in topics])
    assert found.share[0, found.topics.index("rail")] == pytest.approx(share, abs=1e-6)


def test_the_origin_of_some_documents():
    texts, topics = pile(300)
    chosen = ["random" if row < 60 else None for row in range(300)]
    model = TopicModel(1).fit(texts, {row: topics[row] or ["(none)"] for row in range(90)}, chosen=chosen)
    assert model.state_.label_origin.by_chance.tolist() == [row < 60 for row in range(300)]
    with pytest.raises(ValueError, match="chosen"):
        TopicModel(1).fit(texts, {0: "rail", 1: "tea"}, chosen="by hand")


def test_labels_chosen_by_topic_are_noticed():
    texts, topics = pile(1500)
    rail = [row for row, own in enumerate(topics) if own == ["rail"]][:60]
    tea = [row for row, own in enumerate(topics) if own == ["tea"]][:60]
    labels = {row: topics[row] for row in (*rail, *tea)}
    found = TopicModel(1).fit(texts, labels, chosen="random").findings.shares()
    assert any("do not look like the others" in line and "rail (too many)" in line for line in found.sentences)


def test_suggested_labels_alone_give_no_interval():
    given, _ = documents()
    columns = {"chosen": ["suggested" if names else None for names in given.labels]}
    found = TopicModel(1).fit(Documents(given.ids, given.texts, given.labels, columns)).findings.shares()
    assert np.isnan(found.low).all()
    assert np.isnan(found.share).all()
    assert "no share is known: label 50 documents at random" in found.sentences[0]
    assert "cannot be planned" in found.advice(0.02)


def test_labels_that_never_say_no_give_no_share():
    texts, topics = pile()
    given = [own[:1] if row < 60 else None for row, own in enumerate(topics)]
    found = TopicModel(0, complete=False).fit(texts, given).findings.shares()
    assert np.isnan(found.low[0, :3]).all()
    assert np.isnan(found.share[0, :3]).all()


def test_the_number_of_labels_for_a_precision(fitted):
    model, _ = fitted
    found = model.findings.shares()
    table = found.needed_labels(0.02)
    half, more = (
        dict(zip(table["topic"], table["half"], strict=True)),
        dict(zip(table["topic"], table["more"], strict=True)),
    )
    assert (more["tea"] == 0) == (half["tea"] <= 0.02)
    assert max(more.values()) < 400 - 120
    assert "more random labels" in found.advice(0.001)
    assert found.advice(0.4) == "±40 points is reached for every topic."
    with pytest.raises(ValueError, match=r"such as 0\.02"):
        found.needed_labels(2)


def test_weights_and_clusters(fitted):
    model, topics = fitted
    weight = np.array(model.documents_.columns["w"])
    found = model.findings.shares(weight="w", cluster="author")
    truth = np.average(["tea" in own for own in topics], weights=weight)
    k = found.topics.index("tea")
    assert found.low[0, k] <= truth <= found.high[0, k]
    clusters = model.findings.shares(cluster="author")
    evidence = model.findings.evidence(clusters_of("author", model.documents_.columns, 400))
    folds = evidence.sample.folds(5, 0)
    authors = np.array([int(model.documents_.columns["author"][row][1:]) for row in evidence.sample.rows])
    assert all(len(set(folds[authors == author])) == 1 for author in set(authors))
    assert clusters.documents[0] == 400


def test_near_duplicates_are_one_cluster():
    given, _ = documents(300, 90)
    twice = Documents([f"d{i}" for i in range(600)], [*given.texts, *given.texts], [*given.labels, *given.labels])
    sample = TopicModel(1).fit(twice).findings.evidence().sample
    assert len(sample.rows) == 180
    assert len(np.unique(sample.clusters)) <= 90


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "colour"}, "there is no column 'colour' to group by"),
        ({"weight": "colour"}, "there is no column 'colour' of weights"),
        ({"cluster": "colour"}, "there is no column 'colour' of clusters"),
        ({"weight": "region"}, "weights must be numbers"),
        ({"weight": [1.0, 2.0]}, "one number per document"),
        ({"cluster": ["a"]}, "1 clusters for 400 documents"),
    ],
)
def test_wrong_columns_are_named(fitted, options, words):
    with pytest.raises(ValueError, match=words):
        fitted[0].findings.shares(**options)


def test_a_loaded_model_needs_its_documents(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "model")
    again = TopicModel.load(tmp_path / "model")
    assert again.state_.label_origin.kind.sum() == 120 * Kind.RANDOM
    with pytest.raises(ValueError, match="This model has no documents"):
        again.findings.shares()
    found = again.attach(model.documents_).findings.shares("region")
    np.testing.assert_array_equal(found.low, model.findings.shares("region").low)
    kept, before = again.findings.evidence(), again.state_
    again.attach(model.documents_).findings.shares("date:month")  # the same documents, read again: no new guides
    assert again.findings.evidence() is kept
    assert same_but_texts(before, again.state_)
    again.update(Documents(["new"], ["kettle leaves cup"], [["tea"]]))
    assert not same_but_texts(before, again.state_)


def test_an_update_keeps_the_origin_of_labels():
    given, _ = documents()
    model = TopicModel(1).fit(given)
    model.update(Documents(["new"], ["kettle leaves cup"], [["tea"]], {"chosen": ["suggested 2"]}))
    origin = model.state_.label_origin
    assert origin.kind[-1] == Kind.SUGGESTED
    assert origin.draw[-1] == 2
    assert (origin.kind == Kind.RANDOM).sum() == 120


def test_documents_for_shares_are_drawn_with_known_probability(fitted):
    model, _ = fitted
    table = model.labels.suggest(40, how="shares")
    assert set(table["chosen"]) == {"doubt 2"}
    assert len(set(table["id"])) == 40
    assert ((table["probability"] > 0) & (table["probability"] <= 1)).all()
    assert set(model.labels.suggest(5, how="random")["chosen"]) == {"random 2"}
    assert set(model.labels.suggest(5)["chosen"]) == {"suggested 2"}
    few, _ = documents(400, 20)
    assert set(TopicModel(1).fit(few).labels.suggest(5, how="shares")["chosen"]) == {"random 2"}


# --- on disk ---


@pytest.fixture
def table(tmp_path):
    given, _ = documents()
    columns = {"id": given.ids, "text": given.texts, "labels": ["; ".join(names) for names in given.labels]}
    pl.DataFrame(columns | dict(given.columns)).write_csv(tmp_path / "articles.csv")
    return tmp_path / "articles.csv"


def test_a_corpus_on_disk_gives_the_same_shares_and_is_read_twice_at_most(table, tmp_path, monkeypatch):
    monkeypatch.setattr("topicsteer.text.vectorizer.TextVectorizer.chunk_size", 500)
    corpus = spool(table, tmp_path / "spool", block=4000, piece=3000)
    assert len(corpus.matrix) > 3
    assert list(corpus.documents.columns) == ["region", "date", "w", "author", "chosen"]
    model = TopicModel(2, world="open").fit(corpus)
    rows = []
    load, take = BlockFolder.each, BlockFolder.take
    monkeypatch.setattr(BlockFolder, "each", lambda self, *given: rows.append(self.shape[0]) or load(self, *given))
    monkeypatch.setattr(BlockFolder, "take", lambda self, own: rows.append(len(own)) or take(self, own))
    found = model.findings.shares("date:month", weight="w")
    assert sum(rows) <= 2 * 400 + 120  # labelled documents are compared with each other as well
    monkeypatch.undo()
    same = TopicModel(2, world="open").fit(table).findings.shares("date:month", weight="w")
    assert found.groups == same.groups
    np.testing.assert_allclose(found.share, same.share, atol=1e-5)
    np.testing.assert_allclose(found.low, same.low, atol=1e-5)
    loaded_from = tmp_path / "model"
    model.save(loaded_from)
    again = TopicModel.load(loaded_from).attach(spool(table, tmp_path / "spool"))
    np.testing.assert_allclose(again.findings.shares("region").low, model.findings.shares("region").low, atol=1e-9)
