"""The report by groups and over time: page and charts."""

import re

import numpy as np
import polars as pl
import pytest
from problems import planted_texts

from topicsteer import TopicModel
from topicsteer.report import plots


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two topics of 60 documents; the first is frequent in the north and early, and its word "faxes" disappears."""
    rng = np.random.default_rng(0)
    first = np.arange(120) < 60
    months = rng.integers(1, 13, 120)
    texts = [
        f"{text} faxes" if is_first and month <= 6 else text
        for text, is_first, month in zip(planted_texts(2, size=60), first, months, strict=True)
    ]
    labels = ["tea" if k < 20 else "coffee" if 60 <= k < 80 else None for k in range(120)]
    region = np.where(rng.random(120) < np.where(first, 0.85, 0.15), "north", "south").tolist()
    path = tmp_path_factory.mktemp("report") / "articles.csv"
    pl.DataFrame(
        {
            "id": [f"d{k}" for k in range(120)],
            "text": texts,
            "labels": labels,
            "chosen": ["random" if label else None for label in labels],
            "region": region,
            "date": [f"2024-{month:02}-15" for month in months],
        }
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def model(table):
    path = table.with_name("model")
    TopicModel(0).fit(str(table)).save(path)
    return path


def test_groups_and_time_in_the_page(run, model, table, tmp_path):
    out = tmp_path / "report.html"
    code, _, err = run("report", model, table, "--by", "region", "--by", "date:quarter", "--no-map", "--out", out)
    assert code == 0, err
    page = out.read_text()
    assert page.index('id="shares-0"') < page.index("By region") < page.index("Over time, by quarter of date")
    assert re.search(r"Share of tea by region: north: [\d.]+% \([\d.]+–[\d.]+%\); south", page)
    assert "2024-Q1" in page
    assert "Clear differences by region" in page


def test_shares_of_random_labels_alone(run, model, table, tmp_path):
    out, plain = tmp_path / "report.html", tmp_path / "plain.csv"
    pl.read_csv(table).drop("chosen").write_csv(plain)
    TopicModel(0).fit(str(plain)).save(tmp_path / "model")
    run("report", tmp_path / "model", plain, "--no-map", "--out", out)
    page = out.read_text()
    assert 'id="shares-0"' not in page
    assert "label 50 documents at random, drawn with suggest --for shares -n 50" in page
    assert "--by <bdi>region</bdi>" in page
    assert "--by <bdi>date</bdi>" in page
    assert run("report", model, table, "--no-map", "--out", out)[0] == 0
    page = out.read_text()
    assert 'id="shares-0"' in page
    assert 'id="shares-1"' not in page
    assert "--by <bdi>chosen</bdi>" not in page


def test_what_is_missing_is_named(run, model, table, tmp_path):
    out = tmp_path / "report.html"
    code, _, err = run("report", model, "--by", "region", "--out", out)
    assert code == 1
    assert "--by and --evaluate need the training documents" in err
    code, _, err = run("report", model, table, "--by", "planet", "--out", out)
    assert code == 1
    assert "there is no column 'planet' to group by" in err
    assert "region" in err
    code, _, err = run("report", model, table, "--by", "region", "--out", tmp_path / "page.md")
    assert code == 2
    assert "--by is for .html" in err
    assert list(tmp_path.iterdir()) == []


def test_python_writes_the_same(model, table, tmp_path):
    fitted = TopicModel.load(model).attach(str(table))
    fitted.report(tmp_path / "a.html", by="region", map=False)
    assert "By region" in (tmp_path / "a.html").read_text()
    with pytest.raises(ValueError, match=r"the name must end in \.html or \.htm"):
        fitted.report(tmp_path / "a.xlsx")
    figure = plots.shares(fitted.findings.shares("region"))
    assert sorted(axes.get_title(loc="left") for axes in figure.axes) == ["coffee", "tea"]
