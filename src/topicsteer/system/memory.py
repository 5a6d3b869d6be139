"""How much memory there is, and how much somebody allows."""

import os
import re
from contextlib import suppress
from pathlib import Path

CONTAINER = Path("/sys/fs/cgroup")
LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # control groups of version 2 and 1,
USED = ("memory.current", "memory/memory.usage_in_bytes")  # and what their processes use already
MARGIN = 0.8  # share of the free memory that a fit may plan with


def in_bytes(memory: int | str | None) -> int | None:
    """A number of bytes, also from "4GB" or "512 MB".

    Examples
    --------
    >>> in_bytes("4GB"), in_bytes("512 mb"), in_bytes(100)
    (4000000000, 512000000, 100)
    """
    if memory is None or isinstance(memory, int):
        return memory
    match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]?)i?b?\s*", memory.lower())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"memory is {memory!r}; expected a number of bytes, such as 4GB or 512MB.")
    return int(float(match[1]) * 1000 ** " kmgt".index(match[2] or " "))


def total_memory() -> int | None:
    """Bytes of the machine, or of the container if that has fewer; None where that cannot be told."""
    with suppress(AttributeError, ValueError, OSError):
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = _read_number(LIMITS)
        return machine if limit is None else min(machine, limit)
    return None


def available_memory() -> int | None:
    """Bytes that a fit may use, a part left for others; None where that cannot be told."""
    free = total_memory()
    with suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    limit = _read_number(LIMITS)
    if free is not None and limit is not None:
        free = min(free, max(limit - (_read_number(USED) or 0), 0))
    return None if free is None else int(MARGIN * free)


def refuse_beyond_memory(n_bytes: int, what: str) -> None:
    """Stop before the machine's memory does."""
    memory = total_memory()
    if memory is not None and n_bytes > memory:
        raise MemoryError(
            f"{what} would take {n_bytes / 1e9:.0f} GB; this machine has {memory / 1e9:.0f} GB. "
            "Give X as a scipy.sparse matrix in float32, fewer terms, or fewer topics."
        )


def _read_number(names: tuple[str, ...]) -> int | None:
    """The first of some files of the control group that holds a number; "max" is none."""
    for name in names:
        with suppress(OSError, ValueError):
            return int((CONTAINER / name).read_text())
    return None
