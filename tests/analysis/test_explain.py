import io

import numpy as np
import scipy.sparse as sp
from rich.console import Console

from topicsteer.analysis.explain import explain


def explanation(text="Tea <b>for</b> two", w=(1.0, 0.5, 0.0)):
    H = np.array([[1.0, 0, 0.2], [0, 2, 0.1], [5, 5, 5]])
    x = sp.csr_array(np.array([[0.8, 0.0, 0.6]]))
    places = [(0, 3, 0), (15, 18, 2), (4, 6, 1)]
    return explain(text, x, np.array(w), H, ["tea", "numbers", "none"], ["tea", "for", "two"], places)


def test_topics_without_weight_and_terms_without_value_are_left_out():
    result = explanation()
    assert result.names == ("tea", "numbers")
    assert result.terms == ("tea", "two")
    np.testing.assert_allclose(result.contributions, [[1.0, 0.2], [0.0, 0.05]])
    assert result.shares.sum() == 1
    assert result.spans == ((0, 3, 0), (15, 18, 1))
    assert result.rows(1)["term"] == ["tea"]


def test_marked_pieces_are_the_text():
    result = explanation()
    assert "".join(piece for piece, _, _ in result.marked()) == result.text
    assert [(piece, k) for piece, k, _ in result.marked() if k is not None] == [("Tea", 0), ("two", 0)]


def test_notebooks_and_terminals_show_text_as_text():
    page = explanation()._repr_html_()
    assert "<b>for" not in page
    assert "&lt;b&gt;for" in page
    out = io.StringIO()
    Console(file=out, width=60).print(explanation("Tea \x1b[2J for two\u202e"))
    assert "\x1b[2J" not in out.getvalue()
    assert "\u202e" not in out.getvalue()
    assert "tea" in out.getvalue()


def test_it_shows_itself_in_a_line():
    assert repr(explanation()) == "<Explanation: 53% tea (tea, two), 47% numbers (two)>"
    small = explanation(w=(1e-6, 0.0, 0.0))
    out = io.StringIO()
    Console(file=out, width=60).print(small)
    assert "tea 1e-06" in out.getvalue()


def test_nothing_known():
    result = explanation(w=(0.0, 0.0, 0.0))
    assert result.names == ()
    assert repr(result) == "<Explanation: no topic>"
    out = io.StringIO()
    Console(file=out, width=60).print(result)
    assert "No topic" in out.getvalue()
