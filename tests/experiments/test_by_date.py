"""Accuracy on posts of later dates: the two methods on a made-up corpus."""

import numpy as np
import pytest

from experiments.peers import by_date
from topicsteer.corpora import Documents

WORDS = {"tea": "green leaf cup pot steam", "coffee": "bean roast mug grind dark", "rain": "cloud storm wind wet grey"}


@pytest.fixture(scope="module")
def posts():
    rng, names = np.random.default_rng(0), list(WORDS)
    labels = [names[i % 3] for i in range(120)]
    texts = [" ".join(rng.choice(WORDS[name].split(), 8)) for name in labels]
    texts[3] = texts[110] = " "  # one training post and one test post without text
    split = ["train"] * 90 + ["test"] * 30
    return Documents([str(i) for i in range(120)], texts, [[name] for name in labels], {"split": split})


@pytest.mark.filterwarnings("ignore:The topics free")  # ten free topics are too many for thirty posts per topic
@pytest.mark.parametrize("method", list(by_date.METHODS))
def test_all_posts_with_a_text_are_found(posts, method):
    assert by_date.accuracy(posts, method, seed=1, n_labels=30) == pytest.approx(29 / 30)
