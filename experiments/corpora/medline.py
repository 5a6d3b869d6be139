"""Load MEDLINE/PubMed XML: abstracts with their MeSH headings."""

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from experiments.corpora.archives import documents_of, find_corpus
from topicsteer.corpora import Documents, ReadError, ReadReport

# Tags around a citation.
START, END = b"<MedlineCitation ", b"</MedlineCitation>"
# A file without a citation in this many first bytes is not MEDLINE XML.
HEAD = 1 << 20
# Number of bytes to read at once.
BUFFER = 1 << 20
# The year in a date of publication.
YEAR = re.compile(r"\d{4}")
# Headings that indexers consider for every article, whatever its subject.
CHECK_TAGS = frozenset(Path(__file__).with_name("check_tags.txt").read_text("utf-8").splitlines())


def load_medline(
    path: str | Path | None = None,
    *,
    titles: bool = True,
    major: bool = False,
    check_tags: bool = True,
    min_documents: int = 1,
) -> Documents:
    """Load the citations of MEDLINE/PubMed XML that have an abstract and MeSH headings.

    The XML is read as a stream, so files may be larger than memory.

    Parameters
    ----------
    path : path, optional
        A file such as ``pubmed20n0014.xml.gz``, or a folder of such files. Default: the result of `find_corpus`.
    titles : bool, default=True
        Begin each text with the title of the article; otherwise it is the abstract alone.
    major : bool, default=False
        Use only the major headings of an article.
    check_tags : bool, default=True
        Keep check tags: headings such as Humans, Male or Rats, which describe the subjects of a study.
    min_documents : int, default=1
        Drop headings of fewer documents; a document without a remaining heading is unlabelled.

    Returns
    -------
    Documents
        In the order of the files; the last version of a repeated citation counts. Ids are PubMed's numbers. The
        columns are ``title``, ``journal``, ``year`` (0 if unknown) and ``major`` (the major headings).

    Raises
    ------
    ReadError
        If the corpus is not found, is damaged or has no such citation.

    """
    path = find_corpus("medline") if path is None else Path(path)
    found = sorted([*path.glob("*.xml"), *path.glob("*.xml.gz")]) if path.is_dir() else [path]
    kept = {citation.id: citation for file in found for citation in _citations(file)}
    if not kept:
        raise ReadError(f"{path}: has no citation with an abstract and MeSH headings")
    dropped = frozenset[str]() if check_tags else CHECK_TAGS
    headings = [
        [name for name, main in cited.headings.items() if (main or not major) and name not in dropped]
        for cited in kept.values()
    ]
    count = Counter(name for names in headings for name in names)
    rows = []
    for cited, names in zip(kept.values(), headings, strict=True):
        text = f"{cited.title}\n{cited.abstract}" if titles else cited.abstract
        labels = [name for name in names if count[name] >= min_documents]
        points = [name for name, main in cited.headings.items() if main]
        rows.append((cited.id, text, labels, cited.title, cited.journal, cited.year, points))
    return documents_of(rows, ["title", "journal", "year", "major"], ReadReport(str(path)))


@dataclass(frozen=True)
class Citation:
    """One article; each heading is mapped to whether it is a major one."""

    id: int
    title: str
    abstract: str
    journal: str
    year: int
    headings: dict[str, bool]


def _citations(path: Path) -> Iterator[Citation]:
    """Yield the citations with abstract and headings."""
    for number, xml in enumerate(_citation_xml(path), 1):
        if b"<AbstractText" not in xml or b"<MeshHeading>" not in xml:
            continue
        try:
            citation = _citation(ElementTree.fromstring(xml))
        except (ElementTree.ParseError, ValueError) as error:
            raise ReadError(f"{path}: citation {number} is damaged ({error}); download the file again") from None
        if citation is not None:
            yield citation


def _citation_xml(path: Path) -> Iterator[bytes]:
    """Yield the XML of each citation; splitting before parsing is three times as fast as a stream of events."""
    rest, any_found = b"", False
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
        while read := stream.read(BUFFER):
            *citations, rest = (rest + read).split(END)
            any_found = any_found or START in rest or bool(citations)
            if not any_found and len(rest) > HEAD:
                break
            for citation in citations:
                yield citation[citation.find(START) :] + END
    if not any_found or START in rest:
        raise ReadError(f"{path}: not MEDLINE XML, or cut short; download it again")


def _citation(element: ElementTree.Element) -> Citation | None:
    abstract = "\n".join(_text(part) for part in element.iterfind("Article/Abstract/AbstractText")).strip()
    headings = {}
    for heading in element.iterfind("MeshHeadingList/MeshHeading"):
        main = any(part.get("MajorTopicYN") == "Y" for part in heading)
        headings[heading.findtext("DescriptorName", "")] = main
    if not abstract or not headings:
        return None
    year = YEAR.search(_text(element.find("Article/Journal/JournalIssue/PubDate")))
    number, journal = int(element.findtext("PMID", "0")), element.findtext("Article/Journal/Title", "")
    title = _text(element.find("Article/ArticleTitle"))
    return Citation(number, title, abstract, journal, int(year[0]) if year else 0, headings)


def _text(element: ElementTree.Element | None) -> str:
    """Return all text of an element, without markup."""
    return "" if element is None else "".join(element.itertext()).strip()
