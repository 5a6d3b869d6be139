"""Topics that follow your labels: topic-supervised non-negative matrix factorisation."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicsteer.estimator import TSNMF
    from topicsteer.model.topic_model import TopicModel

__version__ = "0.2.0"
__all__ = ["TSNMF", "TopicModel", "__version__"]

# The modules that define the names of the top level.
_HOME = {"TSNMF": "topicsteer.estimator", "TopicModel": "topicsteer.model.topic_model"}


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that ``import topicsteer`` is quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
