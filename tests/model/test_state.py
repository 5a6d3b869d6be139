"""A fitted model as one state: the schema refuses whatever a model cannot hold, before any kernel sees it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.model import state as states
from topicsteer.model.state import PLAIN, SCHEMA, FittedState, StateError
from topicsteer.system import arrays as storage
from topicsteer.system.arrays import StorageError
from topicsteer.text import TextVectorizer

CSR_ARRAYS = {"tea": "leaves pot kettle brew cup", "coffee": "beans roast espresso grind mug", "rail": "train track"}
FILLERS = [f"word{i}" for i in range(120)]  # enough terms for latent semantics


def pile(n, seed=0):
    rng = np.random.default_rng(seed)
    names = list(CSR_ARRAYS)
    topics = [names[i] for i in rng.integers(3, size=n)]
    texts = [" ".join([name, *rng.choice(CSR_ARRAYS[name].split(), 4), *rng.choice(FILLERS, 6)]) for name in topics]
    return texts, topics


@pytest.fixture(scope="module")
def model():
    texts, topics = pile(120)
    labels = [name if row % 2 and name != "coffee" else None for row, name in enumerate(topics)]
    embeddings = np.array([np.eye(3)[sorted(CSR_ARRAYS).index(name)][:2] for name in topics]) + 0.1
    origin = {"chosen": ["doubt 2"] * 120, "probability": [0.25] * 120}
    documents = Documents(range(120), texts, columns=origin)
    return TopicModel(3, world="open", keywords={"tea": ["kettle"]}).fit(documents, labels, embeddings=embeddings)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    """Metadata and arrays of a saved model; tests change copies only."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder, texts=True)
    meta, arrays = storage.load(folder)
    for array in arrays.values():
        array.setflags(write=False)
    return meta, arrays


def refused(tmp_path, meta, arrays, match):
    storage.save(tmp_path / "forged", meta, arrays)
    with pytest.raises(StorageError, match=match):
        TopicModel.load(tmp_path / "forged")


def test_every_array_of_a_model_is_in_the_schema_and_the_other_way_round(saved):
    assert set(saved[1]) == {field.name for field in SCHEMA}


@pytest.mark.slow
@pytest.mark.parametrize("field", SCHEMA, ids=lambda field: field.name)
def test_an_array_of_another_kind_shape_or_range_is_refused(saved, tmp_path, field):
    meta, arrays = saved
    good = arrays[field.name]
    longer = [np.concatenate([good, good[:1]])] if field.shape[0] not in ("patterns", "iterations") else []
    for bad in (good.astype(np.complex128), good[None], *longer):
        refused(tmp_path, meta, arrays | {field.name: bad}, "not a complete model")
    if field.name != "reservoir_embeddings":
        refused(tmp_path, meta, {name: array for name, array in arrays.items() if name != field.name}, field.name)
    if good.dtype.kind == "f" and good.size:  # given embeddings leave no word vectors
        bad = np.where(np.arange(good.size).reshape(good.shape) == 0, np.inf, good).astype(good.dtype)
        refused(tmp_path, meta, arrays | {field.name: bad}, field.name)
    if field.low > -np.inf:
        refused(tmp_path, meta, arrays | {field.name: good - (good.max() + good.dtype.type(9))}, field.name)
    if field.high != np.inf:
        bad = good.copy()
        bad.flat[0] = 100 if good.dtype.itemsize == 1 else 10_000_000
        refused(tmp_path, meta, arrays | {field.name: bad}, field.name)


def test_forged_word_vectors_are_refused(tmp_path):
    texts = [f"{text} street city house" for text in ("green tea leaves", "roast coffee beans", "tea pot", "cup")] * 6
    model = TopicModel(0, world="closed").fit(texts, {0: "tea", 1: "coffee"})
    model.save(tmp_path / "model")
    meta, arrays = storage.load(tmp_path / "model")
    vectors, centre = arrays["guide_vectors"], arrays["guide_centre"]
    assert vectors.any()
    broken = vectors.copy()
    broken[0, 0] = np.nan
    for bad in (vectors[:-1], vectors[:, :-1], vectors[:, :0].T, broken, vectors.astype(np.int64)):
        refused(tmp_path, meta, arrays | {"guide_vectors": bad}, "guide")
    refused(tmp_path, meta, arrays | {"guide_centre": centre[:-1]}, "guide_centre")
    shorter = {"guide_rotation": arrays["guide_rotation"][:, :-1], "guide_centre": centre[:-1]}
    refused(tmp_path, meta, arrays | shorter, "do not fit each other")
    refused(tmp_path, meta, {name: array for name, array in arrays.items() if name != "guide_vectors"}, "guide_vectors")


def test_arrays_that_do_not_fit_each_other_are_refused(saved, tmp_path):
    meta, arrays = saved
    indptr, rows = arrays["reservoir_indptr"].copy(), arrays["reservoir_rows"].copy()
    indptr[1], indptr[2] = indptr[2], indptr[1]
    rows[:2] = rows[1], rows[0]
    for name, bad in (("reservoir_indptr", indptr), ("reservoir_rows", rows)):
        refused(tmp_path, meta, arrays | {name: bad}, "retained documents")
    for name in ("vocabulary", "ids", "texts", "codebook", "free_names", "groups"):
        refused(tmp_path, meta | {name: meta[name][:-1]}, arrays, "not a complete model")
    refused(tmp_path, meta, arrays | {"stowaway": np.ones(3)}, "stowaway")


@pytest.mark.parametrize(
    ("path", "bad", "match"),
    [
        (["vectorizer", "languages"], "en", r"vectorizer\.languages"),
        (["vocabulary", 3], 7, r"Expected `str`, got `int` - at `\$\.vocabulary\[3\]`"),
        (["vocabulary", 3], "word1", "two terms are equal"),
        (["texts", 0], ["x"], r"texts\[0\]"),
        (["codebook", 0, "name"], ["tea"], r"codebook\[0\].name"),
        (["estimator", "max_iter"], -1, "max_iter must be"),
        (["parameters", "free_topics"], -1, "free_topics must be"),
        (["parameters", "cake"], 1, "cake"),
        (["parameters", "complete"], None, r"Expected `bool`, got `null` - at `\$\.parameters\.complete`"),
        (["groups", 0], [99], "classes that the guide does not have"),
        (["free_groups", 0], [99], "classes that the guide does not have"),
        (["free_groups", 0], [], "free_groups has a topic without a class of the guide"),
        (["groups", 0], [1], "groups has one class in two topics"),
        (["groups", 0], [-1], "classes that the guide does not have"),
    ],
)
def test_plain_values_of_another_form_are_refused(saved, tmp_path, path, bad, match):
    meta, arrays = saved
    meta = json.loads(json.dumps(meta))
    inner = meta
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = bad
    refused(tmp_path, meta, arrays, match)


def test_an_adopted_group_is_a_topic_that_the_guide_does_not_know(model, tmp_path):
    model.save(tmp_path / "model", texts=True)
    edited = TopicModel.load(tmp_path / "model", embeddings=model.state_.reservoir["embeddings"])
    groups = edited.edit.split("tea", 2).groups
    edited.edit.adopt(groups[0], "green tea")
    assert edited.state_.groups[-1] == ()
    edited.save(tmp_path / "edited")
    again = TopicModel.load(tmp_path / "edited")
    assert again.state_.groups == edited.state_.groups
    np.testing.assert_array_equal(again.state_.memberships, edited.state_.memberships)


def test_plain_values_survive_as_they_are(model, saved):
    assert set(saved[0]) == {"kind", *PLAIN}
    state = model.state_
    assert json.loads(json.dumps(saved[0]["parameters"])) == state.parameters
    with pytest.raises(StateError, match="missing"):
        FittedState.build({name: getattr(state, name) for name in PLAIN}, {})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"free_topics": 3, "complete": False, "random_state": 7, "threads": 1},
        {"topics": ["rail", "tea", "coffee"], "keywords": {"tea": ["pot"]}, "banned": {"rail": ["mug"]}},
        {"descriptions": {"rail": "trains"}, "vectorizer": TextVectorizer(stop_words=["cup"])},
        {"topics": Codebook((Topic(8, "rail"), Topic(3, "coffee", description="beans"), Topic(5, "tea")))},
    ],
    ids=["defaults", "plain", "words", "vectorizer", "codebook"],
)
@pytest.mark.filterwarnings("ignore:The objective still fell", "ignore:The free topic")
def test_a_loaded_model_has_the_parameters_of_the_original(given, tmp_path):
    def plain(model):
        """Nested estimators compare by their own parameters."""
        return {k: v.get_params() if hasattr(v, "get_params") else v for k, v in model.get_params().items()}

    texts, topics = pile(60)
    model = TopicModel(**given).fit(texts, [*topics[:30], *[None] * 30])
    model.save(tmp_path / "model")
    loaded = TopicModel.load(tmp_path / "model")
    assert plain(loaded) == plain(model)
    again = TopicModel(**loaded.get_params())
    assert plain(again) == plain(model)
    assert not hasattr(again, "state_")
    assert (
        again.fit(texts, [*topics[:30], *[None] * 30]).state_.known_memberships.tobytes()
        == model.state_.known_memberships.tobytes()
    )


def test_parameters_are_set_by_name():
    model = TopicModel()
    model.set_params(free_topics=2, topics=["tea"])
    assert model.get_params()["topics"] == ["tea"]
    assert model.free_topics == 2
    with pytest.raises(ValueError, match="TopicModel has no parameter 'cake'"):
        model.set_params(cake=1)


def test_whole_numbers_stay_the_names_of_topics(tmp_path):
    texts, topics = pile(90)
    number = {name: k for k, name in enumerate(CSR_ARRAYS)}
    model = TopicModel(0).fit(texts[:60], [number[name] for name in topics[:60]])
    model.save(tmp_path / "model")
    loaded = TopicModel.load(tmp_path / "model")
    assert loaded.codebook.names == (0, 1, 2)
    loaded.update(texts[60:], [number[name] for name in topics[60:]])
    assert loaded.codebook.names == (0, 1, 2)
    assert loaded.update_.topics == ()
    loaded.edit.rename(1, "one")
    assert loaded.codebook.names == (0, "one", 2)


def test_a_refit_ends_where_a_fit_from_scratch_does():
    texts, topics = pile(120)
    labels = [name if row % 2 else None for row, name in enumerate(topics)]
    wrong = [{"tea": "rail", "rail": "tea"}.get(name, name) for name in labels]
    for settings in ({}, {"world": "open"}):
        first = TopicModel(2, **settings).fit(texts, wrong)
        later = TopicModel(2, **settings).fit(texts, labels, after=first)
        cold = TopicModel(2, **settings).fit(texts, labels)
        for name, array in cold.state_.arrays().items():
            np.testing.assert_array_equal(later.state_.arrays()[name], array, err_msg=name)


def test_all_topics_are_renamed_at_once(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = TopicModel.load(tmp_path / "model")
    first, second, *rest = loaded.state_.topics.names
    loaded.edit.rename_all([second, first, *rest])  # one by one, a name would be taken
    assert loaded.state_.topics.names[:2] == (second, first)
    assert loaded.codebook.keys == model.codebook.keys
    with pytest.raises(ValueError, match="two topics would have the name"):
        loaded.edit.rename_all([first] * len(loaded.state_.topics.names))
    with pytest.raises(ValueError, match=f"expected {len(rest) + 2} names"):
        loaded.edit.rename_all([first])


def test_decisions_from_memberships_are_those_of_predict(model):
    new, _ = pile(20, seed=3)
    E = np.ones((20, 2))
    belongs = model.memberships(new, embeddings=E).drop("id").to_numpy()
    assert model.state_.judge(belongs).decisions(model.state_.names) == model.predict(new, embeddings=E)


@pytest.mark.slow
def test_an_ordinary_fit_does_not_load_the_code_of_updates():
    code = (
        "import sys; from topicsteer import TopicModel;"
        "TopicModel(1).fit(['a tea pot', 'a train track'] * 9, {0: 'tea'});"
        "print('topicsteer.model.update' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_state_is_written_and_read_the_same(model, tmp_path):
    states.write_state(tmp_path / "model", model.state_)
    again, _ = states.read_state(tmp_path / "model")
    for name, array in model.state_.arrays().items():
        found = again.arrays()[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(found, array, err_msg=name)
    for name in set(PLAIN) - {"ids", "vocabulary", "texts"}:
        assert getattr(again, name) == getattr(model.state_, name), name


def test_more_topics_in_the_guide_than_in_the_model_are_refused(tmp_path, saved):
    meta, arrays = saved
    counts = arrays["outside_counts"]
    forged = arrays | {"outside_counts": np.array([2**31 - 1, counts[1]], dtype=counts.dtype)}
    refused(tmp_path, meta, forged, r"'outside_counts' has 2,147,483,647 topics; expected up to 2")
