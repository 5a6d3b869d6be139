"""Documents from lists, tables and files."""

import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.corpora import UnclearLabels
from topicsteer.model.spool import documents_of


def test_a_list_of_texts_equals_a_table_of_them():
    texts = ["rain at noon", " \t", "", "Käse – 奶酪", "shares\nfell"]
    found = documents_of(texts, None, None, None)
    table = documents_of(tuple(texts), None, None, None)
    assert (found.ids, found.texts, found.columns) == (table.ids, table.texts, table.columns)
    assert [list(own) for own in found.labels] == table.labels
    assert list(found.texts) == ["rain at noon", "", "", "Käse – 奶酪", "shares\nfell"]
    assert found.report.source == "list"


@pytest.mark.parametrize("bad", [["rain"], b"rain", "half \ud800 pair"])
def test_a_list_with_other_values_is_refused(bad):
    with pytest.raises(ValueError, match="row"):
        documents_of(["rain", bad], [["a"], None], None, None)


def test_a_missing_text_is_an_empty_document():
    assert list(documents_of(["rain", None], None, None, None).texts) == ["rain", ""]


TABLE = {
    "text": ["green tea leaves in a pot", "roast coffee beans are dark", "a tea with leaves", "coffee of roast beans"],
    "Thema": ["tea", "coffee", None, "coffee"],
    "Jahr": [2001, 2002, 2003, 2004],
}


def table():
    columns = {name: cells * 6 for name, cells in TABLE.items()}
    return pl.DataFrame({**columns, "note": [f"note {i}" for i in range(24)]})


def test_columns_that_may_hold_labels_are_listed():
    """The columns 'Jahr' and 'note' are no candidates: numbers, and values that repeat too rarely."""
    source = table()
    with pytest.raises(UnclearLabels, match=r"It may be 'Thema' \(18 of 24 rows have a value\)\. Pass one as"):
        TopicModel(2).fit(source)
    model = TopicModel(0).fit(source, labels="Thema")
    assert model.state_.topics.n_known == 2
    sparse = source.with_columns(pl.Series("Thema", ["tea", "coffee", "-", None] * 6))
    assert TopicModel(0, world="closed").fit(sparse).state_.topics.n_known == 2


@pytest.mark.parametrize(
    "cells",
    [[0, 1, None, 1], [0.0, 1.0, None, 1.0], [False, True, None, True], ["0", "1", "", "1"], [0, 1, None, None]],
)
def test_columns_of_0_and_1_may_hold_labels(cells):
    """Pandas has floats where a cell is missing."""
    source = table().drop("Thema").to_pandas()
    source["urgent"] = cells * 6
    with pytest.raises(UnclearLabels, match="It may be 'urgent' "):
        TopicModel(2).fit(source)


@pytest.mark.parametrize("kind", ["no labels wanted", "a list", "nothing alike", "groups"])
def test_nothing_is_asked_without_a_doubt(kind):
    source, labels = table(), None
    if kind == "no labels wanted":
        assert TopicModel(2).fit(source, labels="none").state_.topics.n_known == 0
        labels = False
    elif kind == "a list":
        source, labels = source["text"].to_list(), False
    elif kind == "groups":
        source = source.with_columns(pl.Series("Thema", ["north", "south"] * 12))
    else:
        source = source.drop("Thema")
    assert TopicModel(2).fit(source, labels).state_.topics.n_known == 0


def test_false_means_no_labels_in_every_method():
    source = table()
    model = TopicModel(0).fit(source, labels="Thema")
    more = source.with_columns(pl.Series("Thema", ["milk"] * len(source)))
    assert model.update(more, labels=False).state_.topics.n_known == 2
    with pytest.raises(ValueError, match="No topic has two labelled documents"):
        TopicModel(2).fit(source, labels=False).evaluate()
