"""A check of a project's content, before anything relies on it: SQLite checks pages, not meaning."""

import sqlite3

from topicsteer.app.workbench.event_log import (
    CLEARED,
    CONFIRMED,
    FORBIDDEN,
    LATER,
    NONE,
    NOTE,
    ORIGIN,
    PERMITTED,
    RANDOM,
    REST,
    SKIPPED,
    SUGGESTED,
)

# States of a label.
_STATES = ", ".join(f"'{state}'" for state in (PERMITTED, FORBIDDEN, CLEARED, CONFIRMED, REST, NONE, SKIPPED, LATER))
# States of the choice of a document.
_CHOICES = ", ".join(f"'{state}'" for state in (RANDOM, SUGGESTED, CLEARED))
# Conditions that no row of a sound project fulfils: the problem, a table and the condition. The
# topic 0 stands for the document as a whole, -1 for the choice of the document, and -2 for a note.
PROBLEMS = (
    ("documents are missing", "documents", "row < 0 OR row >= (SELECT count(*) FROM documents)"),
    ("a label belongs to an unknown document", "events", "document NOT IN (SELECT row FROM documents)"),
    (
        "a label belongs to an unknown topic",
        "events",
        "topic > 0 AND topic NOT IN (SELECT topic FROM topics)",
    ),
    ("a label has no owner", "events", "document IS NOT NULL AND person IS NULL"),
    ("a label has an unknown state", "events", f"document IS NOT NULL AND topic >= 0 AND state NOT IN ({_STATES})"),
    (
        "a label has an unknown origin",
        "events",
        f"document IS NOT NULL AND topic = {ORIGIN} AND state NOT IN ({_CHOICES})",
    ),
    ("a label belongs to an unknown topic", "events", f"document IS NOT NULL AND topic < {NOTE}"),
    (
        "a note cannot be read",
        "events",
        f"document IS NOT NULL AND topic = {NOTE} AND state != '{CLEARED}' AND NOT json_valid(state)",
    ),
    ("a topic cannot be read", "topics", "NOT (json_valid(pinned) AND json_valid(banned))"),
    ("a topic cannot be read", "events", "document IS NULL AND state != '' AND NOT json_valid(state)"),
    ("a setting cannot be read", "settings", "NOT json_valid(value)"),
    ("a coder cannot be read", "coders", "NOT json_valid(answers)"),
)


def problem(connection: sqlite3.Connection) -> str | None:
    """The first problem in the content of a project, or None."""
    for name, table, condition in PROBLEMS:
        if connection.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1").fetchone():  # noqa: S608
            return name
    return None
