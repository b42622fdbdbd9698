"""What ``coarse`` does in 16 lanes: two states that are entered from the same two are 32 bytes side by side.

Add, compare and select is written out as in ``viterbi_simd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from ..compilation import jit
from .coarse import EARLY, FIRST_COST, FULL, GRAIN, LEAST, last_states
from .lanes import call, choose, numbers, whole
from .lanes_memory import address, gather, load, store
from .quantise import SETTLE
from .trellis import CODES, LANES, Trellis
from .viterbi_simd import F2, back_row, code_of, distances

BOTH = ir.VectorType(ir.IntType(8), 2 * LANES)
ONE = ir.VectorType(ir.IntType(8), LANES)


def places(trellis: Trellis) -> np.ndarray:
    """Return where the metrics of each state lie, in rows of 16: shape (S,).

    Parameters
    ----------
    trellis : Trellis
        The code; state s has the neighbour s xor B, the one with B's last bit is the second.
    """
    s, last = np.arange(trellis.states), trellis.b.bit_length() - 1
    second = s >> last & 1
    first = s ^ second * trellis.b
    return 2 * ((first >> last + 1 << last) | (first & (1 << last) - 1)) + second


def _doubled(builder: Any, a: Any, b: Any) -> Any:
    order = ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), list(range(2 * LANES)))
    return builder.shuffle_vector(a, b, order)


def _selection(trellis: Trellis) -> Any:
    """Return the intrinsic that brings all metrics a step further and stores the survivors, 32 bits for a pair."""
    where, name = places(trellis), f"v{2 * LANES}i8"

    @intrinsic
    def select(
        typingctx: Any, metric: Any, old: Any, new: Any, costs: Any, ties: Any, survivors: Any, place: Any
    ) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def pointer(array: int, start: Any, offset: int, kind: Any) -> Any:
                index = builder.add(start, start.type(offset))
                sought = signature(types.void, sig.args[array], types.int64)
                return builder.bitcast(address(context, builder, sought, (args[array], index)), kind.as_pointer())

            def before(state: int) -> Any:
                row = builder.load(pointer(0, args[1], LANES * int(where[state]), ONE), align=LANES)
                return _doubled(builder, row, row)

            cost = [builder.trunc(c, ONE) for c in cgutils.unpack_tuple(builder, args[3], 4)]
            pairs = [_doubled(builder, cost[j], cost[j ^ 2]) for j in range(4)]
            tie = builder.trunc(args[4], ONE)
            tie = _doubled(builder, tie, tie)
            for first in (s for s in range(trellis.states) if where[s] % 2 == 0):
                upper, lower = (int(b) for b in trellis.before[2 * first : 2 * first + 2])
                a = call(builder, f"llvm.uadd.sat.{name}", BOTH, before(upper >> 2), pairs[upper & 3])
                b = call(builder, f"llvm.uadd.sat.{name}", BOTH, before(lower >> 2), pairs[lower & 3])
                taken = builder.icmp_unsigned("<", builder.sub(b, tie), a)
                row = int(where[first])
                builder.store(
                    call(builder, f"llvm.umin.{name}", BOTH, a, b), pointer(0, args[2], LANES * row, BOTH), align=LANES
                )
                mask = builder.bitcast(taken, ir.IntType(2 * LANES))
                builder.store(mask, pointer(5, args[6], row // 2, ir.IntType(2 * LANES)), align=4)
            return context.get_dummy_value()

        arguments = metric, types.int64, types.int64, costs, ties, survivors, types.int64
        return signature(types.void, *arguments), emit

    return select


_select_128, _select_256 = (_selection(CODES[states]) for states in (128, 256))


@intrinsic
def _settle(typingctx: Any, metric: Any, start: Any, count: Any) -> Any:
    """Subtract from the metrics of ``count`` pairs what brings each lane's least to 1."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def pointer(pair: Any) -> Any:
            index = builder.add(args[1], builder.mul(pair, pair.type(2 * LANES)))
            sought = signature(types.void, sig.args[0], types.int64)
            return builder.bitcast(address(context, builder, sought, (args[0], index)), BOTH.as_pointer())

        least = cgutils.alloca_once_value(builder, BOTH([FULL] * 2 * LANES))
        with cgutils.for_range(builder, args[2]) as loop:
            pair = builder.load(pointer(loop.index), align=LANES)
            builder.store(call(builder, f"llvm.umin.v{2 * LANES}i8", BOTH, builder.load(least), pair), least)
        both = builder.load(least)
        halves = ir.Constant(
            ir.VectorType(ir.IntType(32), 2 * LANES), [(i + LANES) % (2 * LANES) for i in range(2 * LANES)]
        )
        other = builder.shuffle_vector(both, both, halves)
        both = call(builder, f"llvm.umin.v{2 * LANES}i8", BOTH, both, other)
        spare = builder.sub(both, BOTH([LEAST] * 2 * LANES))
        with cgutils.for_range(builder, args[2]) as loop:
            place = pointer(loop.index)
            builder.store(builder.sub(builder.load(place, align=LANES), spare), place, align=LANES)
        return context.get_dummy_value()

    return signature(types.void, metric, types.int64, types.int64), emit


@jit(inline="always")
def _cost(away, most):
    cost = whole(away * away * GRAIN)
    return choose(cost < most, cost, most)


@jit
def forward_rows(x, start, grid, metric, floors, survivors):
    """Bring ``metric`` (uint8, twice states rows of 16) over all rows; returns where the last one's metrics begin.

    Parameters
    ----------
    start : int
        First row's number, x being a multiple of 16 long.
    survivors : ndarray of uint32, shape (rows, states / 2)
        Receives 32 bits for each pair of states.
    """
    half, pairs = metric.size // 2, survivors.shape[1]
    old, new, flat = 0, half, survivors.reshape(-1)
    for t in range(x.size // LANES):
        h, even, odd = distances(x, t, start, grid, floors)
        most = np.int32(FIRST_COST if start + t < EARLY else FULL)
        costs = (
            _cost(even, most),
            _cost(odd, most),
            _cost(F2 - even, most),
            _cost(F2 - odd, most),
        )
        if pairs == 64:
            _select_128(metric, old, new, costs, h & np.uint32(1), flat, t * pairs)
        else:
            _select_256(metric, old, new, costs, h & np.uint32(1), flat, t * pairs)
        if (start + t) % SETTLE == SETTLE - 1:
            _settle(metric, new, pairs)
        old, new = new, old
    return old


@jit
def back_rows(floors, survivors, state, code, start, grid):
    """Replace ``floors`` by packed symbols, last row first; ``state`` (uint32, 16) is brought to the first.

    Parameters
    ----------
    code : tuple of uint32
        See ``viterbi_simd.code_of``.
    """
    flat, pairs = survivors.reshape(-1), survivors.shape[1]
    last, b_word = code[1], code[3]
    above, below = last + np.uint32(1), (np.uint32(1) << last) - np.uint32(1)
    lane = numbers(np.uint32(0))
    s = load(state, 0)
    for t in range(floors.size // LANES - 1, -1, -1):
        second = (s >> last) & np.uint32(1)
        first = s ^ (second * b_word)
        pair = ((first >> above) << last) | (first & below)
        taken = gather(flat, pair + np.uint32(t * pairs)) >> ((second << np.uint32(4)) | lane)
        s = back_row(s, taken, t, floors, code, start, grid)
    store(state, 0, s)


def symbols_in_lanes(x: np.ndarray, grid: Any, states: int, out: np.ndarray) -> None:
    """Fill ``out`` (int32) with the packed symbols of 16 trellises side by side.

    Parameters
    ----------
    x : ndarray of float32, shape (d,)
        Values of one segment.
    grid : Grid
        What it is quantised to.
    states : int
        Of the trellis.
    """
    rows, code, where = x.size // LANES, code_of(CODES[states]), places(CODES[states])
    metric = np.full((2 * states, LANES), FULL, np.uint8)
    metric[where[0]] = LEAST
    survivors = np.empty((rows, states // 2), np.uint32)
    bulk, rest = slice(rows * LANES), x.size - rows * LANES
    top = forward_rows(x[bulk], 0, grid, metric.reshape(-1), out[bulk], survivors) // LANES
    end = metric[top : top + states]
    state = last_states(end[where], grid).astype(np.uint32)
    if rest:  # a row of its own; the lanes that it lacks end before it
        final, floors = np.zeros(LANES, np.float32), np.empty(LANES, np.int32)
        final[:rest] = x[bulk.stop :]
        metrics, taken = np.concatenate([end] * 2), np.empty((1, states // 2), np.uint32)
        forward_rows(final, rows, grid, metrics.reshape(-1), floors, taken)
        stopped = last_states(metrics[states:][where], grid).astype(np.uint32)
        back_rows(floors, taken, stopped, code, rows, grid)
        out[bulk.stop :], state[:rest] = floors[:rest], stopped[:rest]
    back_rows(out[bulk], survivors, state, code, 0, grid)
