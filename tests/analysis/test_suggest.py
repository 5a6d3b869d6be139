import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.analysis import documents_to_label as suggestions
from topicsteer.analysis.documents_to_label import NOISE, audit, doubt_sentence
from topicsteer.corpora import Documents, load_docstrings
from topicsteer.labels.forms import supervise


@pytest.fixture
def scene():
    """Three heaps of documents; only the first has labels, and the second looks a little like it."""
    rng = np.random.default_rng(0)
    Z = np.repeat(np.eye(3, 8), (30, 30, 10), axis=0) + 0.2 * rng.normal(size=(70, 8))
    P = np.zeros((70, 2), np.float32)
    P[:30, 0], P[30:60, 0], P[30:60, 1] = 0.95, 0.4, 0.35
    supervision = supervise({0: "tea", 1: "tea", 2: "milk"}, 70, topics=["tea", "milk"])
    return Z.astype(np.float32), P, supervision, Z[:3].T @ Z[:3]


def test_the_greedy_choice_is_that_of_the_slow_sum():
    rng = np.random.default_rng(1)
    Z, weight = rng.normal(size=(40, 6)), rng.random(40)
    seen = list(range(5))
    unknown = np.linalg.inv(np.eye(6) + Z[seen].T @ Z[seen] / NOISE)
    slow = []
    for _ in range(6):
        rows = seen + slow
        C = np.linalg.inv(np.eye(6) + Z[rows].T @ Z[rows] / NOISE)
        gain = [sum(weight[r] * (Z[r] @ C @ Z[i]) ** 2 for r in range(40)) / (Z[i] @ C @ Z[i] + NOISE)
                for i in range(40)]  # fmt: skip
        slow.append(max((i for i in range(40) if i not in slow), key=lambda i: gain[i]))
    assert suggestions.greedy_choice(Z, unknown, weight, 6) == slow


def test_what_is_new_and_what_is_between_comes_first(scene):
    Z, P, supervision, seen = scene
    found = suggestions.suggest(Z.__getitem__, P, supervision, seen, 6)
    assert found[0].row >= 30
    assert {s.row >= 60 for s in found} == {True, False}
    whys = {s.why for s in found}
    assert "unlike anything labelled yet" in whys
    assert "may be tea, which has only 2 labels" in whys


def test_labelled_documents_and_near_duplicates_are_left_out(scene):
    Z, P, supervision, seen = scene
    Z[31:60] = Z[30]
    found = suggestions.suggest(Z.__getitem__, P, supervision, seen, 70)
    rows = [s.row for s in found]
    assert len(set(rows)) == len(rows)
    assert not {0, 1, 2} & set(rows)
    assert sum(30 <= row < 60 for row in rows) == 1
    only = suggestions.suggest(Z.__getitem__, P, supervision, seen, 5, rows=np.arange(3, 10))
    assert {s.row for s in only} <= set(range(3, 10))


def test_of_many_documents_few_are_looked_at_closely(scene):
    Z, P, supervision, seen = scene
    asked = []

    def place(rows):
        asked.append(rows)
        return Z[rows]

    found = suggestions.suggest(place, P, supervision, seen, 5, shortlist=12)
    assert len(found) == 5
    assert 12 <= len(asked[0]) <= 24
    again = suggestions.suggest(place, P, supervision, seen, 5, shortlist=12)
    assert found == again


@pytest.mark.parametrize(
    ("p", "counts", "strange", "why"),
    [
        ((0.0, 0.0), (9, 9), True, "unlike anything labelled yet"),
        ((0.0, 0.0), (9, 9), False, "no topic fits, although similar documents are labelled"),
        ((0.5, 0.4), (9, 9), True, "between tea and milk"),
        ((0.1, 0.4), (9, 1), True, "may be milk, which has only 1 label"),
        ((0.4, 0.0), (9, 9), True, "perhaps tea, but uncertain"),
        ((0.9, 0.0), (9, 9), True, "probably tea; typical of many unlabelled documents"),
    ],
)
def test_reasons(p, counts, strange, why):
    labels = ["tea"] * counts[0] + ["milk"] * counts[1]
    supervision = supervise(labels, len(labels), topics=["tea", "milk"])
    assert suggestions.suggestion_of(0, np.array(p), supervision, strange).why == why


def test_audit_orders_wrong_missing_and_what_cannot_be_judged():
    given = supervise([["tea"], ["tea"], ["milk"], ["milk"], ["rum"], []], 6, topics=["tea", "milk", "rum"])
    left_out = np.array([[0.9, 0.8, 0], [0.05, 0.9, 0], [0.6, 0.1, 0], [0, 0.9, 0], [0.4, 0, 0]])
    found = audit(left_out, np.arange(5), given)
    assert [(d.row, d.topic) for d in found[:2]] == [(1, 0), (2, 1)]
    assert found[0].why == "labelled tea (0.05), but reads like milk (0.90)"
    missing = next(d for d in found if d.given != "permitted")
    assert (missing.row, missing.topic, missing.given, missing.probability) == (0, 1, "forbidden", 0.8)
    assert found[-1].why == "the only label of rum, so it cannot be checked"
    assert [d.strength for d in found] == sorted((d.strength for d in found), reverse=True)
    open_ = supervise([["tea"], ["tea"]], 2, topics=["tea", "milk"], complete=False)
    assert [d.given for d in audit(np.array([[0.9, 0.8], [0.9, 0]]), np.arange(2), open_) if d.topic] == ["unknown"]


def test_the_sentence_of_a_doubt_is_made_of_its_fields():
    given = supervise([["tea"], ["tea"], ["milk"], ["milk"], ["rum"], ["tea"]], 6, topics=["tea", "milk", "rum"])
    left_out = np.array([[0.9, 0.8, 0], [0.05, 0.9, 0], [0.6, 0.1, 0], [0, 0.9, 0], [0.4, 0, 0], [0.3, 0.05, 0]])
    found = audit(left_out, np.arange(6), given)
    name = dict(enumerate(given.topics)).get
    for doubt in found:
        rival = name(doubt.rival), doubt.rival_probability
        assert doubt_sentence(doubt.given, name(doubt.topic), doubt.probability, *rival, doubt.only) == doubt.why
    by_row = {doubt.row: doubt for doubt in found if doubt.given == "permitted"}
    assert (by_row[1].rival, by_row[1].rival_probability) == (1, 0.9)
    assert {row for row, doubt in by_row.items() if doubt.rival is not None} == {1, 2}
    assert [row for row, doubt in by_row.items() if doubt.only] == [4]
    assert by_row[5].why == "labelled tea, which is improbable (0.30)"
    assert by_row[3].why == "labelled milk, which is probable (0.90)"
    assert next(doubt.why for doubt in found if doubt.given == "forbidden") == (
        "not labelled milk, which is probable (0.80)"
    )


@pytest.fixture(scope="module")
def model():
    documents = load_docstrings()
    rng = np.random.default_rng(0)
    documents = documents.select(np.sort(rng.permutation(len(documents))[:700]))
    return TopicModel(2).fit(documents.hide_labels(0.8, 0)), documents


@pytest.mark.slow
def test_a_model_suggests_among_its_own_documents(model, tmp_path):
    fitted, documents = model
    table = fitted.labels.suggest(10)
    assert table.columns == ["id", "text", "label", "guess", "why", "chosen", "probability"]
    unlabelled = {i for i, known in zip(documents.ids, fitted.state_.supervision.labelled, strict=True) if not known}
    assert len(table) == 10
    assert set(table["id"]) <= unlabelled
    fitted.save(tmp_path / "model")
    loaded = TopicModel.load(tmp_path / "model")
    with pytest.raises(ValueError, match="attach"):
        loaded.labels.suggest(10)
    with pytest.raises(ValueError, match="not the training documents"):
        loaded.attach(Documents([f"new {i}" for i in range(50)], documents.texts[:50]))
    assert loaded.attach(documents).labels.suggest(10).equals(table)
    assert loaded.labels.audit(5).columns == ["id", "topic", "given", "probability", "why", "text"]


@pytest.mark.slow
def test_flipped_labels_come_first_in_the_audit(model):
    _, documents = model
    rng = np.random.default_rng(1)
    labels = [list(names) for names in documents.labels]
    flipped = rng.permutation([i for i, names in enumerate(labels) if len(names) == 1])[:30]
    for i in flipped:
        labels[i] = [str(rng.choice([name for name in documents.topic_names if name not in labels[i]]))]
    fitted = TopicModel(0).fit(documents.texts, labels)
    table = fitted.labels.audit()
    assert len(table) >= sum(map(len, labels))
    first = table.head(len(table) // 10)
    assert np.mean([i in set(first["id"]) for i in flipped]) > 0.5
    fitted.edit.merge(fitted.state_.topics.names[:2])
    assert len(fitted.labels.audit(7)) == 7


def test_without_labels_the_most_typical_come_first():
    texts = ["green tea leaves"] * 2 + ["roast coffee beans", "coffee beans ground", "black tea with milk"]
    fitted = TopicModel(2).fit(texts)
    assert set(fitted.labels.suggest(2)["why"]) == {"unlike anything labelled yet"}
    with pytest.raises(ValueError, match="audit needs labels"):
        fitted.labels.audit()
