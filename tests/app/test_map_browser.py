"""The page Map of the workbench in a real browser: lasso to label, keyboard, search, a hostile corpus."""

import csv
from contextlib import contextmanager

import browsing
import numpy as np
import pytest
from browsing import running

from topicsteer.analysis.map_layout import Layout
from topicsteer.app.workbench.map_view import STORED, stored_layout
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import read_table

pytestmark = browsing.MARKS

SECONDS = 120_000  # a busy machine takes long to fit
WORDS = {"tea": "green leaf cup pot steam", "coffee": "bean roast mug grind dark", "rain": "cloud storm wind wet grey"}
SUBJECTS = np.arange(90) % 3
HOSTILE = "<img src=x onerror=alert(1)> \u202eevil </script>"
# The place on the screen of a part of the map.
PLACE = """([x, y]) => {
  const box = document.querySelector('canvas').getBoundingClientRect();
  const room = 2 * Math.min(18, box.width / 20);
  const aspect = Math.min(Math.max(box.width / box.height, 1.2 / 1.35), 1.2 * 1.35);
  const wide = Math.min(box.width - room, (box.height - room) * aspect);
  return [box.x + box.width / 2 + (x - 0.5) * wide, box.y + box.height / 2 + (y - 0.5) * wide / aspect];
}"""


@pytest.fixture(scope="module")
def browser():
    with browsing.launched() as browser:
        yield browser


@pytest.fixture
def project(tmp_path):
    """A project with a stored map: each subject has a third of the width."""
    table, rng = tmp_path / "articles.csv", np.random.default_rng(0)
    names = list(WORDS)
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "body"])
        for k in range(90):
            hostile = f" {HOSTILE}" if k == 45 else ""
            writer.writerow([f"a{k}{hostile}", " ".join(rng.choice(WORDS[names[k % 3]].split(), 9)) + hostile])
    path = tmp_path / "articles.steer"
    Workbench.make(path, read_table(table, text="body", labels=False))
    x = (SUBJECTS + 0.2 + 0.6 * rng.random(90)) / 3
    places = np.stack([x, 0.1 + 0.8 * rng.random(90)], axis=1).astype(np.float32)
    project = Project.open(path)
    project.set({STORED: stored_layout(Layout(np.arange(90), places, 1.2, 90))})
    LabelSession(project).change_settings(refit_after=0)
    project.close()
    return path


@contextmanager
def opened(browser, address, **options):
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 1000}} | options)
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.goto(address)
    page.wait_for_selector("#panel")
    page.click('#tabs a[href="#map"]')
    page.wait_for_selector("canvas")
    drawn(page)
    yield page
    assert troubles == []
    context.close()


def drawn(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def lasso(page, subject):
    """Draw a lasso around the third of a subject."""
    left, right = subject / 3 + 0.01, (subject + 1) / 3 - 0.01
    corners = [(left, -0.02), (right, -0.02), (right, 1.02), (left, 1.02)]
    page.mouse.move(*page.evaluate(PLACE, corners[0]))
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*page.evaluate(PLACE, corner), steps=5)
    page.mouse.up()
    page.wait_for_selector(".bulk")


def labels_of(path):
    """Names of the topics that each labelled document has, and the number of batches."""
    project = Project.open(path)
    session = LabelSession(project)
    names = {topic.key: topic.name for topic in session.live}
    found = {row: {names[key] for key in d.permitted} for row, d in session.decisions.items() if session.labelled[row]}
    batches = len(list(project.log.batches()))
    project.close()
    return found, batches


def create(page, name):
    page.get_by_role("button", name="New topic …").click()
    page.wait_for_selector("dialog[open]")
    page.fill("#field-name", name)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]", state="detached")


def test_a_lasso_makes_a_topic_labels_documents_and_everything_follows(browser, project):
    with running(project) as address, opened(browser, address) as page:
        page.get_by_role("button", name="Lasso").click()
        lasso(page, 0)
        assert page.inner_text(".bulk b") == "30 selected"
        create(page, "tea")
        page.wait_for_selector("#labelled:has-text('30 of')")
        lasso(page, 1)
        create(page, "drinks of beans")
        page.wait_for_selector("#labelled:has-text('60 of')")
        lasso(page, 2)
        page.select_option(".bulk select", label="tea")  # a mistake, and its undo
        page.get_by_role("button", name="Has this topic").click()
        page.wait_for_selector("#labelled:has-text('90 of')")
        page.click("#undo")
        page.wait_for_selector("#labelled:has-text('60 of')")
        page.wait_for_selector("#map-topic option:has-text('All topics')", state="attached")
        page.click("#fit")
        page.wait_for_selector(".note.news")
        page.wait_for_selector("#map-topic option:has-text('tea')", state="attached")
        page.wait_for_selector("#map-topic option:has-text('drinks of beans')", state="attached")
        page.wait_for_selector("#map-topic option:has-text('Not fitted yet')", state="detached")
    labels, batches = labels_of(project)
    assert set(labels) == set(np.flatnonzero(SUBJECTS < 2).tolist())
    assert all(labels[row] == {"tea" if SUBJECTS[row] == 0 else "drinks of beans"} for row in labels)
    assert batches == 4  # two topics, a mistake and its undo: one batch each


def test_the_map_with_the_keyboard_alone(browser, project):
    with running(project) as address, opened(browser, address) as page:
        page.keyboard.press("g")
        page.keyboard.press("d")
        page.wait_for_selector('main[data-page="documents"]')
        page.keyboard.press("g")
        page.keyboard.press("m")
        page.wait_for_selector("canvas")
        page.focus("#map-search")
        page.keyboard.type("roast")
        page.wait_for_selector("output:has-text('of 90')")
        found = int(page.inner_text("output").split()[0])
        assert 20 <= found <= 30
        page.get_by_role("button", name="Select all in view").press("Enter")
        assert page.inner_text(".bulk b") == f"{found} selected"
        page.get_by_role("button", name="New topic …").press("Enter")
        page.wait_for_selector("dialog[open]")
        page.keyboard.type("coffee")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]", state="detached")
        page.wait_for_selector(f"#labelled:has-text('{found} of')")
        page.focus("canvas")
        page.keyboard.press("Enter")
        page.wait_for_selector(".map-reading:visible")
        first = page.inner_text(".map-reading")
        for key in ("+", "+", "+", "ArrowDown", "ArrowDown", "ArrowDown"):
            page.keyboard.press(key)
        drawn(page)
        page.keyboard.press("Enter")
        for _ in range(600):  # polled from outside, because the policy of the page forbids eval
            if page.inner_text(".map-reading") != first:
                break
            page.wait_for_timeout(50)
        assert page.inner_text(".map-reading") != first
        page.get_by_role("link", name="Read all and label").press("Enter")
        page.wait_for_selector('main[data-page="label"] .text')
    labels, _ = labels_of(project)
    assert len(labels) == found
    assert all(SUBJECTS[row] == 1 for row in labels)


def test_hover_read_and_table_show_a_hostile_document_as_text(browser, project):
    with running(project) as address, opened(browser, address, viewport={"width": 400, "height": 900}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.fill("#map-search", "onerror")
        page.wait_for_selector("output:has-text('1 of 90')")
        page.focus("canvas")
        page.keyboard.press("Enter")
        page.wait_for_selector(".map-reading:has-text('onerror')")  # the text arrives after the pane
        assert "<img src=x onerror=alert(1)> ⟦U+202E⟧evil" in page.inner_text(".map-reading")
        page.click(".document-map summary")
        page.wait_for_selector(".map-documents tbody tr")
        assert page.locator(".map-documents tbody tr").count() == 1
        assert "<img src=x onerror=alert(1)> ⟦U+202E⟧evil" in page.inner_text(".map-documents tbody")
        assert page.evaluate("document.images.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_is_drawn_in_both_schemes(browser, project, scheme):
    with running(project) as address, opened(browser, address, color_scheme=scheme) as page:
        painted = page.evaluate(
            """() => {
              const canvas = document.querySelector('canvas');
              const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              return data.filter((value, i) => i % 4 === 3 && value > 0).length;
            }"""
        )
        assert painted > 1000
        spot = page.evaluate(PLACE, [1 / 6, 0.5])
        for dx in range(-60, 61, 6):
            page.mouse.move(spot[0] + dx, spot[1])
            if page.locator(".map-tip").is_visible():
                break
        page.wait_for_selector(".map-tip .text")
        assert set(page.inner_text(".map-tip .text").split()) <= set(WORDS["tea"].split())
