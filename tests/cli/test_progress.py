"""A long fit gives signs of life, with many topics too."""

import io
import time

import numpy as np
import pytest
from rich.console import Console

from topicsteer import TopicModel
from topicsteer.cli import terminal
from topicsteer.corpora import Documents


def many_topics(d, n, labels=1):
    """Documents of d topics, some of each labelled; every topic has words of its own."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(2_000)])
    own = rng.integers(0, 2_000, (d, 6))
    texts = [" ".join(words[np.append(rng.choice(own[i % d], 8), rng.integers(0, 2_000, 12))]) for i in range(n)]
    return Documents(list(range(n)), texts, [[f"t{i % d}"] if i < labels * d else [] for i in range(n)])


@pytest.mark.slow
def test_each_long_step_of_a_fit_is_reported():
    documents = many_topics(120, 500, 3)
    steps = []
    model = TopicModel(0, topics=[f"t{i}" for i in range(120)])
    model.fit(documents, progress=lambda stage, done, total, detail: steps.append((stage, detail)))
    details = [detail for stage, detail in steps if stage == "guide"]
    expected = ["features", "known topics", "documents without a topic", "memberships"]
    places = [next(i for i, detail in enumerate(details) if detail.startswith(one)) for one in expected]
    assert places == sorted(places)
    assert steps.index(("fit", "")) < next(i for i, (_, detail) in enumerate(steps) if "objective" in detail)


def test_a_log_gets_signs_of_life(capsys):
    with terminal.working(pause=0.05) as progress:
        progress("guide", 0, None, "latent semantics")
        time.sleep(0.06)
        for step in range(40):
            progress("fit", step, 40, "objective 1")
            time.sleep(0.01)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "working for 0 s: fit 0 of 40, objective 1"
    assert 2 <= len(lines) < 6  # at growing intervals
    with terminal.silence(), terminal.working(pause=0.05) as progress:
        progress("fit", 3, 20, "")
        time.sleep(0.1)
    with terminal.working(pause=0.05):
        pass  # a short command is silent
    assert capsys.readouterr().err == ""


def test_results_in_a_file_are_no_part_of_the_display_in_a_terminal(capsys, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "console", Console(file=screen, force_terminal=True, width=40))
    row = "a row of a table that is longer than the lines of the terminal"
    with terminal.working():
        print(row)
    assert capsys.readouterr().out == f"{row}\n"
    assert row[:10] not in screen.getvalue()


def test_a_terminal_breaks_messages_between_words(monkeypatch):
    message = "About 46 percent of the documents have none of your 4 topics"
    for in_terminal, lines in ((True, 2), (False, 1)):
        screen = io.StringIO()
        monkeypatch.setattr(terminal, "console", Console(file=screen, force_terminal=in_terminal, width=40))
        terminal.notify(message)
        assert len(screen.getvalue().splitlines()) == lines
        assert screen.getvalue().split() == message.split()


@pytest.mark.slow
def test_time_grows_as_expected_with_the_number_of_topics():
    """Twice the topics take at most about eight times as long: exact solutions are cubic in the labelled documents."""
    TopicModel(0, threads=1).fit(many_topics(50, 100))  # compiles
    seconds = []
    for d in (150, 300, 600):
        start = time.process_time()
        TopicModel(0, threads=1).fit(many_topics(d, 1_200))
        seconds.append(time.process_time() - start)
    assert seconds[1] < 10 * seconds[0]
    assert seconds[2] < 10 * seconds[1]
