"""People who label together, in a real browser: 120 disagreements by keyboard, blind mode, notes, bulk topics."""

import browsing
import pytest
from browsing import goto, opened, running, wait

from topicsteer.app.workbench.actions import Label, NewTopic, WriteNote, apply
from topicsteer.app.workbench.agreement_view import disagreements
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.session import LabelSession
from topicsteer.corpora import Documents

pytestmark = browsing.MARKS


@pytest.fixture(scope="module")
def browser():
    with browsing.launched() as browser:
        yield browser


@pytest.fixture
def project(tmp_path):
    """Two people who differ on both topics of 60 documents."""
    path = tmp_path / "team.steer"
    Project.create(path, Documents([f"d{i}" for i in range(70)], [f"text {i} of tea" for i in range(70)]))
    session = LabelSession(Project.open(path))
    for name in ("tea", "coffee"):
        apply(session, "ann", NewTopic(name=name, description=f"any {name}"))
    session.change_settings(refit_after=0)
    rows = list(range(60))
    for who, key in (("ann", 1), ("bob", 2)):
        apply(session, who, Label(documents=rows, key=key, state="permitted"))
    session.project.close()
    return path


def state_of(path, ask):
    session = LabelSession(Project.open(path))
    try:
        return ask(session)
    finally:
        session.project.close()


def test_120_disagreements_are_settled_by_keyboard_alone(browser, project):
    with running(project) as address, opened(browser, address) as page:
        page.keyboard.press("g")
        page.keyboard.press("a")
        page.wait_for_selector(".agreement tbody tr")
        wait(page, "document.querySelectorAll('.agreement .interval-bar').length === 4")
        page.keyboard.press("Enter")
        page.wait_for_selector("#settle-left:has-text('120 left')")
        assert page.locator(".sides li").all_inner_texts() == ["ann", "bob"]
        assert "any tea" in page.inner_text(".settle")
        for k in range(120):
            page.keyboard.press("n" if k % 5 == 4 else "y")
        page.wait_for_selector(".empty:has-text('Every disagreement is settled')")
        page.keyboard.press("u")
        page.wait_for_selector("#settle-left:has-text('1 left')")
        page.keyboard.press("y")
        page.wait_for_selector(".empty:has-text('Every disagreement is settled')")
        page.keyboard.press("Escape")
        page.wait_for_selector("text=60 documents settled so far")

    def check(session):
        assert disagreements(session).total == 0
        for row in range(60):
            votes, permitted = session.votes_of(row), session.decisions[row].permitted
            assert (votes["ann"], votes["bob"]) == ({1: True, 2: False}, {2: True, 1: False})  # kept
            tea, coffee = row % 5 != 4, (60 + row) % 5 != 4 or row == 59
            assert permitted == {key for key, has in ((1, tea), (2, coffee)) if has}

    state_of(project, check)


def test_a_second_person_labels_blind(browser, project):
    def prepare(session):
        session.change_settings(blind=True)
        apply(session, "ann", WriteNote(document=3, text="secret"))

    state_of(project, prepare)
    with running(project) as address, opened(browser, address) as page:
        page.wait_for_selector(".sheet .doc-id")
        modes = ["At random", "From a search", "Put aside by me"]
        assert page.locator("#mode option").all_inner_texts() == modes
        page.evaluate("location.hash = 'label/3'")
        page.wait_for_selector(".sheet .doc-id bdi:text-is('d3')")
        assert page.locator(".others").count() == 0
        assert "secret" not in page.inner_text("main")
        assert page.get_attribute('[data-topic="1"]', "title") == "any tea"  # the definition on hover
        page.keyboard.press("m")
        page.wait_for_selector("dialog[open]")
        page.keyboard.type("iced <b>tea</b>?")
        page.click("dialog[open] button[type=submit]")
        page.wait_for_selector(".notes-of:has-text('iced <b>tea</b>?')")
        page.keyboard.press("l")  # not sure, later
        wait(page, "document.querySelector('.sheet .doc-id')?.textContent !== 'd3'")
        page.select_option("#mode", "later")
        page.wait_for_selector(".sheet .doc-id bdi:text-is('d3')")
        goto(page, "documents")
        wait(page, "document.querySelectorAll('.documents tbody tr').length > 9")
        filters = page.locator("#filter option").all_inner_texts()
        assert not {"People differ", "The model is sure", "Settled"} & set(filters)
        assert page.locator(".chip.warn").count() == 0
        sent = []
        page.on("response", lambda answer: sent.append((answer.url, answer.status)) if "/api/" in answer.url else None)
        for name in ("map", "topics"):
            goto(page, name)
            page.wait_for_selector("main .empty")
            assert page.inner_text("main").count("Hidden in blind mode.") == 1, name
        assert page.locator("main .card .terms").count() == 0
        goto(page, "progress")
        page.wait_for_selector("#groups-title")
        assert "blind mode: predictions are hidden" in page.inner_text("#labelled")
        assert not [url for url, status in sent if status >= 400 or "/api/map" in url]
    assert state_of(project, lambda session: session.notes_of(3)) == {"ann": "secret", "me": "iced <b>tea</b>?"}


def test_bulk_topic_cancelled_fit_and_menu(browser, project):
    with running(project) as address, opened(browser, address) as page:
        wait(page, "document.querySelector('#labelled')?.innerText.startsWith('60 of 70')")
        assert page.inner_text("#labelled").startswith("60 of 70 documents labelled")
        goto(page, "documents")
        page.select_option("#filter", "unlabelled")
        wait(page, "document.querySelectorAll('.documents tbody tr').length === 10")
        page.check("[aria-label='Select this page']")
        page.click("text=New topic …")
        page.wait_for_selector("dialog[open]")
        page.fill("#field-name", "milk")
        page.click("dialog[open] button[type=submit]")
        wait(page, "document.querySelectorAll('.documents tbody tr').length === 0")
        page.keyboard.press("f")
        wait(page, "document.querySelector('#fit').textContent === 'Fitting …'")
        page.click("#cancel")
        wait(page, "document.querySelector('#fit').textContent === 'Fit'")
        goto(page, "topics")
        card = page.locator(".card", has_text="milk").first
        assert card.locator(".actions > *").count() == 3
        assert not card.get_by_role("button", name="Delete").is_visible()
        card.locator(".menu > summary").focus()
        page.keyboard.press("Enter")
        card.get_by_role("button", name="Delete").wait_for()
        page.keyboard.press("Escape")
        card.get_by_role("button", name="Delete").wait_for(state="hidden")
    assert state_of(project, lambda session: session.counts[3]) == 10
