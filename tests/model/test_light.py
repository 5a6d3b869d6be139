"""Light models: a few texts need neither scikit-learn nor the kernels, and the answers are the same."""

import json
import subprocess
import sys

import numpy as np
import pytest
from problems import make_open_corpus, planted_texts

from topicsteer import TopicModel
from topicsteer.nmf.weights import FEW

pytestmark = pytest.mark.slow

# Packages that a light command must not load; tables need polars.
SLOW = ("sklearn", "pandas", "numba", "wordllama", "tokenizers", "safetensors")


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    texts, which = planted_texts(3), np.repeat(range(3), 40)
    labels = [f"topic {k}" if i % 4 == 0 else None for i, k in enumerate(which)]
    model = TopicModel(free_topics=2, world="closed").fit(texts, labels)
    folder = tmp_path_factory.mktemp("closed") / "model"
    model.save(folder)
    return model, folder, texts


def compare(model, texts):
    """Compare a few texts, in plain numpy, with the same texts among many, by the kernels."""
    many = [*texts, *["another text"] * FEW]
    few, all_ = (np.asarray(model.memberships(given))[: len(texts), 1:].astype(float) for given in (texts, many))
    np.testing.assert_allclose(few, all_, atol=2e-4)
    assert model.predict(texts) == model.predict(many)[: len(texts)]
    np.testing.assert_allclose(model.transform(texts), model.transform(many)[: len(texts)], atol=1e-4)


def test_a_few_texts_have_the_same_answers_as_many(closed):
    model, folder, texts = closed
    compare(TopicModel.load(folder), [*texts[:10], "", "words that are unknown"])
    np.testing.assert_array_equal(TopicModel.load(folder).transform(texts[:5]), model.transform(texts[:5]))


def test_a_few_texts_in_an_open_world():
    texts, labels = make_open_corpus()[:2]
    compare(TopicModel(world="open", free_topics=3).fit(texts, labels), list(texts[:10]))


def test_a_few_texts_without_a_guide():
    texts = planted_texts(2)
    compare(TopicModel(free_topics=2).fit(texts), list(texts[:6]))


def loaded(*arguments):
    """Packages that a command loads, and its output."""
    code = (
        "import atexit, sys; "
        f"atexit.register(lambda: print('LOADED', [m for m in {SLOW!r} if m in sys.modules], file=sys.stderr)); "
        "from topicsteer.cli.commands import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].removeprefix("LOADED "), done.stdout


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["topics", "{}"], ["topics", "{}", "--json"]])
def test_commands_load_little(closed, command):
    packages, output = loaded(*(word.format(closed[1]) for word in command))
    assert packages == "[]"
    assert output


def test_explain_loads_little(closed):
    model, folder, texts = closed
    packages, output = loaded("explain", folder, texts[0], "--json")
    assert packages == "[]"
    assert json.loads(output)["term"] == model.explain(texts[0]).rows()["term"]
    assert loaded("explain", folder, texts[0])[0] == "[]"


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_predict_of_a_few_texts_loads_little(closed, tmp_path, suffix):
    model, folder, texts = closed
    path = tmp_path / f"new.{suffix}"
    if suffix == "csv":
        path.write_text("id,text\n" + "".join(f"=d{i},{text}\n" for i, text in enumerate(texts[:5])))
    else:
        path.write_text("".join(json.dumps({"id": f"=d{i}", "text": text}) + "\n" for i, text in enumerate(texts[:5])))
    packages, output = loaded("predict", folder, path)
    assert packages == "[]"
    lines = output.splitlines()
    assert lines[0].split(",")[:3] == ["id", "text", "predicted"]
    assert lines[1].split(",")[:3] == ["'=d0", texts[0], "; ".join(model.predict(texts[:1])[0])]


def test_loading_and_predicting_in_python_loads_little(closed):
    _, folder, texts = closed
    code = (
        "import sys; from topicsteer import TopicModel; "
        f"model = TopicModel.load({str(folder)!r}); model.predict({texts[:3]!r}); model.explain({texts[0]!r}); "
        f"model.transform({texts[:3]!r}); model.topics; print([m for m in {SLOW!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
