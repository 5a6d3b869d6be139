"""Tables of results in a terminal of 80 columns: no broken words, and no more than a person reads."""

import sys

import numpy as np
import polars as pl
import pytest

from topicsteer import TopicModel
from topicsteer.cli import terminal

WORDS = {"delivery": "parcel courier driver tracking", "website": "login checkout password browser"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("corpus")
    topics = [list(WORDS)[row % 2] for row in range(200)]
    texts = [
        " ".join([*rng.choice(WORDS[name].split(), 3), *rng.choice([f"w{k}" for k in range(90)], 5)]) for name in topics
    ]
    columns = {
        "id": [f"ticket-{row}" for row in range(200)],
        "text": texts,
        "label": [name if row < 80 else None for row, name in enumerate(topics)],
        "chosen": ["random" if row < 80 else None for row in range(200)],
        "group": [["private customers", "business customers"][row % 3 == 0] for row in range(200)],
    }
    pl.DataFrame(columns).write_csv(folder / "tickets.csv")
    pl.DataFrame({"id": columns["id"], "topics": topics}).write_csv(folder / "gpt.csv")
    TopicModel(1, world="open").fit(folder / "tickets.csv").save(folder / "model")
    return folder


@pytest.fixture
def screen(run, monkeypatch):
    """Run a command in a terminal of 80 columns, and return the lines of its table."""

    def screen(*arguments):
        monkeypatch.setenv("TERM", "dumb")  # 80 columns, no colours
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        code, out, err = run(*arguments)
        assert code == 0, err
        assert all(len(line) <= 80 for line in out.splitlines())
        return out, err

    return screen


def test_shares_name_each_topic_once_and_break_no_word(screen, corpus):
    out, _ = screen("prevalence", corpus / "model", corpus / "tickets.csv", "--by", "group")
    for name in (
        "delivery",
        "website",
        "private",
        "business",
        "95 % interval",
        "documents",
        "labels",
    ):
        assert name in out
    assert out.count("delivery") == out.count("website") == 1
    free = TopicModel.load(corpus / "model").topics["topic"][-1]
    assert out.count(free.split(",")[0]) == 1  # without a share, and so without groups


def test_errors_of_a_coder_fit_the_screen(screen, corpus):
    out, _ = screen("coders", corpus / "model", corpus / "tickets.csv", "--coder", f"gpt={corpus / 'gpt.csv'}")
    assert "gpt against people, with 95 % intervals" in out
    assert "1.00 (0.91–1.00)" in out
    assert all(name in out for name in ("delivery", "website", "precision", "recall", "kappa"))


def test_doubtful_labels_are_a_short_list(screen, corpus):
    out, err = screen("audit", corpus / "model", corpus / "tickets.csv")
    assert out.count("ticket-") == terminal.LONGEST_LIST
    assert f"{terminal.LONGEST_LIST} of 80 rows. --out FILE writes all of them." in err
    out, err = screen("audit", corpus / "model", corpus / "tickets.csv", "-n", 30)
    assert out.count("ticket-") == 30
    assert "rows" not in err


def test_suggestions_have_room_for_the_text(screen, corpus):
    out, _ = screen("suggest", corpus / "model", corpus / "tickets.csv", "-n", 3)
    assert "why" in out
    assert "probability" not in out


def test_a_topic_without_an_interval_has_one_row_and_no_share():
    table = {
        "topic": ["tea"] * 2,
        "group": ["(all)", "north"],
        "share": [None] * 2,
        "low": [None] * 2,
        "high": [None] * 2,
    }
    assert terminal.shares(table) == {"topic": ["tea"], "share": [None], "95 % interval": ["–"]}


def test_help_keeps_the_options_of_tables_and_of_the_machine_apart(run, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    for command, own in (("fit", "--free"), ("update", "--no-new-topics")):
        _, out, _ = run(command, "--help")
        options, rest = out.split("Reading the table")
        assert own in options
        assert "--delimiter" in rest
        assert "--delimiter" not in options
        assert "--threads" in rest.split("Memory and speed")[1]


def test_a_fit_prints_all_terms_of_its_topics(screen, corpus, tmp_path):
    out, _ = screen("fit", corpus / "tickets.csv", "--free", 1, "--world", "open", "--out", tmp_path / "model")
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert sum(row[2] != " " for row in rows) == 4  # two known topics, one free topic and (none)
    assert all("…" not in row for row in rows)


@pytest.mark.parametrize("many", [False, True])
def test_predictions_in_a_terminal_are_a_short_list(screen, run, corpus, tmp_path, many):
    table = pl.read_csv(corpus / "tickets.csv").head(100 if many else 30)
    table.with_columns(text=pl.when(pl.col("id") == "ticket-1").then(None).otherwise("text")).write_csv(
        tmp_path / "new.csv"
    )
    out, err = screen("predict", corpus / "model", tmp_path / "new.csv")
    assert out.count("ticket-") == terminal.LONGEST_LIST
    assert "delivery" in out
    assert f"20 of {len(table)} rows, without memberships. --out FILE writes everything." in err
    assert "line 3: empty text" in err
    code, out, _ = run("predict", corpus / "model", tmp_path / "new.csv", "--out", tmp_path / "p.csv", "-q")
    assert (code, len(pl.read_csv(tmp_path / "p.csv"))) == (0, len(table))
