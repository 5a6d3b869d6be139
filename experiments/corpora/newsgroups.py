"""Load 20 Newsgroups, the version sorted by date."""

import gzip
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from experiments.corpora.archives import documents_of, find_corpus, read_members
from topicsteer.corpora import BadRow, Documents, ReadError, ReadReport

# A post in the archive: split, group and number.
MEMBER = re.compile(r"20news-bydate-(train|test)/([^/]+)/([^/]+)$")
# Verbs that introduce a quotation.
WROTE = r"(?:writes|wrote|says|said)"
# Quotations: their introduction ("In article <...> somebody writes:", on one or two lines), and lines after > or |.
QUOTE = re.compile(
    rf"^(?:In article\b.*(?:\n.*\b{WROTE}\b.*)?|.*\b{WROTE}[ \t]*:[ \t]*|[ \t]*[A-Za-z]{{0,4}}[>|].*)$",
    re.MULTILINE,
)
# A line above a signature.
RULE = re.compile(r"[ \t]*(?:--|[-=_*~#]{5,}.*)[ \t]*")
# Maximum number of lines from the rule above a signature to the end of the post.
SIGNATURE_LINES = 10
# Empty lines, which shrink to one when something is removed.
GAP = re.compile(r"\n\s*\n")


def load_newsgroups(path: str | Path | None = None, *, remove: Collection[str] = ()) -> Documents:
    r"""Load the 18,846 posts of 20 Newsgroups, each labelled with its group.

    Parameters
    ----------
    path : path, optional
        ``20news-bydate.tar.gz``, the folder it was unpacked to, or a .jsonl file of posts with ``id``,
        ``split``, ``label`` and ``text``. Default: the result of `find_corpus`.
    remove : collection of {"headers", "quotes", "footers"}, default=()
        Remove the lines before the first empty one, quotations of other posts, or signatures. Without them, topics
        rest on the content of a post. Posts that become empty are left out and reported.

    Returns
    -------
    Documents
        Ids such as ``"sci.space/59848"``; the column ``split`` is "train" or "test".

    Raises
    ------
    ReadError
        If the corpus is not found or has another format.

    """
    path = find_corpus("newsgroups") if path is None else Path(path)
    unknown = set(remove) - {"headers", "quotes", "footers"}
    if unknown:
        raise ValueError(f"remove names {', '.join(sorted(unknown))}: expected 'headers', 'quotes' or 'footers'")
    kept, bad = [], []
    for split, group, number, post in _posts(path):
        text = strip_post(post, remove)
        if text.strip():
            kept.append((f"{group}/{number}", text, [group], split))
        else:
            bad.append(BadRow(f"{group}/{number}", "empty text"))
    if not kept:
        raise ReadError(f"{path}: has no posts; expected 20news-bydate.tar.gz, its folder or a .jsonl file")
    return documents_of(kept, ["split"], ReadReport(str(path), bad_rows=tuple(bad)))


def strip_post(post: str, remove: Collection[str]) -> str:
    """Remove headers, quotes or footers from a post."""
    text = post.partition("\n\n")[2] if "headers" in remove else post
    if "quotes" in remove:
        text = QUOTE.sub("", text)
    if "footers" in remove:
        text = _without_signature(text)
    return GAP.sub("\n\n", text).strip() if remove else text


def _without_signature(text: str) -> str:
    """Remove the signature: the last lines, from a line of dashes or similar signs."""
    lines = text.rstrip().split("\n")
    for number in range(max(0, len(lines) - SIGNATURE_LINES), len(lines)):
        if RULE.fullmatch(lines[number]):
            return "\n".join(lines[:number])
    return text


def _posts(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield split, group, number and text of each post."""
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    post = json.loads(line)
                    yield post["split"], post["label"], post["id"], post["text"]
                except (ValueError, KeyError, TypeError):
                    raise ReadError(f"{path}: line {number} is not a post with split, label, id and text") from None
        return
    for name, content in read_members(path):
        found = MEMBER.search(name if path.is_file() else f"{path.name}/{name}")
        if found:
            yield found[1], found[2], found[3], content.decode("latin-1")
