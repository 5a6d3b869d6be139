"""MEDLINE/PubMed XML: abstracts with their MeSH headings."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

from topicsteer.corpora.documents import Documents, documents_of
from topicsteer.corpora.known.downloads import find_corpus
from topicsteer.corpora.read_report import ReadError, ReadReport
from topicsteer.corpora.readers.table_file import open_bytes

START, END = b"<MedlineCitation ", b"</MedlineCitation>"
HEAD = BUFFER = 1 << 20
YEAR = re.compile(r"\d{4}")
# Headings that indexers consider for every article, whatever it is about.
CHECK_TAGS = frozenset(files("topicsteer.corpora.known").joinpath("check_tags.txt").read_text("utf-8").splitlines())


def load_medline(
    path: str | Path | None = None,
    *,
    titles: bool = True,
    major: bool = False,
    check_tags: bool = True,
    min_documents: int = 1,
) -> Documents:
    """Load the citations of MEDLINE/PubMed XML that have an abstract and MeSH headings.

    The XML is read as a stream, so that a file of any size fits.

    Parameters
    ----------
    path : path, optional
        A file such as ``pubmed20n0014.xml.gz``, or a folder of them. Default: found through the environment
        variable TOPICSTEER_DATA, or where `fetch` put it.
    titles : bool, default=True
        Begin each text with the title of the article; otherwise it is the abstract alone.
    major : bool, default=False
        Use only headings that are a main point of the article.
    check_tags : bool, default=True
        Keep headings such as Humans, Male or Rats, which say what was studied and not what it is about.
    min_documents : int, default=1
        Drop headings of fewer documents; a document that keeps none is unlabelled.

    Returns
    -------
    Documents
        Ids are PubMed's numbers. The columns are ``title``, ``journal``, ``year`` (0 if unknown) and
        ``major``, the headings that are a main point. In the order of the files; of a citation that occurs
        twice the last version counts.

    Raises
    ------
    ReadError
        If the corpus is not found, is damaged or holds no such citation.

    Examples
    --------
    With the corpus that `fetch` downloads, ``load_medline(check_tags=False, min_documents=100)`` gives 14,832
    documents and 154 topics.

    >>> from tempfile import TemporaryDirectory
    >>> xml = '''<PubmedArticleSet><MedlineCitation Status="MEDLINE"><PMID>7</PMID>
    ... <Article><Abstract><AbstractText>Less of it.</AbstractText></Abstract></Article>
    ... <MeshHeadingList><MeshHeading><DescriptorName>Sodium</DescriptorName></MeshHeading></MeshHeadingList>
    ... </MedlineCitation></PubmedArticleSet>'''
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "some.xml").write_text(xml)
    ...     documents = load_medline(folder, titles=False)
    >>> documents.ids, documents.texts, documents.labels
    ([7], ['Less of it.'], [['Sodium']])
    """
    path = find_corpus("medline") if path is None else Path(path)
    found = sorted([*path.glob("*.xml"), *path.glob("*.xml.gz")]) if path.is_dir() else [path]
    kept = {citation.id: citation for file in found for citation in _citations(file)}
    if not kept:
        raise ReadError(f"{path}: holds no citation with an abstract and MeSH headings")
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
    """What is used of one article; headings say whether they are a main point."""

    id: int
    title: str
    abstract: str
    journal: str
    year: int
    headings: dict[str, bool]


def _citations(path: Path) -> Iterator[Citation]:
    """Citations with abstract and headings, one after another."""
    for number, piece in enumerate(_citation_xml(path), 1):
        if b"<AbstractText" not in piece or b"<MeshHeading>" not in piece:
            continue
        try:
            citation = _citation(ElementTree.fromstring(piece))  # noqa: S314 (expat limits entity expansion)
        except (ElementTree.ParseError, ValueError) as error:
            raise ReadError(f"{path}: citation {number} is damaged ({error}); download the file again") from None
        if citation is not None:
            yield citation


def _citation_xml(path: Path) -> Iterator[bytes]:
    """XML of each citation. To cut first and parse then is three times as fast as a stream of events."""
    rest, any_found = b"", False
    with open_bytes(path) as stream:
        while block := stream.read(BUFFER):
            *pieces, rest = (rest + block).split(END)
            any_found = any_found or START in rest or bool(pieces)
            if not any_found and len(rest) > HEAD:
                break
            for piece in pieces:
                yield piece[piece.find(START) :] + END
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
    """All text of an element, markup inside it left out."""
    return "" if element is None else "".join(element.itertext()).strip()
