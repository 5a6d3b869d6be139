"""A hint to the processor that numba has no name for: fetch a line of memory before it is used."""

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic

LINE = 64  # bytes that come from memory at once


def _prefetch(typing: Any, array: Any, i: Any, k: Any) -> Any:  # pragma: no cover, it runs in numba's compiler
    """Fetch the line of ``array[i, k]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, *kinds = signature.args
        place = [context.cast(builder, *pair, types.intp) for pair in zip(arguments[1:], kinds, strict=True)]
        rows = context.make_array(kind)(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(get_item_pointer(context, builder, kind, rows, place), byte)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [byte], form)
        builder.call(hint, [address, number(0), number(3), number(1)])  # to read, keep it near, it is data
        return context.get_dummy_value()

    return types.void(array, i, k), generate


def _nothing(array: Any, i: Any, k: Any) -> None:
    """What it does without the compiler."""


compiling = not vars(numba.config)["DISABLE_JIT"]
prefetch: Any = intrinsic(_prefetch) if compiling else _nothing
