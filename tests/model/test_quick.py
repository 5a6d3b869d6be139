"""Quick models: the same answers as TopicModel, without its imports."""

import json
import subprocess
import sys

import numpy as np
import pytest
from problems import make_open_corpus, planted_texts

from topicsteer import TopicModel
from topicsteer.model.quick import FEW_TEXTS, QuickModel

# Packages that a quick command must not load.
SLOW = ("sklearn", "pandas", "polars", "numba")


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    texts, which = planted_texts(3), np.repeat(range(3), 40)
    labels = [f"topic {k}" if i % 4 == 0 else None for i, k in enumerate(which)]
    model = TopicModel(free_topics=2).fit(texts, labels)
    folder = tmp_path_factory.mktemp("closed") / "model"
    model.save(folder)
    return model, folder, texts


def compare(model, quick, texts):
    expected = np.asarray(model.memberships(texts))[:, 1:].astype(float)
    np.testing.assert_allclose(quick.memberships(texts), expected, atol=2e-4)
    assert quick.predict(texts) == model.predict(texts)
    ours, theirs = quick.explain(texts[0]), model.explain(texts[0])
    assert (ours.names, ours.terms) == (theirs.names, theirs.terms)
    np.testing.assert_allclose(ours.contributions, theirs.contributions, atol=1e-4)
    table = {name: list(values) for name, values in model.result_.table(none=True).items()}
    assert quick.topics_table() == table
    assert quick.belief == model.belief


def test_answers_equal_the_model(closed):
    model, folder, texts = closed
    quick = QuickModel.load(folder)
    assert quick.answers(texts[:FEW_TEXTS])
    assert not quick.answers(texts[: FEW_TEXTS + 1])
    compare(model, quick, [*texts[:10], "", "words that are unknown"])


def test_open_world_equals_the_model(tmp_path):
    texts, labels = make_open_corpus()[:2]
    model = TopicModel(world="open", free_topics=3).fit(texts, labels)
    model.save(tmp_path / "model")
    compare(model, QuickModel.load(tmp_path / "model"), list(texts[:10]))


@pytest.mark.parametrize("guidance", [None, "auto"])
def test_models_without_guide_equal_the_model(tmp_path, guidance):
    texts, which = planted_texts(2), np.repeat(range(2), 40)
    labels = None if guidance else [f"topic {k}" if i % 5 == 0 else None for i, k in enumerate(which)]
    model = TopicModel(free_topics=2, guidance=guidance).fit(texts, labels)
    model.save(tmp_path / "model")
    compare(model, QuickModel.load(tmp_path / "model"), list(texts[:6]))


def test_texts_are_not_enough(tmp_path):
    texts, which = planted_texts(2), np.repeat(range(2), 40)
    labels = [f"topic {k}" for k in which]
    model = TopicModel(free_topics=0).fit(texts, labels, embeddings=np.eye(2)[which])
    model.save(tmp_path / "model")
    assert not QuickModel.load(tmp_path / "model").reads_texts


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


@pytest.mark.parametrize(
    "command", [["--help"], ["--version"], ["topics", "{}"], ["topics", "{}", "--json"], ["topics", "{}", "--csv"]]
)
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


def test_plain_csv_equals_polars(closed, tmp_path):
    _, folder, texts = closed
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps({"id": f'a, "{i}"', "text": text}) + "\n" for i, text in enumerate(texts[:5])))
    written = tmp_path / "out.csv"
    loaded("predict", folder, path, "--out", written)
    assert loaded("predict", folder, path)[1] == written.read_text()
