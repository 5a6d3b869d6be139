"""Labels typed by hand: one name per topic, and near misses in question."""

import random
import unicodedata

import pytest

from topicsteer import TopicModel
from topicsteer.labels.codebook import Codebook, Lineage
from topicsteer.labels.spelling import near_misses

NAMES = ["Company", "School", "Artist", "Athlete", "Politics", "Building", "Village", "Animal", "Café", "New York"]


def typed(name, rng):
    """The same name as people type it: other case, spaces or Unicode form."""
    ways = [str, str, str, str, str.upper, str.lower, lambda name: f" {name.replace(' ', '  ')} "]
    return unicodedata.normalize(rng.choice(["NFC", "NFD"]), rng.choice(ways)(name))


@pytest.mark.parametrize("seed", range(20))
def test_ten_classes_stay_ten_topics_however_they_are_typed(seed):
    rng = random.Random(seed)
    counts = {}
    for name in NAMES:
        for _ in range(30):
            written = typed(name, rng)
            counts[written] = counts.get(written, 0) + 1
    lineage = Lineage().spelled(counts)
    found = {lineage.topic(written) for written in counts}
    assert {name.casefold() for name in found} == {name.casefold() for name in NAMES}
    assert all(unicodedata.is_normalized("NFC", name) and " ".join(name.split()) == name for name in found)


def test_the_most_frequent_spelling_is_the_name_unless_the_topic_is_known():
    counts = {"us": 3, "US": 5, "Us": 1, "(None)": 2}
    fresh = Lineage().spelled(counts)
    assert [fresh.topic(name) for name in (*counts, 3)] == ["US", "US", "US", "(none)", 3]
    known = Lineage.of(Codebook.of_names(["us"]), None, None).spelled(counts)
    assert [known.topic(name) for name in counts] == ["us", "us", "us", "(none)"]
    both = Lineage.of(Codebook.of_names(["us", "US"]), None, None).spelled(counts)  # an older model has two topics
    assert [both.topic(name) for name in ("us", "US")] == ["us", "US"]


def test_each_level_of_a_path_has_one_name():
    lineage = Lineage.of(Codebook.of_names(["sport"]), None, "/").spelled(
        {"Sport / golf": 9, "SPORT/Golf": 1, "arts": 1}
    )
    assert [lineage.topic(name) for name in ("SPORT/GOLF", "Sport", "Arts")] == ["sport/golf", "sport", "arts"]


def test_typos_are_near_misses_and_other_words_are_not():
    rng, counts = random.Random(0), dict.fromkeys(NAMES, 30)
    typos = {}
    for name in NAMES:
        at = rng.randrange(1, len(name) - 2)
        typos[name[:at] + name[at + 1] + name[at] + name[at + 2 :]] = name  # two letters change places
    typos = {typo: name for typo, name in typos.items() if len(name) > 5 and typo != name}
    found = {miss.written: miss.name for miss in near_misses(counts | dict.fromkeys(typos, 2))}
    assert found == typos
    words = {
        "legal": 30,
        "illegal": 3,
        "type 1": 30,
        "type 2": 3,
        "male": 30,
        "female": 3,
        "Austria": 12,
        "Australia": 9,
    }
    assert near_misses(words) == []


def test_a_fit_and_an_update_have_one_topic_for_all_spellings():
    texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
    labels = ["Cafe\u0301", "US", "Caf\u00e9", "us", "caf\u00e9", "US"]
    model = TopicModel(free_topics=0).fit(texts, labels + [None] * 6)
    assert model.topics["topic"].to_list() == ["Caf\u00e9", "US"]
    model.update(["green leaves", "roast"], [["CAF\u00c9"], ["u s"]])
    assert model.topics["topic"].to_list() == ["Caf\u00e9", "US", "u s"]
