"""What an iteration on a cluster costs: a closed form with six constants, and a simulation to check it.

n documents with m entries, t terms, d topics, P workers, C threads of the client, G tasks:

    T = s                                 what is the same for all: the state is kept, workers are asked for
      + h t d² / C                        H is updated where the loop runs
      + 4 t d k (1 + log₂ P)              H goes out, from worker to worker
      + ⌈G/P⌉/G (a d + b) m               cross products, descent and sums, with W read and written
      + 4 t d k (1 + log₂ P)              sums come back in a tree
      + o (1 + G)                         what a task costs the scheduler, whatever it does

Descent costs d² a document if all its weights move; few do, and no such term was found beside that of the entries.
"""

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Size:
    """A fit: documents, entries, terms, topics, workers, threads of the client and tasks."""

    n: int
    m: int
    t: int
    d: int
    P: int
    C: int
    G: int

    @property
    def hops(self) -> float:
        """Times that something of the size of H travels, one after the other: to the cluster, then among workers."""
        return 1 + math.log2(self.P)

    @property
    def H(self) -> int:
        """Bytes of H in single precision."""
        return 4 * self.t * self.d


@dataclass(frozen=True)
class Costs:
    """Seconds: `s` in all, `h` a term and topic², `k` a byte, `a` an entry and topic, `b` an entry, `o` a task."""

    s: float
    h: float
    k: float
    a: float
    b: float
    o: float

    def parts(self, size: Size) -> dict[str, float]:
        """Seconds of an iteration by what they are spent on."""
        share = math.ceil(size.G / size.P) / size.G
        return {
            "in all": self.s,
            "update H": self.update_H(size),
            "send H": self.k * size.H * size.hops,
            "update W": share * self.work(size),
            "add sums": self.k * size.H * size.hops,
            "tasks": self.o * (1 + size.G),
        }

    def seconds(self, size: Size) -> float:
        return sum(self.parts(size).values())

    def update_H(self, size: Size) -> float:
        return self.h * size.t * size.d**2 / size.C

    def work(self, size: Size) -> float:
        """Of all documents on one worker."""
        return (self.a * size.d + self.b) * size.m

    def moved(self, size: Size) -> float:
        """Bytes over the network: H to every worker, and at most the sums of every task."""
        return size.H * (size.P + size.G)


def fitted(sizes: list[Size], seconds: list[float], o: float) -> Costs:
    """The constants, none of them negative, that come nearest to the measured times, relatively; `o` is known."""
    unit = np.eye(5)
    rows = np.array([[Costs(*row, 0.0).seconds(size) for row in unit] for size in sizes])
    rest = np.array([1 - o * (1 + size.G) / took for size, took in zip(sizes, seconds, strict=True)])
    rows /= np.array(seconds)[:, None]
    scale = rows.max(axis=0)
    found, _ = nnls(rows / scale, rest)
    return Costs(*(found / scale), o)


def simulate(costs: Costs, size: Size) -> float:
    """Seconds of an iteration, event by event: a link of a worker does one thing at a time, and so does its core.

    Workers fetch H from whoever has it; tasks are given out to who is free; two sums are added where the first one is.
    """
    move = costs.k * size.H
    clock = costs.s + costs.update_H(size) + costs.o
    has = [clock + move]  # the first worker got H from the client
    holders = [has[0]]
    while len(has) < size.P:  # each holder serves one after the other
        free = heapq.heappop(holders)
        heapq.heappush(holders, free + move)
        heapq.heappush(holders, free + move)
        has.append(free + move)
    work = costs.work(size) / size.G
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
    return done[0][0] + move  # to the loop
