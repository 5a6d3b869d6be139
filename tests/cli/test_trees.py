"""Topic trees on the command line: paths, parents in the topics file, and moves."""

import pytest

from tests.model.test_trees import NAMES, TREE, branch, corpus
from topicsteer import TopicModel


@pytest.fixture
def table(tmp_path):
    texts, _, labels = corpus(TREE, NAMES, 0, 160)
    paths = ["" if name is None else " > ".join(reversed(branch(TREE, name))) for name in labels]
    rows = [f"{i},{text},{path}" for i, (text, path) in enumerate(zip(texts, paths, strict=True))]
    (tmp_path / "news.csv").write_text("\n".join(["id,text,label", *rows]))
    return tmp_path / "news.csv"


def test_paths_and_moves(run, table, tmp_path):
    model = tmp_path / "model"
    table.write_text(table.read_text().replace("id,text,label", "code,words,theme", 1))
    columns = ["--id", "code", "--text", "words", "--labels", "theme"]
    fit = ["fit", table, *columns, "--path-separator", ">", "--free", 0, "-o", model, "-q"]
    assert run(*fit) == (0, "", "")
    names = TopicModel.load(model).codebook.names
    assert names[:4] == ("arts", "arts>film", "arts>paint", "sport")
    assert run("edit", model, "--move", "sport>tennis=arts", "-q")[0] == 0
    assert TopicModel.load(model).codebook.parent_names["sport>tennis"] == "arts"
    assert run("edit", model, "--move", "sport>tennis=", "-q")[0] == 0
    assert "sport>tennis" not in TopicModel.load(model).codebook.parent_names


def test_parents_of_the_topics_file(run, table, tmp_path):
    topics = tmp_path / "topics.csv"
    topics.write_text("topic,parent\nsport,\ntennis,sport\nfootball,sport\narts,\nfilm,arts\npaint,arts\n")
    model = tmp_path / "model"
    options = ["--topics", topics, "--path-separator", ">", "--free", 0, "-o", model, "-q"]
    assert run("fit", table, *options) == (0, "", "")
    assert TopicModel.load(model).codebook.parent_names == TREE
    assert run("topics", model, "--codebook", tmp_path / "again.csv", "-q")[0] == 0
    assert (tmp_path / "again.csv").read_text().splitlines()[2].startswith("tennis,sport,")
    topics.write_text("topic,parent\nsport,games\n")
    code, _, err = run("fit", table, *options)
    assert code == 1
    assert "line 2 puts 'sport' under 'games', which is not a topic of this file" in err.replace("\n", " ")
