import numpy as np
import pytest
from problems import make_topics

from topicsteer.analysis.topics import Topics
from topicsteer.report.map_page import lay_out, text_width


def boxes(drawn, font):
    """Left, top, right, bottom of each name."""
    found = []
    for label in drawn.labels:
        if label:
            length = text_width(label.text, font)
            left = label.x - {"start": 0, "middle": 0.5, "end": 1}[label.anchor] * length
            found.append((left, label.y - font / 2, left + length, label.y + font / 2))
    return np.array(found)


@pytest.mark.parametrize(
    ("d", "size"), [(1, (300, 200)), (2, (300, 200)), (30, (1040, 560)), (30, (360, 430)), (100, (1040, 560))]
)
def test_nothing_covers_anything(d, size):
    names = tuple(f"topic number {k} with a name" for k in range(d))
    drawn = lay_out(make_topics(known=d, free=0, names=names, n=200), *size, font=12)
    apart = np.linalg.norm(drawn.centres[:, None] - drawn.centres[None], axis=2) + np.eye(d) * 1e9
    assert (apart >= drawn.radii[:, None] + drawn.radii[None] - 0.5).all()
    assert (drawn.centres - drawn.radii[:, None] >= 0).all()
    assert (drawn.centres + drawn.radii[:, None] <= size).all()
    names = boxes(drawn, 12)
    assert len(names) >= min(d, 5)
    assert (names[:, :2] >= 0).all()
    assert (names[:, 2:] <= size).all()
    crossed = ((names[:, None, :2] < names[None, :, 2:]) & (names[:, None, 2:] > names[None, :, :2])).all(axis=2)
    assert (crossed == np.eye(len(names), dtype=bool)).all()
    nearest = np.clip(drawn.centres[:, None], names[None, :, :2], names[None, :, 2:])
    assert (np.linalg.norm(nearest - drawn.centres[:, None], axis=2) >= drawn.radii[:, None]).all()


def test_thirty_topics_keep_most_names_on_a_wide_map():
    drawn = lay_out(make_topics(known=30, n=200), 1040, 560)
    assert sum(label is not None for label in drawn.labels) >= 28


def test_the_same_topics_on_one_spot_are_parted_the_same_way():
    H = np.ones((5, 3))
    topics = Topics(tuple("abcde"), 5, np.array(list("xyz")), H, np.ones((4, 5)), range(4), np.ones(5, int))
    one, two = lay_out(topics, 400, 300), lay_out(topics, 400, 300)
    assert (one.centres == two.centres).all()
    assert len(np.unique(one.centres.round(1), axis=0)) == 5


def test_a_larger_share_is_a_larger_circle_and_long_or_hostile_names_are_cut():
    W = np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    names = ("a name " * 50, "\u202eevil\nname")
    drawn = lay_out(Topics(names, 2, np.array(["x", "y"]), np.eye(2), W, range(10), np.ones(2, int)), 600, 300)
    assert drawn.radii[0] > drawn.radii[1]
    assert len(drawn.labels[0].text) <= 30
    assert drawn.labels[1].text == "⟦U+202E⟧evil name"
