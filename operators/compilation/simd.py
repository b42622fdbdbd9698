"""Vectors of numbers for compiled loops, in the processor's own registers.

Loops over a few lanes are vectorised or not as the compiler's view of the arrays has it; a ``Lanes`` value always is.
LLVM splits it into what the processor has: 16 binary32 numbers are one register of AVX-512, two of AVX2, four of NEON.
Arithmetic is that of the scalar types, wrapped or rounded alike, so that results are the same on every processor.
Operators with a scalar spread it over the lanes; comparisons give a mask.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

LANES = 16  # unless another number is given
INDEX = ir.IntType(32)
SIGN = 1 << 31  # of a binary32 pattern


class Lanes(types.Type):
    """The type of some numbers of one kind.

    Parameters
    ----------
    dtype
        Numba's type of each.
    n : int, optional
        How many.

    Attributes
    ----------
    rules : tuple
        What numba is taught of it, for the stamps of kept code.
    """

    rules: tuple[Any, ...] = ()

    def __init__(self, dtype: Any, n: int = LANES) -> None:
        self.dtype, self.n = dtype, n
        super().__init__(f"lanes({dtype} x {n})")


U32, I32, F32 = (Lanes(t) for t in (types.uint32, types.int32, types.float32))


def vector(dtype: Any, n: int = LANES) -> ir.VectorType:
    """Return LLVM's type of n numbers.

    Parameters
    ----------
    dtype
        Numba's type of each.
    n : int, optional
        How many.
    """
    if isinstance(dtype, types.Float):
        return ir.VectorType(ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType(), n)
    return ir.VectorType(ir.IntType(1 if dtype == types.boolean else dtype.bitwidth), n)


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, vector(fe_type.dtype, fe_type.n))


Lanes.rules += (_Model,)


def shuffle(builder: Any, value: Any, lanes: Sequence[int]) -> Any:
    """Return the numbers of these lanes of a vector.

    Parameters
    ----------
    builder
        Where the code is put.
    value
        LLVM's vector.
    lanes : sequence of int
        Numbers of lanes.
    """
    undefined = ir.Constant(value.type, ir.Undefined)
    return builder.shuffle_vector(value, undefined, ir.VectorType(INDEX, len(lanes))(list(lanes)))


def repeat(builder: Any, scalar: Any, n: int = LANES) -> Any:
    """Return a vector of equal numbers.

    Parameters
    ----------
    builder
        Where the code is put.
    scalar
        LLVM's value of each.
    n : int, optional
        How many.
    """
    undefined = ir.Constant(ir.VectorType(scalar.type, n), ir.Undefined)
    return shuffle(builder, builder.insert_element(undefined, scalar, INDEX(0)), [0] * n)


@intrinsic
def repeated_8(typingctx: Any, value: Any) -> Any:
    """Return a number in eight lanes."""
    return signature(Lanes(value, 8), value), lambda context, builder, sig, args: repeat(builder, args[0], 8)


def _spread(context: Any, builder: Any, value: Any, source: Any, kind: Lanes) -> Any:
    if isinstance(source, Lanes):
        return value
    return repeat(builder, context.cast(builder, value, source, kind.dtype), kind.n)


def _kind(arguments: Any) -> Lanes | None:
    """Return the one kind of lanes among the arguments."""
    kinds = {a for a in arguments if isinstance(a, Lanes)}
    return kinds.pop() if len(kinds) == 1 else None


def _define(symbol: Any, emit: Callable[[Any, Any, Any, Any], Any], *, compares: bool = False) -> None:
    """Teach numba one operator."""

    class Template(AbstractTemplate):
        key = symbol

        def generic(self, args: Any, kws: Any) -> Any:
            kind = _kind(args) if len(args) == 2 else None
            return kind and signature(Lanes(types.boolean, kind.n) if compares else kind, *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = cast(Lanes, _kind(sig.args))
        spread = (_spread(context, builder, a, t, kind) for a, t in zip(args, sig.args, strict=True))
        return emit(builder, kind.dtype, *spread)

    infer_global(symbol)(Template)
    for pair in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(symbol, *pair)(lower)
    Lanes.rules += (symbol.__name__, Template, lower)


def _arithmetic(name: str, real: str = "") -> Callable[[Any, Any, Any, Any], Any]:
    def emit(builder: Any, dtype: Any, a: Any, b: Any) -> Any:
        return getattr(builder, real if real and isinstance(dtype, types.Float) else name)(a, b)

    return emit


def _comparison(sign: str) -> Callable[[Any, Any, Any, Any], Any]:
    def emit(builder: Any, dtype: Any, a: Any, b: Any) -> Any:
        if isinstance(dtype, types.Float):
            return builder.fcmp_ordered(sign, a, b)
        return (builder.icmp_signed if dtype.signed else builder.icmp_unsigned)(sign, a, b)

    return emit


_define(operator.add, _arithmetic("add", "fadd"))
_define(operator.sub, _arithmetic("sub", "fsub"))
_define(operator.mul, _arithmetic("mul", "fmul"))
_define(operator.and_, _arithmetic("and_"))
_define(operator.or_, _arithmetic("or_"))
_define(operator.xor, _arithmetic("xor"))
_define(operator.lshift, _arithmetic("shl"))
_define(operator.rshift, lambda builder, dtype, a, b: (builder.ashr if dtype.signed else builder.lshr)(a, b))
for _symbol, _sign in ((operator.lt, "<"), (operator.ge, ">="), (operator.gt, ">"), (operator.eq, "==")):
    _define(_symbol, _comparison(_sign), compares=True)


@intrinsic
def choose(typingctx: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` in the lanes of the mask and ``no`` in the others; one may be a scalar, or both be floats."""
    kind = _kind((yes, no)) or Lanes(yes, mask.n)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (_spread(context, builder, args[i], sig.args[i], kind) for i in (1, 2))
        return builder.select(args[0], a, b)

    return signature(kind, mask, yes, no), emit


def _unary(result: Any, convert: Callable[[Any, Any], Any]) -> Any:
    """Return a function of lanes: ``result`` is numba's type of what it returns, a callable of theirs."""

    @intrinsic
    def function(typingctx: Any, lanes: Any) -> Any:
        return signature(result(lanes), lanes), lambda context, builder, sig, args: convert(builder, args[0])

    return function


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Return what one of LLVM's own functions gives.

    Parameters
    ----------
    builder
        Where the call is put.
    name : str
        Of the function, without the type of its vectors.
    result
        LLVM's type of what it returns.
    args
        LLVM's values.
    """
    named = next(kind for kind in (result, *(a.type for a in args)) if isinstance(kind, ir.VectorType))
    name = f"llvm.{name}.v{named.count}{named.element.intrinsic_name}"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [a.type for a in args]), name)
    return builder.call(function, args)


def _bits(builder: Any, mask: Any) -> Any:
    return builder.zext(builder.bitcast(mask, ir.IntType(mask.type.count)), ir.IntType(64))


def _first(builder: Any, mask: Any) -> Any:
    number = _bits(builder, mask)
    return builder.cttz(builder.or_(number, number.type(1 << mask.type.count)), ir.IntType(1)(0))


floor = _unary(lambda lanes: lanes, lambda builder, a: call(builder, "floor", a.type, a))
size = _unary(lambda lanes: lanes, lambda builder, a: call(builder, "fabs", a.type, a))  # the magnitude
real = _unary(lambda _: F32, lambda builder, a: builder.sitofp(a, vector(types.float32)))  # of int32
whole = _unary(lambda _: I32, lambda builder, a: builder.fptosi(a, vector(types.int32)))  # of float32
signed = _unary(lambda _: I32, lambda builder, a: a)  # the same bits
unsigned = _unary(lambda _: U32, lambda builder, a: a)
bits = _unary(lambda mask: types.uint64, _bits)  # a mask as a number, lane i in bit i
first = _unary(lambda mask: types.uint64, _first)  # number of the first lane in a mask, that of all if it is empty
count = _unary(lambda mask: types.uint64, lambda builder, mask: builder.ctpop(_bits(builder, mask)))
total = _unary(lambda lanes: types.int32, lambda builder, a: call(builder, "vector.reduce.add", ir.IntType(32), a))


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


def _negated(builder: Any, value: Any, signs: Any) -> Any:
    return builder.bitcast(builder.xor(builder.bitcast(value, signs.type), signs), value.type)


@intrinsic
def times_signs(typingctx: Any, lanes: Any, scale: Any, word: Any) -> Any:
    """Return lane j of binary32 numbers times -scale if bit j of ``word`` (uint32) is set, times scale otherwise."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, scale, word = args
        n = value.type.count
        words = vector(types.uint32, n)
        signs = builder.shl(repeat(builder, word, n), words([31 - j for j in range(n)]))
        signs = builder.and_(signs, words([SIGN] * n))
        return builder.fmul(value, _negated(builder, repeat(builder, scale, n), signs))

    return signature(lanes, lanes, types.float32, types.uint32), emit


@intrinsic
def hadamard(typingctx: Any, lanes: Any) -> Any:
    """Return binary32 numbers after the stages of distance 1, 2, 4, ...: a + b and, as a + (-b), a - b."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (value,), n = args, lanes.n
        for h in (1 << k for k in range(n.bit_length() - 1)):
            a = shuffle(builder, value, [j & ~h for j in range(n)])
            b = shuffle(builder, value, [j | h for j in range(n)])
            signs = vector(types.uint32, n)([SIGN if j & h else 0 for j in range(n)])
            value = builder.fadd(a, _negated(builder, b, signs))
        return value

    return signature(lanes, lanes), emit


# Between arrays and lanes: neighbours, tables, and words of which only some lanes have one.
#
# No index is checked: the caller sees to it that there is room.


def address(context: Any, builder: Any, sig: Any, args: Any, kind: Any = None) -> Any:
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
    kind : optional
        LLVM's type of what is read there; that of an element if None.
    """
    array = context.make_array(sig.args[0])(context, builder, args[0])
    place = builder.gep(array.data, [context.cast(builder, args[1], sig.args[1], types.uint64)])
    return place if kind is None else builder.bitcast(place, kind.as_pointer())


def _loaded_kind(dtype: Any, n: int) -> Lanes:
    return Lanes(dtype if dtype.bitwidth >= 32 else types.uint32, n)


def _widen(builder: Any, value: Any, dtype: Any) -> Any:
    return value if dtype.bitwidth >= 32 else builder.zext(value, vector(types.uint32, value.type.count))


def _loader(n: int) -> Any:
    @intrinsic
    def load(typingctx: Any, array: Any, index: Any) -> Any:
        dtype = array.dtype

        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            pointer = address(context, builder, sig, args, vector(dtype, n))
            return _widen(builder, builder.load(pointer, align=dtype.bitwidth // 8), dtype)

        return signature(_loaded_kind(dtype, n), array, index), emit

    return load


load, load_8 = _loader(LANES), _loader(8)  # the elements from an index on; unsigned ones of 8 or 16 bits become uint32


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write the numbers from ``index`` on; narrow arrays take the last bits, int64 the whole part of float64."""
    dtype = array.dtype

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = vector(dtype, value.n)
        written = args[2]
        if dtype.bitwidth < 32:
            written = builder.trunc(written, kind)
        elif dtype == types.int64:
            written = builder.fptosi(written, kind)
        builder.store(written, address(context, builder, sig, args, kind), align=dtype.bitwidth // 8)
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

    return signature(_loaded_kind(dtype, LANES), array, indices), emit


def _moves_words(context: Any) -> bool:
    """Return whether the processor moves words to and from the lanes of a mask by one instruction."""
    return "+avx512vbmi2" in context.codegen().magic_tuple()[2]


def _places(builder: Any, mask: Any) -> list[Any]:
    """Return how many lanes of the mask precede each lane, and how many there are; 64 bits each."""
    wide = ir.IntType(64)
    number, places = _bits(builder, mask), [wide(0)]
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
            result = call(builder, "masked.expandload", narrow, pointer, args[2], result)
        else:  # LLVM would branch for every lane
            for lane, place in enumerate(_places(builder, args[2])[:-1]):
                result = builder.insert_element(result, builder.load(builder.gep(pointer, [place])), INDEX(lane))
            result = builder.select(args[2], result, narrow([0] * LANES))
        return _widen(builder, result, types.uint16)

    return signature(U32, words, index, mask), emit


@intrinsic
def compress(typingctx: Any, words: Any, index: Any, value: Any, mask: Any) -> Any:
    """Write the last 16 bits of the lanes of the mask to neighbouring words (uint16) from ``index`` on, in order.

    The word before them may be overwritten.
    """

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        narrow = builder.trunc(args[2], vector(types.uint16))
        pointer = address(context, builder, sig, args)
        if _moves_words(context):
            call(builder, "masked.compressstore", ir.VoidType(), narrow, pointer, args[3])
        else:
            places = _places(builder, args[3])
            for lane in reversed(range(LANES)):  # a lane that has no word writes below its neighbour's
                place = builder.sub(places[lane + 1], places[0].type(1))
                builder.store(builder.extract_element(narrow, INDEX(lane)), builder.gep(pointer, [place]))
        return context.get_dummy_value()

    return signature(types.void, words, index, value, mask), emit
