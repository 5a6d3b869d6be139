"""Topic trees in the workbench: labels, moves, merges, exports, imports, and splits of the fitted model."""

import csv
import time

import numpy as np
import pytest

pytest.importorskip("msgspec")
from tests.model.test_trees import NAMES, TREE, corpus
from topicsteer import TopicModel
from topicsteer.app.workbench.actions import (
    ChangeTopic,
    DeleteTopic,
    Label,
    MergeTopics,
    MoveTopic,
    NewTopic,
    NoneOfThese,
    Redo,
    Undo,
    apply,
)
from topicsteer.app.workbench.errors import Conflict, Invalid, Refused
from topicsteer.app.workbench.imports import GivenLabels, import_labels
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents, read_labels
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import PERMITTED

SPORT, FOOTBALL, TENNIS, ARTS, FILM, PAINT = range(1, 7)
FORMATS = ["labels", "jsonl", "labels-by-person"]


@pytest.fixture
def make(tmp_path):
    opened = []

    def make(name, n=12, **options):
        path = tmp_path / f"{name}.steer"
        Workbench.make(path, Documents([f"d{i}" for i in range(n)], [f"text {i}" for i in range(n)]), **options)
        opened.append(Workbench(path))
        opened[-1].session.change_settings(refit_after=0)
        return opened[-1]

    yield make
    for workbench in opened:
        workbench.close()


def plant(session):
    for name in NAMES:
        parent = TREE.get(name)
        apply(session, "ann", NewTopic(name=name, parent=None if parent is None else NAMES.index(parent) + 1))
    return session


@pytest.fixture
def session(make):
    return plant(make("first").session)


def again(session):
    """The same project, read from its log."""
    found = LabelSession(session.project)
    assert (found.decisions, found.tree.parents, found.topics) == (
        session.decisions,
        session.tree.parents,
        session.topics,
    )
    return found


def paths(session, separator="/"):
    own = session.settings.path_separator
    return {separator.join(session.tree.path(key, own)) for key in session.tree.keys}


def test_labels_follow_the_tree(session):
    apply(session, "ann", Label(documents=[0], key=FOOTBALL, state="permitted"))
    apply(session, "ann", Label(documents=[1], key=SPORT, state="permitted"))
    apply(session, "ann", Label(documents=[2], key=SPORT, state="rest"))
    apply(session, "ann", Label(documents=[3], key=SPORT, state="forbidden"))
    decisions = session.decisions
    assert decisions[0][:2] == ({SPORT, FOOTBALL}, {TENNIS, ARTS, FILM, PAINT})
    assert decisions[1][:2] == ({SPORT}, {ARTS, FILM, PAINT})
    assert decisions[2][:2] == ({SPORT}, {FOOTBALL, TENNIS, ARTS, FILM, PAINT})
    assert decisions[3][:2] == (set(), {SPORT, FOOTBALL, TENNIS})
    assert session.counts[SPORT] == 3
    training = session.training()
    assert training.complete
    assert training.labels == {0: ["football"], 1: ["sport"], 2: ["sport"]}
    assert training.forbidden == {2: ["football", "tennis"], 3: ["football", "sport", "tennis"]}
    apply(session, "ann", NewTopic(name="golf", parent=SPORT))  # "nothing below" is about the topics of its time
    assert 7 not in session.decisions[2].forbidden
    apply(session, "bob", Label(documents=[1], key=TENNIS, state="permitted"))
    assert session.decisions[1].permitted == {SPORT, TENNIS}  # the deeper label does not contradict the other
    assert not session.decisions[1].differing
    again(session)


def test_states_are_those_of_the_model(session):
    """What the workbench decides is what `TopicModel` reads from the training labels."""
    rng = np.random.default_rng(0)
    for row in range(12):
        for key in rng.choice(6, 2, replace=False) + 1:
            state = str(rng.choice(["permitted", "rest", "forbidden"], p=[0.6, 0.2, 0.2]))
            apply(session, "ann", Label(documents=[row], key=int(key), state=state))
    training = session.training()
    labels, lacks = ([names.get(row, []) for row in range(12)] for names in (training.labels, training.forbidden))
    texts = [f"word{row % 4} word{row % 3} other{row}" for row in range(12)]
    book = Codebook(tuple(topic.plain() for topic in training.topics))
    model = TopicModel(1, topics=book, complete=training.complete)
    model.fit(Documents(list(range(12)), texts, labels, {}, lacks))
    states = model.state_.supervision.patterns[model.state_.supervision.pattern]
    for row, decision in session.decisions.items():
        assert {k + 1 for k in np.flatnonzero(states[row] == PERMITTED)} == decision.permitted
        assert {k + 1 for k in np.flatnonzero(states[row] == 0)} == decision.forbidden


def test_move_merge_rename_and_delete_keep_the_tree_whole(session):
    apply(session, "ann", Label(documents=[0], key=FOOTBALL, state="permitted"))
    apply(session, "ann", MoveTopic(key=FOOTBALL, parent=ARTS))
    assert session.decisions[0].permitted == {ARTS, FOOTBALL}
    apply(session, "ann", Undo())
    assert session.decisions[0].permitted == {SPORT, FOOTBALL}
    apply(session, "ann", Redo())
    for key, parent, message in [(ARTS, FOOTBALL, "which is below it"), (ARTS, ARTS, "cannot be put under it")]:
        with pytest.raises(Conflict, match=message):
            apply(session, "ann", MoveTopic(key=key, parent=parent))
    apply(session, "ann", MergeTopics(keys=[ARTS], into=FILM))  # the parent into its child: the child takes its place
    assert session.tree.parents == {SPORT: None, TENNIS: SPORT, FILM: None, FOOTBALL: FILM, PAINT: FILM}
    apply(session, "ann", Undo())
    apply(session, "ann", DeleteTopic(key=ARTS))
    assert {key for key, parent in session.tree.parents.items() if parent is None} == {SPORT, FOOTBALL, FILM, PAINT}
    apply(session, "ann", Undo())
    assert session.tree.parents[FILM] == ARTS
    apply(session, "ann", NewTopic(name="futsal", documents=[0], parent=FOOTBALL))
    assert session.tree.parents[7] == FOOTBALL
    again(session)


def test_no_cycle_by_undo_and_redo_of_several_people(session):
    apply(session, "ann", MoveTopic(key=FILM, parent=PAINT))
    apply(session, "ann", Undo())
    apply(session, "bob", MoveTopic(key=PAINT, parent=FILM))
    with pytest.raises(Conflict, match="“film” and “paint” would be below each other"):
        apply(session, "ann", Redo())
    apply(session, "bob", NewTopic(name="club", parent=FOOTBALL))
    for _ in range(5):
        apply(session, "ann", Undo())  # all topics but sport: a topic of somebody else stays, further up
    assert (session.tree.parents[7], session.tree.parents[PAINT]) == (SPORT, None)
    again(session)


def test_nothing_below_is_kept_by_a_merge_of_leaves_alone(session):
    apply(session, "ann", Label(documents=[0, 1], key=SPORT, state="rest"))
    apply(session, "ann", MergeTopics(keys=[PAINT], into=SPORT))
    assert session.labels_of(0)["ann"] == {SPORT: "rest"}
    apply(session, "ann", MergeTopics(keys=[ARTS], into=SPORT))  # brings topics that the label did not know
    assert session.labels_of(0)["ann"] == {SPORT: "permitted"}


def test_the_end_of_a_path_counts_in_any_case(make):
    session = make("ends", path_separator="/").session
    given = GivenLabels({0: ["sport/(None)"], 1: ["sport/football"]}, {}, separator="/")
    import_labels(session, "ann", [given], source="x")
    assert not any("none" in topic.name.casefold() for topic in session.live)
    assert list(session.labels_of(0)["file: x"].values())[:1] == ["rest"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("names", ["plain", "slashes", "paths"])
def test_exports_bring_tree_labels_and_people_back(make, kind, names):
    first = make("first", path_separator="/" if names == "paths" else None)
    session = first.session
    if names == "paths":
        labels = ["sport/football", "sport/tennis", "arts/film", "arts/paint"]
        import_labels(
            session,
            "ann",
            [GivenLabels({11 - k: [path] for k, path in enumerate(labels)}, {}, separator="/")],
            source="x",
        )
        key = {session.topics[k].name.rpartition("/")[2]: k for k in session.topics}
        assert session.topics[key["film"]].name == "arts/film"
    else:
        plant(session)
        key = dict(zip(NAMES, range(1, 7), strict=True))
    if names == "slashes":
        apply(session, "ann", ChangeTopic(key=key["film"], name="AC/DC; live"))
    for who, row, topic, state in [
        ("ann", 0, "football", "permitted"),
        ("bob", 0, "football", "permitted"),
        ("ann", 1, "sport", "permitted"),
        ("bob", 2, "sport", "rest"),
        ("ann", 3, "film", "permitted"),
        ("ann", 3, "tennis", "permitted"),
    ]:
        apply(session, who, Label(documents=[row], key=key[topic], state=state))
    apply(session, "bob", NoneOfThese(documents=[4]))
    file = first.exporter.export(kind)
    second = make("second")
    second.import_labels("cid", file, file.name)
    other = second.session
    assert paths(other) >= {"sport", "sport/football", "sport/tennis", "arts"}
    name = {k: other.tree.path(k, other.settings.path_separator) for k in other.tree.keys}
    before = {k: session.tree.path(k, session.settings.path_separator) for k in session.tree.keys}
    for row in range(5):
        found, given = other.votes_of(row), session.votes_of(row)
        people = [who for who in given if not who.startswith("file: ")]
        assert sorted(people) == sorted(found), row
        for who in people:
            yes = {name[k] for k, has in found[who].items() if has}
            assert yes == {before[k] for k, has in given[who].items() if has}
            no = {before[k] for k, has in given[who].items() if not has}
            assert {name[k] for k, has in found[who].items() if not has} == no & set(name.values())
    assert second.import_labels("cid", file, file.name)  # once more changes nothing
    assert len(other.live) == len(name)
    first.import_labels("cid", file, file.name)  # in its own project, each path finds its topic
    assert len(session.live) == len(before)


def test_files_have_paths(make):
    workbench = make("first")
    session = plant(workbench.session)
    apply(session, "ann", Label(documents=[0], key=FOOTBALL, state="permitted"))
    apply(session, "ann", Label(documents=[0], key=ARTS, state="rest"))
    with open(workbench.exporter.export("labels"), newline="") as file:
        rows = list(csv.DictReader(file))
    cells = [(row["id"], row["labels"], row["labelled_by"], row["path_separator"]) for row in rows]
    assert cells == [("d0", "sport/football; arts/(none)", "ann", "/")]
    found = read_labels(workbench.exporter.export("jsonl"))
    assert (found.separator, found.records[0].labels) == ("/", ["sport/football", "arts/(none)"])


def test_topics_files_with_parents(make, tmp_path):
    workbench = make("first")
    file = tmp_path / "topics.csv"
    file.write_text("topic,parent\nfootball,sport\nsport,\n")
    workbench.import_topics("ann", file, "topics.csv")
    assert paths(workbench.session) == {"sport", "sport/football"}
    for content, message in [
        ("a,b\nb,a", r"topics.csv: .*'a' is under 'b' \(line 2\), 'b' is under 'a' \(line 3\)"),
        ("a,\nb,\nc,a\nc,b", r"'c' has two parents, 'a' \(line 4\) and 'b' \(line 5\)"),
        ("a,sprot\nsport,", r"line 2 puts 'a' under 'sprot', .* Did you mean 'sport'"),
        ("sport,football\nfootball,", "“football” and “sport” would be below each other"),
    ]:
        file.write_text(f"topic,parent\n{content}\n")
        with pytest.raises(Refused, match=message):
            workbench.import_topics("ann", file, "topics.csv")
    assert paths(workbench.session) == {"sport", "sport/football"}
    file.write_text("topic,keywords\nsport,ball\nsport,run\n")
    assert "line 3 names the topic 'sport' again" in workbench.import_topics("ann", file, "topics.csv")


def settled(workbench, state=("idle",)):
    for _ in range(1200):
        if workbench.status.error or (workbench.status.state in state and not workbench.fitter.busy):
            return workbench.status
        time.sleep(0.05)
    raise AssertionError(workbench.status)


@pytest.mark.slow
def test_split_finds_topics_that_can_be_named(tmp_path):
    texts, truth, labels = corpus(TREE, NAMES, 0, 160)
    roots = [None if label is None else TREE.get(label, label) for label in labels]
    documents = Documents(list(range(160)), texts, [[name] if name else [] for name in roots])
    Workbench.make(tmp_path / "news.steer", documents)
    workbench = Workbench(tmp_path / "news.steer")
    session = workbench.session
    session.change_settings(refit_after=0, free_topics=0, world="closed")
    with pytest.raises(Conflict, match="There is no fitted model yet"):
        workbench.split(1, 2)
    workbench.fit()
    assert settled(workbench).error == ""
    before = workbench.views.fitted
    key = next(topic.key for topic in session.live if topic.name == "sport")
    with pytest.raises(Invalid, match="2 to 50 parts"):
        workbench.split(key, 1)
    groups = workbench.split(key, 2)
    assert workbench.views.fitted is before  # nothing is stored
    assert all(group.terms and group.documents and group.surest for group in groups)
    surest = groups[0].rows
    assert len({truth[row] for row in surest} & {"football", "tennis"}) == 1
    made = workbench.adopt("ann", surest, name="found", parent=key)
    assert session.tree.parents[made] == key
    known = {topic.key: topic for topic in workbench.views.topics().known}
    assert (known[made].parent, known[made].level, known[made].labels) == (key, 2, 0)
    assert workbench.views.fitted.record.proposed[made] == surest
    with pytest.raises(Conflict, match="cannot be split: the topic 'sport' has too few documents for 50 groups"):
        workbench.split(key, 50)
    apply(session, "ann", Label(documents=surest[:3], key=made, state="permitted"))
    workbench.fit()
    assert settled(workbench).error == ""
    assert workbench.views.fitted.strength(made)[surest[4]] > 0.5
    workbench.close()
