"""Topic trees from end to end: random trees keep their order and their zeros wherever the documents are."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from topicsteer import TopicModel
from topicsteer.analysis.groups import Groups
from topicsteer.corpora import Documents
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import PERMITTED
from topicsteer.model.findings import breakdowns
from topicsteer.model.state import StateError
from topicsteer.model.state import check as check_arrays

pytestmark = pytest.mark.slow

WORDS = 8


def documents(leaves, n, seed):
    """Texts about one leaf each, with words of the leaf and words of all."""
    rng = np.random.default_rng(seed)
    texts, truth = [], []
    for i in range(n):
        leaf = leaves[i % len(leaves)]
        own = [f"{leaf}word{k}" for k in rng.integers(0, WORDS, 12)]
        texts.append(" ".join([*own, *(f"common{k}" for k in rng.integers(0, 60, 8))]))
        truth.append(leaf)
    return texts, truth


def branch(parents, name):
    """A topic and the topics above it."""
    line = [name]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def corpus(parents, names, seed, n=120):
    """Texts and labels; about a third of the documents has a label, at a random level of its branch."""
    rng = np.random.default_rng(seed)
    leaves = [name for name in names if name not in parents.values()]
    texts, truth = documents(leaves, n, seed)
    labels = [str(rng.choice(branch(parents, leaf))) if rng.random() < 0.3 else None for i, leaf in enumerate(truth)]
    return texts, truth, labels


def check(model, texts=()):
    """No topic exceeds its parent; labelled documents have no weight where labels do not permit it."""
    forest, known = model.codebook.forest, len(model.codebook)
    found = [
        np.asarray(model.state_.memberships),
        np.asarray(model.state_.judged.values),
    ]
    if len(texts):
        found.append(model.memberships(list(texts)).select(map(str, model.codebook.names)).to_numpy())
    for memberships in found:
        for k, parent in enumerate(forest.parents):
            if parent >= 0:
                assert (memberships[:, parent] >= memberships[:, k]).all()
    supervision, W = model.state_.supervision, np.asarray(model.state_.document_topics)
    permitted = supervision.permitted(W.shape[1], free_in_labelled=False)[supervision.pattern]
    assert (W[~permitted] == 0).all()
    states = supervision.patterns[supervision.pattern]
    for row in np.flatnonzero(supervision.labelled) if model.complete else ():  # the rule, without the mask's code
        labels = set(np.flatnonzero(states[row] == PERMITTED).tolist())
        deepest = {k for k in labels if not labels & set(forest.descendants(k))}
        allowed = deepest | {d for k in deepest for d in forest.descendants(k)}
        assert not labels or set(np.flatnonzero(W[row, :known])) <= allowed
    objectives = np.asarray(model.state_.objectives)
    assert (np.diff(objectives) <= 1e-6 * np.abs(objectives[:-1])).all()
    assert (np.diff(model.state_.thresholds[[[p, k] for k, p in enumerate(forest.parents) if p >= 0]]) >= 0).all()


@st.composite
def trees(draw):
    n = draw(st.integers(3, 7))
    above = [draw(st.integers(-1, k - 1)) for k in range(n)]
    names = [f"t{k}" for k in range(n)]
    return names, {names[k]: names[parent] for k, parent in enumerate(above) if parent >= 0}


@pytest.fixture(scope="module")
def client():
    """A cluster in this process; `tests/backends` has one with processes of its own."""
    dask = pytest.importorskip("distributed")
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with dask.LocalCluster(**local) as cluster, dask.Client(cluster) as client:
        yield client


def test_random_trees_keep_order_and_zeros(tmp_path, client):
    """In memory, on disk, on a cluster, after save and load, and after an update: each time another random tree."""
    places = itertools.cycle(["memory", "disk", "cluster"])

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(trees(), st.integers(0, 9), st.booleans())
    def run(tree, seed, complete):
        names, parents = tree
        if not parents:
            return
        texts, _, labels = corpus(parents, names, seed, 90)
        place = next(places)
        folder = tmp_path / f"{place}{len(list(tmp_path.iterdir()))}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = TopicModel(free_topics=2, topics=names, parents=parents, complete=complete, threads=1)
            if place == "memory":
                model.fit(texts, labels)
            elif place == "cluster":
                model.fit(texts, labels, client=client, folder=folder)
            else:
                table = tmp_path / "table.csv"
                rows = [f"{i},{text},{label or ''}" for i, (text, label) in enumerate(zip(texts, labels, strict=True))]
                table.write_text("\n".join(["id,text,label", *rows]))
                model.fit(table, "label", memory=1, folder=folder)
                assert not isinstance(model.matrix_, sp.csr_array)  # blocks on disk
            check(model, texts[:20])
            model.save(tmp_path / "model", texts=True)
            again = TopicModel.load(tmp_path / "model")
            check(again, texts[:20])
            assert again.memberships(texts).equals(model.memberships(texts))
            more, _, late = corpus(parents, names, seed + 100, 12)
            check(again.update(more, late), more)

    run()


TREE = {"football": "sport", "tennis": "sport", "film": "arts", "paint": "arts"}
NAMES = ["sport", "football", "tennis", "arts", "film", "paint"]


@pytest.fixture(scope="module")
def fitted():
    texts, truth, labels = corpus(TREE, NAMES, 0, 200)
    model = TopicModel(free_topics=0, parents=TREE, world="closed", threads=1).fit(texts, labels, chosen="random")
    return model, texts, truth


def test_shares_add_up_in_every_group(fitted):
    """Labels at random levels: a topic is its rest plus the topics below, and rests have rows of their own."""
    model, _, truth = fitted
    groups = Groups("half", ("first", "second"), np.arange(200) // 100)
    found = model.findings.shares(groups)
    assert set(found.rests) == {"sport, nothing below", "arts, nothing below"}
    place = {name: k for k, name in enumerate(found.topics)}
    assert found.topics[place["sport"] + 1] == "sport, nothing below"
    for parent in ("sport", "arts"):
        below = [child for child, above in TREE.items() if above == parent]
        parts = found.share[:, [place[name] for name in (*below, f"{parent}, nothing below")]]
        assert np.isnan(parts[:, -1]).all()  # no label decides whether a document has nothing below
        np.testing.assert_allclose(np.nansum(parts, axis=1), found.share[:, place[parent]], atol=1e-9)
        for child in below:
            assert (
                found.low[0, place[child]] <= np.mean([name == child for name in truth]) <= found.high[0, place[child]]
            )
    assert found.without_rests().topics == tuple(map(str, model.codebook.names))
    assert any("the same topic above" in line for line in found.sentences)
    assert "sport, nothing below" in {row for part in breakdowns(model, [groups]) for row in part.topics}


def copy(model, tmp_path):
    folder = tmp_path / f"copy{len(list(tmp_path.iterdir()))}"
    model.save(folder, texts=True)
    return TopicModel.load(folder)


def test_on_a_cluster_as_in_memory(fitted, tmp_path, client):
    texts = fitted[1]
    _, _, labels = corpus(TREE, NAMES, 0, 200)
    settings = {"free_topics": 0, "parents": TREE, "world": "closed", "threads": 1}
    memory = TopicModel(**settings).fit(texts, labels)
    check(memory, texts)
    far = TopicModel(**settings).fit(texts, labels, client=client, folder=tmp_path / "work")
    check(far, texts)
    assert far.codebook == memory.codebook
    assert np.allclose(far.state_.memberships, memory.state_.memberships, atol=1e-5)


def test_questions_to_a_tree(fitted, tmp_path):
    """Suggestions, doubts, coders and methods treat a topic and the topics below it as one branch."""
    model, texts, truth = copy(fitted[0], tmp_path), fitted[1], fitted[2]
    assert "one of your 6 topics" in model.belief
    for (topics,) in model.labels.suggest(10).select("guess").iter_rows():
        named = [name for name in topics.split("; ") if name]
        assert not any(other in branch(TREE, name)[1:] for name in named for other in named)
    for doubt in model.labels.doubts():
        if doubt.rival is not None:
            names = model.codebook.names[doubt.topic], model.codebook.names[doubt.rival]
            assert names[1] not in branch(TREE, names[0])
            assert names[0] not in branch(TREE, names[1])
    given = model.labels.audit().filter(pl.col("given") == "permitted")
    assert len(given) == given["id"].n_unique()  # the deepest label alone
    answers = [["/".join(reversed(branch(TREE, leaf)))] for leaf in truth]
    model.state_ = replace(model.state_, parameters={**model.state_.parameters, "path_separator": "/"})
    table = model.findings.coders({"gpt": answers, "vague": [[one[0].partition("/")[0]] for one in answers]})
    against = table.filter(pl.col("against") == "people")
    assert sorted(set(against["topic"])) == sorted(NAMES)
    assert (against.filter(pl.col("labels") > 0)["recall"].drop_nulls() == 1).all()  # a child is its parent as well
    assert model.findings.disagreements({"vague": [[one[0].partition("/")[0]] for one in answers]}).is_empty()
    wrong = [["arts/(none)"] if leaf == "film" else one for leaf, one in zip(truth, answers, strict=True)]
    assert set(model.findings.disagreements({"gpt": wrong})["people"]) == {"film"}
    assert "complete: no other known topics" in model.findings.methods()
    assert model.explain(texts[0]).names


def test_predictions_are_the_deepest_topics(fitted):
    model, texts, truth = fitted
    found = model.predict(texts)
    assert np.mean([topic == [leaf] for topic, leaf in zip(found, truth, strict=True)]) > 0.9
    both = model.predict(texts, ancestors=True)
    for every, deepest in zip(both, found, strict=True):
        assert set(every) >= {name for leaf in deepest for name in branch(TREE, leaf)}


def test_split_changes_nothing_before_a_group_is_adopted(fitted, tmp_path):
    texts, truth = fitted[1], np.array(fitted[2])
    roots = [branch(TREE, leaf)[-1] if i % 3 == 0 else None for i, leaf in enumerate(truth)]
    flat = TopicModel(free_topics=0, world="closed", threads=1).fit(texts, roots)
    opened = TopicModel(free_topics=2, world="open", threads=1).fit(texts, roots)
    for one, topic in ((flat, "sport"), (opened, "sport"), (copy(fitted[0], tmp_path), "football")):
        before, known = one.state_, len(one.codebook)
        predicted = one.memberships(texts).select(map(str, before.codebook.names)).to_numpy()
        found = one.edit.split(topic, 2)
        assert one.state_ is before
        assert 1 <= len(found.groups) <= 2
        group = found.groups[0]
        assert one.edit.adopt(group, "racket", 5)["id"].to_list() == list(group.ids[:5])
        now = one.state_
        assert one.codebook.parent_names["racket"] == topic
        assert np.array_equal(now.memberships[:, :known], before.memberships[:, :known])
        assert (now.memberships[group.rows, known] > 0).all()
        others = [k for k in range(known) if one.codebook.names[k] != topic]
        assert np.array_equal(now.components[:known], before.components[:known])
        assert np.array_equal(now.document_topics[:, others], before.document_topics[:, others])
        assert np.array_equal(one.memberships(texts).select(map(str, before.codebook.names)).to_numpy(), predicted)
        check(one, texts)
        again = copy(one, tmp_path)
        assert again.memberships(texts).equals(one.memberships(texts))
        labels = {int(row): ["racket"] for row in group.rows[:3]}
        news = Documents(list(labels), [texts[row] for row in labels], list(labels.values()))
        check(again.update(news), texts)
        assert again.state_.topics.mean_memberships[known] > 0
    apart = {truth[group.rows[:5]].tolist()[0] for group in flat.edit.split("sport", 2).groups}
    assert apart <= {"football", "tennis"}
    hidden = [set(truth[group.rows[:10]]) for group in flat.edit.split("arts", 2).groups]
    assert hidden in ([{"film"}, {"paint"}], [{"paint"}, {"film"}])  # each group is one of the two hidden topics


def test_split_refuses_what_it_cannot_do(fitted, tmp_path):
    model = copy(fitted[0], tmp_path)
    with pytest.raises(ValueError, match="a split needs 2 parts or more"):
        model.edit.split("sport", 1)
    with pytest.raises(ValueError, match="'football' has too few documents for 50 groups"):
        model.edit.split("football", 50)
    group = model.edit.split("football", 2).groups[0]
    with pytest.raises(ValueError, match="the name 'tennis' belongs to another topic"):
        model.edit.adopt(group, "tennis")
    model.edit.rename("football", "soccer")
    with pytest.raises(ValueError, match="there is no known topic 'football' any more"):
        model.edit.adopt(group, "goals")


def test_a_forged_tree_of_the_guide_is_refused(fitted, tmp_path):
    given = copy(fitted[0], tmp_path).state_.arrays()
    sizes = {"guided": sum(map(len, fitted[0].state_.groups))}
    check_arrays(given, sizes)
    parents = given["guide_parents"]
    assert parents.max() > 0
    for bad in (np.arange(len(parents))[::-1], np.full_like(parents, 0), np.full_like(parents, 99), parents[:1]):
        with pytest.raises(StateError):
            check_arrays(given | {"guide_parents": bad}, sizes)


def test_edits_keep_the_tree_whole(fitted, tmp_path):
    model, texts = copy(fitted[0], tmp_path), fitted[1]
    model.edit.move("tennis", "arts")
    assert model.codebook.parent_names["tennis"] == "arts"
    check(model, texts)
    model.edit.merge(["film", "paint"])
    assert model.codebook.parent_names == {"football": "sport", "tennis": "arts", "film": "arts"}
    check(model, texts)
    model.edit.merge(["sport", "football"])
    check(model, texts)
    model.edit.move("tennis").edit.rename("tennis", "racket")
    assert model.codebook.parent_names == {"film": "arts"}
    check(model, texts)
    check(copy(model, tmp_path), texts)
    with pytest.raises(ValueError, match="below each other"):
        model.edit.move("arts", "film")


def test_paths_follow_a_new_name():
    texts, _, labels = corpus(TREE, NAMES, 1, 60)
    paths = [None if name is None else "/".join(reversed(branch(TREE, name))) for name in labels]
    model = TopicModel(free_topics=0, path_separator="/", world="closed", threads=1).fit(texts, paths)
    assert model.codebook.names == ("arts", "arts/film", "arts/paint", "sport", "sport/football", "sport/tennis")
    model.edit.rename("sport", "games")
    assert model.codebook.names[3:] == ("games", "games/football", "games/tennis")
    news = Documents(["x", "y", "z"], ["a rook and a pawn", "a game", "games"])
    model.update(replace(news, labels=[["games/chess"], ["games/(none)"], ["games"]]))
    assert model.codebook.parent_names["games/chess"] == "games"
    check(model, texts[:5])


def test_no_edges_no_difference():
    texts, _, labels = corpus({}, ["a", "b", "c"], 2, 90)
    flat = TopicModel(free_topics=0, threads=1).fit(texts, labels)
    book = Codebook.of_names(["a", "b", "c"])
    same = TopicModel(free_topics=0, topics=book, parents={}, path_separator="/", threads=1).fit(texts, labels)
    assert same.codebook.forest.flat
    for name, array in flat.state_.arrays().items():
        assert np.array_equal(array, same.state_.arrays()[name], equal_nan=array.dtype.kind == "f"), name
