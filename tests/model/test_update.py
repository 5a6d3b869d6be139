from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from benchmarks import updates
from experiments.corpora import load_reuters
from topicsteer import TopicModel
from topicsteer.corpora import Documents, ReadError
from topicsteer.model import pipeline, update
from topicsteer.model.pipeline import Reservoir, surplus
from topicsteer.model.state import digests, fingerprint
from topicsteer.nmf.protocols import History
from topicsteer.system.arrays import StorageError

pytestmark = pytest.mark.slow

CSR_ARRAYS = {
    "tea": "tea leaves green pot steep water cup black mint saucer",
    "coffee": "coffee beans roast espresso grind crema cup barista arabica filter",
    "milk": "milk cow cream dairy butter farm cheese whey pasture udder",
    "bread": "bread flour yeast oven crust dough loaf bakery rye wheat",
}


def pile(n, topics=("tea", "coffee", "bread"), seed=0, share=0.4, start=0):
    """Texts of ten words, most of them from one topic; some are labelled."""
    rng = np.random.default_rng([seed, start])
    kinds = rng.choice(topics, size=n)
    everything = " ".join(CSR_ARRAYS.values()).split()
    texts = [" ".join([*rng.choice(CSR_ARRAYS[kind].split(), 8), *rng.choice(everything, 2)]) for kind in kinds]
    labels = [[str(kind)] if rng.random() < share else [] for kind in kinds]
    ids = [f"d{start + i}" for i in range(n)]
    return Documents(ids, texts, labels), [str(kind) for kind in kinds]


@pytest.fixture
def model():
    return TopicModel(free_topics=2, world="closed").fit(pile(120)[0])


def joined(*parts):
    columns = ([value for part in parts for value in getattr(part, name)] for name in ("ids", "texts", "labels"))
    return Documents(*columns)


def hits(model, kinds, first=0):
    names = model.state_.topics.names[: model.state_.topics.n_known]
    return np.mean(
        [names[k] == kind for k, kind in zip(model.state_.known_memberships[first:].argmax(axis=1), kinds, strict=True)]
    )


def test_new_documents_are_taken_in_as_a_fit_to_all_would(model):
    new, kinds = pile(80, start=120)
    again = TopicModel(free_topics=2, world="closed").fit(joined(pile(120)[0], new))
    assert model.update(new) is model
    assert (model.update_.new, model.update_.topics) == (80, ())
    assert model.state_.topics.names[:3] == again.state_.topics.names[:3]
    assert len(model.state_.topics.ids) == len(model.state_.known_memberships) == len(model.state_.topics.W) == 200
    assert model.state_.accepts(joined(pile(120)[0], new))
    assert not model.state_.accepts(new)
    assert hits(model, kinds, 120) > 0.95
    assert np.abs(model.state_.known_memberships - again.state_.known_memberships).mean() < 0.02
    labelled = again.state_.supervision.labelled
    assert np.array_equal(model.state_.supervision.labelled, labelled)
    assert np.array_equal(model.state_.known_memberships[labelled], again.state_.known_memberships[labelled])
    a, b = (m.state_.objectives[-1] for m in (model, again))
    assert a == pytest.approx(b, rel=0.05)


def test_new_topics_come_behind_the_known_ones_and_before_the_free(model):
    before = model.state_.topics.names
    new, kinds = pile(80, topics=("tea", "milk"), start=120, share=0.5)
    model.update(new)
    assert model.update_.topics == ("milk",)
    assert model.state_.topics.names == (*before[:3], "milk", *before[3:])
    assert hits(model, kinds, 120) > 0.95
    assert set(model.top_terms("milk", 5)) <= set(CSR_ARRAYS["milk"].split())
    old = model.state_.supervision.patterns[model.state_.supervision.pattern[:120]]
    assert (old[model.state_.supervision.permits[:120], 3] == 0).all()  # their labels are complete
    model.update(pile(20, start=200)[0])
    assert model.state_.topics.names == (*before[:3], "milk", *before[3:])


def test_late_labels_by_id(model):
    unlabelled = [int(i) for i in np.flatnonzero(~model.state_.supervision.labelled)[:2]]
    ids = [model.state_.topics.ids[i] for i in unlabelled]
    model.update(labels={ids[0]: "milk", ids[1]: ["tea", "bread"]})
    assert (model.update_.new, model.update_.labelled, model.update_.topics) == (0, 2, ("milk",))
    names = list(model.state_.topics.names)
    assert model.state_.known_memberships[unlabelled[0]].argmax() == names.index("milk")
    assert model.state_.known_memberships[unlabelled[1], [names.index("tea"), names.index("bread")]].tolist() == [1, 1]
    W = model.state_.document_topics[unlabelled[1]]
    assert not W[names.index("coffee")]
    with pytest.raises(ValueError, match="no document with the id 'nobody'"):
        model.update(labels={"nobody": "tea"})
    with pytest.raises(ValueError, match="dict that maps document ids"):
        model.update(labels=["tea"])


def test_the_same_file_twice_changes_nothing(model):
    new = pile(40, start=120)[0]
    model.update(new)
    H, W = model.state_.components, model.state_.topics.W
    model.update(new)
    assert (model.update_.new, model.update_.unchanged) == (0, 40)
    assert np.array_equal(model.state_.components, H)
    assert np.array_equal(model.state_.topics.W, W)


def test_another_text_takes_the_place_of_the_old_one(model):
    row = int(np.flatnonzero(~model.state_.supervision.labelled)[0])
    text = CSR_ARRAYS["bread"]
    model.update(Documents([model.state_.topics.ids[row]], [text]))
    assert model.update_.replaced == 1
    assert len(model.state_.topics.ids) == 120
    assert model.state_.known_memberships[row].argmax() == model.state_.topics.index("bread")
    assert model.documents_.texts[row] == text
    assert model.state_.accepts(model.documents_)


def test_texts_without_ids_are_always_new():
    model = TopicModel(free_topics=0).fit(["green tea", "roast coffee"] * 4, ["tea", "coffee"] + [None] * 6)
    model.update(["green tea", "black tea"])
    assert list(model.state_.topics.ids) == list(range(10))
    model.update(pl.DataFrame({"text": ["more tea"], "label": ["tea"]}))
    assert list(model.state_.topics.ids) == list(range(11))
    assert model.state_.supervision.labelled.sum() == 3


def test_a_saved_model_goes_on_as_one_that_was_not(model, tmp_path):
    new = pile(60, topics=("tea", "milk"), start=120)[0]
    model.documents_ = None
    model.save(tmp_path / "model")
    again = TopicModel.load(tmp_path / "model").update(new)
    model.update(new)
    assert np.array_equal(again.state_.components, model.state_.components)
    assert np.array_equal(again.state_.known_memberships, model.state_.known_memberships)
    assert again.state_.fingerprint == model.state_.fingerprint
    assert again.documents_ is None
    model.save(tmp_path / "fixed", updatable=False)
    with pytest.raises(ValueError, match="updatable"):
        TopicModel.load(tmp_path / "fixed").update(new)
    model = TopicModel(free_topics=2, world="closed").fit(pile(120)[0])
    model.save(tmp_path / "model", texts=True)
    assert (
        TopicModel.load(tmp_path / "model").update(pile(5, start=500)[0]).documents_.texts[:120] == pile(120)[0].texts
    )


def test_a_failed_update_leaves_the_model_as_it_was(model, tmp_path, monkeypatch):
    model.save(tmp_path / "model")
    before = model.state_
    H = model.state_.components.copy()

    def fail(*arguments, **options):
        raise MemoryError("no more")

    monkeypatch.setattr(pipeline, "label_profiles", fail)
    with pytest.raises(MemoryError):
        model.update(pile(40, topics=("milk",), start=120)[0])
    assert model.state_ is before
    assert np.array_equal(model.state_.components, H)
    monkeypatch.undo()
    model.update(pile(40, start=120)[0])
    monkeypatch.setattr("topicsteer.system.files.os.replace", fail)
    with pytest.raises((MemoryError, StorageError)):
        model.save(tmp_path / "model")
    monkeypatch.undo()
    assert len(TopicModel.load(tmp_path / "model").state_.topics.ids) == 120


@pytest.mark.parametrize("free", [0, 1])
def test_of_documents_that_are_gone_sums_stay(monkeypatch, free):
    for module in (pipeline, update):
        monkeypatch.setattr(module, "surplus", partial(surplus, most=30))
    parts = [pile(100, start=100 * i) for i in range(4)]
    model = TopicModel(free_topics=free, world="closed").fit(parts[0][0])
    for documents, _ in parts[1:]:
        model.update(documents)
        labelled = model.state_.supervision.labelled
        reservoir = Reservoir.of(model.state_)
        assert (~labelled[reservoir.rows]).sum() == 30
        assert np.isin(np.flatnonzero(labelled), reservoir.rows).all()
    assert model.state_.history["totals"][1] == 400 - len(reservoir.rows)
    assert hits(model, [kind for _, kinds in parts for kind in kinds]) > 0.9
    gone = np.setdiff1d(np.arange(400), reservoir.rows)
    W = model.state_.topics.W[gone]
    assert np.allclose(model.state_.history["gram"], W.T @ W, rtol=1e-3, atol=1e-4)
    whole = joined(*(documents for documents, _ in parts))
    full = TopicModel(free_topics=free, world="closed").fit(whole)
    assert np.abs(model.state_.known_memberships - full.state_.known_memberships).mean() < 0.05

    # A late label brings its document back, with its text; without, it holds but teaches nothing.
    row = int(gone[0])
    documents = joined(*(documents for documents, _ in parts))
    late = Documents([documents.ids[row]], [documents.texts[row]], [["tea"]])
    model.update(late)
    assert row in Reservoir.of(model.state_).rows
    assert model.state_.history["totals"][1] == pytest.approx(400 - len(Reservoir.of(model.state_).rows))
    row = int(gone[1])
    with pytest.warns(UserWarning, match="no longer kept"):
        model.update(labels={documents.ids[row]: "tea"})
    assert model.update_.out_of_reach == (documents.ids[row],)
    assert model.state_.supervision.permits[row]
    with pytest.warns(UserWarning, match="membership in the new topics"):
        model.update(labels={documents.ids[reservoir.rows[0]]: "milk"})


def test_the_vocabulary_grows(model):
    terms = list(model.vectorizer_.vocabulary_)
    new = Documents(["x", "y"], ["tea with sencha", "sencha leaves"], [["tea"], []])
    model.update(new)
    assert list(model.vectorizer_.vocabulary_)[: len(terms)] == terms
    assert list(model.vectorizer_.vocabulary_)[len(terms) :] == ["sencha"]
    assert model.state_.components[model.state_.topics.index("tea"), len(terms)] > 0
    lengths = np.sqrt(
        np.asarray(Reservoir.of(model.state_).X.multiply(Reservoir.of(model.state_).X).sum(axis=1)).ravel()
    )
    assert lengths == pytest.approx(1, abs=1e-5)
    assert model.predict(["sencha"]) == [["tea"]]


def test_new_terms_are_found_in_old_texts_if_these_are_there():
    old, new = Documents(["a", "b", "c"], ["green tea sencha", "black tea", "tea pot"]), ["sencha tea", "hot sencha"]
    for keep in (True, False):
        model = TopicModel(free_topics=1).fit(old)
        kept = [k for k, term in enumerate(model.state_.vocabulary) if term != "sencha"]  # as if it were too rare
        reservoir, history = Reservoir.of(model.state_), History.empty(4, 1, np.float32)
        model.state_ = replace(
            model.state_,
            vocabulary=[model.state_.vocabulary[k] for k in kept],
            idf=model.state_.idf[kept],
            components=model.state_.components[:, kept],
            profiles=model.state_.profiles[:, kept],
            history=vars(history),
            reservoir=replace(reservoir, X=reservoir.X[:, kept]).arrays(),
            texts=model.state_.texts if keep else None,
        )
        model.update(new)
        column = model.vectorizer_.vocabulary_["sencha"]
        assert (Reservoir.of(model.state_).X[[0], [column]] > 0).all() == keep
        assert (Reservoir.of(model.state_).X[[3, 4], [column] * 2] > 0).all()


def test_merged_and_renamed_topics_go_on(model):
    model = TopicModel(free_topics=1, world="closed").fit(pile(120)[0])
    model.edit.merge(["tea", "coffee"], "drinks")
    model.edit.rename("bread", "food")
    new = Documents(["x", "y"], [CSR_ARRAYS["milk"], CSR_ARRAYS["bread"]], [["drinks"], ["food"]])
    model.update(new)
    assert model.state_.topics.names[:2] == ("food", "drinks")
    assert model.state_.groups == ((0,), (1,))
    assert model.state_.known_memberships[-2:].tolist() == [[0, 1], [1, 0]]


def test_the_first_labels_may_come_late():
    documents, kinds = pile(120)
    model = TopicModel(free_topics=3).fit(Documents(documents.ids, documents.texts))
    assert model.guide_ is None
    model.update(labels={name: label for name, label in zip(documents.ids, documents.labels, strict=True) if label})
    assert model.state_.topics.names[:3] == ("bread", "coffee", "tea")
    assert len(model.state_.topics) == 6
    assert hits(model, kinds) > 0.95


def test_the_sample_is_drawn_evenly_from_all_that_came():
    rng = np.random.default_rng(0)
    counts = np.zeros(60)
    for _ in range(400):
        reservoir = Reservoir(np.arange(0), sp.csr_array((0, 1)), np.empty(0))
        for start in range(0, 60, 20):
            reservoir = reservoir.join(
                Reservoir(np.arange(start, start + 20), sp.csr_array((20, 1)), rng.exponential(size=20))
            )
            reservoir = reservoir.select(~surplus(reservoir.keys, np.zeros(len(reservoir.rows), dtype=bool), 15))
        counts[reservoir.rows] += 1
    assert counts.sum() == 400 * 15
    assert abs(counts[:20].sum() - counts[40:].sum()) < 250
    assert reservoir.positions(np.array([reservoir.rows[3], 61])).tolist() == [3, -1]


def test_digests_tell_documents_apart():
    a, b = (digests(Documents(["a", "b"], ["x", text])) for text in ("y", "z"))
    assert a[0] == b[0]
    assert a[1] != b[1]
    assert fingerprint(a) != fingerprint(b)
    assert History.empty(2, 3).merge([0, 2]).cross.shape == (2, 2)


def reuters(step):
    try:
        documents, day = updates.by_day(load_reuters())
    except ReadError as error:
        pytest.skip(str(error))
    rows = np.arange(0, len(documents), step)
    return documents.select(rows), day[rows]


@pytest.mark.filterwarnings("ignore:No document", "ignore:No weight", "ignore:The objective")
def test_thirty_days_of_a_third_of_reuters_end_near_a_full_fit():
    documents, day = reuters(3)
    found = updates.matrix(documents, documents.hide_labels(0.9), day, day.max() + 1 - 30)
    assert found["ratio"] < 1.02


@pytest.mark.parametrize("complete", [True, False])
def test_none_of_the_topics_in_a_fit_and_in_updates(complete, tmp_path):
    texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans", "a blue car"] * 3
    labels = ["tea", "coffee", None, None, "(none)", *[None] * 10]
    model = TopicModel(free_topics=1, complete=complete).fit(texts, labels)
    assert model.state_.supervision.topics == ("coffee", "tea")
    assert (model.state_.topics.W[4, :2] == 0).all()
    assert model.state_.topics.W[4, 2] > 0
    model.update(["a red car", "hot milk"], [["(none)"], ["milk"]])
    states = model.state_.supervision.patterns[model.state_.supervision.pattern]
    assert model.state_.supervision.topics == ("coffee", "tea", "milk")
    assert states[4].tolist() == [0, 0, -1]  # it may have a topic that came later
    assert states[15].tolist() == [0, 0, 0]
    model.update(labels={9: "(none)"})
    model.save(tmp_path / "model")
    assert np.flatnonzero(TopicModel.load(tmp_path / "model").state_.supervision.outsiders).tolist() == [9, 15]
    with pytest.raises(ValueError, match=r"row 0 has the label '\(none\)' together with 'tea'"):
        model.update(labels={9: ["tea", "(none)"]})
    with pytest.raises(ValueError, match=r"a topic cannot have the name '\(none\)'"):
        model.edit.rename_all(["coffee", "tea", "milk", "(none)"])


def test_only_none_of_the_topics_is_no_topic(tmp_path):
    model = TopicModel(free_topics=1).fit(["green tea", "black coffee", "green leaves"], ["(none)", None, None])
    model.save(tmp_path / "model")
    assert TopicModel.load(tmp_path / "model").state_.supervision.topics == ()
