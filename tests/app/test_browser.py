"""The workbench in a real browser: the whole loop, a hostile corpus, keyboard, landmarks, phone width."""

import csv
import json
import os
import re
import warnings
from contextlib import suppress

import browsing
import numpy as np
import pytest
from browsing import SEND, goto, opened, running, wait
from problems import planted_texts

from topicsteer import TopicModel
from topicsteer.app.workbench.actions import NewTopic, apply
from topicsteer.app.workbench.project import Project, ProjectSettings
from topicsteer.app.workbench.session import LabelSession
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents, attach_labels, read_labels, read_table
from topicsteer.system.templates import visible

pytestmark = browsing.MARKS

WORDS = {"tea": "green leaf cup pot steam", "coffee": "bean roast mug grind dark", "rain": "cloud storm wind wet grey"}


@pytest.fixture(scope="module")
def browser():
    with browsing.launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("loop") / "articles.csv"
    rng = np.random.default_rng(0)
    names = list(WORDS)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "body", "place"])
        for k in range(60):
            text = " ".join(rng.choice(WORDS[names[k % 3]].split(), 9))
            writer.writerow([f"a{k}", text, "north" if k % 2 else "south"])
    return path


def skip_start(page):
    """Leave the question of the first start, so that keys work on the page."""
    page.wait_for_selector(".start :text('What are your topics?')")
    page.focus("#names")
    page.keyboard.press("Escape")


def new_topic(page, name):
    page.keyboard.press("n")
    page.wait_for_selector("dialog[open]")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]", state="detached")


def read(page):
    return page.inner_text(".text")


def choose(page, key, **pressed):
    """Press a number and wait until the label is saved."""
    page.keyboard.press(key)
    wait(page, "document.querySelector('.saved')?.textContent.startsWith('Saved')")


def test_keywords_before_the_first_label(browser, table, tmp_path):
    themes = tmp_path / "themes.csv"
    themes.write_text("topic,keywords\nhot drink,leaf; cup\nbreakfast,bean\nweather,\nchocolate,cocoa\n")
    project = ("--project", tmp_path / "words.steer", "--embeddings", "none")
    with running(table, "--text", "body", "--topics", themes, *project) as address, opened(browser, address) as page:
        goto(page, "topics")
        page.wait_for_selector(".terms")  # the first fit needs no label
        for name, words in (("hot drink", WORDS["tea"]), ("breakfast", WORDS["coffee"])):
            card = page.locator(".card", has_text=name).first
            assert len(set(card.locator(".term").all_inner_texts()[:4]) & set(words.split())) >= 3
            assert "No labels yet: it follows its name, description and keywords." in card.inner_text()
        assert "Not found: neither terms" in page.locator(".card", has_text="chocolate").first.inner_text()
        card = page.locator(".card", has_text="weather").first
        assert card.locator(".term").count() == 0
        page.evaluate(SEND, {"who": "me", "action": "change topic", "key": 3, "keywords": ["storm"]})
        page.keyboard.press("f")
        wait(page, "document.querySelectorAll('.card')[2]?.innerText.includes('wind')")
        proposed = page.locator(".card", has_text="weather").first
        proposed.get_by_role("button", name="Make wind a keyword").click()
        wait(page, "document.querySelectorAll('.card')[2]?.innerText.includes('Keywords: storm, wind')")


def test_questions_are_answered_with_one_key_each(browser, table, tmp_path):
    themes, project = tmp_path / "themes.csv", tmp_path / "questions.steer"
    themes.write_text("topic,keywords\ntea,leaf; cup\ncoffee,bean; roast\nrain,storm; wind\n")
    answers = {}
    arguments = (table, "--text", "body", "--topics", themes, "--project", project)
    with running(*arguments) as address, opened(browser, address) as page:
        page.evaluate(SEND, {"who": "me", "action": "settings", "values": {"refit_after": 0}})
        goto(page, "topics")
        page.wait_for_selector(".terms")  # the first fit needs no label
        goto(page, "label")
        page.select_option("#mode", "question")
        page.wait_for_selector(".confirm:has-text('Its other topics stay open')")
        for _ in range(7):
            asked = page.locator(".confirm bdi").inner_text()
            row, words = page.inner_text(".sheet .doc-id"), set(read(page).split())
            answers[row] = (asked, len(words & set(WORDS[asked].split())) >= 3)
            page.keyboard.press("y" if answers[row][1] else "n")
            wait(page, "(row) => document.querySelector('.sheet .doc-id')?.textContent !== row", arg=row)
        assert {asked for asked, _ in answers.values()} == {"tea", "coffee"}  # five answers, then the next topic
        last = page.inner_text(".sheet .doc-id")
        page.keyboard.press("ArrowRight")  # next: no answer
        wait(page, "(row) => document.querySelector('.sheet .doc-id')?.textContent !== row", arg=last)
        page.keyboard.press("u")
        page.wait_for_selector(".note.good")
        answers.popitem()
    session = LabelSession(Project.open(project))
    names = {topic.key: topic.name for topic in session.live}
    found = {}
    for row, decision in session.decisions.items():
        for key in decision.permitted | decision.forbidden:
            found[session.project.document(row)[0]] = (names[key], key in decision.permitted)
    states = {state for row in session.decisions for state in session.labels_of(row).get("me", {}).values()}
    session.project.close()
    assert found == answers  # nothing else is known about these documents
    assert states <= {"confirmed", "forbidden"}


def label_at_random(page, seen, number):
    """Label documents of the list until ``number`` of them have coffee or tea."""
    while len(seen) < number:
        page.wait_for_selector(".text")
        words, row = set(read(page).split()), page.inner_text(".sheet .doc-id")
        wanted = {name: bool(words & set(WORDS[name].split())) for name in ("coffee", "tea")}
        for k, name in enumerate(wanted, start=1):
            pressed = page.get_attribute(f".choice:nth-child({k}) button.yes", "aria-pressed") == "true"
            if pressed != wanted[name]:
                page.keyboard.press(str(k))
                state = str(wanted[name]).lower()
                page.wait_for_selector(f'.choice:nth-child({k}):not(.pending) button.yes[aria-pressed="{state}"]')
        if any(wanted.values()):
            seen.add(row)
            page.keyboard.press("Enter")
        else:
            page.keyboard.press("0")
        wait(page, "(row) => document.querySelector('.sheet .doc-id')?.textContent !== row", arg=row)


def test_the_whole_loop(browser, table):
    with running(table, "--text", "body") as address, opened(browser, address) as page:
        assert "token" not in page.url
        skip_start(page)  # a first topic from the document, instead of a list of names
        by_hand = {"who": "me", "action": "settings", "values": {"refit_after": 0}}
        page.evaluate(SEND, by_hand)
        new_topic(page, "coffee")
        page.wait_for_selector(".choice.yes")  # a new topic labels the document that is open
        new_topic(page, "tea")
        wait(page, "document.querySelectorAll('.choice.yes').length === 2")  # saved, and the keys are free again
        page.keyboard.press("u")
        page.wait_for_selector(".note.good")
        page.keyboard.press("Shift+U")
        wait(page, "document.querySelectorAll('.choice').length === 2")
        seen = set()
        label_at_random(page, seen, 10)
        page.keyboard.press("f")
        page.wait_for_selector(".note.news")
        goto(page, "topics")
        page.wait_for_selector(".terms")
        for name in ("coffee", "tea"):
            terms = page.locator(".card", has_text=name).first.locator(".term").all_inner_texts()
            assert len(set(terms[:4]) & set(WORDS[name].split())) >= 3
        page.wait_for_selector(".card.free")
        goto(page, "label")
        label_at_random(page, seen, 30)  # so that each place has ten labels drawn at random
        page.wait_for_selector(".note.news", state="detached")
        page.keyboard.press("f")
        page.wait_for_selector(".note.news")
        goto(page, "documents")
        page.fill("#search", "roast")
        rows = "[...document.querySelectorAll('.documents tbody tr')]"
        wait(page, f"{rows}.length > 0 && {rows}.every((row) => row.innerText.includes('roast'))")
        page.select_option("#filter", "labelled")
        wait(page, f"{rows}.length > 0 && {rows}.every((row) => row.querySelector('.chip'))")
        page.click(".doc-link >> nth=0")  # correct one, and take the correction back
        page.wait_for_selector(".choice.yes")
        before = page.locator('.choice button[aria-pressed="true"]').count()
        choose(page, "2")
        assert page.locator('.choice button[aria-pressed="true"]').count() == before + 1
        page.keyboard.press("Control+z")
        wait(page, f"""document.querySelectorAll('.choice button[aria-pressed="true"]').length === {before}""")
        goto(page, "progress")
        page.wait_for_selector("#groups-title")
        assert "by the other columns" in page.inner_text("section:has(#groups-title)")
        state = page.inner_text("#labelled")
    with running(table, "--text", "body") as address, opened(browser, address) as page:
        wait(page, "(state) => document.querySelector('#labelled')?.innerText === state", arg=state)
        assert page.is_enabled("#undo")
        assert page.is_enabled("#redo")
        goto(page, "topics")
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 2")
        goto(page, "export")
        for kind in ("labels", "report", "model"):
            page.click(f'[data-kind="{kind}"]')
            page.wait_for_selector(f'li:has([data-kind="{kind}"]) a[download]')
        with page.expect_download() as download:
            page.click('li:has([data-kind="labels"]) a[download]')
        labels = read_labels(table.parent / "articles-export" / "labels.csv")
        assert download.value.suggested_filename == "labels.csv"
    workbench = Workbench(table.with_suffix(".steer"))
    fitted, training = workbench.views.fitted, workbench.session.training()
    assert sum(map(bool, training.labels.values())) >= 30
    documents = attach_labels(read_table(table, text="body", labels=False), labels)
    again = TopicModel(10, topics=[t.name for t in training.topics], complete=training.complete)
    with warnings.catch_warnings(action="ignore"):
        again.fit(documents)
    assert again.state_.topics.table() == fitted.result.table()
    workbench.close()


def labels_of(path):
    """Row and state of each label in the log, in order."""
    project = Project.open(path)
    events = (event for _, event in project.log.events() if event.document is not None)
    labels = [(event.document, event.state) for event in events if event.key >= 0]  # others: how it was chosen
    project.close()
    return labels


def fast(table, name, **options):
    """Create a project with two topics and one labelled document per topic; it is fitted only by hand."""
    path = table.with_name(f"{name}.steer")
    Workbench.make(path, read_table(table, text="body", labels=False), **options)
    session = LabelSession(Project.open(path))
    for row, topic in enumerate(("coffee", "tea")):
        apply(session, "me", NewTopic(name=topic, documents=[row]))
    session.change_settings(refit_after=0)
    session.project.close()
    return path


LATE = """(most) => {
    const ask = fetch, late = () => new Promise((done) => setTimeout(done, most * Math.random()));
    window.fetch = async (...what) => { await late(); const answer = await ask(...what); await late(); return answer; };
}"""


@pytest.mark.parametrize(("pause", "slow"), [(30, 0), (60, 300)])
def test_no_key_is_lost_and_none_acts_on_another_document(browser, table, pause, slow):
    path = fast(table, f"fast-{pause}-{slow}")
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        page.evaluate(LATE, slow)
        page.keyboard.type("1\n" * 10 + "1u", delay=pause)  # undo waits its turn as well
        wait(page, "document.querySelector('.note.good')")
        assert page.inner_text("#labelled").startswith("12 of")
        assert page.locator(".choice.yes").count() == 0
        page.keyboard.type("1")
        page.wait_for_selector(".choice.yes:not(.pending)")
    labels = labels_of(path)[2:]
    assert [state for _, state in labels] == ["permitted"] * 11 + ["cleared", "permitted"]
    rows = [row for row, _ in labels]
    assert len(set(rows)) == 11
    assert len(set(rows[-3:])) == 1


def test_keys_typed_while_a_fit_runs_reach_their_documents(browser, table):
    path = fast(table, "fast-fit")
    typed = 0
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        page.keyboard.press("f")
        page.wait_for_selector("#cancel")
        after = 0
        while typed < 50 and after < 5:  # before, while and after the topics are taken over
            page.keyboard.type("1\n", delay=50)
            typed += 1
            after += page.locator(".note.news").count()
        page.wait_for_selector(".note.news")
        wait(page, "(n) => document.querySelector('#labelled').textContent.startsWith(`${n} `)", arg=typed + 2)
    labels = labels_of(path)[2:]
    assert [state for _, state in labels] == ["permitted"] * typed
    assert len({row for row, _ in labels}) == typed


def test_a_number_keeps_its_topic_on_every_document_and_space_gives_the_first_suggestion(browser, table):
    path = fast(table, "numbers")
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        page.keyboard.press("f")
        page.wait_for_selector(".choice.first")  # predictions, which once moved likely topics to the front
        for number in range(3, 14):
            page.evaluate(SEND, {"who": "me", "action": "new topic", "name": f"more {number}"})
        wait(page, "document.querySelectorAll('.choice').length === 13")
        shown, likely = [], []
        for _ in range(4):
            shown.append(page.locator(".choice button.yes bdi").all_inner_texts())
            row = page.inner_text(".sheet .doc-id")
            page.keyboard.press("2")  # no suggestion, perhaps
            page.wait_for_selector(".choice:nth-child(2).yes:not(.pending)")
            page.keyboard.press("2")
            page.wait_for_selector(".choice:nth-child(2):not(.yes):not(.pending)")
            if page.locator(".choice.first").count():
                likely.append(page.inner_text(".choice.first button.yes bdi"))
                page.keyboard.press("Space")
                page.wait_for_selector(".choice.first.yes:not(.pending)")
            page.keyboard.press("Enter")
            wait(page, "(row) => document.querySelector('.sheet .doc-id')?.textContent !== row", arg=row)
    assert shown == [["coffee", "tea", *(f"more {number}" for number in range(3, 14))]] * 4
    assert likely
    session = LabelSession(Project.open(path))
    names = {topic.key: topic.name for topic in session.live}
    given = [names[key] for row, own in session.decisions.items() if row >= 2 for key in own.permitted]
    session.project.close()
    assert sorted(given) == sorted(likely)


def test_topics_follow_a_label_without_a_fit(browser, table):
    path = fast(table, "live")
    with running(path) as address, opened(browser, address) as page:
        page.keyboard.press("f")
        page.wait_for_selector(".note.news")
        page.wait_for_selector(".text")
        wrong = 2 if set(read(page).split()) & set(WORDS["tea"].split()) else 1  # row 0 reads like tea
        likely = f"document.querySelector('.choice:nth-child({wrong}) .value')?.textContent"
        assert page.evaluate(likely) != "100 %"
        page.keyboard.press(str(wrong))
        wait(page, f"{likely} === '100 %'")  # the model knows the label
        page.keyboard.press("u")
        wait(page, f"{likely} !== '100 %'")
        goto(page, "topics")
        counts = "[...document.querySelectorAll('.card:not(.free)')].map((card) => card.innerText).join()"
        before = page.evaluate(counts)
        moved = [row for row in range(2, 60) if row % 3 == 0][:8]  # they read like the first topic
        page.evaluate(SEND, {"who": "ben", "action": "label", "documents": moved, "key": 2, "state": "permitted"})
        wait(page, "(before) => " + counts + " !== before", arg=before)
        assert page.evaluate("document.querySelectorAll('.note.news').length") <= 1
    workbench = Workbench(path)
    assert workbench.views.fitted.supervision.labelled[moved].all()
    assert not workbench.views.fitted.model.state_.supervision.labelled[moved].any()
    workbench.close()


def test_an_older_answer_does_not_replace_a_newer_one(browser, table):
    path = fast(table, "older")
    held = []
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        page.route("**/api/state*", lambda route: held.append((route, route.fetch())))
        page.evaluate("() => { import('/pages/store.js').then((s) => s.refresh()).then(() => { window.old = 1; }); }")
        for _ in range(200):  # the request is on its way
            if not held:
                page.wait_for_timeout(50)
        page.keyboard.type("1")
        page.wait_for_selector(".choice.yes:not(.pending)")
        assert page.inner_text("#labelled").startswith("3 of")
        route, answer = held[0]
        route.fulfill(response=answer)  # from before the label
        wait(page, "() => window.old === 1")
        assert page.inner_text("#labelled").startswith("3 of")


def test_keys_behind_a_failure_are_dropped(browser, table):
    path = fast(table, "failing")
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        row = page.inner_text(".sheet .doc-id")
        page.keyboard.press("1")
        page.wait_for_selector(".choice.yes:not(.pending)")
        page.route("**/api/next*", lambda route: route.fulfill(status=500, json={"error": "no disk"}))
        page.keyboard.type("\n1")  # the second key was for a document that never came
        page.wait_for_selector(".note.bad")
        page.unroute("**/api/next*")
        assert page.inner_text(".sheet .doc-id") == row
        page.keyboard.type("\n")
        wait(page, "(row) => document.querySelector('.sheet .doc-id').textContent !== row", arg=row)
        page.troubles[:] = [text for text in page.troubles if "status of 500" not in text]
    assert [state for _, state in labels_of(path)[2:]] == ["permitted"]


def test_a_hostile_corpus_harms_nothing(browser, tmp_path):
    nasty = [
        "<script>window.pwned = 1; alert(1)</script><img src=x onerror='window.pwned=1'>",
        "</div></article><svg onload=alert(2)> {{7*7}} {% raw %} ${alert(3)} javascript:alert(4)",
        "\u202egnp.exe\u2066 \u0000 \x1b[31mred \u200f עברית",
        "x" * 5_000_000,
        '"><a href="javascript:alert(5)">click</a>',
    ] * 3
    table = tmp_path / "nasty.jsonl"
    rows = [{"id": f"<b onmouseover=alert(6)>{k}", "text": text, "g<i>": k % 2} for k, text in enumerate(nasty)]
    table.write_text("\n".join(map(json.dumps, rows)))
    name = "<img src=x onerror=alert(7)>"
    with running(table) as address, opened(browser, address) as page:
        skip_start(page)
        new_topic(page, name)
        page.wait_for_selector(".choice")
        assert name in page.inner_text("#panel")
        goto(page, "documents")
        page.wait_for_selector(".documents tbody tr")
        assert "<script>window.pwned" in page.inner_text(".documents")
        assert "⟦U+202E⟧gnp.exe⟦U+2066⟧ ⟦U+0000⟧ ⟦U+001B⟧" in page.inner_text(".documents")
        assert "{{7*7}} {% raw %}" in page.inner_text(".documents")
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.evaluate("document.body.textContent"))
        page.click(".documents tbody tr:nth-child(4) .doc-link")
        wait(page, "document.querySelector('.text')?.textContent.length === 20000")
        page.click("text=Show more")
        wait(page, "document.querySelectorAll('.text')[1]?.textContent.length === 200000")
        for tab in ("topics", "progress", "import", "export", "settings", "label"):
            goto(page, tab)
        page.click('#tabs a[href="#export"]')
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script, main svg[onload]").count() == 0


SCRIPTS = {
    "hebrew": "תה ירוק בספל (tea) 12.50",
    "arabic": "شاي أخضر في كوب",
    "persian": "می\u200cخواهم چای",  # a zero-width non-joiner is part of the spelling
    "hindi": "क्\u200dष चाय",  # so is a zero-width joiner
    "family": "tea for a \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "japanese": "緑茶を一杯飲む",
    "combining": "e\u0301te\u0301 na\u0308he",
    "marks": "left\u200eright\u200fwords\u200bwithout\u2060space",
    "override": "photo \u202egnp.exe\u202c and \u202atea\u202b or \u202dcup",
    "isolates": "\u2066one\u2069 \u2067two\u2069 \u2068three\u2069",
    "hidden": "nul \x00 escape \x1b[31m bom \ufeff line\u2028end\u2029",
}
# Whether the parts of a row stand in their order from left to right, whatever the direction of the text in them.
IN_ORDER = """() => [...document.querySelectorAll('.choice .yes')].every((row) => {
    const [name, bar, value] = ['bdi', '.strength', '.value'].map((part) => row.querySelector(part));
    const at = (element) => element.getBoundingClientRect();
    return at(name).right <= at(bar).left + 1 && at(bar).right <= at(value).left + 1;
})"""


def test_text_of_every_script_is_shown_as_it_is_and_moves_nothing_around_it(browser, tmp_path):
    table = tmp_path / "scripts.jsonl"
    rows = [{"id": f"{name} {text}"[:60], "text": text, "kind": name} for name, text in SCRIPTS.items()]
    table.write_text("\n".join(map(json.dumps, rows)))
    with running(table) as address, opened(browser, address) as page:
        skip_start(page)
        new_topic(page, "תה\u202eירוק")
        page.wait_for_selector(".choice.yes:not(.pending)")
        assert page.inner_text(".choice bdi") == visible("תה\u202eירוק")
        assert page.evaluate(IN_ORDER)
        for row, (name, text) in enumerate(SCRIPTS.items()):
            page.evaluate(f"location.hash = 'label/{row}'")
            wait(page, "(name) => document.querySelector('.sheet .doc-id')?.textContent.startsWith(name)", arg=name)
            assert page.evaluate("document.querySelector('.text').textContent") == visible(text)
            direction = "rtl" if name in ("hebrew", "arabic", "persian") else "ltr"
            assert page.evaluate("getComputedStyle(document.querySelector('.text')).direction") == direction
            assert page.evaluate("getComputedStyle(document.querySelector('.sheet .why')).direction") == "ltr"
        goto(page, "documents")
        wait(page, f"document.querySelectorAll('.documents tbody tr').length === {len(SCRIPTS)}")
        shown = page.evaluate("[...document.querySelectorAll('.beginning')].map((element) => element.textContent)")
        assert shown == [visible(" ".join(text.split())) for text in SCRIPTS.values()]
        assert set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x00\ufeff").isdisjoint(
            page.inner_text("body")
        )
        page.fill("#search", "चाय")
        wait(page, "document.querySelectorAll('.documents tbody tr').length === 1")


def test_topics_are_edited_on_their_page(browser, table):
    path = fast(table, "edited", embeddings="none")  # a topic without a word of the corpus stays empty
    with running(path) as address, opened(browser, address) as page:

        def names():
            return page.locator(".card:not(.free) h3").all_inner_texts()

        def card(name):
            return page.locator(".card:not(.free)", has=page.locator(f"h3 bdi:text-is('{name}')"))

        from playwright.sync_api import Error

        def press(topic, name):
            for patience in (5_000, 5_000, 60_000):  # a page that is drawn meanwhile closes the menu
                if not card(topic).locator(".menu[open]").count():
                    card(topic).locator(".menu > summary").click()
                with suppress(Error):
                    card(topic).get_by_role("button", name=name).click(timeout=patience)
                    break
            page.wait_for_selector("dialog[open]")

        def save():
            page.click("dialog[open] button[type=submit]")
            page.wait_for_selector("dialog[open]", state="detached")

        goto(page, "topics")
        assert names() == ["coffee", "tea"]
        page.keyboard.press("n")
        page.wait_for_selector("dialog[open]")
        page.fill("#field-name", "TEA")
        page.click("dialog[open] button[type=submit]")  # refused: the name is in use
        wait(page, "document.querySelector('dialog .error').textContent.includes(\"already is a topic 'tea'\")")
        page.troubles[:] = [text for text in page.troubles if "status of 409" not in text]
        page.fill("#field-name", "rain")
        save()
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 3")
        press("rain", "Edit")
        page.fill("#field-description", "Clouds and storms")
        save()
        page.wait_for_selector(".describe:has-text('Clouds and storms')")
        press("rain", "Keywords")
        page.fill("#field-keywords", "hail, sleet\nsnow")  # in no document, so documents about rain are a free topic
        page.fill("#field-banned", "cup")
        save()
        page.wait_for_selector(".card:has-text('Keywords: hail, sleet, snow. Banned: cup.')")
        card("rain").locator(".handle").press("ArrowUp")
        wait(page, "document.querySelectorAll('.card h3')[1].textContent === 'rain'")
        press("coffee", "New topic below")
        page.fill("#field-name", "espresso")
        save()
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 4")
        press("espresso", "Merge")
        page.select_option("#field-into", label="coffee")
        save()
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 3")
        press("coffee", "Delete")
        save()
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 2")
        page.click("#undo")
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 3")
        page.click("#fit")
        page.wait_for_selector(".card.free")
        term = card("tea").locator(".term").first.inner_text()
        card("tea").locator(".terms li").first.hover()
        card("tea").get_by_role("button", name=f"Make {term} a keyword").click()
        page.wait_for_selector(f".card:has-text('Keywords: {term}.')")
        card("tea").locator(".terms li").first.hover()
        card("tea").get_by_role("button", name=f"Ban {term}").click()
        page.wait_for_selector(f".card:has-text('Banned: {term}.')")
        free = page.locator(".card.free").first
        name = free.locator("h3").inner_text()
        free.get_by_role("link", name="Label its documents").click()
        page.wait_for_selector(".sheet .why:has-text('One of the strongest documents of')")
        assert page.locator("#queue-topic option:checked").inner_text() == f"{name} (free topic)"
        goto(page, "topics")
        page.locator(".card.free").first.get_by_role("button", name="Make it known").click()
        page.wait_for_selector("dialog[open]")
        page.fill("#field-name", "adopted")
        save()
        page.wait_for_selector(".sheet .why:has-text('Proposed for “adopted”')")
        goto(page, "topics")
        wait(page, "document.querySelectorAll('.card:not(.free)').length === 4")
    project = Project.open(path)
    topics = {topic.name: topic for topic in LabelSession(project).live}
    project.close()
    assert list(topics) == ["coffee", "rain", "tea", "adopted"]
    assert topics["rain"].keywords == ("hail", "sleet", "snow")
    assert topics["rain"].description == "Clouds and storms"
    assert (topics["tea"].keywords, topics["tea"].banned) == ((), (term,))


def test_a_free_topic_is_made_known_by_confirming_its_documents(browser, tmp_path):
    path, size = tmp_path / "open.steer", 40
    Workbench.make(path, Documents([f"d{row}" for row in range(6 * size)], planted_texts(6, size)))
    session = LabelSession(Project.open(path))
    for k in range(3):
        apply(session, "me", NewTopic(name=f"t{k}", documents=list(range(k * size, k * size + 10))))
    session.change_settings(free_topics=3, refit_after=0)
    session.project.close()
    with running(path) as address, opened(browser, address) as page:
        page.keyboard.press("f")
        page.wait_for_selector(".note.news:has-text('Fitted in')")
        page.wait_for_selector("#fitting", state="hidden")
        goto(page, "topics")
        assert page.locator(".outside .facts").inner_text().endswith("not known: label 50 documents at random")
        page.click(".outside h3 a")
        page.wait_for_selector(".pager:has-text('documents')")
        first = page.locator(".documents tbody tr").first
        assert first.locator(".guess").first.inner_text() == "none of these"  # no figure without random labels
        goto(page, "topics")
        page.locator(".card.free").first.get_by_role("button", name="Make it known").click()
        page.fill("#field-name", "robotics")
        page.click("dialog[open] button[type=submit]")
        page.wait_for_selector(".why:has-text('Proposed for “robotics”')")
        page.wait_for_selector(".confirm:has-text('robotics')")
        rows = []
        for key in ("y", "y", "Shift+Y"):
            rows.append(page.inner_text(".sheet .doc-id"))
            page.keyboard.press(key)
            wait(page, "(row) => document.querySelector('.sheet .doc-id')?.textContent !== row", arg=rows[-1])
        page.wait_for_selector("#fitting", state="hidden")
        goto(page, "topics")
        page.click("#fit")
        page.wait_for_selector(".lead:has-text('Fitted with 33 labelled documents, in')")
    session = LabelSession(Project.open(path))
    states = [session.labels_of(int(row.removeprefix("d")))["me"][4] for row in rows]
    session.project.close()
    assert states == ["permitted", "permitted", "forbidden"]
    assert session.counts[4] == 2  # no other document was labelled


def test_many_documents_settings_and_imports(browser, table, tmp_path):
    path = fast(table, "many")
    old = tmp_path / "old.csv"
    old.write_text("id,labels\na10,tea\na11,rain\n")
    with running(path) as address, opened(browser, address) as page:
        goto(page, "documents")
        page.fill("#search", "roast")
        rows = "[...document.querySelectorAll('.documents tbody tr')]"
        wait(page, f"{rows}.length > 5 && {rows}.every((row) => row.textContent.includes('roast'))")
        page.check("[aria-label='Select this page']")
        count = int(page.inner_text(".bulk b").split()[0])
        page.select_option(".bulk select", label="coffee")
        page.click("text=Has this topic")
        page.wait_for_selector(f".note.good:has-text('{count} documents changed')")
        wait(page, "document.querySelectorAll('.documents .chip').length > 5")
        page.click("#undo")
        wait(page, "(n) => document.querySelector('#labelled').textContent.startsWith(`${n} of`)", arg=2)
        goto(page, "settings")
        page.get_by_role("button", name="Change", exact=True).click()
        page.fill("#field-free_topics", "3")
        page.uncheck("#field-complete")
        page.select_option("#field-world", "open")
        page.click("dialog[open] button[type=submit]")
        wait(page, "document.querySelector('#labelled').textContent.startsWith('2 of ')")
        page.wait_for_selector(".settings:has-text('open: a document may have other topics')")
        page.wait_for_selector(".settings:has-text('Open: there are such documents')")
        goto(page, "import")
        page.set_input_files("#labels-file", old)
        page.wait_for_selector(".result:has-text('Imported labels of 2 documents from old.csv.')")
        wait(page, "document.querySelector('#labelled').textContent.startsWith('4 of ')")
        page.set_input_files("#labels-file", files=[{"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"}])
        page.wait_for_selector(".result .warn:has-text('x.csv')")
        page.troubles[:] = [text for text in page.troubles if "status of 422" not in text]
    project = Project.open(path)
    session = LabelSession(project)
    project.close()
    assert session.settings == ProjectSettings(refit_after=0, free_topics=3, complete=False, world="open")
    assert [topic.name for topic in session.live] == ["coffee", "tea", "rain"]


def test_a_refused_message_is_explained_and_changes_nothing(browser, table):
    path = fast(table, "refused")
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        ask = (
            SEND
            + """
            .then(async (answer) => [answer.status, (await answer.json()).error])"""
        )
        body = {"who": "me", "action": "label", "documents": [1], "topic": 1, "state": "permitted"}
        status, error = page.evaluate(ask, body)
        assert status == 422
        assert error.startswith("POST /api/act: Object ")
        assert "Reload the page" in error
        page.troubles[:] = [text for text in page.troubles if "status of 422" not in text]
    assert len(labels_of(path)) == 2


OFF_SCREEN = """[...document.querySelectorAll('#tabs a')].filter((tab) => {
    const { left, right, top } = tab.getBoundingClientRect();
    const at = document.elementFromPoint((left + right) / 2, top + 8);
    return left < 0 || right > innerWidth || at !== tab;
}).map((tab) => tab.textContent)"""


def test_a_mode_asks_for_missing_words_or_topics(browser, table):
    path = fast(table, "ways")
    with running(path) as address, opened(browser, address) as page:
        page.wait_for_selector(".text")
        for mode, words, field in (("topic", "Which topic?", "queue-topic"), ("search", "Which words?", "queue-query")):
            page.select_option("#mode", mode)
            page.wait_for_selector(f".sheet .empty-title:has-text('{words}')")
            assert page.locator(".sheet .text, .sheet .why").count() == 0
            assert page.evaluate("document.activeElement.id") == field
            page.click("#next")  # nothing to show yet, and no error
            page.wait_for_selector(f".sheet .empty-title:has-text('{words}')")
        page.fill("#queue-query", "roast")
        page.keyboard.press("Enter")
        page.wait_for_selector(".sheet .why:has-text('for “roast”')")
        assert "roast" in read(page)
        page.select_option("#mode", "topic")
        page.select_option("#queue-topic", label="tea")
        page.wait_for_selector(".empty-title:has-text('The first fit finds')")
        page.keyboard.press("ArrowLeft")  # back to the document that was there
        page.wait_for_selector(".sheet .why:has-text('for “roast”')")
        assert page.locator(".note.bad").count() == 0


# Whether an open menu stays on top of a note at the same place.
NOTE_OVER_MENU = """(() => {
    const notes = document.getElementById('notes'), button = document.querySelector('.menu[open] button');
    notes.innerHTML = '<div class="note news">Fitted</div>';
    notes.style.cssText = 'left: 0; right: 0; top: 0; width: auto';
    const { x, y } = button.getBoundingClientRect(), found = document.elementFromPoint(x + 5, y + 5);
    notes.innerHTML = notes.style.cssText = '';
    return found === button;
})()"""


def test_two_windows_landmarks_and_phone_width(browser, table):
    path = table.with_name("second.steer")
    Workbench.make(path, read_table(table, text="body", labels=False))
    with (
        running(path) as address,
        opened(browser, address) as ann,
        opened(browser, address.next(), viewport={"width": 400, "height": 800}, color_scheme="dark") as ben,
    ):
        for page, name in ((ann, "ann"), (ben, "ben")):
            page.evaluate(f"localStorage.setItem('topicsteer-who', '{name}')")
            page.reload()
            page.wait_for_selector("#panel")
        skip_start(ann)
        new_topic(ann, "tea")
        ben.wait_for_selector(".choice")  # without doing anything
        row = ann.inner_text(".sheet .doc-id")
        ann.wait_for_selector(".choice.yes")
        ben.evaluate("location.hash = 'documents'")
        ben.wait_for_selector(".documents .chip")
        ben.locator(".doc-link", has_text=re.compile(rf"^{row}")).first.click()
        ben.wait_for_selector(".others")
        assert "ann: yes" in ben.inner_text("#panel")
        ben.click(".choice button.no")
        ann.wait_for_selector(".others.warn")
        assert "ben: no" in ann.inner_text("#panel")
        assert "people differ" in ann.inner_text("#labelled")
        for tab in ("label", "topics", "documents", "progress", "import", "export", "settings"):
            ben.evaluate(f"location.hash = '{tab}'")
            ben.wait_for_selector(f'main[data-page="{tab}"] h1', state="attached")
            assert ben.evaluate("document.documentElement.scrollWidth") <= 400
            assert ben.evaluate(OFF_SCREEN) == []
            for role in ("banner", "navigation", "main"):
                assert ben.get_by_role(role).count() >= 1
            nameless = """[...document.querySelectorAll('button, input, select, textarea, a')].filter((e) =>
                e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel ||
                e.labels?.length || e.title)).map((e) => e.outerHTML)"""
            assert ben.evaluate(nameless) == []
        assert ben.inner_text("#person") == "ben"  # a phone has room for the name
        heights = ben.evaluate("[...document.querySelectorAll('#tabs a')].map((a) => a.getBoundingClientRect().top)")
        assert [heights.count(height) for height in sorted(set(heights))] == [5, 4]  # no page wraps alone
        ann.evaluate("location.hash = 'topics'")
        ann.click(".card .menu > summary")
        assert ann.evaluate(NOTE_OVER_MENU)
        ann.focus(".skip")
        ann.keyboard.press("Enter")
        assert ann.evaluate("[location.hash, document.activeElement.id]") == ["#topics", "main"]
        ann.click('#tabs a[href="#label"]')
        ann.wait_for_selector(".sheet .doc-id")
        ann.keyboard.press("Enter")  # the next document, not the link again
        wait(ann, "(row) => ![row, undefined].includes(document.querySelector('.sheet .doc-id')?.innerText)", arg=row)
        ann.set_viewport_size({"width": 1280, "height": 700})
        high = ann.evaluate("document.querySelector('.bar').offsetHeight")
        ann.evaluate("document.getElementById('fit').textContent = 'Fitting …'")
        assert ann.evaluate("document.querySelector('.bar').offsetHeight") == high < 70
        ben.evaluate(SEND, {"who": "ben", "action": "settings", "values": {"blind": True}})
        ann.wait_for_selector("#labelled:has-text('blind mode')")
        goto(ann, "topics")
        ann.click('#tabs a[href="#label"]')
        ann.wait_for_selector(".why:has-text('It was chosen before blind mode.')")
        ann.keyboard.press("?")
        ann.wait_for_selector("dialog[open] .keys")
        ann.keyboard.press("Escape")
        ann.keyboard.press("Tab")
        assert ann.evaluate("document.activeElement !== document.body")
    project = Project.open(path)
    labels = [e for _, e in project.log.events() if e.document is not None and e.key > 0]
    assert len(labels) == 2
    project.close()


def pictured(page, name):
    """Keep a picture of the page if somebody wants to look at it."""
    if folder := os.environ.get("TOPICSTEER_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png")


@pytest.mark.parametrize("width", [1280, 420])
def test_from_the_first_start_to_shares_with_intervals(browser, tmp_path, width):
    """Names, fifty documents at random by keyboard, and a share with its interval, on one page."""
    table, rng, names = tmp_path / "mails.csv", np.random.default_rng(0), list(WORDS)
    truth = rng.choice(4, 160, p=[0.4, 0.3, 0.2, 0.1])  # the last ones have none of the topics
    other = "stone bridge river mason arch"
    texts = [" ".join(rng.choice([*WORDS.values(), other][k].split(), 9)) for k in truth]
    table.write_text("id,body\n" + "".join(f"m{row},{text}\n" for row, text in enumerate(texts)))
    path, size = tmp_path / "mails.steer", {"width": width, "height": 900}
    with running(table, "--text", "body") as address, opened(browser, address, viewport=size) as page:
        page.wait_for_selector(".start :text('What are your topics?')")
        assert page.input_value("#mode") == "random"
        assert page.evaluate("document.activeElement.id") == "names"
        pictured(page, f"start-{width}")
        page.keyboard.type("\n".join(names))
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(".choice >> nth=2")
        page.wait_for_selector(".stages .now:has-text('0 of 50')")
        for number in range(1, 51):
            page.wait_for_selector(".sheet .doc-id")
            row = page.inner_text(".sheet .doc-id")
            kind = truth[int(row[1:])]
            if kind == 3:
                page.keyboard.press("0")
            else:
                choose(page, str(kind + 1))
                page.keyboard.press("Enter")
            wait(page, "(row) => document.querySelector('.sheet .doc-id')?.textContent !== row", arg=row)
            page.wait_for_selector(f".stages:has-text('{number} of 50')")
        page.keyboard.press("u")  # the last one, and again
        page.wait_for_selector(".note.good:has-text('Undone')")
        over = """[...document.querySelectorAll('.note, #panel')].map((e) => e.getBoundingClientRect())
            .reduce((a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)"""
        assert page.evaluate(over) is False
        pictured(page, f"labels-{width}")
        page.wait_for_selector(".note.good", state="detached", timeout=8_000)  # after four seconds
        page.keyboard.press("Shift+U")
        page.wait_for_selector(".stages:has-text('50 of 50')")
        page.wait_for_selector(".way [data-share] >> nth=3", timeout=240_000)
        assert page.evaluate("location.hash") in ("", "#label")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shown = dict(zip(["tea", "coffee", "rain", "none"], [None] * 4, strict=True))
        for key, name in (("1", "tea"), ("2", "coffee"), ("3", "rain"), ("none", "none")):
            text = page.inner_text(f".way [data-share='{key}'] .value")
            shown[name] = [int(number) / 100 for number in re.findall(r"\d+", text)]
        for k, (share, low, high) in enumerate(shown.values()):
            assert low <= share <= high
            assert low - 0.05 <= (truth == k).mean() <= high + 0.05
        page.evaluate("scrollTo(0, 0)")
        pictured(page, f"shares-{width}")
        goto(page, "progress")
        page.wait_for_selector("main [data-share='1']")
        pictured(page, f"progress-{width}")
        goto(page, "topics")
        assert "%" in page.inner_text(".outside .facts")
        pictured(page, f"topics-{width}")
    session = LabelSession(Project.open(path))
    assert sorted(session.chosen().values()) == ["random"] * 50
    session.project.close()
