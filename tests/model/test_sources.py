"""Documents from lists, tables and files."""

import pytest

from topicsteer.model.sources import documents_of


def test_a_list_of_texts_equals_a_table_of_them():
    texts = ["rain at noon", " \t", "", "Käse – 奶酪", "shares\nfell"]
    found = documents_of(texts, None, None, None)
    table = documents_of(tuple(texts), None, None, None)
    assert (found.ids, found.texts, found.columns) == (table.ids, table.texts, table.columns)
    assert [list(own) for own in found.labels] == table.labels
    assert list(found.texts) == ["rain at noon", "", "", "Käse – 奶酪", "shares\nfell"]
    assert found.report.source == "list"


@pytest.mark.parametrize("bad", [3, b"rain", "half \ud800 pair"])
def test_a_list_with_other_values_is_refused(bad):
    with pytest.raises(ValueError, match="row"):
        documents_of(["rain", bad], [["a"], None], None, None)


def test_a_missing_text_is_an_empty_document():
    assert list(documents_of(["rain", None], None, None, None).texts) == ["rain", ""]
