import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.text.meaning import embed, encoder_of

TEXTS = ["aaa bbb", "ccc ddd", "eee fff", "ggg hhh", "iii jjj", "kkk lll"] * 4
MEANING = np.eye(2)[np.arange(len(TEXTS)) % 2]
LABELS = ["even", "odd", "even", "odd"] + [None] * 20


class Model:
    """The interface of sentence-transformers and model2vec."""

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked.append(texts)
        return [[1.0, 0.0] if text[0] in "aei" else [0.0, 1.0] for text in texts]


@pytest.fixture(scope="module")
def model():
    return TopicModel(0).fit(TEXTS, LABELS, embeddings=MEANING)


def test_sources_of_embeddings():
    assert encoder_of(MEANING) is None
    assert encoder_of(len) is len
    assert embed(Model(), ["aaa", "ccc"]).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((3, 2)), "expected one row per document, 2 rows"),
        (np.ones(2), "expected one row"),
        ([[1.0, np.nan], [1.0, 2.0]], "document 0 has NaN"),
    ],
)
def test_bad_embeddings_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        embed(given, ["a", "b"])


def test_embeddings_link_documents_without_common_words(model):
    found = model.memberships().select("even", "odd").to_numpy()
    assert (found.argmax(axis=1) == MEANING.argmax(axis=1)).all()


def test_new_documents_need_embeddings(model):
    with pytest.raises(ValueError, match="fitted with embeddings"):
        model.predict(["iii"])
    with pytest.raises(ValueError, match="3 columns, and 2 in the fit"):
        model.memberships(["mmm nnn"], embeddings=[[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="3 columns, and 2 in the fit"):
        model.update(["mmm nnn"], embeddings=[[1.0, 0.0, 0.0]])
    found = model.memberships(["mmm nnn"], embeddings=[[1.0, 0.0]]).select("even", "odd").to_numpy()
    assert found[0, 0] > found[0, 1]


def test_an_encoder_embeds_new_documents_and_is_passed_again_on_loading(tmp_path):
    encoder = Model()
    model = TopicModel(0).fit(TEXTS, LABELS, embeddings=encoder)
    assert [len(texts) for texts in encoder.asked] == [len(TEXTS), 2]  # the documents, then the names of topics
    before = model.memberships(["iii jjj"]).to_numpy()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        TopicModel.load(tmp_path / "model", encoder=encoder).memberships(["iii jjj"]).to_numpy(), before
    )
    with pytest.raises(ValueError, match="fitted with embeddings"):
        TopicModel.load(tmp_path / "model").predict(["iii"])


def test_an_update_does_not_keep_an_array_of_embeddings():
    model = TopicModel(0).fit(TEXTS, LABELS, embeddings=MEANING)
    model.update(["mmm nnn", "ooo ppp"], embeddings=[[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="embeddings="):
        model.evaluate()
    asked = TopicModel(0).fit(TEXTS, LABELS, embeddings=Model()).update(["mmm nnn"])
    assert asked.evaluate().verdict
