"""Report in a real browser: a hostile corpus is shown as text, search and sorting work."""

import re
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree

import browsing
import numpy as np
import pytest
import scipy.sparse as sp
from problems import make_shares, make_topics

from topicsteer.analysis.evaluation import evaluate
from topicsteer.analysis.map_layout import DocumentMap, Layout
from topicsteer.labels.forms import supervise
from topicsteer.report.map_page import MappedDocuments
from topicsteer.report.page import Example, ReportData, write
from topicsteer.system.templates import revealed, visible

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
    title = " ".join(HOSTILE[:3])
    months = [f"2024-{month:02}" for month in range(1, 13)]
    shares = [
        make_shares([*HOSTILE, "free one", "free two", "(none)"], ["all"], "", notes=HOSTILE),
        make_shares(HOSTILE, HOSTILE, HOSTILE[0], notes=HOSTILE),
        make_shares(HOSTILE, [*months, "(missing)"], HOSTILE[1], "month"),
    ]
    data = ReportData(title, topics, examples, evaluation(HOSTILE), shares=shares)
    write(replace(data, documents=hostile_map(topics.names)), path)
    return path


def hostile_map(names):
    """Twenty documents per topic and twenty without one, each topic in a square of its own; the ids are hostile too."""
    rng = np.random.default_rng(0)
    topic = np.repeat(np.arange(len(names) + 1), 20)
    places = (np.stack([topic % 4, topic // 4], axis=1) + 0.2 + 0.6 * rng.random((len(topic), 2))) / 4
    layout = Layout(np.arange(len(topic)), places.astype(np.float32), 1.2, len(topic))
    some = [HOSTILE[k % len(HOSTILE)] for k in range(len(topic))]
    texts = [f"document {i} about {text} " + "and so on " * 60 for i, text in enumerate(some)]
    ids = [f"{i}: {text}" for i, text in enumerate(some)]
    found = DocumentMap(layout, (*names, "(none)"), len(HOSTILE), topic, rng.random(len(topic)), topic == 1)
    return MappedDocuments(found, ids, texts)


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
        for part in ("#topics", "#shares", "#evaluation", "#all"):
            assert_text_only(page, page.evaluate("(part) => document.querySelector(part).textContent", part))
        assert page.evaluate("[...document.scripts].filter((one) => !one.type).length") == 1
        assert page.title() == " ".join(HOSTILE[:3])
        assert page.inner_text("h1") == " ".join(HOSTILE[:3])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        texts = page.locator(".card .text").all_text_contents()
        assert sorted(texts) == sorted(revealed(f"begin {text} end") for text in HOSTILE)  # topics are in order of size
        ids = page.locator(".card .id").all_text_contents()
        assert sorted(ids) == sorted(revealed(text) for text in HOSTILE)
        first = page.locator(".card .terms li:first-child span").all_text_contents()
        assert set(first) >= {visible(text, 60) for text in HOSTILE}


def test_search_and_sorting(browser, report):
    with opened(browser, report) as page:
        page.fill("#cards-search", "GNP.exe isolated")
        assert page.locator(".card:visible").count() == 1
        assert page.inner_text("#cards-search + output") == f"1 of {len(HOSTILE) + 2}"
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        page.click("#topic-table tbody tr:nth-child(2) a")
        page.wait_for_selector("#topic-2:visible")
        assert page.locator(".card:visible").count() == len(HOSTILE) + 2
        values = "[...document.querySelectorAll('#topic-table td:nth-child(4)')].map((cell) => +cell.dataset.value)"
        for order in (-1, 1):
            page.click("#topic-table thead th:nth-child(4) button")
            shares = page.evaluate(values)
            assert shares == sorted(shares, key=lambda share: order * share)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_saved_as_a_drawing_of_its_own(browser, report, tmp_path, scheme):
    with opened(browser, report, color_scheme=scheme, viewport={"width": 1280, "height": 900}) as page:
        buttons = page.locator(".save:visible")
        charts = page.locator("svg[role=img]:visible").count()
        assert buttons.count() == charts > 20
        for number in (0, 1, 2, charts - 3, charts - 2, charts - 1):
            with page.expect_download() as saved:
                buttons.nth(number).focus()
                page.keyboard.press("Enter")
            assert saved.value.suggested_filename.endswith(".svg")
            path = tmp_path / f"{number}.svg"
            saved.value.save_as(path)
            text = path.read_text(encoding="utf-8")
            drawing = ElementTree.fromstring(text)
            assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
            assert float(drawing.get("width")) > 100
            elements = list(drawing.iter())
            assert not {"script", "style", "image"} & {element.tag.partition("}")[2] for element in elements}
            attributes = [pair for element in elements for pair in element.items()]
            assert not [name for name, _ in attributes if name.startswith("on") or name in ("class", "href", "style")]
            assert not [value for name, value in attributes if name != "aria-label" and "var(" in value]
            colours = {element.get(name) for element in elements for name in ("fill", "stroke")}
            assert "rgb(34, 38, 43)" in colours or "rgb(29, 99, 144)" in colours  # ink and blue of the light page
            assert "rgb(228, 230, 232)" not in colours  # ink of the dark page
        assert page.evaluate("window.pwned") is None


def test_a_saved_chart_looks_like_the_page(browser, report, tmp_path):
    with opened(browser, report, viewport={"width": 1280, "height": 900}) as page:
        chart = page.locator("#shares .charts-grid svg").first
        with page.expect_download() as saved:
            chart.locator("xpath=following-sibling::button").click()
        saved.value.save_as(tmp_path / "chart.svg")
        width, height = (float(chart.get_attribute("viewBox").split()[k]) for k in (2, 3))
        texts = chart.locator("text").all_text_contents()
        place, scale = chart.locator("rect.share").first.bounding_box(), chart.bounding_box()["width"] / width
    context = browser.new_context(viewport={"width": int(width), "height": int(height)})
    page = context.new_page()
    page.goto((tmp_path / "chart.svg").as_uri())
    assert page.locator("text").all_text_contents() == texts
    bar = page.locator("rect").nth(1).bounding_box()
    assert bar["width"] == pytest.approx(place["width"] / scale, abs=0.5)
    assert page.locator("text").first.evaluate("(text) => getComputedStyle(text).textAnchor") == "end"
    context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_every_chart_has_a_table_that_a_keyboard_opens(browser, report, width):
    with opened(browser, report, viewport={"width": width, "height": 900}) as page:
        for section in ("#shares",):
            tables = page.locator(f"{section} details:has(table)")
            assert tables.count() > 0
            for number in range(tables.count()):
                assert not tables.nth(number).locator("table").is_visible()
                tables.nth(number).locator("summary").focus()
                page.keyboard.press("Enter")
                assert tables.nth(number).locator("table").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("svg[role=img]:not([aria-label])").count() == 0
        parts = page.locator(".share-part")
        assert [parts.nth(k).locator("details table").count() for k in range(parts.count())] == [1, 1, 1]
        assert page.locator("#shares-1-table tbody tr").count() == len(HOSTILE) ** 2


# --- the document map ---

# Numbers of pixels of the canvas that are not empty, by the first two thirds of their colour.
PAINTED = """() => {
  const canvas = document.querySelector('#document-map canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
  return count;
}"""
# The place of a point on the screen.
PLACE = """([x, y]) => {
  const box = document.querySelector('#document-map canvas').getBoundingClientRect();
  const room = 2 * Math.min(18, box.width / 20);
  const aspect = Math.min(Math.max(box.width / box.height, 1.2 / 1.35), 1.2 * 1.35);
  const wide = Math.min(box.width - room, (box.height - room) * aspect);
  return [box.x + box.width / 2 + (x - 0.5) * wide, box.y + box.height / 2 + (y - 0.5) * wide / aspect];
}"""


def drawn(page):
    """Wait until the map is drawn, also after a change."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def at(page, row):
    """The place of a document on the screen, with the map in view."""
    page.evaluate(
        "document.querySelector('#document-map canvas').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    drawn(page)
    places = hostile_map([*HOSTILE, "free one", "free two"]).map.layout.places
    return page.evaluate(PLACE, [float(value) for value in places[row]])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_map_shows_a_hostile_corpus_as_text(browser, report, width, scheme):
    with opened(browser, report, color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        drawn(page)
        assert page.evaluate(PAINTED) > 1000
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for row in range(0, 40, 3):
            page.mouse.move(*at(page, row))
            page.wait_for_selector(".map-tip:visible")
            tip = page.inner_text(".map-tip")
            shown = re.match(r"(\d+): ", tip)[1]  # another point may lie on it
            assert revealed(HOSTILE[int(shown) % len(HOSTILE)]).split()[0] in tip
        page.click("#document-map summary")
        text = page.evaluate("document.querySelector('#documents').textContent")
        assert_text_only(page, text)
        assert "⟦U+202E⟧gnp.exe" in text


def test_a_click_on_the_map_reads_a_document(browser, report):
    with opened(browser, report) as page:
        page.mouse.click(*at(page, 25))
        panel = page.inner_text(".map-reading")
        shown = int(re.match(r"(\d+): ", panel)[1])
        assert shown // 20 == 1
        assert f"document {shown} about" in panel
        assert "labelled" in panel
        page.click(".map-reading a")
        assert page.evaluate("location.hash") == "#topic-2"
        at(page, 25)
        page.mouse.click(*page.evaluate(PLACE, [0.5, 0.5]))  # between the squares
        assert page.locator(".map-reading").is_hidden()


def test_search_and_topics_on_the_map(browser, report):
    with opened(browser, report) as page:
        drawn(page)
        whole = page.evaluate(PAINTED)
        page.fill("#map-search", "GNP.exe about")
        drawn(page)
        assert page.inner_text("#map-search + output") == "25 of 280"
        assert 10_000 < page.evaluate(PAINTED) < whole  # the others are pale, and no area is shaded
        page.fill("#map-search", "")
        page.select_option("#map-topic", label="free two (20)")
        drawn(page)
        assert page.inner_text("#map-search + output") == "20 of 280"
        page.click("#document-map summary")
        rows = page.locator(".map-documents tbody tr")
        rows.nth(19).wait_for()  # the table is filled after the event of opening
        assert rows.count() == 20
        assert set(page.locator(".map-documents td:nth-child(2)").all_text_contents()) == {"free two"}
        page.select_option("#map-topic", "")
        assert rows.count() == 50
        assert page.inner_text("[data-part=place]") == "1 to 50 of 280"
        page.click("[data-part=later]")
        assert page.inner_text("[data-part=place]") == "51 to 100 of 280"
        page.click(".map-documents tbody tr:first-child button")
        assert page.inner_text(".map-reading").startswith("50: ")
        page.click("[data-part=shade]")
        drawn(page)
        assert page.evaluate(PAINTED) < whole  # no rings, and no shaded areas


def test_the_map_with_the_keyboard(browser, report):
    with opened(browser, report) as page:
        page.focus("#map-search")
        for _ in range(10):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "CANVAS":
                break
        drawn(page)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Map of 280 documents")
        page.keyboard.press("Enter")
        first = page.inner_text(".map-reading")
        for key in ("+", "+", "ArrowRight", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
        drawn(page)
        page.keyboard.press("Enter")
        second = page.inner_text(".map-reading")
        assert first != second
        page.keyboard.press("0")
        page.keyboard.press("Enter")
        assert page.inner_text(".map-reading") == first


def test_the_wheel_scrolls_the_page_unless_the_map_has_the_focus(browser, report):
    with opened(browser, report) as page:
        page.mouse.move(*at(page, 25))
        before = page.evaluate("scrollY")
        page.mouse.wheel(0, 120)
        page.wait_for_timeout(300)
        assert page.evaluate("scrollY") != before
        page.mouse.click(*at(page, 25))
        before, painted = page.evaluate("scrollY"), page.evaluate(PAINTED)
        page.mouse.wheel(0, -300)
        page.wait_for_timeout(300)
        assert page.evaluate("scrollY") == before
        assert page.evaluate(PAINTED) != painted


def test_the_map_with_two_fingers(browser, report):
    with opened(browser, report, has_touch=True, viewport={"width": 400, "height": 900}) as page:
        at(page, 0)
        style = "document.querySelector('#document-map canvas').style.touchAction"
        assert page.evaluate(f"getComputedStyle({style[:-18]}).touchAction") == "pan-y"  # one finger scrolls the page
        page.evaluate("""() => {
          const canvas = document.querySelector('#document-map canvas');
          const box = canvas.getBoundingClientRect();
          canvas.setPointerCapture = () => {};
          const send = (kind, id, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {
            pointerId: id, pointerType: 'touch', clientX: box.x + x, clientY: box.y + y, bubbles: true,
          }));
          send('pointerdown', 1, 150, 200);
          send('pointerdown', 2, 200, 200);
          send('pointermove', 2, 300, 200);
          send('pointerup', 2, 300, 200);
          send('pointerup', 1, 150, 200);
        }""")
        drawn(page)
        assert page.evaluate(style) == "none"  # enlarged: one finger moves the map
        page.click("[data-part=whole]")
        assert page.evaluate(style) == "pan-y"


def test_a_map_of_100000_documents_is_small_enough(browser, tmp_path):
    n, rng = 100_000, np.random.default_rng(0)
    topics = make_topics(known=20, free=5)
    layout = Layout(np.arange(n), rng.random((n, 2)).astype(np.float32), 1.3, n)
    topic = rng.integers(0, 26, n)
    found = DocumentMap(layout, (*topics.names, "(none)"), 20, topic, rng.random(n), rng.random(n) < 0.02)
    texts = [f"needle{i} " + "lorem ipsum dolor sit amet " * 20 for i in range(n)]
    data = ReportData("Large", topics, {})
    write(replace(data, documents=MappedDocuments(found, [f"d{i}" for i in range(n)], texts)), tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 15_000_000
    with opened(browser, tmp_path / "r.html") as page:
        page.wait_for_function("performance.getEntriesByName('document-map').length > 0")
        page.fill("#map-search", "needle77777")
        assert page.inner_text("#map-search + output") == "1 of 100,000"


def test_the_name_of_a_topic_lies_in_its_widest_group_not_in_its_tightest(browser, tmp_path):
    script = (files("topicsteer.report") / "document_map.js").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    places = np.concatenate([0.5 + 0.3 * rng.random((90, 2)), 0.1 + 0.01 * rng.random((10, 2))])
    x, y = np.round(65535 * places.T).astype(int).tolist()
    data = {"x": x, "y": y, "topic": [0] * 100, "labelled": [0] * 100, "topics": [{"name": "tea", "kind": "known"}]}
    (tmp_path / "map.html").write_text(
        f"<canvas></canvas><script type=module>{script}window.Shown = DocumentMap;</script>"
    )
    with opened(browser, tmp_path / "map.html") as page:
        (anchor,) = page.evaluate(
            "(data) => { const map = new Shown(document.querySelector('canvas')); map.set(data); return map.anchors }",
            data,
        )
    assert 0.5 < min(anchor) < max(anchor) < 0.8
