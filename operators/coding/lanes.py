"""Eight binary64 numbers in a register, as a type of compiled functions: eight blocks are worked on at once.

Loops over many short arrays are no vector code, because the compiler cannot tell that none overlaps another.  With
these the loops say what happens in registers; each operation rounds like the scalar one, so that the numbers are the
same on every processor.  ``kernels.hadamard.cpu`` has eight binary32 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 8
_FLOATS = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)

Coder = Callable[[Any, Any, Any, Any], Any]  # (context, builder, signature, arguments) -> value


class Lanes(types.Type):
    """The type, for the compiler."""

    def __init__(self) -> None:
        super().__init__("Lanes")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _FLOATS)


def _place(context: Any, builder: Any, array_type: Any, array: Any, i: Any, vector: Any) -> Any:
    """Return a pointer to entries i .. i + 7 of a contiguous array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), vector.as_pointer())


def _called(builder: Any, name: str, *values: Any) -> Any:
    """Return an operation of LLVM on all lanes."""
    function = ir.FunctionType(_FLOATS, [_FLOATS] * len(values))
    return builder.call(cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}.v{LANES}f64"), values)


@intrinsic
def load(typing: Any, array: Any, i: Any) -> tuple[Any, Coder]:
    """Return entries i .. i + 7 of a contiguous float64 array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], arguments[0], arguments[1], _FLOATS), align=8)

    return lanes(array, types.intp), code


@intrinsic
def store(typing: Any, array: Any, i: Any, value: Any) -> tuple[Any, Coder]:
    """Write entries i .. i + 7 of a contiguous float64 array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], _FLOATS)
        builder.store(arguments[2], place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


@intrinsic
def store_integers(typing: Any, array: Any, i: Any, value: Any) -> tuple[Any, Coder]:
    """Write whole numbers below 2^63 as entries i .. i + 7 of a contiguous int64 array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], _INTEGERS)
        builder.store(builder.fptosi(arguments[2], _INTEGERS), place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


@intrinsic
def repeated(typing: Any, value: Any) -> tuple[Any, Coder]:
    """Return a float64 number in all lanes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        undefined, first = ir.Constant(_FLOATS, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        alone = builder.insert_element(undefined, arguments[0], first)
        return builder.shuffle_vector(alone, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    return lanes(types.float64), code


@intrinsic
def plus(typing: Any, a: Any, b: Any) -> tuple[Any, Coder]:
    """Return a + b."""
    return lanes(lanes, lanes), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def minus(typing: Any, a: Any, b: Any) -> tuple[Any, Coder]:
    """Return a - b."""
    return lanes(lanes, lanes), lambda context, builder, signature, arguments: builder.fsub(*arguments)


@intrinsic
def times(typing: Any, a: Any, b: Any) -> tuple[Any, Coder]:
    """Return a b."""
    return lanes(lanes, lanes), lambda context, builder, signature, arguments: builder.fmul(*arguments)


@intrinsic
def floor(typing: Any, a: Any) -> tuple[Any, Coder]:
    """Return the largest whole number that is not above a."""
    return lanes(lanes), lambda context, builder, signature, arguments: _called(builder, "floor", *arguments)


@intrinsic
def size(typing: Any, a: Any) -> tuple[Any, Coder]:
    """Return ``|a|``."""
    return lanes(lanes), lambda context, builder, signature, arguments: _called(builder, "fabs", *arguments)


@intrinsic
def where_above(typing: Any, a: Any, b: Any, yes: Any, no: Any) -> tuple[Any, Coder]:
    """Return ``yes`` where a > b, else ``no``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b, yes, no = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), yes, no)

    return lanes(lanes, lanes, lanes, lanes), code


@intrinsic
def any_reaches(typing: Any, a: Any, b: Any) -> tuple[Any, Coder]:
    """Return whether a >= b in any lane."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        reached = builder.bitcast(builder.fcmp_ordered(">=", *arguments), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", reached, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(lanes, lanes), code
