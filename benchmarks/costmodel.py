"""What an iteration on a cluster costs: a closed form with five constants, and a simulation to check it.

n documents with m entries, t terms, d topics, P workers, G tasks:

    T = h t d²                            H is updated where the loop runs
      + 4 t d k (2 + log₂ P)              H goes out, from worker to worker
      + ⌈G/P⌉/G (a m d + b n d²)          cross products and coordinate descent, with W read and written
      + 4 t d k (2 + log₂ P)              sums come back in a tree
      + o (1 + G)                         what a task costs the scheduler, whatever it does
"""

import heapq
import itertools
import math
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Size:
    """A fit: documents, entries, terms, topics, workers and tasks."""

    n: int
    m: int
    t: int
    d: int
    P: int
    G: int

    @property
    def hops(self) -> float:
        """Times that something of the size of H travels, one after the other: to the cluster, then among workers."""
        return 2 + math.log2(self.P)

    @property
    def H(self) -> int:
        """Bytes of H in single precision."""
        return 4 * self.t * self.d


@dataclass(frozen=True)
class Costs:
    """Seconds: `a` an entry and topic, `b` a document and topic², `h` a term and topic², `k` a byte, `o` a task."""

    a: float
    b: float
    h: float
    k: float
    o: float

    def parts(self, size: Size) -> dict[str, float]:
        """Seconds of an iteration by what they are spent on."""
        share = math.ceil(size.G / size.P) / size.G
        return {
            "update H": self.h * size.t * size.d**2,
            "send H": self.k * size.H * size.hops,
            "update W": share * (self.a * size.m * size.d + self.b * size.n * size.d**2),
            "add sums": self.k * size.H * size.hops,
            "tasks": self.o * (1 + size.G),
        }

    def seconds(self, size: Size) -> float:
        return sum(self.parts(size).values())

    def moved(self, size: Size) -> float:
        """Bytes over the network: H to the cluster and to every worker, and at most the sums of every task."""
        return size.H * (1 + size.P + size.G)


def fitted(sizes: list[Size], seconds: list[float]) -> Costs:
    """The constants, none of them negative, that come nearest to the measured times, relatively."""
    names = list(asdict(Costs(0, 0, 0, 0, 0)))
    unit = np.eye(len(names))
    rows = np.array([[Costs(*row).seconds(size) for row in unit] for size in sizes]) / np.array(seconds)[:, None]
    scale = rows.max(axis=0)
    found, _ = nnls(rows / scale, np.ones(len(sizes)))
    return Costs(*(found / scale))


def simulate(costs: Costs, size: Size) -> float:
    """Seconds of an iteration, event by event: a link of a worker does one thing at a time, and so does its core.

    Workers fetch H from whoever has it; tasks are given out to who is free; two sums are added where the first one is.
    """
    move = costs.k * size.H
    clock = costs.h * size.t * size.d**2 + costs.o + move
    has = [clock + move]  # the first worker got H through the scheduler
    holders = [has[0]]
    while len(has) < size.P:  # each holder serves one after the other
        free = heapq.heappop(holders)
        heapq.heappush(holders, free + move)
        heapq.heappush(holders, free + move)
        has.append(free + move)
    work = (costs.a * size.m * size.d + costs.b * size.n * size.d**2) / size.G
    free = [(ready, worker) for worker, ready in enumerate(has)]
    heapq.heapify(free)
    given, done = clock, []
    for _ in range(size.G):  # the scheduler hands out tasks one by one
        given += costs.o
        ready, worker = heapq.heappop(free)
        end = max(ready, given) + work
        heapq.heappush(free, (end, worker))
        done.append((end, worker))
    link = dict.fromkeys(range(size.P), 0.0)
    while len(done) > 1:  # neighbours first; a sum that is elsewhere has to travel
        pairs = []
        for left, right in itertools.zip_longest(done[::2], done[1::2]):
            if right is None:
                pairs.append(left)
                continue
            ready = max(left[0], right[0])
            if left[1] != right[1]:
                begin = max(ready, link[left[1]], link[right[1]])
                ready = link[left[1]] = link[right[1]] = begin + move
            pairs.append((ready, left[1]))
        done = pairs
    return done[0][0] + 2 * move  # through the scheduler's side to the loop
