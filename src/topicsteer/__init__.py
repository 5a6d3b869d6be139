"""Topics that follow your labels: topic-supervised non-negative matrix factorisation."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicsteer.estimator import TSNMF
    from topicsteer.model.topic_model import TopicModel

__version__ = "0.1.0"
__all__ = ["TSNMF", "TopicModel", "__version__"]

_HOME = {"TSNMF": "topicsteer.estimator", "TopicModel": "topicsteer.model.topic_model"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that ``import topicsteer`` is quick."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
