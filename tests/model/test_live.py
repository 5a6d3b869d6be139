"""The live guide: memberships that follow labels at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from topicsteer import TopicModel
from topicsteer.model import live
from topicsteer.model.live import LiveGuide, live_guide

WORDS = {
    "tea": "tea leaves green pot steep water cup black mint saucer",
    "coffee": "coffee beans roast espresso grind crema cup barista arabica filter",
    "milk": "milk cow cream dairy butter farm cheese whey pasture udder",
    "bread": "bread flour yeast oven crust dough loaf bakery rye wheat",
}


def texts(n, seed=0, kinds=tuple(WORDS)):
    rng = np.random.default_rng(seed)
    kinds = [str(kind) for kind in rng.choice(kinds, size=n)]
    every = " ".join(WORDS.values()).split()
    return [" ".join([*rng.choice(WORDS[kind].split(), 5), *rng.choice(every, 5)]) for kind in kinds], kinds


def fitted(n=120, share=0.1, **options):
    own, kinds = texts(n)
    chosen = np.random.default_rng(1).random(n) < share
    options = {"topics": ["tea", "coffee", "milk"], "free_topics": 0, "world": "closed", "embeddings": None} | options
    labels = [kind if yes and kind in options["topics"] else None for kind, yes in zip(kinds, chosen, strict=True)]
    return TopicModel(**options).fit(own, labels)


CLOSED, OPEN = fitted(), fitted(world="open", free_topics=2)
TREE = fitted(topics=["tea", "coffee", "milk", "hot"], parents={"tea": "hot", "coffee": "hot"})
STEPS = st.lists(
    st.tuples(
        st.integers(0, 119),
        st.sampled_from([None, "tea", "coffee", "milk", ["tea", "milk"], "(none)"]),
    ),
    min_size=1,
    max_size=12,
)


def from_scratch(model, supervision):
    """Known memberships by another solver: least squares on stacked rows, in double precision."""
    guide = live_guide(model)
    before, now = (s.patterns[s.pattern] for s in (model.state_.supervision, supervision))
    rows = np.flatnonzero((before != now).any(axis=1))
    D, P = guide.features.astype(np.float64), guide.prior.astype(np.float64)
    R = guide.targets(supervision, rows) - guide.targets(model.state_.supervision, rows)
    stacked = np.vstack([D[rows], np.sqrt(live.RIDGE) * np.eye(D.shape[1])])
    w = np.linalg.lstsq(stacked, np.vstack([R, np.zeros((D.shape[1], R.shape[1]))]), rcond=None)[0]
    found = expit(logit(P) + live.SHARPNESS * D @ w)
    known = now.shape[1]
    found[:, :known] = model.codebook.forest.raised(found[:, :known])
    return found, now


@pytest.mark.parametrize("model", [CLOSED, OPEN, TREE], ids=["closed", "open", "tree"])
@given(steps=STEPS)
@settings(max_examples=40, deadline=None)
def test_live_memberships_are_those_from_scratch_after_any_labels_and_undo(model, steps):
    model.__dict__.pop("_live", None)
    for row, topics in steps:
        table = model.labels.give({row: topics})
    state = model.labels.live.now
    expected, states = from_scratch(model, state.supervision)
    unlabelled = ~state.supervision.labelled
    known = state.memberships[:, : len(model.codebook)]
    assert np.abs(known[unlabelled] - expected[unlabelled, : known.shape[1]]).max() <= 1e-6
    if state.open:
        assert np.abs(state.memberships[unlabelled, -1] - expected[unlabelled, -1]).max() <= 1e-6
    assert (known[states == 1] == 1).all()
    assert (known[states == 0] == 0).all()
    assert np.array_equal(table[model.codebook.names[0]].to_numpy(), known[:, 0])
    model.labels.give({row: None for row, _ in steps})  # back to no label at all
    fresh = live_guide(model)
    assert np.array_equal(model.labels.live.now.memberships, fresh.label(model.labels.live.now.supervision).memberships)


def test_undone_labels_leave_the_memberships_of_the_fit():
    model = fitted()
    rows = np.flatnonzero(~model.state_.supervision.labelled)[:5]
    before = model.state_.memberships.copy()
    model.labels.give({int(row): "milk" for row in rows})
    assert np.abs(model.labels.live.now.memberships - before).max() > 0.1
    model.labels.give({int(row): None for row in rows})
    assert np.abs(model.labels.live.now.memberships - before).max() <= 2e-6
    assert np.array_equal(model.state_.memberships, before), "the fit stays as it is"


def test_features_of_many_documents_are_mapped_and_give_the_same(tmp_path):
    model = fitted()
    model.labels.give({5: "milk"})
    mapped = live.write_features(model, tmp_path / "features.npy", mapped=10)
    assert isinstance(mapped, np.memmap)
    one = model.labels.live.now
    two = LiveGuide(model.state_, model.guide_, mapped).label(one.supervision)
    assert np.array_equal(one.memberships, two.memberships)


def test_suggestions_follow_labels_until_the_next_fit():
    model = fitted()
    first = model.labels.suggest(5)["id"].to_list()
    model.labels.give(dict.fromkeys(first[:2], "milk"))
    assert not set(first[:2]) & set(model.labels.suggest(20)["id"].to_list())
    model.update(labels={first[0]: "milk"})
    assert first[1] in model.labels.suggest(120)["id"].to_list(), "an update needs the labels again"


def test_a_topic_without_label_or_word_follows_its_first_labels():
    with pytest.warns(UserWarning, match="Nothing ties"):
        model = fitted(topics=["tea", "coffee", "milk", "zzz"])
    kinds = texts(120)[1]
    bread = [i for i, kind in enumerate(kinds) if kind == "bread"]
    assert model.memberships()["zzz"].max() == 0
    table = model.labels.give(dict.fromkeys(bread[:4], "zzz"))
    others = [i for i in range(120) if i not in bread]
    assert table["zzz"].to_numpy()[bread[4:]].mean() > 2 * table["zzz"].to_numpy()[others].mean()


def test_embeddings_and_merged_topics():
    own, kinds = texts(80)
    E = np.eye(4, dtype=np.float32)[[list(WORDS).index(kind) for kind in kinds]]
    E += np.random.default_rng(0).normal(size=E.shape).astype(np.float32) / 10
    labels = [kind if i < 24 else None for i, kind in enumerate(kinds)]
    model = TopicModel(free_topics=0).fit(own, labels, embeddings=E)
    model.edit.merge(["tea", "milk"])
    near = next(i for i in range(30, 80) if kinds[i] == "bread")
    before = model.memberships()["tea"][near]
    table = model.labels.give({i: "tea" for i in range(24, 80) if kinds[i] == "bread" and i != near})
    assert table["tea"][near] > before


def test_labels_that_cannot_be_given_change_nothing():
    model = fitted()
    with pytest.raises(ValueError, match="no document with the id 'x'"):
        model.labels.give({"x": "tea"})
    with pytest.raises(ValueError, match=r"'mlik'.*did you mean 'milk'"):
        model.labels.give({3: "mlik"})
    assert model.labels.state is model.state_
    plain = TopicModel(2, embeddings=None).fit(texts(30)[0])
    with pytest.raises(ValueError, match="no guide"):
        plain.labels.give({})
