"""The label pane as a tree, in a real browser: numbers by level, search by path, arrow keys, moves and splits."""

import csv

import pytest

from tests.browsing import MARKS, goto, launched, opened, running, wait
from tests.model.test_trees import NAMES, TREE, branch, corpus

pytestmark = MARKS


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    table = tmp_path_factory.mktemp("trees") / "news.csv"
    texts, _, labels = corpus(TREE, NAMES, 0, 120)
    with open(table, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "label"])
        for i, (text, name) in enumerate(zip(texts, labels, strict=True)):
            rows.writerow([i, text, "" if name is None else "/".join(reversed(branch(TREE, name)))])
    server = running(table, "--path-separator", "/", "--world", "closed")
    with launched() as browser, server as address, opened(browser, address) as page:
        page.wait_for_selector("[role=tree]")
        yield page


@pytest.fixture(autouse=True)
def label_page(page):
    """Each test begins on a new page, also after a failed one."""
    page.evaluate("() => { location.hash = '#label'; }")
    page.reload()
    page.wait_for_selector("[role=tree]")
    page.wait_for_selector(".sheet .doc-id")  # topics are there before the document


def row(name):
    return f'[role=treeitem][aria-label^="{name},"]'


def test_numbers_go_down_one_level_with_each_label(page):
    items = page.locator("[role=treeitem]")
    levels = [(item.get_attribute("aria-level"), item.get_attribute("aria-expanded")) for item in items.all()]
    assert levels == [("1", "true"), ("2", None), ("2", None)] * 2
    page.keyboard.press("2")  # sport
    wait(page, f"() => document.querySelector('{row('sport')}').ariaChecked === 'true'")
    wait(page, "() => document.querySelector('.branch').innerText.includes('inside sport')")
    page.keyboard.press("1")  # football
    wait(page, f"() => document.querySelector('{row('football')}').ariaChecked === 'true'")
    page.keyboard.press("0")  # nothing below: the last label of the topic counts
    wait(page, "() => document.querySelector('.branch button').ariaPressed === 'true'")
    page.keyboard.press("Backspace")
    wait(page, "() => document.querySelector('.branch').innerText === 'Numbers: top level'")
    page.keyboard.press("u")
    page.keyboard.press("u")
    page.keyboard.press("u")
    wait(page, f"() => document.querySelector('{row('sport')}').ariaChecked === 'false'")


def test_a_path_finds_a_topic(page):
    page.keyboard.press("t")
    wait(page, "() => document.activeElement.tagName === 'INPUT'")
    page.keyboard.type("sp/te")
    wait(page, "() => document.querySelectorAll('.choices .yes').length === 1")
    assert "sport" in page.inner_text(".choices .crumbs")
    page.keyboard.press("Enter")
    wait(page, f"() => document.querySelector('{row('tennis')}')?.ariaChecked === 'true'")
    # a label further down means it
    wait(page, f"() => document.querySelector('{row('sport')}')?.ariaChecked === 'mixed'")
    page.keyboard.press("u")
    wait(page, f"() => document.querySelector('{row('tennis')}').ariaChecked === 'false'")


def test_arrow_keys_fold_move_and_label(page):
    page.focus('[role=treeitem][tabindex="0"]')
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    wait(page, f"() => document.querySelector('{row('arts')}').ariaExpanded === 'false'")
    assert page.locator("[role=treeitem]").count() == 4
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    focused = "() => document.activeElement.getAttribute('aria-label')"
    wait(page, f"() => ({focused})() === 'film, level 2'")
    page.keyboard.press("Space")
    wait(page, f"() => document.querySelector('{row('film')}').ariaChecked === 'true'")
    assert page.evaluate(focused) == "film, level 2"  # the focus stays
    page.keyboard.press("ArrowLeft")
    wait(page, f"() => ({focused})() === 'arts, level 1'")


def test_put_under_and_split(page):
    page.keyboard.press("f")
    wait(page, "() => document.getElementById('fit').textContent === 'Fit again'")
    goto(page, "topics")
    card = page.locator("[data-card]", has=page.locator("h3", has_text="sport/tennis"))
    assert card.locator(".crumbs").inner_text() == "Level 2, in sport"
    card.locator("summary[aria-label^='More for']").click()
    card.locator("button", has_text="Put under").click()
    page.select_option("#field-parent", label="arts")
    page.click("dialog button[type=submit]")
    wait(page, "() => [...document.querySelectorAll('h3')].some((h) => h.textContent === 'arts/tennis')")
    page.click("#undo")
    wait(page, "() => [...document.querySelectorAll('h3')].some((h) => h.textContent === 'sport/tennis')")
    wait(page, "() => document.getElementById('fitting').hidden")
    film = page.locator("[data-card]", has=page.locator("h3", has_text="arts/film"))
    film.locator("summary[aria-label^='More for']").click()
    film.locator("button", has_text="Split").first.click()
    page.fill("#field-parts", "2")
    page.click("dialog button[type=submit]")
    wait(page, "() => document.querySelectorAll('.card .groups .group').length > 0")
    film.locator(".group button", has_text="Make it a topic").first.click()
    page.fill("#field-name", "sketches")
    page.click("dialog button[type=submit]")
    wait(page, "() => location.hash.startsWith('#label') && document.querySelector('[role=tree]')")
    wait(page, f"""() => document.querySelector('{row("sketches")}')?.ariaLevel === '3'""")
