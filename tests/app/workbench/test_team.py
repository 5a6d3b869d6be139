"""People who label together: agreement, decisions, overlap, blind mode, notes, documents put aside, definitions."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from types import SimpleNamespace

import pytest
from sklearn.metrics import cohen_kappa_score

from topicsteer.corpora import Documents

pytest.importorskip("msgspec")
from topicsteer.analysis.documents_to_label import Suggestion
from topicsteer.app.workbench import fit_process
from topicsteer.app.workbench.actions import ChangeTopic, Label, Later, NewTopic, Settle, Skip, Undo, WriteNote, apply
from topicsteer.app.workbench.agreement_view import agreement_frame, agreement_page, disagreements
from topicsteer.app.workbench.errors import Conflict, Invalid, person_name
from topicsteer.app.workbench.imports import GivenLabels, import_labels
from topicsteer.app.workbench.label_queue import Queue
from topicsteer.app.workbench.project import Project, ProjectError
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.views import Selection, Views
from topicsteer.app.workbench.workbench import Workbench

_ = None
# One row per coder. Published: Krippendorff (2011), section C, α = .743; the example of Wikipedia's page on α, .691.
# The others are Krippendorff's sections A and B without some answers, and two coders who never agree. α per value is
# that of the package krippendorff; κ comes from scikit-learn.
FIXTURES = {
    "Krippendorff C": (
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
            [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
        ],
        {1: 0.7204301075268817, 2: 0.6666666666666667, 3: 0.74, 4: 0.7771428571428571, 5: 1.0},
    ),
    "Wikipedia": (
        [
            [_, _, _, _, _, 3, 4, 1, 2, 1, 1, 3, 3, _, 3],
            [1, _, 2, 1, 3, 3, 4, 3, _, _, _, _, _, _, _],
            [_, _, 2, 1, 3, 4, 4, _, 2, 1, 1, 3, 3, _, 4],
        ],
        {1: 0.8120300751879699, 2: 1.0, 3: 0.53125, 4: 0.5238095238095238},
    ),
    "Krippendorff A": (
        [[2, 1, 2, _, 2, 2, 2, 2, 1, 2], [1, 1, 1, 2, 2, 1, 2, 2, _, 2]],
        {1: 0.18181818181818177, 2: 0.18181818181818177},
    ),
    "Krippendorff B": (
        [[1, 1, 2, 2, 4, 3, 3, 3, 5, _, 4, 1], [2, 1, _, 2, 2, 3, 3, 3, 5, 4, 4, _]],
        {1: 0.6222222222222222, 2: 0.3928571428571428, 3: 1.0, 4: 0.6222222222222222, 5: 1.0},
    ),
    "never equal": (
        [[1, 2, 1, 2, _, 1], [2, 1, 2, 1, 1, _]],
        {1: -0.75, 2: -0.75},
    ),
}


@pytest.fixture
def make(tmp_path):
    opened = []

    def make(n=12, topics=("tea", "coffee"), **settings):
        path = tmp_path / f"p{len(opened)}.steer"
        Project.create(path, Documents([f"d{i}" for i in range(n)], [f"text {i}" for i in range(n)]))
        session = LabelSession(Project.open(path))
        opened.append(session)
        for topic in topics:
            apply(session, "ann", NewTopic(name=topic))
        if settings:
            session.change_settings(**settings)
        return session

    yield make
    for session in opened:
        session.project.close()


def differ(session, rows, key=1):
    """Ann and Bob disagree on a topic."""
    apply(session, "ann", Label(documents=rows, key=key, state="permitted"))
    apply(session, "bob", Label(documents=rows, key=key, state="forbidden"))


@pytest.mark.parametrize("name", FIXTURES)
def test_alpha_and_kappa_equal_published_values(make, name):
    coders, alphas = FIXTURES[name]
    session = make(len(coders[0]), [f"value {v}" for v in alphas])
    for c, answers in enumerate(coders):
        for row, value in enumerate(answers):
            if value is not None:
                apply(session, f"coder {c}", Label(documents=[row], key=value, state="permitted"))
    page = agreement_page(session)
    assert {topic.key: topic.alpha.value for topic in page.topics} == pytest.approx(alphas, abs=1e-9)
    assert all(topic.alpha.low <= topic.alpha.value <= topic.alpha.high for topic in page.topics)
    for a, b in combinations(range(len(coders)), 2):
        found = agreement_page(session, f"coder {b}", f"coder {a}")
        both = [(x, y) for x, y in zip(coders[a], coders[b], strict=True) if x is not None and y is not None]
        assert found.pairs[found.pair][2] == len(both)
        for topic in found.topics:
            first, second = ([one[side] == topic.key for one in both] for side in (0, 1))
            if any(first) or any(second):
                theirs = cohen_kappa_score(first, second)
                assert topic.kappa.value == pytest.approx(theirs, abs=1e-9)
                assert topic.kappa.low <= topic.kappa.value <= topic.kappa.high
            else:
                assert topic.kappa is None
    frame = agreement_frame(session)
    assert frame.filter(frame["measure"] == "alpha")["value"].to_list() == pytest.approx(list(alphas.values()))
    assert len(frame) == len(alphas) * (1 + len(page.pairs))


def test_agreement_without_common_documents(make):
    session = make()
    assert agreement_page(session).topics[0].alpha is None
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    apply(session, "bob", Label(documents=[1], key=1, state="permitted"))
    import_labels(session, "ann", [GivenLabels({0: ["coffee"]}, {})], source="x.csv")
    page = agreement_page(session)
    assert page.people == {"ann": 1, "bob": 1}  # a file is no person
    assert (page.pairs, page.pair, page.topics[0].kappa) == ([], None, None)


def test_a_decision_counts_and_the_votes_stay(make):
    session = make()
    differ(session, [3, 5])
    assert [(one.row, one.key, one.yes, one.no) for one in disagreements(session).disagreements] == [
        (3, 1, ["ann"], ["bob"]),
        (5, 1, ["ann"], ["bob"]),
    ]
    votes = session.votes_of(3)
    apply(session, "eve", Settle(document=3, key=1, state="permitted"))
    assert session.decisions[3] == (frozenset({1}), frozenset({2}), frozenset())
    assert {p: v for p, v in session.votes_of(3).items() if p != "(decision)"} == votes
    assert disagreements(session).total == 1
    page = agreement_page(session)
    assert (page.differing, page.settled, list(page.people)) == (1, 1, ["ann", "bob"])
    labels = Views(session).labels(3, "ann")
    assert (labels.settled, labels.others, labels.differing) == ({1: "confirmed"}, {"bob": {1: "forbidden"}}, [])
    apply(session, "cid", Label(documents=[3], key=1, state="forbidden"))  # a later vote does not change the decision
    assert 1 in session.decisions[3].permitted
    path = session.project.path
    again = LabelSession(session.project)
    assert again.decisions[3] == session.decisions[3]
    apply(session, "eve", Undo())
    assert 1 in session.decisions[3].forbidden
    assert disagreements(session).total == 2
    apply(session, "eve", Settle(document=5, key=1, state="forbidden"))
    assert session.training().labels.get(5) is None
    apply(session, "eve", Settle(document=5, key=1, state="cleared"))
    assert disagreements(session).total == 2
    assert path.exists()
    with pytest.raises(Invalid, match="stands for settled"):
        person_name("(decision)")


def test_disagreements_come_topic_by_topic_in_parts(make):
    session = make(120)
    differ(session, list(range(60)), key=2)
    differ(session, list(range(60, 120)), key=1)
    found = []
    while more := disagreements(session, len(found)).disagreements:
        found += [(one.key, one.row) for one in more]
    assert found == [(1, row) for row in range(60, 120)] + [(2, row) for row in range(60)]


def quotas(session, people, take, label, every, wanted):
    """Let people label everything at once, then check who labelled what."""

    def work(who):
        while not finished():
            found = take(who)
            if found is not None:
                label(who, found)

    def finished():
        with session.lock:
            return bool(session.labelled.all()) and not any(session.due_rows(who) for who in people)

    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(work, people))
    several = set(session.overlap.rows(every))
    assert len(several) == session.n // every
    counts = [len(session.labellers(row)) for row in range(session.n)]
    assert counts == [wanted if row in several else 1 for row in range(session.n)]


@pytest.mark.parametrize(("every", "wanted"), [(10, 2), (3, 3)])
def test_quotas_are_exact_with_four_people_at_once(make, every, wanted):
    session = make(60, overlap=every, overlap_people=wanted)
    queue = Queue(Views(session))
    quotas(
        session,
        ["ann", "bob", "cid", "dan"],
        lambda who: queue.next(who, "random").row,
        lambda who, row: apply(session, who, Label(documents=[row], key=1 + row % 2, state="permitted")),
        every,
        wanted,
    )
    assert agreement_page(session).overlap_done == 60 // every


def test_overlap_survives_a_restart_and_an_undo(make):
    session = make(30, overlap=2)
    queue = Queue(Views(session))
    for row in (4, 9, 2, 7):
        apply(session, "ann", Label(documents=[row], key=1, state="permitted"))
    apply(session, "ann", Undo())
    assert session.overlap.rows(2) == [9, 7] == LabelSession(session.project).overlap.rows(2)
    assert queue.next("bob").row == 9  # nobody has labelled 7 now
    assert queue.next("ann").row not in (4, 9, 2)
    assert queue.next("cid").row != 9  # bob reads it
    apply(session, "bob", Skip(documents=[9]))
    assert queue.next("bob").row != 9
    assert queue.next("cid").row == 9  # a skipped document still needs a second person
    with pytest.raises(Invalid, match=r"Expected `int` >= 0 - at `\$.overlap`"):
        session.change_settings(overlap=-1)


def test_later_comes_again_only_when_asked_for(make):
    session = make(6)
    views = Views(session)
    queue = Queue(views)
    first = queue.next("ann", "random").row
    apply(session, "ann", Later(documents=[first]))
    assert queue.next("ann", "random").row != first
    assert queue.next("ann", "later") == (first_again := queue.next("ann", "later"))
    assert (first_again.row, first_again.left) == (first, 1)
    assert queue.next("bob", "later").row is None
    assert not session.labelled[first]
    assert views.rows(Selection("ann", filter="later")) == [first]
    apply(session, "ann", Label(documents=[first], key=1, state="permitted"))
    assert queue.next("ann", "later").row is None
    assert session.labelled[first]


def test_notes_are_no_labels(make):
    session = make()
    views = Views(session)
    apply(session, "ann", Label(documents=[2], key=1, state="permitted"))
    apply(session, "ann", NewTopic(name="milk"))
    before, last = session.training(), session.last_event.copy()
    apply(session, "ann", WriteNote(document=2, text="  a cup of <b>what</b>? "))
    apply(session, "bob", WriteNote(document=2, text="cleared"))
    assert session.training()._replace(seq=before.seq) == before  # milk stays open
    assert (session.last_event == last).all()
    assert session.notes_of(2) == {"ann": "a cup of <b>what</b>?", "bob": "cleared"}
    assert LabelSession(session.project).notes_of(2) == session.notes_of(2)
    assert views.labels(2, "ann").notes == session.notes_of(2)
    assert views.rows(Selection("ann", filter="notes")) == [2]
    apply(session, "bob", Undo())
    apply(session, "ann", WriteNote(document=2, text=" "))
    assert session.notes_of(2) == {}
    with pytest.raises(Invalid, match="at most 2,000"):
        apply(session, "ann", WriteNote(document=2, text="x" * 2001))


def test_blind_mode_hides_everything_but_the_own_labels(make):
    session = make(8)
    views = Views(session)
    differ(session, [1])
    apply(session, "bob", WriteNote(document=1, text="surely not"))
    session.change_settings(blind=True)
    labels = views.labels(1, "ann")
    assert (labels.mine, labels.permitted) == ({1: "permitted"}, [1])
    assert (labels.others, labels.differing, labels.settled, labels.notes) == ({}, [], {}, {})
    assert views.labels(1, "cid").permitted == []
    assert [row.row for row in views.documents(Selection("ann", key=1)).documents] == [1]
    assert views.documents(Selection("cid", key=1)).documents == []  # not the labels of others
    for chosen in (Selection("cid", filter="people"), Selection("cid", filter="strong"), Selection("cid", key="none")):
        with pytest.raises(Conflict, match="Blind mode"):
            views.documents(chosen)
    queue = Queue(views)
    assert "At random" in queue.next("cid", "suggested").why
    for mode in ("topic", "check", "question"):
        with pytest.raises(Conflict, match="blind mode"):
            queue.next("cid", mode, key=1)
    session.change_settings(blind=False)
    assert views.labels(1, "ann").others == {"bob": {1: "forbidden"}}


def test_labels_under_an_older_definition_are_listed(make):
    session = make()
    views = Views(session)
    apply(session, "ann", ChangeTopic(key=1, description="any hot drink"))
    apply(session, "ann", Label(documents=[0, 1], key=1, state="permitted"))
    apply(session, "ann", Label(documents=[2], key=2, state="permitted"))
    apply(session, "ann", ChangeTopic(key=1, name="Tea"))
    assert views.rows(Selection("ann", filter="older")) == []
    apply(session, "ann", ChangeTopic(key=1, description="leaves in hot water"))
    assert views.rows(Selection("ann", filter="older", key=1)) == [0, 1]
    assert views.rows(Selection("ann", filter="older", key=2)) == []
    assert [topic.older for topic in views.topics().known] == [2, 0]
    assert views.labels(0, "bob").older == [1]
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))  # the same label again
    assert views.rows(Selection("ann", filter="older")) == [1]
    assert LabelSession(session.project).older_labels(1) == {1}
    apply(session, "ann", ChangeTopic(key=1, description="any hot drink"))
    assert views.rows(Selection("ann", filter="older")) == [0]  # labelled under the one between


@pytest.mark.parametrize(
    ("topic", "state", "problem"),
    [(-2, "no json", "a note cannot be read"), (-3, "random", "unknown topic"), (0, "someday", "unknown state")],
)
def test_damaged_events_are_noticed(make, topic, state, problem):
    session = make()
    path = session.project.path
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    with sqlite3.connect(path) as connection:
        insert = "INSERT INTO events (batch, person, document, topic, state, before) VALUES (1, 'ann', 0, ?, ?, '')"
        connection.execute(insert, (topic, state))
    connection.close()
    session.project.close()
    with pytest.raises(ProjectError, match=problem):
        Project.open(path)


def test_a_fit_during_a_fit_waits_for_its_end(make, monkeypatch):
    session = make()
    apply(session, "ann", Label(documents=[0], key=1, state="permitted"))
    path = session.project.path
    session.project.close()
    workbench = Workbench(path)
    orders = []

    def start(order):
        if workbench.fitter.busy:
            return False
        orders.append(order)
        workbench.fitter.busy = True
        return True

    monkeypatch.setattr(workbench.fitter, "start", start)
    try:
        assert workbench.fit()
        assert not workbench.fit()
        assert workbench.status.queued
        apply(workbench.session, "ann", Label(documents=[1], key=2, state="permitted"))
        workbench.fitter.busy = False
        workbench.on_message(fit_process.Failed("no memory"))
        assert [sorted(order.labels) for order in orders] == [[0], [0, 1]]  # the second one has the newest labels
        assert (workbench.status.state, workbench.status.queued) == ("fitting", False)
        assert not workbench.fit()
        workbench.cancel_fit()
        assert (len(orders), workbench.status.state) == (2, "idle")
    finally:
        workbench.fitter.busy = False
        workbench.close()


@pytest.mark.parametrize("report", [fit_process.Learnt(), fit_process.Rested()])
def test_labels_that_arrive_during_a_fit_start_the_next_one(make, monkeypatch, report):
    """Also if the fit had too few labels for an evaluation, and if nobody labels afterwards."""
    session = make(refit_after=3)
    path = session.project.path
    session.project.close()
    workbench = Workbench(path)
    orders = []

    def start(order):
        orders.append(order)
        workbench.fitter.busy = True
        return True

    def label(documents, key):
        workbench.act("ann", Label(documents=documents, key=key, state="permitted"))

    monkeypatch.setattr(workbench.fitter, "start", start)
    try:
        label([0], 1)
        label([1, 2], 2)
        assert len(orders) == 1
        for row in range(3, 9):
            label([row], 1)
        assert len(orders) == 1
        workbench.fitter.busy = False
        workbench.on_message(report)
        assert [len(order.labels) for order in orders] == [3, 9]
    finally:
        workbench.fitter.busy = False
        workbench.close()


def test_near_duplicates_are_labelled_once(tmp_path):
    mail = "{} thank you for the parcel that arrived yesterday in good order and on time, as always"
    texts = [mail.format(name) for name in ("Ann", "Bob", "Cid")] + ["a complaint about tea", "the price of coffee"]
    path = tmp_path / "mail.steer"
    Workbench.make(path, Documents([f"d{i}" for i in range(5)], texts))
    workbench = Workbench(path)
    try:
        apply(workbench.session, "ann", NewTopic(name="thanks"))
        assert workbench.views.document(1, "ann").copies == 2
        assert workbench.views.document(3, "ann").copies == 0
        first = workbench.queue.next("ann").row
        apply(workbench.session, "ann", Label(documents=[first], key=1, state="permitted"))
        assert workbench.session.chosen() == {first: "random"}  # the default list is a random sample, with all copies
        rows = [Suggestion(row, (), "useful") for row in range(5)]
        workbench.views.fitted = SimpleNamespace(suggestions=rows, unknown=[])
        served = [first]
        while workbench.queue.next("ann", "suggested").why == "Useful.":
            served.append(workbench.queue.next("ann", "suggested").row)
            apply(workbench.session, "ann", Label(documents=[served[-1]], key=1, state="permitted"))
        assert len(served) == 3
        assert len({0, 1, 2} & {*served}) == 1
        assert workbench.queue.next("ann", "search", query="parcel").row in {0, 1, 2} - {*served}  # if asked for
        drawn = workbench.queue.next("ann", "suggested").row  # no suggestion is left: a random sample has the copies
        assert drawn in {0, 1, 2} - {*served}
        apply(workbench.session, "ann", Label(documents=[drawn], key=1, state="permitted"))
        assert workbench.session.chosen() == {first: "random"} | dict.fromkeys(served[1:], "suggested 2") | {
            drawn: "random 3"
        }
    finally:
        workbench.close()


def test_a_copy_of_a_document_that_somebody_reads_is_kept_back(tmp_path):
    path = tmp_path / "mail.steer"
    Workbench.make(path, Documents(["a", "b", "c"], ["one two three four"] * 2 + ["other words"]))
    workbench = Workbench(path)
    try:
        rows = [Suggestion(row, (), "useful") for row in range(3)]
        workbench.views.fitted = SimpleNamespace(suggestions=rows, unknown=[])
        found = [workbench.queue.next(who, "suggested") for who in ("ann", "bob", "cid")]
        assert [(one.row, one.why[:9]) for one in found] == [(0, "Useful."), (2, "Useful."), (1, "At random")]
    finally:
        workbench.close()
