"""Report and codebook in a real browser: a hostile corpus is shown as text, search and sorting work."""

import re
from contextlib import contextmanager

import browsing
import numpy as np
import pytest
import scipy.sparse as sp
from problems import make_topics

from topicsteer.analysis.evaluate import evaluate
from topicsteer.labels.forms import supervise
from topicsteer.report.codebook import CodedDocument, Entry, render_codebook
from topicsteer.report.page import Example, ReportData, write
from topicsteer.system.safe_text import revealed, visible

pytestmark = browsing.MARKS

HOSTILE = [
    "<script>window.pwned = 1; alert(1)</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "</title></style></script></svg><svg onload=alert(2)>",
    "\"><a href='javascript:alert(3)' onclick=alert(3)>here</a>",
    "javascript:alert(4)",
    "{{ 7 * 7 }} {% raw %} {# comment #} ${alert(5)}",
    "\u202egnp.exe\u202c \u2066isolated\u2069 \u2067left\u2069",
    "zero\u200bwidth\u200djoined\u2060 \ufeffmark",
    "nul\x00 escape\x1b[31m return\x85 line\u2028",
    "עברית and العربية in one",
    "&lt;b&gt; &amp;amp; &#34;",
]


@pytest.fixture(scope="module")
def browser():
    with browsing.launched() as browser:
        yield browser


@contextmanager
def opened(browser, path, **options):
    """A page of a file; fails if it reports an error, opens a dialog or requests anything."""
    context = browser.new_context(**options)
    page = context.new_page()
    troubles, requests = [], []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert troubles == []
    assert requests == [path.as_uri()]
    context.close()


def evaluation(names):
    """Every second topic is mistaken for the next one."""
    labels = [name for name in names for _ in range(6)]
    truth = supervise(labels, len(labels))
    right = truth.indicator().toarray()

    def scorer(X, left, rows):
        scores = right[rows].copy()
        scores[:, 1::2] = np.roll(scores, 1, axis=1)[:, 1::2]
        return scores, scores > 0

    X = np.random.default_rng(0).random((len(labels), 20))
    return evaluate(sp.csr_array(X), truth, scorer)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    topics = make_topics(known=len(HOSTILE), free=2, t=40, names=(*HOSTILE, "free one", "free two"))
    terms = [*HOSTILE, *(f"term {j}" for j in range(40 - len(HOSTILE)))]
    object.__setattr__(topics, "vocabulary", np.array(terms, dtype=object))
    H = np.full(topics.H.shape, 0.01)
    H[np.arange(len(H)), np.arange(len(H))] = 1.0  # each hostile term is the first of its topic
    object.__setattr__(topics, "H", H)
    examples = {k: [Example(text, f"begin {text} end", ((0, 5, 1.0),))] for k, text in enumerate(HOSTILE)}
    effect = [k % 2 == 0 for k in range(len(HOSTILE))]
    guidance = {"topic": HOSTILE, "nearest": HOSTILE[::-1], "took effect": effect}
    settings = {text: text for text in HOSTILE}
    title = " ".join(HOSTILE[:3])
    write(ReportData(title, topics, examples, guidance, evaluation(HOSTILE), settings, [3.0, 1.0]), path)
    return path


def assert_text_only(page, text):
    """Nothing of the corpus became markup or took effect, and no character is hidden."""
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.images.length") == 0
    assert page.locator("[onload], [onerror], [onclick], a:not([href^='#']), iframe, object").count() == 0
    shown = page.evaluate("document.documentElement.textContent")
    assert not re.search("[\x00-\x08\x1b\x85\u2028\u202a-\u202e\u2066-\u2069\ufeff]", shown)
    for some in HOSTILE:
        assert revealed(some) in text
    assert "⟦U+202E⟧gnp.exe⟦U+202C⟧ ⟦U+2066⟧isolated⟦U+2069⟧" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_hostile_corpus_is_text_in_the_report(browser, report, width, scheme):
    with opened(browser, report, color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        for part in ("#topics", "#guidance", "#evaluation", "#all", "#settings"):
            assert_text_only(page, page.evaluate("(part) => document.querySelector(part).textContent", part))
        assert page.evaluate("document.scripts.length") == 1
        assert page.title() == " ".join(HOSTILE[:3])
        assert page.inner_text("h1") == " ".join(HOSTILE[:3])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        texts = page.locator(".card .text").all_text_contents()
        assert texts == [revealed(f"begin {text} end") for text in HOSTILE]
        assert page.locator(".card .id").all_text_contents() == [revealed(text) for text in HOSTILE]
        first = page.locator(".card .terms li:first-child span").all_text_contents()
        assert first[: len(HOSTILE)] == [visible(text, 60) for text in HOSTILE]


def test_a_hostile_corpus_is_text_in_the_codebook(browser, tmp_path):
    path = tmp_path / "codebook.html"
    entries = [
        Entry(text, text, [text], {"Keywords": [text, text]}, {"Typical documents": [CodedDocument(text, text, 0.5)]})
        for text in HOSTILE
    ]
    path.write_text(render_codebook(f"Codebook of {HOSTILE[0]}", entries), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.title() == f"Codebook of {HOSTILE[0]}"
        assert page.evaluate("document.scripts.length") == 0
        for part in ("h3", ".facts", ".id", ".text", "p[dir]", "p:has(b)"):
            assert_text_only(page, "\n".join(page.locator(part).all_text_contents()))


def test_search_and_sorting(browser, report):
    with opened(browser, report) as page:
        page.fill("#cards-search", "GNP.exe isolated")
        assert page.locator(".card:visible").count() == 1
        assert page.inner_text("#cards-search + output") == f"1 of {len(HOSTILE) + 2}"
        page.click("#topic-table tbody tr:nth-child(2) a")
        page.wait_for_selector("#topic-2:visible")
        assert page.locator(".card:visible").count() == len(HOSTILE) + 2
        values = "[...document.querySelectorAll('#topic-table td:nth-child(4)')].map((cell) => +cell.dataset.value)"
        for order in (-1, 1):
            page.click("#topic-table thead th:nth-child(4) button")
            shares = page.evaluate(values)
            assert shares == sorted(shares, key=lambda share: order * share)


def test_an_empty_codebook(browser, tmp_path):
    path = tmp_path / "codebook.html"
    path.write_text(render_codebook("Codebook of nothing", []), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.inner_text("main") == "There are no topics yet."
