"""The paper trail: every number is measured, everything that is missing is named, names are text."""

import hashlib
import re

import numpy as np
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import Documents
from topicsteer.report.methods_page import Section, markdown

TEXTS = ["green tea leaves in a pot", "roast coffee beans ground", "hot tea leaves", "black coffee beans"] * 15
TOPICS = ["tea", "coffee"] * 30


@pytest.fixture(scope="module")
def model():
    labels = [[topic] if i < 30 else [] for i, topic in enumerate(TOPICS)]
    labels[30] = ["(none)"]
    return TopicModel(free_topics=1).fit(Documents([f"d{i}" for i in range(60)], TEXTS, labels))


def section(page, title):
    return re.search(rf"## {title}\n\n(.*?)(?=\n## |\Z)", page, flags=re.S).group(1)


def test_missing_measurements_are_named(model):
    page = model.findings.methods()
    assert "Predictions were not evaluated" in section(page, "Evaluation on hidden labels")
    assert "Shares were not estimated" in section(page, "Shares of topics")
    labels = section(page, "Labels")
    assert "- who labelled: not recorded" in labels
    assert "- how documents were chosen: not recorded" in labels


def test_report_methods_and_model_count_labelled_documents_alike(tmp_path):
    """Documents with two topics count once, and documents with none of the topics count too."""
    labels = [[topic] if i < 12 else ["tea", "coffee"] if i < 15 else [] for i, topic in enumerate(TOPICS)]
    labels[20] = labels[21] = ["(none)"]
    model = TopicModel(free_topics=0).fit(TEXTS, labels)
    model.report(tmp_path / "report.html", map=False)
    assert "<dt>labelled documents</dt><dd>17</dd>" in (tmp_path / "report.html").read_text()
    assert "- labelled documents: 17 of 60 (28.3%)" in section(model.findings.methods(), "Labels")
    assert repr(model).endswith("60 documents, 17 labelled>")
    assert model.evaluate().labelled == 17


def test_numbers_are_those_of_the_model(model):
    evaluation = model.evaluate()
    page = model.findings.methods(evaluation=evaluation, people={"Anna": 20, "Ben": 11})
    assert "- documents: 60" in section(page, "Corpus")
    labels = section(page, "Labels")
    assert "- labelled documents: 31 of 60 (51.7%)" in labels
    assert "- of them with none of the topics: 1" in labels
    assert "- who labelled: Anna (20), Ben (11)" in labels
    assert evaluation.verdict.split(".")[0] in section(page, "Evaluation on hidden labels").replace("\\", "")
    versions = section(page, "Versions and hashes")
    assert f"- numpy: {np.__version__}" in versions
    states = model.state_.patterns[model.state_.pattern]
    assert hashlib.sha256(states.tobytes()).hexdigest() in versions
    assert model.state_.fingerprint in versions
    assert "| tea | 15 |" in section(page, "Labels")


def test_the_same_model_gives_the_same_page(model, tmp_path):
    model.save(tmp_path / "model")
    assert TopicModel.load(tmp_path / "model").findings.methods() == model.findings.methods()
    model.findings.methods(tmp_path / "methods.md")
    assert (tmp_path / "methods.md").read_text() == model.findings.methods()


def test_other_kinds_of_files_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.md\."):
        model.findings.methods(tmp_path / "methods.docx")
    assert not list(tmp_path.iterdir())


NASTY = "<img src=x onerror=alert(1)>|`[a](javascript:b)`\n# head\u202e"


def test_names_are_text(tmp_path):
    labels = [[NASTY] if i < 20 else ["b"] if i < 40 else [] for i in range(60)]
    model = TopicModel(free_topics=0).fit(Documents(range(60), TEXTS, labels))
    page = model.findings.methods(people={"<b>x</b>": 60})
    assert "<" not in page.replace("\\<", "")
    row = next(line for line in section(page, "Labels").splitlines() if "img" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 3  # two cells
    assert "\u202e" not in page
    assert not [line for line in page.splitlines() if line.startswith("# head")]


def test_markdown_tables_align_numbers():
    text = markdown("a", [Section("c", table={"topic": ["x"], "n": [3]})])
    assert "| topic | n |\n| --- | ---: |\n| x | 3 |" in text
