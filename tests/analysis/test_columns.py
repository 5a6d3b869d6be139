import numpy as np
import pytest

from topicsteer.analysis.column_formats import Column, missing, typed


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("share", 0.12345, "12.3%"),
        ("share", np.float32(1), "100.0%"),
        ("count", 12345, "12,345"),
        ("count", np.int64(1000), "1,000"),
        ("number", 0.5, "0.500"),
        ("number", 12345, "12345"),  # an id stays as it is
        ("flag", np.True_, "yes"),
        ("flag", False, "no"),
        ("text", "a\u202eb", "a⟦U+202E⟧b"),
        ("text", 7, "7"),
        ("origin", "known", "known"),
        ("share", None, "–"),
        ("text", None, "–"),
        ("count", float("nan"), "–"),
        ("count", "many", "many"),
    ],
)
def test_the_kind_decides_on_the_format(kind, value, text):
    assert Column("a", kind).format(value) == text


def test_undeclared_columns_have_the_kind_of_their_values():
    table = {
        "share": [0.5],
        "n": [1, None],
        "x": [np.float64(0.5)],
        "yes": [np.True_, None],
        "mixed": [1, "a"],
        "none": [None],
        "empty": [],
    }
    kinds = [column.kind for column in typed(table, [Column("share", "share"), Column("other", "count")])]
    assert kinds == ["share", "number", "number", "flag", "text", "text", "text"]


def test_missing():
    assert missing(None)
    assert missing(np.float32("nan"))
    assert not missing(0)
    assert not missing("")
