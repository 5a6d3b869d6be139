import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from problems import planted_texts
from sklearn.exceptions import NotFittedError

from topicsteer import TopicModel
from topicsteer.corpora import Documents
from topicsteer.model.settings import check_keywords
from topicsteer.system import arrays as storage
from topicsteer.system.arrays import StorageError
from topicsteer.text import TextVectorizer

TEA = ["green tea leaves in a pot", "tea leaves and hot water", "black tea with milk", "a pot of green tea"]
COFFEE = ["roast coffee beans", "coffee beans ground for espresso", "espresso and roast coffee", "ground coffee"]
CHESS = ["the bishop takes the knight", "castle the king before the knight moves", "bishop and king endings"]
TEXTS = (TEA + COFFEE + CHESS) * 4
LABELS = [["tea"], ["tea"], [], [], ["coffee"], ["coffee"]] + [[] for _ in range(len(TEXTS) - 6)]


@pytest.fixture(scope="module")
def model():
    return TopicModel(free_topics=1).fit(TEXTS, LABELS)


def test_one_text_or_a_table_is_no_list_of_texts(model):
    for ask in (model.predict, model.transform):
        with pytest.raises(TypeError, match=r"got one text: put it in a list"):
            ask("green tea")
        with pytest.raises(TypeError, match=r"got a table: pass its text column"):
            ask(pl.DataFrame({"text": ["green tea"]}))
    with pytest.raises(TypeError, match=r"if it is a text, put it in a list"):
        model.memberships("a pot of green tea")


def test_names_that_look_like_numbers_come_before_numbers():
    numbers = {"tea": [3], "coffee": [1]}
    model = TopicModel(free_topics=0).fit(TEXTS, [numbers[names[0]] if names else [] for names in LABELS])
    assert model.state_.topics.names == ("1", "3")
    assert "coffee" in model.top_terms(1)
    assert "tea" in model.top_terms(3)
    with pytest.raises(KeyError, match="there is no topic '0'"):  # a name is never read as a position
        model.top_terms(0)
    assert model.edit.rename(1, "coffee").state_.topics.names == ("coffee", "3")
    with pytest.raises(KeyError):
        model.top_terms(1)
    assert "tea" in model.edit.rename(3, "tea").top_terms(1)


def test_topics_and_free_names(model):
    table = model.topics
    assert isinstance(table, pl.DataFrame)
    assert table["topic"].to_list()[:2] == ["coffee", "tea"]
    assert table["kind"].to_list() == ["known", "known", "free"]
    assert table["labelled"].to_list() == [2, 2, 0]
    memberships = model.memberships().drop("id", "(none)").to_numpy()
    np.testing.assert_allclose(table["mean membership"], memberships.mean(axis=0), rtol=1e-6)
    assert "coffee" in table["terms"][0]
    assert {"knight", "bishop", "king"} & set(table["topic"][2].split(", "))
    assert repr(model) == "<TopicModel: 2 known and 1 free topics of 44 documents, 4 labelled>"
    assert "not fitted" in repr(TopicModel())


def test_labelled_documents_obey(model):
    weights = model.state_.topics.W
    for i, labels in enumerate(LABELS):
        if labels:
            other = 1 - ["coffee", "tea"].index(labels[0])
            assert weights[i, other] == 0
    assert model.document_topics.columns == ["id", *model.state_.topics.names]


def test_memberships_of_old_and_new_documents(model):
    table = model.memberships()
    assert table.columns == ["id", "coffee", "tea", model.state_.topics.names[2], "(none)"]
    assert len(table) == len(TEXTS)
    assert table["tea"][0] > 0.5 > table["coffee"][0]
    new = model.memberships(["espresso beans", "nothing known", "milk in the tea"])
    assert new["coffee"].arg_max() == 0
    assert new["tea"].arg_max() == 2
    assert new.row(1)[1:] == (0.0, 0.0, 0.0, float(model.state_.open))
    one = model.memberships(["milk in the tea"])
    assert one.row(0)[1:] == pytest.approx(new.row(2)[1:], abs=1e-6)  # the batch does not matter
    unlabelled = [i for i, labels in enumerate(LABELS) if not labels]
    again = model.memberships([TEXTS[i] for i in unlabelled])
    np.testing.assert_allclose(again["tea"], table["tea"].to_numpy()[unlabelled], atol=0.05)  # fit = transform


def test_predict(model):
    assert model.predict(["roast espresso", "green leaves in a pot", "unknown words"]) == [["coffee"], ["tea"], []]
    assert ((model.state_.thresholds > 0) & (model.state_.thresholds < 1)).all()


def test_tables_keep_the_users_kind_ids_and_columns():
    frame = pd.DataFrame({"body": TEXTS, "topic": ["|".join(x) for x in LABELS], "key": [f"d{i}" for i in range(44)]})
    model = TopicModel(1).fit(frame, "topic", text="body", id="key")
    assert isinstance(model.topics, pd.DataFrame)
    assert model.memberships()["id"].tolist()[:2] == ["d0", "d1"]
    assert model.documents_.columns == {}
    new = pl.DataFrame({"name": ["x", "y"], "text": ["green tea", "espresso"]})
    assert model.memberships(new, id="name")["id"].to_list() == ["x", "y"]  # polars in, polars out
    assert isinstance(model.memberships(["tea"]), pd.DataFrame)
    assert model.top_terms("tea", 1) == model.state_.topics.top_terms("tea", 1)


def test_empty_texts_keep_their_rows(tmp_path):
    texts, row = ["", *TEXTS, None], {1: "tea", 5: "coffee"}
    for source in (texts, pd.DataFrame({"text": texts}), pd.Series(texts)):
        model = TopicModel(free_topics=1).fit(source, row)
        assert len(model.memberships()) == len(texts)
        assert "green" in model.top_terms("tea")
        assert len(model.memberships(["", "green tea"])) == 2
    assert TopicModel(1).fit(texts, [row.get(i) for i in range(len(texts))]).state_.topics.W[0].sum() == 0
    path = tmp_path / "a.csv"
    pl.DataFrame({"id": range(len(texts)), "text": texts}).write_csv(path)
    with pytest.raises(
        ValueError, match=r"Labels by row need every row, but some rows cannot be read:\n(.*\n)*.*2 bad"
    ):
        TopicModel(1).fit(path, row)


def test_forbidden_labels_reach_the_fit():
    documents = Documents(list(range(44)), TEXTS, LABELS, forbidden=[[] for _ in range(43)] + [["tea", "coffee"]])
    model = TopicModel(1).fit(documents)
    assert not model.state_.topics.W[43, :2].any()
    assert model.state_.topics.W[43, 2] > 0


def test_top_documents(model):
    table = model.top_documents("tea", 3)
    assert len(table) == 3
    assert all("tea" in text for text in table["text"])
    assert table["part"].is_sorted(descending=True)
    assert table["labelled"].any()
    with pytest.raises(KeyError, match="there is no topic 'milk'; the topics are 'coffee', 'tea'"):
        model.top_documents("milk")


def test_explanations_add_up(model):
    text = "Ground coffee, and a pot of GREEN tea."
    explanation = model.explain(text)
    assert "tea" in explanation.names
    w = model.transform([text])[0]
    x = model.vectorizer_.transform([text]).toarray()[0]
    for term, value, explained in zip(*(explanation.rows()[c] for c in ("term", "weight", "explained")), strict=True):
        j = model.vectorizer_.vocabulary_[term]
        assert value == pytest.approx(x[j])
        assert explained == pytest.approx(float(w @ model.state_.topics.H[:, j]), abs=1e-6)
    marked = {text[start:end] for start, end, _ in explanation.strengths("tea")}
    assert {"GREEN", "tea"} <= marked
    of_document = model.explain(id=0)
    assert "coffee" not in of_document.names  # the label forbids it


def test_rename_and_merge():
    model = TopicModel(1).fit(TEXTS, LABELS)
    before = model.state_.topics.W @ model.state_.topics.H
    model.edit.rename("tea", "Tee")
    assert model.topics["topic"].to_list()[1] == "Tee"
    with pytest.raises(ValueError, match="belongs to another topic"):
        model.edit.rename("Tee", "coffee")
    with pytest.raises(ValueError, match="two topics"):
        model.edit.merge(["Tee"])
    masses = (model.state_.topics.W * model.state_.topics.H.sum(axis=1)).sum(axis=1)
    model.edit.merge(["coffee", "Tee"], "drinks")
    assert model.state_.topics.names[0] == "drinks"
    assert model.state_.topics.n_known == 1
    assert model.topics["labelled"].to_list()[0] == 4
    np.testing.assert_allclose(
        (model.state_.topics.W * model.state_.topics.H.sum(axis=1)).sum(axis=1), masses, rtol=1e-4
    )
    assert (model.state_.topics.W @ model.state_.topics.H).sum() == pytest.approx(before.sum(), rel=1e-4)
    assert model.predict(["green tea", "espresso"]) == [["drinks"], ["drinks"]]
    free = model.state_.topics.names[1]
    model.edit.merge(["drinks", free])
    assert model.state_.topics.names == ("drinks",)
    assert model.state_.topics.n_known == 1


def test_saved_and_loaded_models_agree(model, tmp_path):
    model.save(tmp_path / "m")
    again = TopicModel.load(tmp_path / "m")
    assert repr(again) == repr(model)
    assert again.memberships().equals(model.memberships())
    new = ["espresso with milk", "a knight", ""]
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    assert again.predict(new) == model.predict(new)
    assert again.explain(new[0]).rows() == model.explain(new[0]).rows()
    with pytest.raises(ValueError, match="has no documents"):
        again.explain(id=0)
    with pytest.raises(ValueError, match="not the training documents"):
        again.attach(TEXTS[::-1])
    assert again.attach(TEXTS).explain(id=0).text == TEXTS[0]
    with pytest.raises(KeyError, match="no-such"):
        again.explain(id="no-such")
    content = (tmp_path / "m" / "model.json").read_text()
    assert TEXTS[0] not in content
    model.save(tmp_path / "m", texts=True)
    assert TopicModel.load(tmp_path / "m").explain(id=0).text == TEXTS[0]


def test_damaged_and_foreign_models_are_refused(model, tmp_path):
    with pytest.raises(StorageError):
        TopicModel.load(tmp_path)
    model.save(tmp_path / "m")
    array = next((tmp_path / "m").glob("components-*.npy"))
    good = array.read_bytes()
    array.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(StorageError):
        TopicModel.load(tmp_path / "m")
    array.write_bytes(good)
    meta, arrays = storage.load(tmp_path / "m")
    for key in ("codebook", "free_names", "vocabulary", "kind", "groups"):
        storage.save(tmp_path / "broken", {k: v for k, v in meta.items() if k != key}, arrays)
        with pytest.raises(StorageError, match="not a complete model"):
            TopicModel.load(tmp_path / "broken")
    storage.save(tmp_path / "broken", meta, {k: v for k, v in arrays.items() if k != "idf"})
    with pytest.raises(StorageError, match="not a complete model"):
        TopicModel.load(tmp_path / "broken")
    storage.save(tmp_path / "broken", meta | {"kind": "Cake"}, arrays)
    with pytest.raises(StorageError, match="holds a Cake"):
        TopicModel.load(tmp_path / "broken")


def test_a_lemmatizer_must_be_given_again(tmp_path):
    stem = str.lower
    model = TopicModel(1, vectorizer=TextVectorizer(lemmatizer=stem)).fit(TEXTS, LABELS)
    model.save(tmp_path / "m")
    without = TopicModel.load(tmp_path / "m")
    assert without.top_terms("tea") == model.top_terms("tea")
    with pytest.raises(ValueError, match="fitted with a lemmatizer: pass the same one to load"):
        without.predict(["green tea"])
    assert TopicModel.load(tmp_path / "m", lemmatizer=stem).predict(["green tea"]) == [["tea"]]


def test_a_fit_that_fails_leaves_the_last_one():
    model = TopicModel(1).fit(TEXTS, LABELS)
    before = model.memberships()
    with pytest.raises(ValueError, match="labels for 2 documents"):
        model.fit(TEXTS, ["tea", "coffee"])
    with pytest.raises(ValueError, match="no words"):
        model.fit(["1 2 3", "4 5"], ["a", None])
    assert model.memberships().equals(before)
    assert model.predict(["green tea"]) == [["tea"]]


def test_no_labels():
    plain = TopicModel(3).fit(TEXTS)
    assert plain.state_.topics.n_known == 0
    assert plain.memberships().columns == ["id", *plain.state_.topics.names, "(none)"]
    assert plain.predict(["tea"]) == [[]]
    with pytest.raises(ValueError, match="no labels and no free topics"):
        TopicModel(0).fit(TEXTS)
    with pytest.raises(TypeError, match="one long text"):
        TopicModel(2).fit("some\ntext")


def test_topics_in_the_users_order():
    model = TopicModel(0, topics=["tea", "milk", "coffee"]).fit(TEXTS, LABELS)  # the corpus contains milk
    assert model.state_.topics.names == ("tea", "milk", "coffee")


def test_progress_is_reported():
    seen = []
    TopicModel(1).fit(TEXTS, LABELS, progress=lambda *step: seen.append(step))
    assert {step[0] for step in seen} == {"terms", "fit", "guide"}
    assert [step for step in seen if step[0] == "fit"][-1][3].startswith("objective ")


def test_evaluate_says_who_won():
    labels = [["tea"]] * 4 + [["coffee"]] * 4 + [[]] * 3
    result = TopicModel(1).fit(TEXTS, labels * 4).evaluate(folds=3)
    assert result.names == ("coffee", "tea")
    assert set(result.macro) == {"topicsteer", "logistic regression"}
    assert all(value > 0.9 for value in result.macro.values())
    assert "hidden labels" in result.verdict


def test_report_is_written(model, tmp_path):
    model.report(tmp_path / "r.html", title="Drinks & games")
    page = (tmp_path / "r.html").read_text()
    assert "Drinks &amp; games" in page
    for name in model.state_.topics.names:
        assert name in page


def test_guidance_steers_the_factorisation_of_old_and_new_documents_alike():
    guided = TopicModel(1).fit(TEXTS, LABELS)
    np.testing.assert_allclose(np.linalg.norm(guided.state_.topics.H, axis=1), 1, rtol=1e-5)
    assert guided.state_.estimator["label_weight"] is None
    unlabelled = [i for i, labels in enumerate(LABELS) if not labels]
    new = guided.transform([TEXTS[i] for i in unlabelled])
    np.testing.assert_allclose(new, guided.state_.topics.W[unlabelled], atol=0.02)


@pytest.mark.parametrize(("names", "place"), [(["tea", "coffee"], 1), (["coffee", "tea"], 0)])
def test_topics_are_merged_into_the_first(names, place):
    model = TopicModel(1).fit(TEXTS, LABELS)
    keys = model.codebook.keys
    model.edit.merge(names)
    assert model.codebook.names == (names[0],)
    assert model.codebook.keys == (keys[place],)
    assert model.topics["labelled"][0] == 4
    assert model.predict(["green tea", "espresso"]) == [[names[0]]] * 2


def test_merged_topics_keep_their_soft_mask():
    model = TopicModel(1).fit(TEXTS, LABELS).edit.merge(["coffee", "tea"], "drinks")
    weights = model.transform(["green tea leaves", "the bishop takes the knight"])
    assert weights[0, 0] > 0 == weights[0, 1]
    assert weights[1, 1] > 0


def test_keywords_and_banned_words_are_respected_and_saved(tmp_path):
    settings = {
        "keywords": {"tea": ["Espresso", "milk"]},
        "banned": {"tea": ["leaves"], "coffee": ["ground"]},
        "descriptions": {"tea": "what the leaves give"},
    }
    model = TopicModel(1, **settings).fit(TEXTS, LABELS)
    terms = list(model.state_.topics.vocabulary)
    tea, coffee = model.state_.topics.H[1], model.state_.topics.H[0]
    assert tea[terms.index("leaves")] == coffee[terms.index("ground")] == 0
    for word in ("espresso", "milk"):
        assert (tea > tea[terms.index(word)]).sum() < 10
        assert tea[terms.index(word)] > 0
    model.save(tmp_path / "m")
    again = TopicModel.load(tmp_path / "m")
    assert {name: getattr(again, name) for name in settings} == settings
    meta, arrays = storage.load(tmp_path / "m")
    assert [topic["keywords"] for topic in meta["codebook"]] == [[], ["Espresso", "milk"]]
    assert arrays["components"].shape == model.state_.topics.H.shape


def test_words_that_cannot_be_used_are_named():
    with pytest.warns(UserWarning, match="'unheard', 'the'"):
        TopicModel(1, keywords={"tea": ["unheard", "tea"]}, banned={"tea": ["the"]}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="keywords names the topic 'milk', which is not one of coffee, tea"):
        TopicModel(1, keywords={"milk": ["cow"]}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="both a keyword of and banned from the topic 'tea'"):
        TopicModel(1, keywords={"tea": ["pot"]}, banned={"tea": ["Pot"]}).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="expected a list of words"):
        TopicModel(1, banned={"tea": "pot"}).fit(TEXTS, LABELS)


@pytest.mark.parametrize("unnamed", [0, 2, 4])
def test_the_number_of_free_topics_is_found(unnamed):
    texts = planted_texts(5 + unnamed)
    labels = [f"t{i // 40}" if i < 200 and i % 40 < 12 else None for i in range(len(texts))]
    model = TopicModel("auto").fit(texts, labels)
    assert len(model.state_.topics) - model.state_.topics.n_known == unnamed
    assert model.free_topics == "auto"
    for k in range(5, 5 + unnamed):  # each free topic has documents of one of the unnamed ones
        rows = model.state_.topics.top_rows(k, 10)
        assert min(rows) >= 200
        assert len({i // 40 for i in rows}) == 1


def test_auto_without_labels_and_wrong_numbers():
    assert len(TopicModel("auto").fit(planted_texts(10)).state_.topics) == 10
    for wrong in (-1, "many", 2.5):
        with pytest.raises(ValueError, match=r'a number from 0 up, or "auto"'):
            TopicModel(wrong).fit(TEXTS, LABELS)


def test_at_most_thirty_public_names():
    """Methods and properties, without the arguments and results that a fit stores under their names."""
    public = {name for name in dir(TopicModel) if not name.startswith("_")}
    assert len(public) <= 30, sorted(public)


def test_words_of_an_unknown_topic_and_texts_instead_of_lists_are_errors():
    check_keywords("keywords", {"tea": ["leaf"]}, ["tea"])
    with pytest.raises(ValueError, match="'milk', which is not one of tea"):
        check_keywords("keywords", {"milk": ["cow"]}, ["tea"])
    with pytest.raises(ValueError, match="expected a list of words"):
        check_keywords("banned", {"tea": "leaf"}, ["tea"])


def test_before_a_fit_every_result_is_an_error_that_names_fit():
    empty = TopicModel(1)
    for ask in (lambda: empty.state_, lambda: empty.predict(["tea"]), empty.memberships, lambda: empty.topics):
        with pytest.raises(NotFittedError, match=r"is not fitted, so it has no .*: call fit"):
            ask()
    assert not hasattr(empty, "state_")
    assert repr(copy.copy(empty)) == "<TopicModel: not fitted, 1 free topics>"
    with pytest.raises(AttributeError, match="a TopicModel has no 'topicz'"):
        TopicModel(1).fit(TEXTS, LABELS).topicz  # noqa: B018


def test_tables_have_the_index_of_a_pandas_frame():
    frame = pd.DataFrame({"text": TEXTS, "label": [names[0] if names else None for names in LABELS]})
    frame = frame.sample(frac=1, random_state=0)
    model = TopicModel(1).fit(frame, "label", text="text")
    fitted, asked = model.memberships(), model.memberships(frame)
    assert fitted.index.tolist() == asked.index.tolist() == frame.index.tolist()
    joined = frame.join(asked)
    tea = joined["text"].str.contains("tea")
    assert joined["tea"][tea].mean() > joined["tea"][~tea].mean() + 0.3
    some = frame["text"]
    found = model.predict(some)
    assert found.index.tolist() == some.index.tolist()
    assert found.tolist() == model.predict(some.tolist())
    assert isinstance(model.findings.prevalence(), pd.DataFrame)


def test_the_methods_of_an_estimator(model):
    P = model.predict_proba(TEXTS)
    np.testing.assert_allclose(P, model.memberships(TEXTS).drop("id").to_numpy())
    truth = [["tea"] if "tea" in text else ["coffee"] if "coffee" in text else ["(none)"] for text in TEXTS]
    assert 0.8 < model.score(TEXTS, truth) <= 1
    turned = [["coffee"] if own == ["tea"] else ["tea"] for own in truth]
    assert model.score(TEXTS, turned) < model.score(TEXTS, truth)
    again = TopicModel(1)
    np.testing.assert_array_equal(again.fit_transform(TEXTS, LABELS), again.state_.document_topics)


def test_representations_are_short(model):
    parts = [model.state_, model.state_.topics, model.predictor_, model.evaluate()]
    assert all(len(repr(part)) < 120 for part in (*parts, model.findings.shares(), model.state_.supervision))
