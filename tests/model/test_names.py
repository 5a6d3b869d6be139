"""Names and keywords before the first label."""

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.model.spool import spool

TEA = ["green tea leaves in a pot", "tea leaves and hot water", "black tea with milk", "a pot of green tea"]
COFFEE = ["roast coffee beans", "coffee beans ground for espresso", "espresso and roast coffee", "ground coffee"]
CHESS = ["the bishop takes the knight", "castle the king before the knight moves", "bishop and king endings"]
TEXTS = (TEA + COFFEE + CHESS) * 4


def test_names_alone_give_the_topics_of_their_documents():
    model = TopicModel(1, topics=["coffee", "tea"]).fit(TEXTS)
    assert model.predict(TEXTS[:8]) == [["tea"]] * 4 + [["coffee"]] * 4
    terms = dict(zip(model.topics["topic"], model.topics["terms"], strict=True))
    assert "tea" in terms["tea"]
    assert "coffee" in terms["coffee"]
    assert "knight" in terms[model.state_.topics.names[2]]
    assert len(model.state_.ids) == len(TEXTS)  # a name is never a document
    assert not model.state_.supervision.labelled.any()


def test_keywords_reach_memberships():
    model = TopicModel(1, topics=["a", "b"], keywords={"a": ["espresso"], "b": ["leaves"]}).fit(TEXTS)
    assert model.predict(["espresso and coffee", "green leaves"]) == [["a"], ["b"]]
    table = model.memberships(["roast coffee", "green tea"])  # documents without a keyword
    assert table["a"][0] > 10 * table["b"][0]
    assert table["b"][1] > 10 * table["a"][1]


def test_a_topic_without_a_word_of_the_corpus_is_reported_and_stays_empty():
    words = {"chocolate": "chocolate, cocoa, ganache"}
    with pytest.warns(UserWarning, match=r"Nothing ties these topics to a document.*: 'chocolate'") as caught:
        model = TopicModel(1, topics=["chocolate", "tea"], descriptions=words, embeddings=None).fit(TEXTS)
    assert not any("No document seems" in str(warning.message) for warning in caught)
    assert not any("starts like a free topic" in str(warning.message) for warning in caught)
    assert not model.state_.known_memberships[:, 0].any()
    assert not model.state_.components[0].any()
    assert not np.asarray(model.state_.topics.proportions)[:, 0].any()
    with pytest.warns(UserWarning, match="Nothing ties these topics"):
        alone = TopicModel(2, topics=["chocolate"], embeddings=None).fit(TEXTS)
    assert alone.guide_ is None
    assert not alone.state_.components[0].any()


def test_a_name_finds_documents_by_meaning():
    model = TopicModel(0, topics=["infusions of herbs", "coffee", "board games"], world="closed").fit(TEXTS)
    assert not {"infusions", "herbs", "board", "games"} & set(model.state_.vocabulary)
    assert model.predict(TEXTS[:1] + TEXTS[8:11]) == [["infusions of herbs"]] + [["board games"]] * 3


def test_a_name_that_finds_nothing_is_reported(tmp_path):
    labels = {0: "tea", 1: "tea", 4: "coffee", 5: "coffee", 8: "chess", 9: "chess"}
    topics = ["tea", "coffee", "chess", "volcano eruption", "tax law"]
    match = "Not found: 'volcano eruption', 'tax law'. Neither the top terms nor the nearest documents"
    with pytest.warns(UserWarning, match=match):
        model = TopicModel(0, topics=topics, world="closed").fit(TEXTS, labels)
    assert (model.state_.known_memberships[:, 3:] < model.state_.thresholds[3:]).all()
    assert model.topics["kind"].to_list() == ["known"] * 3 + ["not found"] * 2
    model.save(tmp_path / "model")
    assert TopicModel.load(tmp_path / "model").topics.equals(model.topics)
    with pytest.warns(UserWarning, match="Not found: 'tax law'"):
        model = TopicModel(0, topics=topics, world="closed").fit(TEXTS, {**labels, 2: "volcano eruption"})
    assert model.topics["kind"].to_list() == ["known"] * 4 + ["not found"]


SUBJECTS = {
    "tea": "leaf cup pot steam kettle mug milk sugar spoon",
    "chess": "knight bishop rook pawn castle board king queen opening",
    "rail": "train station ticket platform track carriage driver signal delay",
    "violin": "string bow concert orchestra note music sonata player tune",
    "garden": "soil seed plant flower rose weed water spade tree",
    "tennis": "ball racket net serve court match player set umpire",
    "winter": "snow ice frost cold wind storm coat glove scarf",
    "bank": "loan money account credit interest cash debt payment mortgage",
}


def test_a_name_that_takes_documents_of_others_is_not_found(tmp_path):
    rng = np.random.default_rng(0)
    texts = [
        " ".join(["this", "is", "the", subject, "and", *rng.choice(words.split(), 7)])
        for subject, words in SUBJECTS.items()
        for _ in range(20)
    ]
    with pytest.warns(UserWarning, match="Not found: 'submarine fossils'"):
        model = TopicModel(0, topics=[*[*SUBJECTS][:6], "submarine fossils"], world="closed").fit(texts)
    assert model.topics["kind"].to_list()[:7] == ["known"] * 6 + ["not found"]
    model.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().count(">not found<") >= 2  # its card, and its row of the table
    model.update(texts[-1:], ["submarine fossils"])
    assert model.topics["kind"].to_list()[:7] == ["known"] * 7


def test_a_name_for_some_of_the_topics_in_an_open_world():
    model = TopicModel(2, topics=["tea"]).fit(TEXTS)  # one topic and nothing that lacks it: the world is open
    assert model.guide_.open
    assert "Some documents do not have your topic." in model.belief
    table = model.memberships()
    none = np.asarray(table["(none)"])
    rows = np.arange(len(TEXTS)) % 11
    assert none[rows < 4].max() < none[rows >= 4].min()
    declared = TopicModel(2, topics=["tea", "coffee"], world="open").fit(TEXTS)
    expected = [["tea"]] * 4 + [["coffee"]] * 4 + [[]] * 3
    found = declared.predict(TEXTS[:11])
    assert sum(a == b for a, b in zip(found, expected, strict=True)) >= 10  # "black tea with milk" is unlike the others
    assert "of your 2 topics" in declared.belief
    assert 'set world="open"' in TopicModel(2, topics=["tea", "coffee"]).fit(TEXTS).belief


def test_the_first_label_of_a_topic_joins_the_names():
    names = TopicModel(1, topics=["coffee", "tea"]).fit(TEXTS)
    labelled = TopicModel(1, topics=["coffee", "tea"]).fit(TEXTS, {0: ["tea"]}, after=names)
    assert labelled.predict(TEXTS[:8]) == [["tea"]] * 4 + [["coffee"]] * 4
    updated = names.update(labels={0: ["tea"]})
    assert updated.predict(TEXTS[:8]) == [["tea"]] * 4 + [["coffee"]] * 4


def test_questions_to_a_model_without_labels(tmp_path):
    model = TopicModel(1, topics=["coffee", "tea"]).fit(TEXTS)
    assert len(model.labels.suggest(3)) == 3
    assert model.labels.audit(3).is_empty()
    model.save(tmp_path / "model")
    loaded = TopicModel.load(tmp_path / "model")
    assert loaded.predict(["roast coffee"]) == model.predict(["roast coffee"]) == [["coffee"]]


def test_ways_to_choose_documents():
    model = TopicModel(1, topics=["coffee", "tea"]).fit(TEXTS)
    given = model.labels.suggest(4, topic="tea")
    assert set(given["guess"]) == {"tea"}
    rows = given["id"].to_list()
    sure = model.state_.known_memberships[rows, 1]
    assert (np.diff(sure) >= 0).all()
    assert (
        sure[0]
        == model.state_.known_memberships[model.state_.known_memberships[:, 1] >= model.state_.thresholds[1], 1].min()
    )
    assert model.labels.suggest(5, how="random")["why"].to_list() == ["random"] * 5
    with pytest.raises(ValueError, match="how is 'best': expected one of 'useful', 'random'"):
        model.labels.suggest(how="best")
    with pytest.raises(ValueError, match="choose either"):
        model.labels.suggest(topic="tea", how="random")
    free = model.labels.suggest(4, topic="free 1")
    assert set(free["guess"]) == {model.state_.topics.names[2]}
    assert all(row % 11 >= 8 for row in free["id"])
    sure = model.state_.judged.values[:, 2]
    assert sure[free["id"][0]] == sure[sure >= 0.5].min()
    with pytest.raises(KeyError, match="there is no topic 'free 9'"):
        model.labels.suggest(topic="free 9")


def test_an_encoder_reads_names_too_at_fits_and_updates():
    def encode(texts):
        drinks = ("tea", "coffee", "espresso", "milk", "beverage")
        return [[any(word in text for word in drinks), "king" in text or "bishop" in text, 0.1] for text in texts]

    model = TopicModel(0, topics=["beverage", "king"], world="closed").fit(TEXTS, embeddings=encode)
    assert model.predict(["espresso"], embeddings=encode) == [["beverage"]]
    model.update(labels={8: ["king"]})
    assert model.state_.known_memberships[0].argmax() == 0


def test_names_of_a_corpus_on_disk(tmp_path):
    path = tmp_path / "texts.csv"
    pl.DataFrame({"text": TEXTS}).write_csv(path)
    corpus = spool(path, tmp_path / "blocks")
    on_disk = TopicModel(1, topics=["coffee", "tea"]).fit(corpus, folder=tmp_path / "work")
    in_memory = TopicModel(1, topics=["coffee", "tea"]).fit(TEXTS)
    np.testing.assert_allclose(on_disk.state_.known_memberships, in_memory.state_.known_memberships, atol=1e-6)
    with pytest.warns(UserWarning, match="Nothing ties these topics"):
        empty = TopicModel(1, topics=["chocolate"], embeddings=None).fit(corpus, folder=tmp_path / "other")
    assert not empty.state_.components[0].any()
