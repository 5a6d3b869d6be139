"""The people who labelled survive export and import, in every format."""

import pytest

from topicsteer.corpora import Documents

pytest.importorskip("msgspec")
from topicsteer.app.workbench.actions import Answer, Label, NewTopic, NoneOfThese, Settle, Undo, apply
from topicsteer.app.workbench.errors import Invalid
from topicsteer.app.workbench.workbench import Workbench

PEOPLE = ("ann", "bob; the second", "=cid")


@pytest.fixture
def make(tmp_path):
    opened = []

    def make(name):
        path = tmp_path / f"{name}.steer"
        Workbench.make(path, Documents([f"d{i}" for i in range(8)], [f"text {i}" for i in range(8)]))
        opened.append(Workbench(path))
        opened[-1].session.change_settings(refit_after=0)
        return opened[-1]

    yield make
    for workbench in opened:
        workbench.close()


@pytest.fixture
def first(make):
    """All agree on d0 to d2, two differ on d3, one person has answered a question on d4, none of the topics on d5."""
    workbench = make("first")
    session = workbench.session
    for name in ("tea", "coffee"):
        apply(session, "ann", NewTopic(name=name))
    for row, who in enumerate(PEOPLE):
        apply(session, who, Label(documents=[row], key=1 + row % 2, state="permitted"))
    apply(session, "ann", Label(documents=[1, 3], key=2, state="permitted"))
    apply(session, "=cid", Label(documents=[3], key=1, state="permitted"))
    apply(session, "ann", Answer(document=4, key=1, state="permitted"))
    apply(session, "=cid", NoneOfThese(documents=[5]))
    return workbench


def people(workbench):
    session = workbench.session
    name = {topic.key: topic.name for topic in session.live}
    found = {}
    for row in range(8):
        for who, votes in session.votes_of(row).items():
            found[row, who] = {name[key]: has for key, has in votes.items()}
    return found


def test_a_table_by_person_brings_every_vote_back(first, make):
    apply(first.session, "ann", Settle(document=3, key=2, state="permitted"))
    file = first.exporter.export("labels-by-person")
    second = make("second")
    message = second.import_labels("eve", file, file.name)
    assert message.startswith("Imported labels of 6 documents from labels-by-person.csv, given by ")
    assert people(second) == people(first)
    assert {row: d for row, d in second.session.decisions.items() if any(d)}.keys() == {0, 1, 2, 3, 4, 5}
    assert second.session.undo_state("eve").undo
    apply(second.session, "eve", Undo())
    assert people(second) == {}


@pytest.mark.parametrize("kind", ["labels", "jsonl"])
def test_every_format_names_the_people(first, make, kind):
    file = first.exporter.export(kind)
    second = make("second")
    second.import_labels("eve", file, file.name)
    before, after = people(first), people(second)
    for row, who in [(0, "ann"), (1, "ann"), (1, "bob; the second"), (2, "=cid")]:
        assert after[row, who] == before[row, who]
    attributed = {place: votes for place, votes in after.items() if not place[1].startswith("file: ")}
    assert all(before[place] == votes for place, votes in attributed.items())  # nothing false is attributed
    assert (5, "=cid") in attributed


def test_labels_given_here_are_never_overwritten(first, make):
    file = first.exporter.export("labels-by-person")
    second = make("second")
    apply(second.session, "ann", NewTopic(name="coffee", documents=[0]))
    second.import_labels("eve", file, file.name)
    assert people(second)[0, "ann"]["coffee"]
    assert "tea" not in people(second)[0, "ann"]


def test_a_name_that_no_person_can_have_is_refused(first, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,labels,labelled_by\nd0,tea,file: other.csv\n")
    with pytest.raises(Invalid, match=r"labels\.csv: .*does not begin with 'file: '"):
        first.import_labels("eve", path, "labels.csv")
