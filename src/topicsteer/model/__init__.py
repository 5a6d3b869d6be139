"""TopicModel: fit, update, edit, save and load."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicsteer.model.topic_model import TopicModel

__all__ = ["TopicModel"]


def __getattr__(name: str) -> object:
    """Load the model on first use: quick commands need only its state."""
    if name == "TopicModel":
        from topicsteer.model.topic_model import TopicModel

        return TopicModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
