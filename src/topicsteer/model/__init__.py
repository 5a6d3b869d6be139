"""TopicModel: fit, update, edit, save and load."""

from topicsteer.model.topic_model import TopicModel

__all__ = ["TopicModel"]
