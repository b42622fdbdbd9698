"""Between arrays and lanes: neighbours, tables, and words of which only some lanes have one.

No index is checked: the caller sees to it that there is room.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from .lanes import INDEX, MASK, U32, Lanes, call, vector
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
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        result = ir.Constant(vector(dtype), ir.Undefined)
        for lane in range(LANES):  # loads one by one: faster than the gathering instruction of AVX-512
            place = builder.zext(builder.extract_element(args[1], INDEX(lane)), ir.IntType(64))
            result = builder.insert_element(result, builder.load(builder.gep(data, [place])), INDEX(lane))
        return result

    return signature(_kind(dtype), array, indices), emit


def _moves_words(context: Any) -> bool:
    """Return whether the processor moves words to and from the lanes of a mask by one instruction."""
    return "+avx512vbmi2" in context.codegen().magic_tuple()[2]


def _places(builder: Any, mask: Any) -> list[Any]:
    """Return how many lanes of the mask precede each lane, and how many there are; 64 bits each."""
    wide = ir.IntType(64)
    number, places = builder.zext(builder.bitcast(mask, ir.IntType(LANES)), wide), [wide(0)]
    for lane in range(LANES):
        places.append(builder.add(places[-1], builder.and_(builder.lshr(number, wide(lane)), wide(1))))
    return places


@intrinsic
def expand(typingctx: Any, words: Any, index: Any, mask: Any) -> Any:
    """Return words (uint16) from ``index`` on for the lanes of the mask, one each in order, and 0 for the others.

    Up to 16 words may be read.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        narrow = vector(types.uint16)
        pointer, result = address(context, builder, sig, args), narrow([0] * LANES)
        if _moves_words(context):
            result = call(builder, f"llvm.masked.expandload.v{LANES}i16", narrow, pointer, args[2], result)
        else:  # LLVM would branch for every lane
            for lane, place in enumerate(_places(builder, args[2])[:-1]):
                result = builder.insert_element(result, builder.load(builder.gep(pointer, [place])), INDEX(lane))
            result = builder.select(args[2], result, narrow([0] * LANES))
        return _widen(builder, result, types.uint16)

    return signature(U32, words, index, MASK), emit


@intrinsic
def compress(typingctx: Any, words: Any, index: Any, value: Any, mask: Any) -> Any:
    """Write the last 16 bits of the lanes of the mask to neighbouring words (uint16) from ``index`` on, in order.

    The word before them may be overwritten.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        narrow = builder.trunc(args[2], vector(types.uint16))
        pointer = address(context, builder, sig, args)
        if _moves_words(context):
            call(builder, f"llvm.masked.compressstore.v{LANES}i16", ir.VoidType(), narrow, pointer, args[3])
        else:
            places = _places(builder, args[3])
            for lane in reversed(range(LANES)):  # a lane that has no word writes below its neighbour's
                place = builder.sub(places[lane + 1], places[0].type(1))
                builder.store(builder.extract_element(narrow, INDEX(lane)), builder.gep(pointer, [place]))
        return context.get_dummy_value()

    return signature(types.void, words, index, value, MASK), emit
