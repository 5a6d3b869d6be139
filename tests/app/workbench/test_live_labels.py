"""Memberships, suggestions and counts follow each label, between fits and during one."""

import io
import time

import numpy as np
import pytest

from topicsteer.analysis import map_layout
from topicsteer.app.workbench import fit_process as messages
from topicsteer.app.workbench.actions import DeleteTopic, Label, NewTopic, NoneOfThese, Undo, apply
from topicsteer.app.workbench.current_model import FEATURES
from topicsteer.app.workbench.map_view import map_points
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.app.workbench.worker import Worker
from topicsteer.corpora import Documents

WORDS = {
    "tea": "leaf kettle pot steep green",
    "coffee": "bean roast grind espresso crema",
    "rain": "cloud storm wind wet grey",
}
NAMES = list(WORDS)


def documents(n=120):
    rng, every = np.random.default_rng(1), " ".join(WORDS.values()).split()
    texts = [" ".join([*rng.choice(WORDS[NAMES[k % 3]].split(), 4), *rng.choice(every, 2)]) for k in range(n)]
    return Documents([f"d{k}" for k in range(n)], texts)


@pytest.fixture
def bench(tmp_path):
    """A workbench with topics 1 to 3 and two labels for each of the first two; fits wait for `finish`."""
    Workbench.make(tmp_path / "drinks.steer", documents(), embeddings="none")
    bench = Workbench(tmp_path / "drinks.steer")
    bench.orders, bench.notices = [], []
    bench.fitter.start = lambda order: not bench.fitter.busy and (bench.orders.append(order) or True)
    bench.listeners.append(bench.notices.append)
    bench.session.change_settings(refit_after=0, free_topics=2)
    for name in NAMES:
        apply(bench.session, "ann", NewTopic(name=name))
    for row in (0, 1, 3, 4):
        label(bench, row, 1 + row % 3)
    yield bench
    bench.close()


def label(bench, row, key, state="permitted"):
    bench.act("ann", Label(documents=[row], key=key, state=state))


def finish(bench):
    """Do the last ordered fit in this process, and report it."""
    order, out = bench.orders[-1], io.StringIO()
    Worker(out).work(order)
    lines = out.getvalue().splitlines()
    for report in map(messages.read_report, lines):
        if isinstance(report, messages.Finished | messages.Failed):
            bench.on_message(report)


def followed(bench, condition):
    """Wait until the model in use fulfils a condition."""
    for _ in range(600):
        if condition(bench.views.fitted):
            return bench.views.fitted
        time.sleep(0.02)
    raise AssertionError("memberships did not follow")


def fitted(bench):
    bench.fit()
    finish(bench)
    assert (bench.views.fitted.folder / FEATURES).exists()
    return followed(bench, lambda model: model.suggestions)


@pytest.mark.slow
def test_without_new_labels_memberships_are_those_of_the_fit(bench):
    model = fitted(bench)
    supervision = bench.session.supervision(model.supervision, model.keys)
    before = model.model.state_.supervision
    assert np.array_equal(supervision.patterns[supervision.pattern], before.patterns[before.pattern])
    assert np.array_equal(model.values, model.at_fit)


@pytest.mark.slow
def test_a_label_moves_likely_topics_counts_suggestions_and_colours_at_once(bench):
    model, near = fitted(bench), 5
    before = model.values.copy()
    bench.notices.clear()
    for row in (2, 8, 11):
        label(bench, row, 3)
    now = followed(bench, lambda model: int(model.supervision.labelled.sum()) == 7)
    assert now.values[2, 2] == 1
    assert now.memberships[near, 2] > before[near, 2]
    assert np.abs(now.values - before).max(axis=1)[np.arange(5, 120)].max() > 0.02
    likely = {one.key: one.probability for one in bench.views.document(near, "ann").likely}
    assert likely[3] == round(float(now.memberships[near, 2]), 3)
    counts = [topic.fit.documents for topic in bench.views.topics().known]
    assert counts == now.documents[:3]
    assert "advised" in [notice.kind for notice in bench.notices]
    followed(bench, lambda model: not {2, 8, 11} & {one.row for one in model.suggestions})
    layout = map_layout.Layout(np.arange(120), np.zeros((120, 2), np.float32), 1.0, 120)
    points = map_points(bench.views, layout)
    now.values[near, :] = 0
    assert map_points(bench.views, layout).membership != points.membership


@pytest.mark.slow
def test_an_undone_label_is_forgotten_and_a_restart_keeps_the_rest(bench):
    model = fitted(bench)
    label(bench, 2, 3)
    one = followed(bench, lambda model: model.supervision.labelled[2]).values
    bench.act("ann", NoneOfThese(documents=[7]))
    followed(bench, lambda model: model.supervision.labelled[7])
    bench.act("ann", Undo())
    now = followed(bench, lambda model: not model.supervision.labelled[7])
    assert np.array_equal(now.values, one)
    label(bench, 0, 1, "cleared")  # a label of the fit
    gone = followed(bench, lambda model: not model.supervision.labelled[0])
    assert gone.values[0, 0] < 1
    bench.close()
    again = Workbench(bench.project.path)
    try:
        assert np.array_equal(again.views.fitted.values, gone.values)
        assert not np.array_equal(again.views.fitted.values, model.values)
    finally:
        again.close()


@pytest.mark.slow
def test_labels_given_during_a_fit_count_on_top_of_it(bench):
    """A result never jumps back to an older state."""
    fitted(bench)
    bench.fit()
    seen = []
    bench.listeners.append(lambda notice: seen.append(bench.views.fitted.values[2, 2]))
    label(bench, 2, 3)
    followed(bench, lambda model: model.values[2, 2] == 1)
    seen.clear()
    finish(bench)  # the labels of this fit do not have it
    assert bench.views.fitted.record.seq == bench.pending.seq
    assert not bench.views.fitted.model.state_.supervision.labelled[2]
    assert len(seen) > 2
    assert set(seen) == {1.0}


@pytest.mark.slow
def test_topics_of_another_fit_are_left_out_and_damaged_features_are_reported(bench):
    model = fitted(bench)
    bench.act("ann", NewTopic(name="snow"))
    label(bench, 20, 4)
    now = followed(bench, lambda model: model.supervision.labelled[20])
    assert now.values.shape == model.values.shape
    assert (now.memberships[20] == 0).all()  # labels are complete: none of the topics of the fit
    bench.act("ann", DeleteTopic(key=3))
    label(bench, 23, 1)
    now = followed(bench, lambda model: model.supervision.labelled[23])
    now.live.features = now.live.features[:5]
    label(bench, 24, 1)
    for _ in range(300):
        if bench.status.error:
            break
        time.sleep(0.02)
    assert "do not follow labels until the next fit" in bench.status.error
