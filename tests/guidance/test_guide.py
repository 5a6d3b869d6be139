import numpy as np
import pytest
import reference
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import normalize

from topicsteer.analysis.evaluation import logistic_regression, nearest_centroid
from topicsteer.backends import as_rows
from topicsteer.corpora import load_docstrings
from topicsteer.guidance import train
from topicsteer.guidance.apply import THRESHOLD_RANGE, apply_labels, best_thresholds
from topicsteer.guidance.calibration import FIXED_CALIBRATION, FIXED_MIX
from topicsteer.guidance.keywords import TopicTexts
from topicsteer.guidance.ridge import EXACT_DOCUMENTS
from topicsteer.labels.forms import supervise
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, assign_folds
from topicsteer.text import TextVectorizer

# Too many labels for an exact solution.
MANY = EXACT_DOCUMENTS + 1


def guide(X, supervision, **given):
    return train.train_guide(as_rows(X), supervision, **given)


def corpus(n=200, topics=5, seed=0, noise=0.3, own=8):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, topics, n)
    X = rng.random((n, 5 * own)) * noise * (rng.random((n, 5 * own)) < 0.4)
    for i, k in enumerate(which):
        X[i, own * k : own * k + own] += rng.random(own) * (rng.random(own) < 0.5)
    return sp.csr_array(normalize(sp.csr_array(X.astype(np.float32)))), which


@pytest.fixture(scope="module")
def docstrings():
    documents = load_docstrings()
    X = sp.csr_array(TextVectorizer().fit_transform(documents.texts))
    everything = supervise(documents.labels, len(documents))
    shown = supervise(documents.hide_labels(0.95, 1).labels, len(documents), topics=everything.topics)
    return X, everything.indicator().toarray() > 0, shown


@pytest.mark.parametrize("labelled", [40, MANY])
def test_follows_the_labels(labelled):
    n = labelled + 160
    X, which = corpus(n)
    found = guide(X, supervise({i: int(which[i]) for i in range(labelled)}, n)).probabilities(X)
    assert (found[labelled:].argmax(axis=1) == which[labelled:]).mean() > 0.9
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize(
    ("form", "noise", "second"),
    [
        ("plain", 1.5, True),
        ("plain", 0.1, False),
        ("doubtful", 1.5, True),
        ("single", 1.5, True),
        ("latent", 1.5, True),
        ("embedded", 1.5, True),
        ("many", 1.5, True),
        ("few", 1.5, True),
    ],
)
def test_both_rounds_match_a_reference_made_of_scikit_learn_estimators(form, noise, second):
    n = 20 if form == "few" else 60
    X, which = corpus(160, 4, seed=3, noise=noise, own=16 if form == "latent" else 8)
    y = np.full((160, 5 if form == "single" else 4), np.nan)
    y[:n] = which[:n, None] == np.arange(y.shape[1])
    document_weight, rng = np.ones(160), np.random.default_rng(0)
    if form == "single":  # a topic with one document
        y[7] = [0, 0, 0, 0, 1]
    if form == "doubtful":
        document_weight = rng.choice([1.0, 0.4], 160)
        y[:n][rng.random((n, 4)) < 0.2] = np.nan
    E = np.eye(4)[which] + rng.normal(size=(160, 4)) if form == "embedded" else None
    supervision = supervise(y, 160)
    exact = 0 if form == "many" else EXACT_DOCUMENTS  # too many labels for an exact solution
    learnt = guide(X, supervision, confidence=document_weight, embeddings=E, exact_documents=exact)
    states = supervision.patterns[supervision.pattern[:n]].astype(int)
    some = (states == PERMITTED).any(axis=1, keepdims=True)
    states[(states == UNKNOWN) & some] = FORBIDDEN  # topics that labels leave open count as absent
    fold_of = assign_folds(sp.csr_array(states == PERMITTED), 3, seed=0)
    weight, ridge = learnt.choice.embedding, learnt.choice.ridge
    latent = [normalize(X @ learnt.directions[:, :q]) * 0.5**0.5 for q in ((8, 8, 16) if form == "latent" else ())]
    Z = np.hstack([X.toarray(), *latent, *([] if E is None else [normalize(E) * weight**0.5])])
    fixed = (FIXED_CALIBRATION, FIXED_MIX) if form == "few" else None
    odds, left_out = reference.guidance(
        X.toarray(), Z, states, fold_of, ridge, document_weight[:n], form == "many", fixed
    )
    assert (learnt.word_round is not None) == second
    tolerance = 1e-3 if form == "many" else 1e-5
    np.testing.assert_allclose(learnt.probabilities(X, embeddings=E), expit(odds), atol=tolerance)
    np.testing.assert_allclose(learnt.left_out, expit(left_out), atol=tolerance)


def test_one_label_per_topic_and_topics_without_labels():
    X, which = corpus()
    first = {int(np.flatnonzero(which == k)[0]): int(k) for k in range(4)}
    found = guide(X, supervise(first, 200, topics=[0, 1, 2, 3, 4, "nobody"])).probabilities(X)
    assert found.shape == (200, 6)
    assert not found[:, 4:].any()
    named = np.flatnonzero(which < 4)
    assert (found[named].argmax(axis=1) == which[named]).mean() > 0.7


def test_nothing_to_learn_from():
    X, _ = corpus()
    assert guide(X, supervise(None, 200)) is None
    assert guide(X, supervise(None, 200, topics=["a"])) is None
    empty = sp.csr_array((3, 4), dtype=np.float32)
    assert guide(empty, supervise(["a", None, None], 3)) is None


def test_a_single_topic_and_tiny_matrices():
    X, which = corpus(30, 2)
    y = np.full((30, 1), np.nan)
    y[:10, 0] = which[:10] == 0
    found = guide(X, supervise(y, 30)).probabilities(X)
    assert found[which == 0].mean() > found[which == 1].mean()
    tiny = sp.csr_array(np.eye(2, dtype=np.float32))
    assert guide(tiny, supervise(["a", "b"], 2)).probabilities(tiny).argmax(axis=1).tolist() == [0, 1]


def test_negative_and_unknown_labels():
    X, which = corpus()
    y = np.full((200, 5), np.nan)
    for i in range(60):
        y[i, which[i]] = 1
        y[i, (which[i] + 1) % 5] = 0  # the other three topics are unknown
    found = guide(X, supervise(y, 200)).probabilities(X)
    assert (found[60:].argmax(axis=1) == which[60:]).mean() > 0.85


def test_names_of_topics_are_small_documents():
    X, which = corpus()
    first = {int(np.flatnonzero(which == k)[0]): int(k) for k in range(4)}
    supervision = supervise(first, 200, topics=range(5))
    names = sp.csr_array(np.kron(np.eye(5), np.full(8, 8**-0.5)).astype(np.float32))
    plain, named = guide(X, supervision), guide(X, supervision, names=TopicTexts.of(names))
    right = [(found.probabilities(X).argmax(axis=1) == which).mean() for found in (plain, named)]
    assert right[1] > right[0]
    assert (named.probabilities(X)[which == 4].argmax(axis=1) == 4).mean() > 0.8  # topic 4 has no labels
    wrong = guide(
        X, supervise({i: int(which[i]) for i in range(100)}, 200), names=TopicTexts.of(names[[1, 2, 3, 4, 0]])
    )
    assert (wrong.probabilities(X)[100:].argmax(axis=1) == which[100:]).mean() > 0.9  # labels outweigh wrong names


def test_embeddings_help_where_terms_carry_no_information():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 3, 300)
    X = sp.csr_array(normalize(sp.random_array((300, 50), density=0.2, rng=rng, dtype=np.float32).tocsr()))
    E = np.eye(3)[which] + 0.3 * rng.normal(size=(300, 3))
    supervision = supervise({i: int(which[i]) for i in range(45)}, 300)
    learnt = guide(X, supervision, embeddings=E)
    assert learnt.embedding == 4
    found = learnt.probabilities(X, embeddings=E)
    assert (found[45:].argmax(axis=1) == which[45:]).mean() > 0.9
    np.testing.assert_allclose(learnt.probabilities(X[:5], embeddings=10 * E[:5]), found[:5], atol=1e-5)
    with pytest.raises(ValueError, match="needs the embeddings"):
        learnt.probabilities(X)
    with pytest.raises(ValueError, match="without embeddings"):
        guide(X, supervision).probabilities(X, embeddings=E)


def test_labels_with_low_confidence_count_less():
    X, which = corpus(noise=0.8)
    given, confidence = which.copy(), np.ones(200)
    given[:40], confidence[:40] = (which[:40] + 1) % 5, 0.01  # wrong labels with low confidence
    supervision = supervise({i: int(given[i]) for i in range(80)}, 200)
    right = [
        (guide(X, supervision, confidence=document_weight).probabilities(X)[80:].argmax(axis=1) == which[80:]).mean()
        for document_weight in (None, confidence)
    ]
    assert right[1] > right[0] + 0.1


def test_left_out_probabilities():
    X, which = corpus()
    shown = {i: int(which[i]) for i in range(60)} | {60: "alone"}
    learnt = guide(X, supervise(shown, 200, topics=[*range(5), "alone"]))
    np.testing.assert_array_equal(learnt.rows, np.arange(61))
    known = learnt.left_out[:60, :5]
    assert (np.nanargmax(known, axis=1) == which[:60]).mean() > 0.8
    assert np.isnan(learnt.left_out[60, 5])
    assert learnt.positions(X).shape == (200, len(learnt.seen))


def test_same_bits_for_any_number_of_threads_and_any_batch():
    X, which = corpus()
    supervision = supervise({i: int(which[i]) for i in range(40)}, 200)
    one, two = guide(X, supervision, threads=1), guide(X, supervision, threads=2)
    found = one.probabilities(X, threads=1)
    np.testing.assert_array_equal(found, two.probabilities(X, threads=2))
    np.testing.assert_allclose(np.vstack([one.probabilities(X[[i]]) for i in range(20)]), found[:20], atol=1e-6)
    assert not one.probabilities(sp.csr_array((1, 40), dtype=np.float32)).any()


def test_labels_replace_probabilities():
    supervision = supervise(np.array([[1, 0, np.nan], [np.nan, np.nan, np.nan]]), 2)
    answer = apply_labels(np.full((2, 3), 0.3, np.float32), supervision)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer, [[1, 0, 0.3], [0.3, 0.3, 0.3]])


def test_thresholds_maximise_the_expected_jaccard_index():
    assert best_thresholds(np.full((5, 1), 0.9)) == max(THRESHOLD_RANGE)
    assert best_thresholds(np.zeros((5, 1))) == min(THRESHOLD_RANGE)
    p = np.random.default_rng(0).beta(0.3, 1.5, size=(60, 1))
    threshold = best_thresholds(p, (0, 1))[0]

    def jaccard(threshold):
        yes = p[:, 0] >= threshold
        return p[yes].sum() / (yes.sum() + p[~yes].sum())

    assert jaccard(threshold) == pytest.approx(max(jaccard(c) for c in p[:, 0]))
    # Topics without labels change no other threshold.
    with_empty = best_thresholds(np.hstack([p, np.zeros((60, 3))]), (0, 1))
    assert with_empty[0] == threshold
    rare = np.vstack([[[0.04]], np.zeros((59, 1))])  # the threshold is the probability of its only document
    np.testing.assert_allclose(
        best_thresholds(np.hstack([p, rare]), (0, 1)), (np.array([threshold, 0.04]) * (threshold * 0.04) ** 0.5) ** 0.5
    )
    assert not best_thresholds(np.zeros((5, 2)), (0, 1)).any()


@pytest.mark.slow
def test_better_than_the_baselines_on_unlabelled_documents(docstrings):
    X, truth, shown = docstrings
    hidden = ~shown.labelled
    ours = guide(X, shown).probabilities(X)
    for baseline in (logistic_regression(X, shown), nearest_centroid(X, shown)):
        for average in ("macro", "micro"):
            ap = [
                average_precision_score(truth[hidden], scores[hidden], average=average) for scores in (ours, baseline)
            ]
            assert ap[0] > ap[1]


@pytest.mark.slow
def test_probabilities_are_calibrated(docstrings):
    X, truth, shown = docstrings
    hidden = ~shown.labelled
    p, right = guide(X, shown).probabilities(X)[hidden].ravel(), truth[hidden].ravel()
    bins = np.minimum((p * 10).astype(int), 9)
    error = sum(abs(p[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins))
    assert error < 0.03


@pytest.mark.parametrize("labelled", [60, 200])
def test_all_labels_are_of_one_topic(labelled):
    X, which = corpus(topics=2)
    rows = np.flatnonzero(which == 0)[:labelled]
    found = guide(X, supervise({int(i): "a" for i in rows}, X.shape[0])).probabilities(X)[:, 0]
    assert found[which == 0].mean() > found[which == 1].mean()


def test_given_directions_are_not_computed_again():
    X, which = corpus(own=16)
    supervision = supervise({i: int(which[i]) for i in range(40)}, 200)
    plain = guide(X, supervision)
    again = guide(X, supervision, directions=-plain.directions)
    np.testing.assert_array_equal(again.directions, -plain.directions)
    np.testing.assert_allclose(again.probabilities(X), plain.probabilities(X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [200, MANY])
def test_threads_do_not_change_a_guide(labelled):
    X, which = corpus(labelled + 100, own=16)
    given = {i: int(which[i]) + 5 * (i % 8) for i in range(labelled)}  # 40 topics: more than one block of work
    supervision = supervise(given, labelled + 100)
    one, two = (guide(X, supervision, threads=threads) for threads in (1, 2))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(two.arrays()[name], array, err_msg=name)


def test_known_latent_semantics_are_not_computed_again():
    X, which = corpus(own=16)
    learnt = guide(X, supervise({i: int(which[i]) for i in range(40)}, 200))
    assert learnt.directions.shape[1]
    latent = learnt.positions(X)
    np.testing.assert_array_equal(learnt.probabilities(X, latent=latent), learnt.probabilities(X))


def test_probabilities_are_in_single_precision():
    X, which = corpus()
    found = guide(X, supervise({i: int(which[i]) for i in range(40)}, 200, topics=[*range(5), "nobody"]))
    assert found.probabilities(X).dtype == np.float32
    assert found.left_out.dtype == np.float32
