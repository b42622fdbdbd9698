"""Eight binary32 numbers in a register, as a type of compiled functions.

The compiler finds no vector code for sums between neighbours, and gives up on eight rows of one array because they
might overlap.  With these the loops say what happens in registers; where a processor has shorter ones, the
compiler splits them.  Each operation rounds like the scalar one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, register_model

LANES = 8
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_WORDS = ir.VectorType(ir.IntType(32), LANES)
_SIGN = 1 << 31

Coder = Callable[[Any, Any, Any, Any], Any]  # (context, builder, signature, arguments) -> value


class Vector(types.Type):
    """The type, for the compiler."""

    def __init__(self) -> None:
        super().__init__("Vector")


vector = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _FLOATS)


def _place(context: Any, builder: Any, array_type: Any, array: Any, i: Any) -> Any:
    """Return a pointer to coordinates i .. i + 7 of a contiguous array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), _FLOATS.as_pointer())


def _shuffled(builder: Any, value: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), ir.Constant(_WORDS, lanes))


def _repeated(builder: Any, value: Any, type_: Any) -> Any:
    alone = builder.insert_element(ir.Constant(type_, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, alone, [0] * LANES)


def _with_signs(builder: Any, value: Any, signs: Any) -> Any:
    return builder.bitcast(builder.xor(builder.bitcast(value, _WORDS), signs), _FLOATS)


@intrinsic
def load(typing: Any, array: Any, i: Any) -> tuple[Any, Coder]:
    """Return coordinates i .. i + 7 of a contiguous float32 array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *arguments), align=4)

    return vector(array, types.intp), code


@intrinsic
def store(typing: Any, array: Any, i: Any, value: Any) -> tuple[Any, Coder]:
    """Write coordinates i .. i + 7 of a contiguous float32 array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, signature.args[0], *arguments[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def plus(typing: Any, a: Any, b: Any) -> tuple[Any, Coder]:
    """Return a + b."""
    return vector(vector, vector), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def minus(typing: Any, a: Any, b: Any) -> tuple[Any, Coder]:
    """Return a - b."""
    return vector(vector, vector), lambda context, builder, signature, arguments: builder.fsub(*arguments)


@intrinsic
def signed(typing: Any, value: Any, s: Any, bits: Any) -> tuple[Any, Coder]:
    """Return lane j times -s if bit j of ``bits`` (uint32) is set, times s otherwise."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, scale, word = arguments
        to_the_top = ir.Constant(_WORDS, [31 - j for j in range(LANES)])
        top_bits = builder.shl(_repeated(builder, word, _WORDS), to_the_top)
        signs = builder.and_(top_bits, ir.Constant(_WORDS, [_SIGN] * LANES))
        return builder.fmul(lanes, _with_signs(builder, _repeated(builder, scale, _FLOATS), signs))

    return vector(vector, types.float32, types.uint32), code


@intrinsic
def mixed(typing: Any, value: Any) -> tuple[Any, Coder]:
    """Return the lanes after the stages of distance 1, 2 and 4: a + b and, as a + (-b), a - b."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (lanes,) = arguments
        for h in (1, 2, 4):
            a = _shuffled(builder, lanes, [j & ~h for j in range(LANES)])
            b = _shuffled(builder, lanes, [j | h for j in range(LANES)])
            signs = ir.Constant(_WORDS, [_SIGN if j & h else 0 for j in range(LANES)])
            lanes = builder.fadd(a, _with_signs(builder, b, signs))
        return lanes

    return vector(vector), code
