"""Load Reuters-21578: newswire of 1987, the ModApte split."""

import html
import re
from pathlib import Path

from experiments.corpora.archives import documents_of, find_corpus, read_members
from topicsteer.corpora import Documents, ReadError, ReadReport

# Attributes and content of a story.
STORY = re.compile(r"<REUTERS (.*?)>(.*?)</REUTERS>", re.DOTALL)
# Name and value of an attribute.
ATTRIBUTE = re.compile(r'(\w+)="(.*?)"')
# Control characters other than tab and line end.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")


def load_reuters(path: str | Path | None = None, labels: str = "topics") -> Documents:
    """Load the stories of the ModApte split, with the labels that occur in both training and test stories.

    There are 10,789 stories with such a topic, and 90 topics. About 8,300 of the stories have more than 250 characters.

    Parameters
    ----------
    path : path, optional
        ``reuters21578.tar.gz``, or its unpacked folder. Default: the result of `find_corpus`.
    labels : str
        Field of the stories with the labels: ``topics``, ``places``, ``people``, ``orgs`` or ``exchanges``.

    Returns
    -------
    Documents
        In the order of the distribution. Ids are Reuters' NEWID numbers, and a text is title and body. The columns
        are ``split`` ("train" or "test"), ``title`` and ``date``.

    Raises
    ------
    ReadError
        If the corpus is not found or has another format.

    """
    path = find_corpus("reuters") if path is None else Path(path)
    stories = []
    for name, content in read_members(path):
        for attributes, story in STORY.findall(content.decode("latin-1")) if name.endswith(".sgm") else ():
            found = dict(ATTRIBUTE.findall(attributes))
            if found.get("TOPICS") == "YES" and found.get("LEWISSPLIT") in ("TRAIN", "TEST"):
                topics = re.findall(r"<D>(.*?)</D>", _between(labels.upper(), story))
                stories.append((int(found["NEWID"]), found["LEWISSPLIT"].lower(), story, topics))
    if not stories:
        raise ReadError(f"{path}: has no stories of Reuters-21578; expected its tar.gz or its .sgm files")
    train, test = (
        {topic for _, split, _, topics in stories if split == which for topic in topics} for which in ("train", "test")
    )
    both = train & test
    rows = []
    for number, split, story, topics in stories:
        if own := [topic for topic in topics if topic in both]:
            title, date = _between("TITLE", story), _between("DATE", story)
            rows.append((number, _text(story), own, split, title, date))
    return documents_of(rows, ["split", "title", "date"], ReadReport(str(path)))


def _text(story: str) -> str:
    """Return title and body, or the text of an unprocessed story, which has neither."""
    text = f"{_between('TITLE', story)}\n{_between('BODY', story)}".strip()
    return text or _between("TEXT", story)


def _between(tag: str, story: str) -> str:
    """Return the content of a tag, with entities resolved and without control characters."""
    found = re.search(rf"<{tag}\b.*?>(.*?)</{tag}>", story, re.DOTALL)
    return CONTROL.sub("", html.unescape(found[1])).strip() if found else ""
