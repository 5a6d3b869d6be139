"""Warnings at the line of the user's own code."""

import sys
import warnings

# Frames that are skipped: our own, and decorators and context managers between our code and the user's.
_INNER = frozenset({"topicsteer", "sklearn", "contextlib"})


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, however deep the problem was found.

    Parameters
    ----------
    message : str
    category : type of Warning, default=UserWarning

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("No document is labelled.")
    >>> print(caught[0].message)
    No document is labelled.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
