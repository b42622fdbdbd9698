"""Between arrays and lanes: neighbours, tables, and words of which only some lanes have one.

No index is checked: the caller sees to it that there is room.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from .lanes import MASK, U32, Lanes, call, repeat, vector
from .trellis import LANES


def address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return where the element args[1] of the array args[0] lies.

    Parameters
    ----------
    context
        numba's target context.
    builder
        Where the code is put.
    sig
        numba's signature of the arguments.
    args
        LLVM's values of the array and of the index.
    """
    array = context.make_array(sig.args[0])(context, builder, args[0])
    return builder.gep(array.data, [context.cast(builder, args[1], sig.args[1], types.uint64)])


def _kind(dtype: Any) -> Lanes:
    return Lanes(dtype) if dtype.bitwidth == 32 else U32


def _widen(builder: Any, value: Any, dtype: Any) -> Any:
    return value if dtype.bitwidth == 32 else builder.zext(value, vector(types.uint32))


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Return the 16 elements from ``index`` on; unsigned ones of 8 or 16 bits become uint32."""
    dtype = array.dtype

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.bitcast(address(context, builder, sig, args), vector(dtype).as_pointer())
        return _widen(builder, builder.load(pointer, align=dtype.bitwidth // 8), dtype)

    return signature(_kind(dtype), array, index), emit


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write the 16 elements from ``index`` on; narrow arrays take the last bits."""
    dtype = array.dtype

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.bitcast(address(context, builder, sig, args), vector(dtype).as_pointer())
        narrow = args[2] if dtype.bitwidth == 32 else builder.trunc(args[2], vector(dtype))
        builder.store(narrow, pointer, align=dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature(types.void, array, index, value), emit


@intrinsic
def gather(typingctx: Any, array: Any, indices: Any) -> Any:
    """Return the elements at 16 indices (uint32) of an array of uint32."""
    dtype = array.dtype

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wide, width = vector(types.uint64), dtype.bitwidth // 8
        data = builder.ptrtoint(context.make_array(sig.args[0])(context, builder, args[0]).data, ir.IntType(64))
        places = builder.add(repeat(builder, data), builder.mul(builder.zext(args[1], wide), wide([width] * LANES)))
        pointers = builder.inttoptr(places, ir.VectorType(vector(dtype).element.as_pointer(), LANES))
        result, every = vector(dtype), vector(types.boolean)([1] * LANES)
        name = f"llvm.masked.gather.v{LANES}i{dtype.bitwidth}.v{LANES}p0"
        return call(builder, name, result, pointers, ir.IntType(32)(width), every, ir.Constant(result, ir.Undefined))

    return signature(_kind(dtype), array, indices), emit


@intrinsic
def expand(typingctx: Any, words: Any, index: Any, mask: Any) -> Any:
    """Return words (uint16) from ``index`` on for the lanes of the mask, one each in order, and 0 for the others."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        narrow = vector(types.uint16)
        pointer = address(context, builder, sig, args)
        name = f"llvm.masked.expandload.v{LANES}i16"
        return _widen(builder, call(builder, name, narrow, pointer, args[2], narrow([0] * LANES)), types.uint16)

    return signature(U32, words, index, MASK), emit


@intrinsic
def compress(typingctx: Any, words: Any, index: Any, value: Any, mask: Any) -> Any:
    """Write the last 16 bits of the lanes of the mask to neighbouring words (uint16) from ``index`` on, in order."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        narrow = builder.trunc(args[2], vector(types.uint16))
        pointer = address(context, builder, sig, args)
        call(builder, f"llvm.masked.compressstore.v{LANES}i16", ir.VoidType(), narrow, pointer, args[3])
        return context.get_dummy_value()

    return signature(types.void, words, index, value, MASK), emit
