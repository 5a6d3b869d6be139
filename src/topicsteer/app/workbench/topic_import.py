"""Import the topics of a topics file into a session."""

from dataclasses import replace

from topicsteer.app.workbench import text_rules
from topicsteer.app.workbench.changes import Change
from topicsteer.app.workbench.event_log import Batch, Event
from topicsteer.app.workbench.session import LabelSession
from topicsteer.labels.codebook import Codebook


def import_topics(session: LabelSession, who: str, topics: Codebook, *, source: str) -> Change:
    """Create missing topics, and add descriptions and words to existing ones; one undo takes all back.

    An existing topic keeps its own description. A word that is banned and a keyword stays a keyword.
    """
    with session.lock:
        by_name = {topic.name.casefold(): topic for topic in session.live}
        events = []
        for given in topics:
            name = text_rules.topic_name(str(given.name))
            old = by_name.get(name.casefold())
            start = old or session.unused_topic(name, len(by_name))
            keywords = text_rules.words((*start.keywords, *given.keywords))
            banned = tuple(w for w in text_rules.words((*start.banned, *given.banned)) if w not in keywords)
            about = start.description or text_rules.description(given.description)
            new = replace(start, description=about, keywords=keywords, banned=banned)
            by_name[name.casefold()] = new
            events += [Event.of_topic(old, new)] if new != old else []
        return session.commit(Batch(who, f"topics of {source}"), events)
