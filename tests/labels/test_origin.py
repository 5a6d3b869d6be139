"""The columns that describe how labelled documents were chosen."""

import re

import numpy as np
import pytest

from topicsteer.labels.supervision import Kind, Origin


def test_columns_are_read_and_written():
    columns = {
        "chosen": ["Random", "", None, "doubt 2", "suggested", "doubt"],
        "probability": ["", "", "", 0.2, "", "0.5"],
    }
    found = Origin.of(columns, 6)
    assert found.kind.tolist() == [Kind.RANDOM, 0, 0, Kind.DOUBT, Kind.SUGGESTED, Kind.DOUBT]
    assert found.names() == ["random", None, None, "doubt 2", "suggested", "doubt"]
    np.testing.assert_array_equal(found.probability, [np.nan, np.nan, np.nan, 0.2, np.nan, 0.5])
    assert Origin.of({"chosen": found.names(), "probability": found.probability}, 6).names() == found.names()


def test_a_column_about_something_else_is_ignored():
    assert Origin.of({"chosen": ["yes", "no"]}, 2) is None
    assert Origin.of({"probability": [0.1, 0.2]}, 2) is None


@pytest.mark.parametrize(
    ("chosen", "probability", "words"),
    [
        ("at home", 0.5, "row 2: the column 'chosen' has 'at home'; expected random, doubt, suggested or nothing."),
        ("doubt x", 0.5, "row 2: the column 'chosen' has 'doubt x'"),
        ("doubt", None, "row 2: drawn by doubt, but the column 'probability' is empty"),
        ("doubt", 1.5, "row 2: the column 'probability' has '1.5'; expected 0 to 1."),
        ("doubt", "often", "row 2: the column 'probability' has 'often'"),
    ],
)
def test_wrong_values_are_named(chosen, probability, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Origin.of({"chosen": ["random", chosen], "probability": [None, probability]}, 2)


def test_an_update_replaces_what_is_known_now():
    old = Origin.of({"chosen": ["random", "random", None]}, 3)
    new = old.extend({"chosen": ["suggested", None]}, np.array([1, 3]), 4)
    assert new.names() == ["random", "suggested", None, None]
    assert old.extend({}, np.array([0]), 3).names() == old.names()
    assert Origin.unknown(3).arrays() is None


def test_first_labels_of_an_update_without_an_origin_come_after_all_draws():
    old = Origin.of({"chosen": ["random", None, "doubt 2"], "probability": [None, None, 0.5]}, 3)
    new = old.extend({}, np.array([0, 1, 3]), 4, np.array([False, True, True]))
    assert new.names() == ["random", "suggested 3", "doubt 2", "suggested 3"]
    assert Origin.unknown(2).extend({}, np.array([0]), 2, np.array([True])).arrays() is None  # nothing is known of any
