"""Two models compared: matched topics, and documents that moved."""

import pandas as pd
import pytest

from topicsteer import TopicModel, metrics

TEXTS = ["green tea leaves in a kettle", "roast coffee beans in a mill", "leaves of tea", "beans of coffee, roast"] * 6
LABELS = ["tea", "coffee", None, None] * 6


@pytest.fixture(scope="module")
def model():
    return TopicModel(free_topics=0, world="closed").fit(TEXTS, LABELS)


def test_matched_topics_and_moves(model):
    same = model.compare(model)
    assert same.table(changed=True)["topic"] == []
    assert same.moves()["documents"] == []
    more = [*TEXTS, *["cold milk with foam", "milk foam"] * 4]
    labels = [*LABELS[:2], *[None] * 22, *["milk"] * 8]
    other = TopicModel(free_topics=0, world="closed", topics=["milk", "coffee", "black tea"]).fit(
        more, [name if name != "tea" else "black tea" for name in labels]
    )
    found = other.compare(model)
    table = found.table()
    assert table["topic"] == ["milk", "coffee", "black tea"]
    assert table["before"] == [None, "coffee", "tea"]  # by name, and by terms
    assert table["similarity"][2] > 0.8
    assert table["similarity"][0] is None
    assert table["labelled_before"][1] == 6
    assert "milk" in table["came"][0]
    assert "3 topics" not in str(found)
    assert str(found).startswith("2 topics are in both models, 1 only in this one, 0 only in the other; ")


def test_documents_that_moved(model):
    turned = TopicModel(free_topics=0, world="closed").fit(TEXTS, ["coffee", "tea", None, None] * 6)
    moves = turned.compare(model).moves()
    assert set(zip(moves["from"], moves["to"], strict=True)) >= {("tea", "coffee"), ("coffee", "tea")}
    assert sum(moves["documents"]) >= 12


def test_coherence_is_that_of_the_metric(model):
    table = model.coherence(n=3)
    assert table.columns == ["topic", "coherence", "terms"]
    assert table["topic"].to_list() == list(model.result_.names)
    places = {term: k for k, term in enumerate(model.result_.vocabulary)}
    for k in (0, 1):
        terms = [places[term] for term in model.top_terms(k, 3)]
        assert table["coherence"][k] == pytest.approx(metrics.coherence(model.matrix_, [terms])[0])
    assert model.coherence(3, "umass")["coherence"][0] <= 0.5


def test_a_notebook_shows_whole_terms(model):
    page = model._repr_html_()
    for terms in model.topics["terms"]:
        assert f'<td style="text-align: left">{terms}</td>' in page
    hostile = TopicModel(free_topics=0).fit(TEXTS, ["<b>tea</b>" if name == "tea" else name for name in LABELS])
    assert "<b>tea" not in hostile._repr_html_()
    assert TopicModel()._repr_html_().strip() == "<p>TopicModel: not fitted</p>"


def test_a_loaded_model_answers_in_the_frames_of_its_fit(tmp_path):
    frame = pd.DataFrame({"body": TEXTS, "drink": LABELS, "ref no": range(100, 124)})
    model = TopicModel(free_topics=0, world="closed").fit(frame, "drink", text="body")
    model.save(tmp_path / "m")
    loaded = TopicModel.load(tmp_path / "m")
    assert isinstance(loaded.topics, pd.DataFrame)
    assert isinstance(loaded.memberships(["more tea"]), pd.DataFrame)
    new = pd.DataFrame({"text": ["not this"] * 3, "body": ["green tea", None, "roast"], "ref no": [1, 1, 3]})
    answers = loaded.memberships(new)
    assert answers["id"].to_list() == [1, 1, 3]  # one row per row, and the columns of the fit
    assert answers["tea"].isna().to_list() == [False, True, False]
    assert answers["tea"][0] > 0.5 > answers["tea"][2]
    assert loaded.predict(["", "green tea"]) == [[], ["tea"]]
    assert loaded.attach(frame).documents_.ids[0] == 100


def test_a_number_is_never_a_position_where_names_are_numbers():
    model = TopicModel(free_topics=0, world="closed").fit(
        TEXTS, [{"tea": 20, "coffee": 10}.get(name) for name in LABELS]
    )
    assert "tea" in model.top_terms(20)
    with pytest.raises(KeyError, match="there is no topic '1'"):
        model.top_terms(1)
