"""What goes wrong with blocks on a disk, said so that somebody can mend it."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any


class BlockError(ValueError):
    """A block could not be written or read; the message names it, and says what to do."""


class writing:
    """What goes wrong on the disk, said with the folder, the room left there and what to do."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        if isinstance(error, OSError):
            free = "?"
            with suppress(OSError):
                free = f"{shutil.disk_usage(self.path if self.path.exists() else self.path.parent).free / 1e9:.1f}"
            raise BlockError(
                f"could not {self.what} in {self.path}: {error.strerror or error}; {free} GB are free there. "
                "Make room, or give a folder on another disk."
            ) from error
