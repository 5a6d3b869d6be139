"""Memory of the machine or container, and limits such as "4GB"."""

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path

# Folder of the control group, which limits the memory of a container.
CONTAINER = Path("/sys/fs/cgroup")
# Files with the memory limit, for control groups of version 2 and 1.
LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
# Files with the memory in use, for control groups of version 2 and 1.
USED = ("memory.current", "memory/memory.usage_in_bytes")
# More bytes than any machine has.
MOST = 1e18
# Share of the free memory that a fit may use.
MARGIN = 0.8


def in_bytes(memory: int | str | None) -> int | None:
    """Convert a size such as "4GB" or "512 MB" to bytes.

    Examples
    --------
    >>> in_bytes("4GB"), in_bytes("512 mb"), in_bytes(100)
    (4000000000, 512000000, 100)
    """
    if memory is None or isinstance(memory, int):
        return memory
    match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]?)i?b?\s*", memory.lower())
    number = 0.0 if match is None else float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")
    if not 0 < number < MOST:
        shown = memory if len(memory) < 40 else f"{memory[:37]}..."
        raise ValueError(f"memory is {shown!r}; expected a number of bytes, such as 4GB or 512MB.")
    return int(number)


def total_memory() -> int | None:
    """Bytes of memory of the machine, or of the container if that is less; None if unknown."""
    with suppress(AttributeError, ValueError, OSError):
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = _read_number(LIMITS)
        return machine if limit is None else min(machine, limit)
    return None


def available_memory() -> int | None:
    """Bytes of memory that a fit may use: a share of the free memory, or None if unknown."""
    free = total_memory()
    with suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    limit = _read_number(LIMITS)
    if free is not None and limit is not None:
        free = min(free, max(limit - (_read_number(USED) or 0), 0))
    return None if free is None else int(MARGIN * free)


def refuse_beyond_memory(n_bytes: int, what: str) -> None:
    """Raise MemoryError if an array needs more memory than the machine has."""
    memory = total_memory()
    if memory is not None and n_bytes > memory:
        raise MemoryError(
            f"{what} would take {n_bytes / 1e9:.0f} GB; this machine has {memory / 1e9:.0f} GB. "
            "Pass X as a scipy.sparse matrix in float32, or use fewer terms or topics."
        )


def release_memory() -> None:
    """Return freed memory to the operating system, if the C library can; otherwise small freed blocks stay reserved."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _read_number(names: tuple[str, ...]) -> int | None:
    """Return the number in the first readable file of the control group; None for "max" or no file."""
    for name in names:
        with suppress(OSError, ValueError):
            return int((CONTAINER / name).read_text())
    return None
