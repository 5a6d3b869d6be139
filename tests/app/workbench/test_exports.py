"""Exports of labels: what they write is what the readers read back."""

import csv
import os
import random
from contextlib import suppress

import pytest

from topicsteer.app.workbench.actions import (
    ChangeTopic,
    DeleteTopic,
    Label,
    NewTopic,
    NoneOfThese,
    Undo,
    apply,
)
from topicsteer.app.workbench.errors import Refused, topic_name
from topicsteer.app.workbench.exports import Exporter
from topicsteer.app.workbench.imports import GivenLabels, import_labels
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.views import Views
from topicsteer.corpora import Documents, attach_labels, read_labels
from topicsteer.system.values import NO_LABEL, fold

TEXTS = ["green tea leaves", "black coffee beans", "a cup and a saucer", "trains to the coast"]
FORMATS = ["labels", "jsonl"]


@pytest.fixture
def documents():
    return Documents(list("abcd"), TEXTS)


@pytest.fixture
def session(tmp_path, documents):
    path = tmp_path / "drinks.steer"
    Project.create(path, documents)
    session = LabelSession(Project.open(path))
    apply(session, "ann", NewTopic(name="tea"))
    apply(session, "ann", NewTopic(name="coffee"))
    yield session
    session.project.close()


def exported(session, kind, documents):
    """The documents with the labels of an export."""
    return attach_labels(documents, read_labels(Exporter(Views(session)).export(kind)))


@pytest.mark.parametrize("kind", FORMATS)
def test_none_of_the_topics_comes_back(session, documents, kind):
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    apply(session, "ann", NoneOfThese(documents=[2]))
    found = exported(session, kind, documents)
    assert list(map(list, found.labels)) == [["tea"], [], ["(none)"], []]
    assert not any(found.forbidden)

    before = dict(session.decisions)
    apply(session, "ann", Undo())
    apply(session, "ann", Undo())
    rows = {row: names for row, names in enumerate(found.labels) if names}
    import_labels(session, "ann", [GivenLabels(rows, {})], source="labels.csv")
    assert [topic.name for topic in session.live] == ["tea", "coffee"]
    assert session.decisions[2] == before[2]
    assert session.decisions[2].forbidden == {1, 2}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_topic_that_came_later_is_not_excluded(session, documents, kind):
    apply(session, "ann", NoneOfThese(documents=[2]))
    apply(session, "ann", NewTopic(name="cups"))
    found = exported(session, kind, documents)
    assert list(map(list, found.labels)) == [[], [], [], []]
    assert sorted(found.forbidden[2]) == ["coffee", "tea"]


def test_names_with_separators_stand_in_lists_with_none(session, documents):
    apply(session, "ann", ChangeTopic(key=1, name="tea, green"))
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    apply(session, "ann", NoneOfThese(documents=[2]))
    with open(Exporter(Views(session)).export("labels"), newline="") as file:
        assert [row[1] for row in csv.reader(file)] == ["labels", '["tea, green"]', '["(none)"]']
    assert exported(session, "labels", documents).labels == [["tea, green"], [], ["(none)"], []]


def test_exports_of_0_1_0_are_still_read(tmp_path, documents):
    path = tmp_path / "labels.csv"
    path.write_text("id,labels,forbidden\na,tea,\nc,,coffee; tea\n")
    found = attach_labels(documents, read_labels(path))
    assert found.labels[2] == []
    assert found.forbidden[2] == ["coffee", "tea"]


def test_a_later_import_replaces_an_earlier_one(session):
    import_labels(session, "ann", [GivenLabels({0: ["tea"], 1: ["(none)"]}, {})], source="old.csv")
    import_labels(session, "ann", [GivenLabels({0: ["(none)"], 1: ["coffee"]}, {})], source="old.csv")
    assert session.decisions[0].forbidden == {1, 2}
    assert session.decisions[0].permitted == frozenset()
    assert session.labels_of(1) == {"file: old.csv": {2: "permitted"}}


def test_no_topic_has_the_name_of_none(session):
    for change in (
        lambda: apply(session, "ann", NewTopic(name=" (none) ")),
        lambda: apply(session, "ann", ChangeTopic(key=1, name="(none)")),
        lambda: apply(session, "ann", ChangeTopic(key=1, name="(None)")),
    ):
        with pytest.raises(Refused, match=r"A topic cannot have the name '\(none\)'"):
            change()
    assert [topic.name for topic in session.live] == ["tea", "coffee"]


def test_spellings_of_one_name_are_one_topic(session):
    apply(session, "ann", NewTopic(name="Cafe\u0301"))
    assert session.live[-1].name == "Café"
    with pytest.raises(Refused, match="There already is a topic 'Café'"):
        apply(session, "ann", NewTopic(name="CAFE\u0301"))
    import_labels(session, "ann", [GivenLabels({0: ["cafe\u0301"], 1: ["TEA"]}, {})], source="labels.csv")
    assert [topic.name for topic in session.live] == ["tea", "coffee", "Café"]
    assert [session.labels_of(row) for row in (0, 1)] == [{"file: labels.csv": {key: "permitted"}} for key in (3, 1)]


def test_a_new_topic_has_its_most_frequent_spelling(session):
    rows = {0: ["ALBUM"], 1: ["album"], 2: ["album"], 3: ["Tea"]}
    import_labels(session, "ann", [GivenLabels(rows, {})], source="labels.csv")
    assert [topic.name for topic in session.live] == ["tea", "coffee", "album"]
    assert [session.labels_of(row)["file: labels.csv"] for row in (0, 1)] == [{3: "permitted"}] * 2


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
def test_exports_are_as_private_as_the_user_wants(session):
    before = os.umask(0o077)
    try:
        path = Exporter(Views(session)).export("jsonl")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


# Names that a spreadsheet, a reader of tables or a parser of JSON may take for something else.
SPECIAL = [
    *NO_LABEL, "+1", "@x", "=1+1", "-80s", "'=1", "''+", "'", '"', "''tis", "[draft]", "[", "]", '["a"]', "[1, 2]",
    "{}", "None", "True", "nil", "0", "1", "1.0", "01", "1e5", "inf", "(None)", "()", "a;b", "a|b", "a, b", "a,b",
    ";", "|", ",", "a;", "\\", "\\n", "%s", "{0}", "#", "//", "<b>", "&amp;", "é", "e\u0301", "ﬁ", "\u200b", "\u2028x",
    "日本", "👩‍👩‍👧", "a" * 80, "id", "labels", "forbidden", "text", "(the document)", "; ", "x; -1", "-1; x",
]  # fmt: skip
ALPHABET = "ab01 ;|,.:'\"[](){}=+-@#?/\\&<>_éßñ日本\u200b\u00ad👍"


def odd_names(n: int) -> list[str]:
    """Names of topics, as the workbench stores them: different in more than case, spaces and Unicode form."""
    rng, names = random.Random(0), {}
    while len(names) < n:
        given = SPECIAL.pop(0) if SPECIAL else "".join(rng.choices(ALPHABET, k=rng.randint(1, 12)))
        with suppress(Refused):
            names.setdefault(fold(topic_name(given)), topic_name(given))
    return list(names.values())


ODD = odd_names(2_000)


@pytest.fixture(scope="module")
def odd_session(tmp_path_factory):
    """A project with one document per odd name, and some with several."""
    path = tmp_path_factory.mktemp("odd") / "odd.steer"
    ids = [*ODD[:1000], *range(10**6, 10**6 + 1000)]  # odd ids too
    Project.create(path, Documents(ids, [f"text {row}" for row in range(2_000)]))
    session = LabelSession(Project.open(path))
    labels = {row: [name, *ODD[row + 1 : row + 1 + row % 3]] for row, name in enumerate(ODD)}
    forbidden = {row: [ODD[row - 1]] for row in range(0, 2_000, 5)}
    import_labels(session, "ann", [GivenLabels(labels, forbidden)], source="odd")
    yield session
    session.project.close()


def truth(session):
    training = session.training()
    return [(set(training.labels.get(row, ())), set(training.forbidden.get(row, ()))) for row in range(2_000)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_2000_odd_names_come_back(odd_session, kind):
    documents = Documents(odd_session.project.ids(), [f"text {row}" for row in range(2_000)])
    found = exported(odd_session, kind, documents)
    assert not found.report.bad_rows
    for (has, lacks), labels, forbidden in zip(truth(odd_session), found.labels, found.forbidden, strict=True):
        assert set(labels) == has
        assert set(forbidden) == (lacks if kind in ("labels", "jsonl") else set())


@pytest.mark.slow
def test_each_odd_name_comes_back_alone_in_a_table(session, documents):
    """Without neighbours, a table is in the plain notation where that is possible."""
    exporter, plain = Exporter(Views(session)), 0
    apply(session, "ann", DeleteTopic(key=2))
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    for name in ODD:
        apply(session, "ann", ChangeTopic(key=1, name=name))
        path = exporter.export("labels")
        plain += "[" not in path.read_text()
        assert attach_labels(documents, read_labels(path)).labels[0] == [name]
    assert plain > 200
