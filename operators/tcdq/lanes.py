"""Vectors of 16 numbers for numba's loops: what a row of coordinates needs, in the processor's own vectors.

Loops over 16 lanes are vectorised or not as the compiler's view of the arrays has it; a ``Lanes`` value always is.
LLVM splits it into what the processor has (one AVX-512 register, two of AVX2, four of NEON).  Operators with a scalar
spread it over the lanes; comparisons give a mask.  Arithmetic is that of the scalar types, wrapped or rounded alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from .trellis import LANES

INDEX = ir.IntType(32)


class Lanes(types.Type):
    """The type of 16 numbers of one kind.

    Parameters
    ----------
    dtype
        Numba's type of each.

    Attributes
    ----------
    rules : tuple
        What numba is taught of it, for the stamps of kept code.
    """

    rules: tuple[Any, ...] = ()

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(f"lanes({dtype})")


U32, I32, F32, MASK = (Lanes(t) for t in (types.uint32, types.int32, types.float32, types.boolean))


def vector(dtype: Any) -> ir.VectorType:
    """Return LLVM's type of 16 numbers.

    Parameters
    ----------
    dtype
        Numba's type of each.
    """
    if dtype == types.float32:
        return ir.VectorType(ir.FloatType(), LANES)
    return ir.VectorType(ir.IntType(1 if dtype == types.boolean else dtype.bitwidth), LANES)


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, vector(fe_type.dtype))


Lanes.rules += (_Model,)


def repeat(builder: Any, scalar: Any) -> Any:
    """Return a vector of 16 equal numbers.

    Parameters
    ----------
    builder
        Where the code is put.
    scalar
        LLVM's value of each.
    """
    kind = ir.VectorType(scalar.type, LANES)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INDEX(0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.VectorType(INDEX, LANES)([0] * LANES))


def _spread(context: Any, builder: Any, value: Any, source: Any, kind: Lanes) -> Any:
    return value if isinstance(source, Lanes) else repeat(builder, context.cast(builder, value, source, kind.dtype))


def _kind(arguments: Any) -> Lanes | None:
    """Return the one kind of lanes among the arguments."""
    kinds = {a for a in arguments if isinstance(a, Lanes)}
    return kinds.pop() if len(kinds) == 1 else None


def _define(symbol: Any, emit: Callable[[Any, Lanes, Any, Any], Any], *, compares: bool = False) -> None:
    """Teach numba one operator."""

    class Template(AbstractTemplate):
        key = symbol

        def generic(self, args: Any, kws: Any) -> Any:
            kind = _kind(args) if len(args) == 2 else None
            return kind and signature(MASK if compares else kind, *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = cast(Lanes, _kind(sig.args))
        return emit(
            builder, kind, *(_spread(context, builder, a, t, kind) for a, t in zip(args, sig.args, strict=True))
        )

    infer_global(symbol)(Template)
    for pair in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(symbol, *pair)(lower)
    Lanes.rules += (symbol.__name__, Template, lower)


def _arithmetic(name: str, real: str | None = None) -> Callable[[Any, Lanes, Any, Any], Any]:
    return lambda builder, kind, a, b: getattr(builder, real if real and kind == F32 else name)(a, b)


def _comparison(sign: str) -> Callable[[Any, Lanes, Any, Any], Any]:
    def emit(builder: Any, kind: Lanes, a: Any, b: Any) -> Any:
        compare = {F32: builder.fcmp_ordered, I32: builder.icmp_signed, U32: builder.icmp_unsigned}[kind]
        return compare(sign, a, b)

    return emit


_define(operator.add, _arithmetic("add", "fadd"))
_define(operator.sub, _arithmetic("sub", "fsub"))
_define(operator.mul, _arithmetic("mul", "fmul"))
_define(operator.and_, _arithmetic("and_"))
_define(operator.or_, _arithmetic("or_"))
_define(operator.xor, _arithmetic("xor"))
_define(operator.lshift, _arithmetic("shl"))
_define(operator.rshift, lambda builder, kind, a, b: (builder.ashr if kind == I32 else builder.lshr)(a, b))
for _symbol, _sign in ((operator.lt, "<"), (operator.ge, ">="), (operator.gt, ">"), (operator.eq, "==")):
    _define(_symbol, _comparison(_sign), compares=True)


@intrinsic
def choose(typingctx: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` in the lanes of the mask and ``no`` in the others; one of them may be a scalar."""
    kind = cast(Lanes, _kind((yes, no)))

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (_spread(context, builder, args[i], sig.args[i], kind) for i in (1, 2))
        return builder.select(args[0], a, b)

    return signature(kind, mask, yes, no), emit


def _unary(kind: Lanes | Any, convert: Callable[[Any, Any], Any]) -> Any:
    @intrinsic
    def function(typingctx: Any, lanes: Any) -> Any:
        return signature(kind, lanes), lambda context, builder, sig, args: convert(builder, args[0])

    return function


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Return what one of LLVM's own functions gives.

    Parameters
    ----------
    builder
        Where the call is put.
    name : str
        Of the function.
    result
        LLVM's type of what it returns.
    args
        LLVM's values.
    """
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [a.type for a in args]), name)
    return builder.call(function, args)


def _bits(builder: Any, mask: Any) -> Any:
    return builder.zext(builder.bitcast(mask, ir.IntType(LANES)), ir.IntType(64))


def _first(builder: Any, mask: Any) -> Any:
    number = _bits(builder, mask)
    return builder.cttz(builder.or_(number, number.type(1 << LANES)), ir.IntType(1)(0))


floor = _unary(F32, lambda builder, a: call(builder, f"llvm.floor.v{LANES}f32", a.type, a))
real = _unary(F32, lambda builder, a: builder.sitofp(a, vector(types.float32)))  # of int32
whole = _unary(I32, lambda builder, a: builder.fptosi(a, vector(types.int32)))  # of float32
signed = _unary(I32, lambda builder, a: a)  # the same bits
unsigned = _unary(U32, lambda builder, a: a)
bits = _unary(types.uint64, _bits)  # a mask as a number, lane i in bit i
first = _unary(types.uint64, _first)  # number of the first lane in a mask, 16 if it is empty
count = _unary(types.uint64, lambda builder, mask: builder.ctpop(_bits(builder, mask)))
total = _unary(types.int32, lambda builder, a: call(builder, f"llvm.vector.reduce.add.v{LANES}i32", ir.IntType(32), a))


@intrinsic
def numbers(typingctx: Any, first: Any) -> Any:
    """Return first, first + 1, ..., first + 15 as uint32."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = _spread(context, builder, args[0], sig.args[0], U32)
        return builder.add(start, vector(types.uint32)(list(range(LANES))))

    return signature(U32, first), emit


@intrinsic
def upper_half(typingctx: Any, a: Any, b: Any) -> Any:
    """Return the product of two uint32 over 2^32, rounded down."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wide = vector(types.uint64)
        product = builder.mul(*(builder.zext(v, wide) for v in args))
        return builder.trunc(builder.lshr(product, wide([32] * LANES)), vector(types.uint32))

    return signature(U32, a, b), emit


# Between arrays and lanes: neighbours, tables, and words of which only some lanes have one.
#
# No index is checked: the caller sees to it that there is room.


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


def _loaded_kind(dtype: Any) -> Lanes:
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

    return signature(_loaded_kind(dtype), array, index), emit


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

    return signature(_loaded_kind(dtype), array, indices), emit


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
