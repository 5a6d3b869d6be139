"""Cost model of one iteration on a cluster: a closed form with six constants, and a simulation to check it.

n documents with m entries, t terms, d topics, P workers, C threads of the client, G tasks:

    T = s                                 constant: write the state, list the workers;
      + h t d² / C                        update H in the client;
      + 4 t d k (1 + log₂ P)              send H from worker to worker;
      + ⌈G/P⌉/G (a d + b) m               cross products, descent and sums, with W read and written;
      + 4 t d k (1 + log₂ P)              send the sums back in a tree;
      + o (1 + G)                         schedule the tasks.

The descent costs d² per document if all its weights move. Few do, and the measurements show no such term.
"""

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Size:
    """Size of a fit: documents, entries, terms, topics, workers, threads of the client and tasks."""

    n: int
    m: int
    t: int
    d: int
    P: int
    C: int
    G: int

    @property
    def hops(self) -> float:
        """Number of successive transfers of the size of H: to the cluster, then among workers."""
        return 1 + math.log2(self.P)

    @property
    def H(self) -> int:
        """Size of H in bytes, in single precision."""
        return 4 * self.t * self.d


@dataclass(frozen=True)
class Costs:
    """Seconds: constant `s`, per term and topic² `h`, byte `k`, entry and topic `a`, entry `b`, task `o`."""

    s: float
    h: float
    k: float
    a: float
    b: float
    o: float

    def parts(self, size: Size) -> dict[str, float]:
        """Return the seconds of an iteration by purpose."""
        share = math.ceil(size.G / size.P) / size.G
        return {
            "constant": self.s,
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
        """Return the seconds for all documents on one worker."""
        return (self.a * size.d + self.b) * size.m

    def moved(self, size: Size) -> float:
        """Return the bytes over the network: H to every worker, and at most the sums of every task."""
        return size.H * (size.P + size.G)


def fitted(sizes: list[Size], seconds: list[float], o: float) -> Costs:
    """Fit non-negative constants to measured times, by relative error; `o` is known."""
    unit = np.eye(5)
    rows = np.array([[Costs(*row, 0.0).seconds(size) for row in unit] for size in sizes])
    rest = np.array([1 - o * (1 + size.G) / took for size, took in zip(sizes, seconds, strict=True)])
    rows /= np.array(seconds)[:, None]
    scale = rows.max(axis=0)
    found, _ = nnls(rows / scale, rest)
    return Costs(*(found / scale), o)


def simulate(costs: Costs, size: Size) -> float:
    """Simulate an iteration event by event, and return its seconds.

    The link of a worker does one thing at a time, and so does its core. Workers fetch H from any worker that has it. A
    free worker gets the next task. Two sums are added where the first one is.
    """
    move = costs.k * size.H
    clock = costs.s + costs.update_H(size) + costs.o
    has = [clock + move]  # the first worker gets H from the client
    holders = [has[0]]
    while len(has) < size.P:  # each holder serves one worker at a time
        free = heapq.heappop(holders)
        heapq.heappush(holders, free + move)
        heapq.heappush(holders, free + move)
        has.append(free + move)
    work = costs.work(size) / size.G
    free = [(ready, worker) for worker, ready in enumerate(has)]
    heapq.heapify(free)
    given, done = clock, []
    for _ in range(size.G):  # the scheduler assigns tasks one by one
        given += costs.o
        ready, worker = heapq.heappop(free)
        end = max(ready, given) + work
        heapq.heappush(free, (end, worker))
        done.append((end, worker))
    link = dict.fromkeys(range(size.P), 0.0)
    while len(done) > 1:  # neighbours first; a sum on another worker is transferred
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
    return done[0][0] + move
