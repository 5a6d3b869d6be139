"""What the page of features says of us is so."""

import numpy as np

from experiments.features import __main__ as features


def test_our_column_of_the_page():
    takes, several, named, outside, *differ = features.column(features.topicsteer)
    assert (takes, several, named, outside) == ("yes", "yes", "yes", "0")
    assert differ[1:] == ["0", "0, without pickle"]


def test_what_is_counted(tmp_path):
    a, b = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.7, 0.3]])
    assert (features.apart(a, a), features.apart(a, b), features.apart(a, a[:, :1])) == (
        "0",
        "50.0%",
        "2 topics, then 1",
    )
    fitted = features.Fitted(a, ["x", "y"], lambda texts: a)
    assert features.outside(fitted, [["x"], ["y"]]) == "20%"
    assert features.one_with_two([[], ["x"], ["y"]]) == [[], ["x", "y"], ["y"]]
    (tmp_path / "text").write_text("no pickle")
    assert not features.pickled(tmp_path)
    (tmp_path / "model").write_bytes(b"\x80\x04K\x01.")
    assert features.pickled(tmp_path)
