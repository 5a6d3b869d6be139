"""Reuters-21578, MEDLINE and 20 Newsgroups: small made-up files, and the real corpora if they are available."""

import gzip
import io
import json
import tarfile
from collections import Counter

import pytest

from experiments.corpora import find_corpus, load_medline, load_newsgroups, load_reuters
from experiments.corpora.medline import CHECK_TAGS
from experiments.corpora.newsgroups import strip_post
from topicsteer.corpora import ReadError


@pytest.fixture
def real():
    def find(name):
        try:
            return find_corpus(name)
        except ReadError as error:
            pytest.skip(str(error))

    return find


def make_tar(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def unpack(path, files):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def story(number, split, topics, text, used="YES"):
    named = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{used}" LEWISSPLIT="{split}" NEWID="{number}">\n<DATE> 1-MAR-1987</DATE>\n'
        f"<TOPICS>{named}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n{text}\n</REUTERS>\n"
    )


BODY = "<TEXT>&#2;\n<TITLE>GRAIN &lt;UP></TITLE><BODY>Wheat &amp; corn\nrose.\n&#3;</BODY></TEXT>"
REUTERS = {
    "README.txt": story(9, "TRAIN", ["grain"], BODY).encode(),
    "reut2-000.sgm": (
        story(1, "TRAIN", ["grain", "oat"], BODY)
        + story(2, "TRAIN", ["ship"], '<TEXT TYPE="UNPROC">&#2;\nRAW TABLE\n</TEXT>')
        + story(3, "TRAIN", [], BODY)
        + story(4, "TRAIN", ["grain"], BODY, used="NO")
        + story(5, "NOT-USED", ["grain"], BODY)
    ).encode(),
    "reut2-001.sgm": (
        story(6, "TEST", ["grain", "gas"], '<TEXT TYPE="BRIEF"><TITLE>BRIEF CAFÉ</TITLE></TEXT>')
        + story(7, "TEST", ["ship"], BODY)
        + story(8, "TEST", ["gas"], BODY)
    ).encode("latin-1"),
}


@pytest.mark.parametrize("packed", [True, False])
def test_reuters_keeps_topics_of_both_parts(tmp_path, packed):
    path = make_tar(tmp_path / "r.tar.gz", REUTERS) if packed else unpack(tmp_path, REUTERS)
    documents = load_reuters(path)
    assert documents.ids == [1, 2, 6, 7]
    assert documents.labels == [["grain"], ["ship"], ["grain"], ["ship"]]
    assert documents.texts[:3] == ["GRAIN <UP>\nWheat & corn\nrose.", "RAW TABLE", "BRIEF CAFÉ"]
    assert documents.columns["split"] == ["train", "train", "test", "test"]
    assert documents.columns["title"][0] == "GRAIN <UP>"
    assert documents.columns["date"][0] == "1-MAR-1987"
    places = load_reuters(path, labels="places")
    assert places.ids == [1, 2, 3, 6, 7, 8]  # a story without a topic has a place too
    assert set(map(tuple, places.labels)) == {("usa",)}


@pytest.mark.slow
def test_reuters_as_published(real):
    documents = load_reuters(real("reuters"))
    assert len(documents) == 10_789
    assert len(documents.topic_names) == 90
    assert Counter(documents.columns["split"]) == {"train": 7_770, "test": 3_019}
    assert 8_250 < sum(len(text) > 250 for text in documents.texts) < 8_350
    assert all(documents.texts)
    assert len(set(documents.ids)) == len(documents)


def citation(number, abstract, headings):
    parts = "".join(
        f'<MeshHeading><DescriptorName MajorTopicYN="{main}">{name}</DescriptorName>'
        f'<QualifierName MajorTopicYN="{sub}">x</QualifierName></MeshHeading>'
        for name, main, sub in headings
    )
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">{number}</PMID><Article>'
        f"<Journal><JournalIssue><PubDate><MedlineDate>1979 May-Jun</MedlineDate></PubDate></JournalIssue>"
        f"<Title>Acta</Title></Journal><ArticleTitle>On <i>title</i> {number}</ArticleTitle>{abstract}"
        f"</Article><MeshHeadingList>{parts}</MeshHeadingList></MedlineCitation><PubmedData/></PubmedArticle>"
    )


HEADINGS = [("Liver", "N", "Y"), ("Humans", "N", "N"), ("Skin", "N", "N")]
TEXTS = "<AbstractText>Some H<sub>2</sub>O.</AbstractText><AbstractText>More.</AbstractText>"
ABSTRACT = f"<Abstract>{TEXTS}</Abstract>"
MEDLINE = (
    '<?xml version="1.0"?><PubmedArticleSet>'
    + citation(1, ABSTRACT, HEADINGS)
    + citation(2, "", HEADINGS)
    + citation(3, ABSTRACT, [])
    + citation(4, ABSTRACT, HEADINGS[:2])
    + citation(4, "<Abstract><AbstractText>Newer.</AbstractText></Abstract>", HEADINGS[:2])
    + "</PubmedArticleSet>"
).encode()


# Entities that would grow to gigabytes. The parser never sees the document type.
BOMB = MEDLINE.replace(b"Some H", b"&a9;Some H").replace(
    b"<PubmedArticleSet>",
    b"<!DOCTYPE x [<!ENTITY a0 'ha'>"
    + b"".join(b"<!ENTITY a%d '%s'>" % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 10))
    + b"]><PubmedArticleSet>",
    1,
)


@pytest.fixture
def medline(tmp_path):
    path = tmp_path / "some.xml.gz"
    path.write_bytes(gzip.compress(MEDLINE))
    return path


def test_medline_takes_abstracts_with_headings(medline):
    documents = load_medline(medline)
    assert documents.ids == [1, 4]
    assert documents.texts == ["On title 1\nSome H2O.\nMore.", "On title 4\nNewer."]
    assert documents.labels == [["Liver", "Humans", "Skin"], ["Liver", "Humans"]]
    assert documents.columns == {
        "title": ["On title 1", "On title 4"],
        "journal": ["Acta", "Acta"],
        "year": [1979, 1979],
        "major": [["Liver"], ["Liver"]],
    }
    assert load_medline(medline.parent) == documents


def test_medline_options(medline):
    assert load_medline(medline, titles=False).texts[1] == "Newer."
    assert load_medline(medline, major=True).labels == [["Liver"], ["Liver"]]
    assert load_medline(medline, check_tags=False, min_documents=2).labels == [["Liver"], ["Liver"]]
    assert load_medline(medline, major=True, min_documents=3).labels == [[], []]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not MEDLINE XML, or cut short"),
        (b"<html></html>", "not MEDLINE XML, or cut short"),
        (MEDLINE[:-300], "not MEDLINE XML, or cut short"),
        (MEDLINE.replace(b"</sub>", b""), "citation 1 is damaged"),
        (MEDLINE.replace(b">4</PMID>", b">x</PMID>"), "citation 4 is damaged"),
        (MEDLINE.replace(b"AbstractText", b"Other"), "has no citation"),
        (BOMB, "citation 1 is damaged .undefined entity"),
    ],
)
def test_damaged_medline_is_explained(tmp_path, content, message):
    (tmp_path / "a.xml").write_bytes(content)
    with pytest.raises(ReadError, match=message):
        load_medline(tmp_path / "a.xml")


@pytest.mark.slow
def test_medline_as_published(real):
    documents = load_medline(real("medline"))
    count = Counter(heading for row in documents.labels for heading in row)
    assert len(documents) == 14_832
    assert sum(number >= 100 for number in count.values()) == 176
    assert sum(number >= 100 and heading in CHECK_TAGS for heading, number in count.items()) == 22
    assert all(set(row) >= set(main) for row, main in zip(documents.labels, documents.columns["major"], strict=True))


POST = """From: somebody@example.org
Subject: Re: wheels

In article <1993@example.org> someone@example.org
(Some One) writes:
>Wheels are square.
> > Are they?

They are round.

:-)
| and this too
no doubt about it.

--
Somebody, somewhere
"round and round"
"""
NEWSGROUPS = {
    "20news-bydate-train/rec.autos/1": POST.encode("latin-1"),
    "20news-bydate-test/sci.space/1": "Subject: x\n\ncafé\n".encode("latin-1"),
    "20news-bydate-test/sci.space/2": b"Subject: y\n\n> only a quote\n",
}


@pytest.mark.parametrize("kind", ["tar", "folder", "jsonl"])
def test_newsgroups_in_every_form(tmp_path, kind):
    if kind == "tar":
        path = make_tar(tmp_path / "20news-bydate.tar.gz", NEWSGROUPS)
    elif kind == "folder":
        path = unpack(tmp_path, NEWSGROUPS)
    else:
        path = tmp_path / "posts.jsonl"
        rows = [
            dict(zip(("split", "label", "id"), name.removeprefix("20news-bydate-").split("/"), strict=True))
            | {"text": content.decode("latin-1")}
            for name, content in NEWSGROUPS.items()
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    documents = load_newsgroups(path)
    assert sorted(documents.ids) == ["rec.autos/1", "sci.space/1", "sci.space/2"]
    row = documents.ids.index("sci.space/1")
    assert documents.texts[row] == "Subject: x\n\ncafé\n"
    assert documents.labels[row] == ["sci.space"]
    assert documents.columns["split"][row] == "test"
    stripped = load_newsgroups(path, remove=["headers", "quotes"])
    assert sorted(stripped.ids) == ["rec.autos/1", "sci.space/1"]
    assert [str(bad) for bad in stripped.report.bad_rows] == ["sci.space/2: empty text"]


def test_posts_are_stripped():
    assert strip_post(POST, ()) == POST
    assert strip_post(POST, ["headers"]).startswith("In article")
    assert strip_post(POST, ["quotes"]).splitlines()[0].startswith("From:")
    assert strip_post(POST, ["footers"]).endswith("no doubt about it.")
    assert strip_post(POST, ["headers", "quotes", "footers"]) == "They are round.\n\n:-)\n\nno doubt about it."


@pytest.mark.slow
def test_newsgroups_as_published(real):
    documents = load_newsgroups(real("newsgroups"))
    assert len(documents) == 18_846
    assert len(documents.topic_names) == 20
    assert Counter(documents.columns["split"]) == {"train": 11_314, "test": 7_532}
    assert len(set(documents.ids)) == len(documents)
    stripped = load_newsgroups(real("newsgroups"), remove=("headers", "quotes", "footers"))
    assert len(stripped) + len(stripped.report.bad_rows) == len(documents)
    assert len(stripped) > 18_500
    assert sum(map(len, stripped.texts)) < 0.7 * sum(map(len, documents.texts))


@pytest.mark.parametrize("load", [load_reuters, load_newsgroups])
def test_wrong_archives_are_explained(tmp_path, load):
    with pytest.raises(ReadError, match="there is no such file"):
        load(tmp_path / "none.tar.gz")
    (tmp_path / "bad.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(ReadError, match="damaged, or not a tar archive"):
        load(tmp_path / "bad.tar.gz")
    whole = make_tar(tmp_path / "cut.tar.gz", {"a": bytes(range(256)) * 400}).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match="damaged, or not a tar archive"):
        load(tmp_path / "cut.tar.gz")
    with pytest.raises(ReadError, match=r"has no (stories|posts)"):
        load(make_tar(tmp_path / "other.tar.gz", {"a.txt": b"x"}))


def test_wrong_options_and_posts_are_explained(tmp_path):
    with pytest.raises(ValueError, match="remove names jokes: expected 'headers'"):
        load_newsgroups(tmp_path, remove=["jokes"])
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(ReadError, match="line 1 is not a post"):
        load_newsgroups(tmp_path / "a.jsonl")
