import numpy as np
import pytest

from topicsteer.labels.coder import check_coder_name, coder_of

TOPICS = ["tea", "milk"]


def test_answers_in_any_form_of_labels():
    expected = [[1, 0], [0, 0], [-1, -1]]
    forms = [
        ["tea", "(none)", None],
        [["tea"], ["(none)"], []],
        {0: "tea", 1: "(none)"},
        np.array([[1, 0], [0, 0], [np.nan, np.nan]]),
    ]
    for answers in forms:
        assert coder_of("gpt", answers, 3, TOPICS).states.tolist() == expected


def test_answers_outside_the_topics_are_none_of_them():
    with pytest.warns(UserWarning, match=r"1 answer outside the known topics \('cake'\) count as none of them"):
        coder = coder_of("gpt", [["tea", "cake"], ["cake"], []], 3, TOPICS)
    assert coder.states.tolist() == [[1, 0], [0, 0], [-1, -1]]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "people", " people ", 3, "x" * 81, "\u202e"])
def test_names(name):
    with pytest.raises(ValueError, match="coder"):
        check_coder_name(name)
    assert check_coder_name(" GPT 5 ") == "GPT 5"


def test_wrong_forms_name_the_coder():
    with pytest.raises(ValueError, match="coder gpt: y has labels for 1 documents"):
        coder_of("gpt", ["tea"], 2, TOPICS)
