from collections import Counter

import pytest

from topicsteer.corpora import ReadError, example_corpora, load_docstrings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def documents():
    return load_docstrings()


def test_every_area_has_enough_documents(documents):
    counts = Counter(area for row in documents.labels for area in row)
    assert set(counts) == set(example_corpora.read_areas())
    assert min(counts.values()) >= 60
    assert len(documents) > 3000


def test_ids_are_unique_and_sorted_and_texts_are_distinct(documents):
    assert documents.ids == sorted(set(documents.ids))
    assert len(set(documents.texts)) == len(documents)


def test_every_document_is_labelled_and_some_twice(documents):
    assert {len(row) for row in documents.labels} == {1, 2}


def test_known_documents_have_their_areas(documents):
    areas = dict(zip(documents.ids, documents.labels, strict=True))
    assert areas["scipy.linalg.svd"] == ["linear algebra"]
    assert areas["scipy.sparse.linalg.svds"] == ["linear algebra", "sparse matrices"]
    assert areas["sklearn.cluster.KMeans"] == ["clustering"]
    assert areas["sklearn.neighbors.KNeighborsRegressor"] == ["distances and neighbours", "regression"]
    assert areas["numpy.linalg.inv"] == ["linear algebra"]
    assert areas["tarfile.TarFile.extractall"] == ["files and formats"]


def test_texts_are_prose_of_the_length_asked_for(documents):
    assert min(map(len, documents.texts)) >= 200
    assert not [text for text in documents.texts if ">>>" in text]
    assert not [name for name in documents.ids if "tests" in name.split(".")]
    longer = load_docstrings(min_length=1000)
    assert 0 < len(longer) < len(documents)
    assert min(map(len, longer.texts)) >= 1000


def test_doctest_output_goes_with_its_prompt():
    text = "Before.\n\n>>> f(1)\n1\n\nBetween.\n\n  >>> for x in y:\n  ...     z\n  2\n\nAfter."
    assert example_corpora.NOT_PROSE.sub("", text).split() == ["Before.", "Between.", "After."]


def test_a_caller_cannot_change_what_the_next_one_gets(documents):
    load_docstrings().labels[0].append("mine")
    load_docstrings().texts.clear()
    assert load_docstrings() == documents


def test_packages_without_source_files_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(example_corpora.sysconfig, "get_path", lambda name: str(tmp_path))
    example_corpora.all_rows.cache_clear()
    with pytest.raises(ReadError, match="source files of Python have no docstrings"):
        load_docstrings()
    example_corpora.all_rows.cache_clear()
