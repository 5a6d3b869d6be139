"""Numba loops over plain arrays: sparse times dense, and masked coordinate descent.

Four kernels serve every solver, and one serves the latent semantics.
Their arguments:

- The rows of ``X`` are CSR arrays. ``indptr`` may be a slice of a larger matrix, so a block of documents needs no copy.
- ``HT`` is the transpose of ``H``, with one contiguous row per term.
- The rows of ``HT``, the Gram matrix and the cross matrix may be padded with zeros to whole vector registers.
- Penalties are CSR arrays (``starts``, ``topic``, ``penalty``). A row with entries permits only the topics it stores,
  each at its penalty; a row without entries restricts nothing.

No kernel uses numba's threads. Each releases the GIL, and the solvers call it from a thread pool over fixed blocks. The
result is therefore the same for any number of threads.
"""

import sys
import threading
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic
from numpy.typing import DTypeLike

from topicsteer.system.machine_code import jit

_jit: Any = jit(nogil=True, fastmath={"contract"}, error_model="numpy")

# Arrays of more bytes than this do not stay in the processor's cache, so their next rows are prefetched.
FAR = 1 << 23
# A row is prefetched this many entries before it is used.
AHEAD = 4
# Size of a cache line in bytes.
LINE = 64
# Columns of a strip: `gram_strip` reads and writes this many per row. A constant lets the compiler unroll the loops.
STRIP = 64
# A topic with a smaller norm is dead: the reciprocal would overflow in single precision.
TINY = 1e-30


def _prefetch(typing: Any, array: Any, i: Any, k: Any) -> Any:  # pragma: no cover, it runs in numba's compiler
    """Prefetch the cache line of ``array[i, k]``, a processor hint that numba does not offer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, *kinds = signature.args
        index = [context.cast(builder, *pair, types.intp) for pair in zip(arguments[1:], kinds, strict=True)]
        rows = context.make_array(kind)(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(get_item_pointer(context, builder, kind, rows, index), byte)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [byte], form)
        # The three numbers request a read, for all cache levels, of data instead of instructions.
        builder.call(hint, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, i, k), generate


def _nothing(array: Any, i: Any, k: Any) -> None:
    """Do nothing: there is no prefetch without the compiler."""


prefetch: Any = _nothing if vars(config)["DISABLE_JIT"] else intrinsic(_prefetch)

# Loops index whole arrays, X[i, k], instead of row views. Numba counts references to each view, which costs more
# than the arithmetic on a row (cross_rows on Reuters with 90 topics: 7.1 ms with views, 3.5 ms without).


@_jit
def cross_rows(indptr, indices, data, HT, permitted, pattern, starts, topic, out):
    """Set out = X Hᵀ.

    A row is sure to be filled only for its permitted topics: by its penalties if it has any, otherwise by
    ``permitted[pattern]``. Pattern 0 permits every topic.
    """
    d = permitted.shape[1]
    width = out.shape[1]
    topics = np.empty(d, np.int64)
    far = HT.size * HT.itemsize > FAR
    line, last = LINE // HT.itemsize, indices.shape[0] - 1
    for i in range(out.shape[0]):
        for k in range(width):
            out[i, k] = 0
        p, stop = indptr[i], indptr[i + 1]
        count = d
        if starts[i] < starts[i + 1]:
            count = starts[i + 1] - starts[i]
            for q in range(count):
                topics[q] = topic[starts[i] + q]
        elif pattern[i] != 0:
            count = 0
            for k in range(d):
                topics[count] = k
                count += permitted[pattern[i], k]
        if 8 * count < d:  # a few single topics are faster than all topics in vector registers
            for q in range(p, stop):
                x, j = data[q], indices[q]
                for r in range(count):
                    out[i, topics[r]] += x * HT[j, topics[r]]
            continue
        while p + 4 <= stop:  # four terms per load and store of the sum
            if far:
                for q in range(p + AHEAD, p + AHEAD + 4):
                    for k in range(0, width, line):
                        prefetch(HT, indices[min(q, last)], k)
            x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            j0, j1, j2, j3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            for k in range(width):
                out[i, k] += x0 * HT[j0, k] + x1 * HT[j1, k] + x2 * HT[j2, k] + x3 * HT[j3, k]
            p += 4
        while p < stop:
            x, j = data[p], indices[p]
            for k in range(width):
                out[i, k] += x * HT[j, k]
            p += 1


@_jit
def cross_columns(indptr, indices, data, W, weight, out):
    """Add Xᵀ (weight∘W) to out."""
    d = W.shape[1]
    width = out.shape[1]
    topics = np.empty(d, np.int64)
    scaled = np.zeros(width, W.dtype)
    far = out.size * out.itemsize > FAR
    line, last = LINE // out.itemsize, indices.shape[0] - 1
    for i in range(W.shape[0]):
        count = 0
        for k in range(d):
            scaled[k] = weight[i] * W[i, k]
            topics[count] = k
            count += scaled[k] != 0
        few = 8 * count < d
        for p in range(indptr[i], indptr[i + 1]):
            x, j = data[p], indices[p]
            if few:
                for q in range(count):
                    out[j, topics[q]] += x * scaled[topics[q]]
            elif not far:
                for k in range(width):
                    out[j, k] += x * scaled[k]
            else:
                for k in range(0, width, line):
                    prefetch(out, indices[min(p + AHEAD, last)], k)
                for k in range(width):
                    out[j, k] += x * scaled[k]


@_jit
def descend(W, cross, gram, permitted, pattern, starts, topic, penalty, l1, sweeps, tol):
    """Minimise ½ w gram wᵀ - (cross - l1 - penalty) w over w ≥ 0 by coordinate descent, for every row w of W.

    Topics that are not permitted keep the weight 0. A row ends after ``sweeps`` sweeps, or earlier when no coordinate
    moved by more than ``tol`` times the row's largest weight. Return the number of sweeps of the slowest row.
    """
    n, d = W.shape
    width = gram.shape[1]
    zero = W.dtype.type(0)
    step = np.empty(d, W.dtype)
    for k in range(d):
        step[k] = 1 / gram[k, k] if gram[k, k] > TINY else zero
    candidates = np.empty(d, np.int64)
    w = np.empty(d, W.dtype)
    g = np.empty(width, W.dtype)  # the gradient, updated whenever a coordinate moves
    slowest = 0
    for i in range(n):
        for k in range(width):
            g[k] = l1 - cross[i, k]
        if starts[i] < starts[i + 1]:
            for k in range(width):
                g[k] = np.inf  # a zero weight with this gradient never moves
            for q in range(starts[i], starts[i + 1]):
                g[topic[q]] = l1 + penalty[q] - cross[i, topic[q]]
        if pattern[i] != 0:
            for k in range(d):
                if not permitted[pattern[i], k]:
                    g[k] = np.inf
        for k in range(d):
            w[k] = W[i, k]
            if w[k] != 0:
                for m in range(width):
                    g[m] += w[k] * gram[k, m]
        for sweep in range(sweeps):
            count = 0  # most weights stay zero, so a sweep visits only candidates
            for k in range(d):
                candidates[count] = k
                count += (w[k] > 0) | (g[k] < 0)
            largest = zero
            furthest = zero
            for q in range(count):
                k = candidates[q]
                new = max(w[k] - step[k] * g[k], zero)
                move = new - w[k]
                if move != 0:
                    w[k] = new
                    for m in range(width):
                        g[m] += move * gram[k, m]
                    furthest = max(furthest, abs(move))
                largest = max(largest, new)
            slowest = max(slowest, sweep + 1)
            if furthest <= tol * largest:
                break
        for k in range(d):
            W[i, k] = w[k]
    return slowest


@_jit
def add_penalties(W, weight, starts, topic, penalty, out):
    """Add the penalty Σ weight penalty w of each topic to out."""
    for i in range(W.shape[0]):
        for q in range(starts[i], starts[i + 1]):
            out[topic[q]] += weight[i] * penalty[q] * W[i, topic[q]]


@_jit
def gram_strip(indptr, indices, data, B, out):
    """Add XᵀX B to out, in one pass over the rows of X; B and out have `STRIP` columns."""
    row = np.empty(STRIP, B.dtype)
    for i in range(indptr.shape[0] - 1):
        for k in range(STRIP):
            row[k] = 0
        p, stop = indptr[i], indptr[i + 1]
        while p + 4 <= stop:  # four terms per load and store of the sum
            x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            j0, j1, j2, j3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            for q in range(p + 4, min(p + 8, indices.shape[0])):
                for k in range(0, STRIP, 16):
                    prefetch(B, indices[q], k)
            for k in range(STRIP):
                row[k] += x0 * B[j0, k] + x1 * B[j1, k] + x2 * B[j2, k] + x3 * B[j3, k]
            p += 4
        while p < stop:
            x, j = data[p], indices[p]
            for k in range(STRIP):
                row[k] += x * B[j, k]
            p += 1
        for q in range(indptr[i], stop):
            x, j = data[q], indices[q]
            for k in range(0, STRIP, 16):
                prefetch(out, indices[min(q + 8, stop - 1)], k)
            for k in range(STRIP):
                out[j, k] += x * row[k]


_SIGNATURES: dict[Any, str] = {
    gram_strip: "{ip}, {ix}, {ro1}, {ro2}, {rw2}",
    cross_rows: "{ip}, {ix}, {ro1}, {ro2}, {b2}, {ix}, {ip}, {ix}, {rw2}",
    cross_columns: "{ip}, {ix}, {ro1}, {ro2}, {ro1}, {rw2}",
    descend: "{rw2}, {ro2}, {ro2}, {b2}, {ix}, {ip}, {ix}, {ro1}, {f}, int64, {f}",
    add_penalties: "{ro2}, {ro1}, {ip}, {ix}, {ro1}, {d1}",
}
_compiled: set[str] = set()
_compiling = threading.Lock()


def compiled(dtype: DTypeLike) -> bool:
    """Whether this process has compiled the kernels for this floating-point type."""
    return np.dtype(dtype).name in _compiled


def announce(dtype: DTypeLike, patience: float = 1.0) -> None:
    """Compile the kernels if necessary, and print a message to stderr if it takes longer than ``patience`` seconds."""
    if compiled(dtype):
        return
    message = "topicsteer: compiling its kernels (once after installation; this takes some seconds) ..."
    timer = threading.Timer(patience, print, args=(message,), kwargs={"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        prepare(dtype)
    finally:
        timer.cancel()


def prepare(dtype: DTypeLike) -> None:
    """Compile the kernels for float32 or float64, or load them from numba's cache on disk.

    The signatures accept read-only arrays, so memory-mapped matrices need no second compilation.
    """
    name = np.dtype(dtype).name
    with _compiling:
        if name in _compiled or not hasattr(descend, "compile"):  # without numba's compiler they are plain Python
            return
        f = getattr(types, name)
        read = {"ip": (types.int64, 1), "ix": (types.int32, 1), "ro1": (f, 1), "ro2": (f, 2), "b2": (types.boolean, 2)}
        written = {"rw2": (f, 2), "d1": (types.float64, 1)}
        forms = {"f": f, "int64": types.int64}
        forms |= {form: types.Array(*kind, "C", readonly=True) for form, kind in read.items()}
        forms |= {form: types.Array(*kind, "C") for form, kind in written.items()}
        for kernel, signature in _SIGNATURES.items():
            kernel.disable_compile(False)
            kernel.compile(tuple(forms[argument.strip(" {}")] for argument in signature.split(",")))
            kernel.disable_compile(True)
        _compiled.add(name)
