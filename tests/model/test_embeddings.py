"""A model with word vectors, with an array of embeddings, with an encoder, and without any: everything works alike."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents
from topicsteer.model.spool import spool
from topicsteer.system.arrays import StorageError
from topicsteer.text import meaning

pytestmark = pytest.mark.slow

TOPICS = {
    "finance": "bank loan credit interest mortgage payment account money deposit cash",
    "sport": "football match goal team player coach season league score stadium",
    "cooking": "recipe oven flour butter sugar bake dough sauce pepper garlic",
}
PLACES = ["street", "city", "house", "river", "road", "market", "village", "bridge", "park", "tower"]
KINDS = ("words", "none", "array", "encoder")


def pile(n, topics=tuple(TOPICS), seed=0):
    """Texts of eight words of a topic and of stop words."""
    rng = np.random.default_rng(seed)
    kinds = [topics[k] for k in rng.integers(len(topics), size=n)]
    texts = [
        " ".join(["how do i", *rng.choice(TOPICS[kind].split(), 6), "in the", *rng.choice(PLACES, 2)]) for kind in kinds
    ]
    return texts, kinds


def encode(texts):
    """Number of words of each topic, and a constant."""
    counts = [[sum(word in own.split() for word in text.split()) for own in TOPICS.values()] for text in texts]
    return np.hstack([np.array(counts, dtype=np.float32).reshape(-1, 3), np.full((len(texts), 1), 0.5)])


def of_fit(kind, texts):
    return {"array": encode(texts), "encoder": encode}.get(kind)


def of_new(kind, texts):
    return encode(texts) if kind == "array" else None


def new_model(kind, *arguments, **options):
    return TopicModel(*arguments, embeddings=None if kind == "none" else "words", **options)


def corpus(n=180, seed=0, hidden="cooking"):
    texts, kinds = pile(n, seed=seed)
    labels = [[name] if row % 3 == 0 and name != hidden else [] for row, name in enumerate(kinds)]
    return Documents([f"d{row}" for row in range(n)], texts, labels), kinds


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    documents, kinds = corpus()
    model = new_model(request.param, 2, world="open").fit(documents, embeddings=of_fit(request.param, documents.texts))
    return request.param, model, documents, kinds


def loaded(fitted, folder):
    """The model, saved and loaded."""
    kind, model, documents, _ = fitted
    model.save(folder, texts=True)
    encoder = encode if kind == "encoder" else None
    return TopicModel.load(folder, encoder=encoder, embeddings=of_new(kind, documents.texts))


def test_labels_are_obeyed_and_the_others_found(fitted):
    _, model, documents, kinds = fitted
    known = model.state_.known_memberships
    names = model.codebook.names
    for row, own in enumerate(documents.labels):
        if own:
            assert known[row].tolist() == [float(name in own) for name in names]
    main = model.state_.judged.main()
    guessed = [names[k] if k < 2 else "cooking" for k in main]
    assert np.mean([a == b for a, b in zip(guessed, kinds, strict=True)]) > 0.95


def test_meaning_is_there_if_it_was_asked_for(fitted):
    kind, model, *_ = fitted
    features = model.guide_.features
    assert (bool(features.vectors.shape[1]), features.given) == (kind == "words", kind in ("array", "encoder"))
    assert bool(model.state_.encoder) == (kind in ("array", "encoder"))
    assert (model.state_.idf.min() < 1e-3) == (kind != "none")  # stop words are weak terms


def test_new_texts_have_the_memberships_of_the_fit(fitted):
    kind, model, documents, _ = fitted
    rows = [row for row, own in enumerate(documents.labels) if not own]
    texts = [documents.texts[row] for row in rows]
    table = model.memberships(texts, embeddings=of_new(kind, texts)).drop("id").to_numpy()
    np.testing.assert_allclose(table, model.memberships().drop("id").to_numpy()[rows], atol=1e-5)
    decided = model.predict(texts, embeddings=of_new(kind, texts))
    assert decided == [model.state_.judged.decisions(model.state_.names)[row] for row in rows]


def test_a_saved_model_answers_the_same(fitted, tmp_path):
    kind, model, *_ = fitted
    again, new = loaded(fitted, tmp_path / "model"), [*pile(30, seed=5)[0], "", "xyzzy"]
    E = of_new(kind, new)
    assert again.memberships(new, embeddings=E).equals(model.memberships(new, embeddings=E))
    assert again.predict(new, embeddings=E) == model.predict(new, embeddings=E)
    np.testing.assert_array_equal(again.transform(new, embeddings=E), model.transform(new, embeddings=E))
    ours, theirs = (m.explain(new[0], embeddings=of_new(kind, new[:1])).rows() for m in (model, again))
    assert ours == theirs
    assert not set(ours["term"]) & {"how", "do", "in", "the"}


def test_help_with_labels(fitted, tmp_path):
    _, model, _, kinds = fitted
    for each in (model, loaded(fitted, tmp_path / "model")):
        assert len(each.labels.suggest(5)) == 5
        assert len(each.labels.suggest(5, topic="sport")) == 5
        assert each.labels.audit(5).columns
    labels = [[kinds[row]] if row < 120 and kinds[row] != "cooking" else [] for row in range(180)]
    wrong = kinds.index("sport")
    labels[wrong] = ["finance"]
    odd, kind = replace(fitted[2], labels=labels), fitted[0]
    doubtful = new_model(kind, 0).fit(odd, embeddings=of_fit(kind, odd.texts)).labels.audit(1)
    assert doubtful["id"].to_list() == [f"d{wrong}"]


def test_near_duplicates_are_suggested_once():
    texts, kinds = pile(60)
    texts += [texts[1]] * 20
    for kind in KINDS:
        labels = {row: [kinds[row]] for row in range(2, 20)}
        model = new_model(kind, 0, world="closed").fit(texts, labels, embeddings=of_fit(kind, texts))
        found = model.labels.suggest(30)["id"].to_list()
        assert len([row for row in found if texts[row] == texts[1]]) <= 1


def test_map_report_and_shares(fitted, tmp_path):
    _, model, *_ = fitted
    shares = model.findings.shares()
    assert len(shares.table())
    model.report(tmp_path / "page.html")
    assert "finance" in (tmp_path / "page.html").read_text()


def test_evaluation(fitted):
    kind, model, documents, _ = fitted
    result = model.evaluate(embeddings=of_fit(kind, documents.texts))
    assert min(result.macro.values()) > 0.9


def test_edits(fitted, tmp_path):
    kind = fitted[0]
    model = loaded(fitted, tmp_path / "model")
    if len(model.state_.names) > 3:
        model.edit.merge(model.state_.names[2:])
    model.edit.adopt(model.state_.names[2], "food")
    assert model.codebook.names == ("finance", "sport", "food")
    new = pile(20, ("cooking",), seed=8)[0]
    assert np.mean([own == ["food"] for own in model.predict(new, embeddings=of_new(kind, new))]) > 0.8
    model.edit.move("food", "sport")
    assert model.codebook.parent_names == {"food": "sport"}
    model.edit.move("food")
    groups = model.edit.split("sport", 2).groups
    model.edit.adopt(groups[0], "part of sport")
    model.edit.merge(["sport", "part of sport"])
    model.edit.merge(["finance", "sport"], "both")
    model.save(tmp_path / "edited")
    encoder = encode if kind == "encoder" else None
    again = TopicModel.load(tmp_path / "edited", encoder=encoder)
    E = of_new(kind, new)
    assert again.memberships(new, embeddings=E).equals(model.memberships(new, embeddings=E))


def test_an_update_with_new_terms_keeps_the_groups(fitted, tmp_path):
    kind, before, *_ = fitted
    model = loaded(fitted, tmp_path / "model")
    texts, kinds = pile(60, seed=3)
    texts = [f"{text} voucher coupon" if name == "finance" else text for text, name in zip(texts, kinds, strict=True)]
    labels = [["finance"] if name == "finance" and row % 2 else [] for row, name in enumerate(kinds)]
    model.update(Documents([f"n{row}" for row in range(60)], texts, labels), embeddings=of_new(kind, texts))
    assert "voucher" in model.state_.vocabulary
    assert model.guide_.n_groups == before.guide_.n_groups
    assert model.state_.names[2:] == before.state_.names[2:]
    vectors = model.guide_.features.vectors
    assert vectors.shape[1] == before.guide_.features.vectors.shape[1]
    if kind == "words":
        row = list(model.state_.vocabulary).index("voucher")
        expected = model.guide_.features.reduced(meaning.term_vectors(["voucher"]))[0] / model.state_.idf[row]
        np.testing.assert_allclose(vectors[row], expected, rtol=1e-4, atol=1e-5)
    unlabelled = [row for row in range(60) if not labels[row]]
    some = [texts[row] for row in unlabelled]
    again = model.memberships(some, embeddings=of_new(kind, some)).drop("id").to_numpy()
    kept = model.memberships().drop("id").to_numpy()[180:][unlabelled]
    np.testing.assert_allclose(again, kept, atol=1e-5)
    main = model.state_.judged.main()[180:]
    assert np.mean([(k == 0) == (name == "finance") for k, name in zip(main, kinds, strict=True)]) > 0.95


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("earlier", KINDS)
def test_a_refit_does_not_depend_on_the_embeddings_of_the_model_before(kind, earlier):
    documents, _ = corpus(120)
    labels = {row: own for row, own in enumerate(documents.labels) if own}
    if (kind == "none") != (earlier == "none"):
        pytest.skip("the vocabulary of the earlier model is kept, with or without stop words")
    first = dict([*labels.items()][:9])
    before = new_model(earlier, 2).fit(documents, first, embeddings=of_fit(earlier, documents.texts))
    later = new_model(kind, 2).fit(documents, labels, after=before, embeddings=of_fit(kind, documents.texts))
    cold = new_model(kind, 2).fit(documents, labels, embeddings=of_fit(kind, documents.texts))
    for name, array in cold.state_.arrays().items():
        np.testing.assert_array_equal(later.state_.arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("kind", ["words", "array"])
def test_a_corpus_on_disk_gives_the_same(tmp_path, kind):
    documents, _ = corpus(120)
    table = {"id": documents.ids, "text": documents.texts, "label": ["".join(own) for own in documents.labels]}
    pl.DataFrame(table).write_csv(tmp_path / "texts.csv")
    on_disk = TopicModel(2).fit(
        spool(tmp_path / "texts.csv", tmp_path / "blocks"),
        folder=tmp_path / "work",
        embeddings=of_fit(kind, documents.texts),
    )
    in_memory = TopicModel(2).fit(documents, embeddings=of_fit(kind, documents.texts))
    np.testing.assert_allclose(on_disk.state_.memberships, in_memory.state_.memberships, atol=1e-5)


def test_other_languages_have_no_vectors():
    german = ["der Kredit ist bei der Bank und nicht im Haus", "das Spiel war für die Mannschaft nicht gut"] * 12
    model = TopicModel(0).fit(german, {0: ["Geld"], 1: ["Sport"], 2: ["Geld"], 3: ["Sport"]})
    assert not model.guide_.features.vectors.shape[1]
    assert model.predict(german[:2]) == [["Geld"], ["Sport"]]


HIDDEN = """
import importlib.util, json, sys
find = importlib.util.find_spec
NAMES = ("wordllama", "tokenizers", "safetensors", "sklearn", "numba")
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NAMES:
            raise ModuleNotFoundError(f"hidden: {name}", name=name)
sys.meta_path.insert(0, Hide())
importlib.util.find_spec = lambda name, *more: None if name.partition(".")[0] in NAMES else find(name, *more)
from topicsteer import TopicModel
folder, texts = sys.argv[1], sys.argv[2:]
model = TopicModel.load(folder)
print(json.dumps([
    model.topics["topic"].to_list(), model.predict(texts), model.memberships(texts).drop("id").to_numpy().tolist(),
    model.explain(texts[0]).rows(), model.transform(texts).tolist(),
]))
"""


def test_a_saved_model_predicts_without_the_packages_of_the_vectors(tmp_path):
    documents, _ = corpus()
    model = TopicModel(2, world="open").fit(documents)
    assert model.guide_.features.vectors.any()
    model.save(tmp_path / "model")
    texts = pile(12, seed=9)[0]
    command = [sys.executable, "-c", HIDDEN, str(tmp_path / "model"), *texts]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    topics, decided, memberships, explained, weights = json.loads(done.stdout)
    assert topics == model.topics["topic"].to_list()
    assert decided == model.predict(texts)
    np.testing.assert_array_equal(memberships, model.memberships(texts).drop("id").to_numpy())
    assert explained == model.explain(texts[0]).rows()
    np.testing.assert_array_equal(weights, model.transform(texts))


def test_an_unknown_name_of_embeddings_is_refused(tmp_path):
    with pytest.raises(ValueError, match='embeddings must be "words" or None here'):
        TopicModel(embeddings="vectors.npy").fit(["a b", "c d"])
    model = TopicModel(0).fit(["green tea", "black coffee"] * 4, {0: ["tea"], 1: ["coffee"]})
    forged = replace(model.state_, parameters={**model.state_.parameters, "embeddings": "vectors.npy"})
    model.state_ = forged
    model.save(tmp_path / "model")
    with pytest.raises(StorageError, match="embeddings"):
        TopicModel.load(tmp_path / "model")
