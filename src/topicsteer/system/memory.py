"""Memory of the machine or container, and limits such as "4GB"."""

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Folder of the control groups, which limit the memory of containers and services.
GROUPS = Path("/sys/fs/cgroup")
# File with the names of the control groups of this process.
OWN_GROUPS = Path("/proc/self/cgroup")
# More bytes than any machine has.
MOST = 1e18
# Number of the option of the C library's `mallopt` for the size of blocks that are returned when they are freed.
BLOCK_LIMIT = -3
# Its value while a fit runs, and afterwards: the largest one that the C library chooses by itself.
RETURNED, LARGEST = 4 << 20, 32 << 20
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
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kmgt]?)i?b?\s*", memory.lower())
    number = 0.0 if match is None else float(match[1]) * 1000 ** " kmgt".index(match[2] or " ")
    if not 0 < number < MOST:
        shown = memory if len(memory) < 40 else f"{memory[:37]}..."
        raise ValueError(f"memory is {shown!r}; expected a number of bytes, such as 4GB or 512MB.")
    return int(number)


def total_memory() -> int | None:
    """Return bytes of memory of the machine, or of the container if that is less; None if unknown."""
    with suppress(AttributeError, ValueError, OSError):
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min([machine, *(limit for limit, _ in group_limits())])
    return None


def available_memory() -> int | None:
    """Return bytes of memory that a fit may use: a share of the free memory, or None if unknown."""
    free = total_memory()
    with suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    if free is not None:
        free = min([free, *(max(limit - used, 0) for limit, used in group_limits())])
    return None if free is None else int(MARGIN * free)


def refuse_beyond_memory(n_bytes: int, what: str) -> None:
    """Raise MemoryError if an array needs more memory than the machine has."""
    memory = total_memory()
    if memory is not None and n_bytes > memory:
        raise MemoryError(
            f"{what} would take {n_bytes / 1e9:.0f} GB; this machine has {memory / 1e9:.0f} GB. "
            "Pass X as a scipy.sparse matrix in float32, or use fewer terms or topics."
        )


@contextmanager
def frugal_memory() -> Iterator[None]:
    """Return each freed block of `RETURNED` bytes or more to the operating system at once, if the C library can.

    By default this limit grows with the blocks that a program frees. Smaller freed blocks leave gaps, which stay
    reserved. At the end the limit is the largest one that the C library may choose.
    """
    _return_blocks(RETURNED)
    try:
        yield
    finally:
        _return_blocks(LARGEST)
        release_memory()


def _return_blocks(size: int) -> None:
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(BLOCK_LIMIT, size)


def release_memory() -> None:
    """Return freed memory to the operating system, if the C library can; otherwise small freed blocks stay reserved."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def group_limits(own_groups: Path = OWN_GROUPS, groups: Path = GROUPS) -> Iterator[tuple[int, int]]:
    """Yield limit and use of the control groups of this process: its own, and those around it, if they have a limit.

    Inside a container its own group is the outermost one that is visible.
    """
    own = "/"
    with suppress(OSError):
        lines = own_groups.read_text().splitlines()
        own = next((line[3:] for line in lines if line.startswith("0::")), "/")
    parts = [part for part in own.split("/") if part and part != ".."]
    for depth in range(len(parts) + 1):
        folder = groups.joinpath(*parts[:depth])
        with suppress(OSError, ValueError):
            limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
            yield limit, max(used - _droppable(folder), 0)


def _droppable(folder: Path) -> int:
    """Return bytes of files in memory that the system drops when it needs room."""
    with suppress(OSError, ValueError, KeyError):
        lines = (folder / "memory.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["inactive_file"])
    return 0
