"""TopicModel and its life: fit, update, files."""

from topicsteer.model.topic_model import TopicModel

__all__ = ["TopicModel"]
