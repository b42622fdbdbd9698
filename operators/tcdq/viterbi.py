"""The trellis search in the processor's own vectors, row by row, and the choice between the searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from ..compilation import jit
from ..compilation.simd import (
    address,
    call,
    choose,
    floor,
    gather,
    load,
    numbers,
    real,
    repeat,
    shuffle,
    signed,
    store,
    vector,
    whole,
)
from .quantise import (
    EARLY,
    FIRST_COST,
    FULL,
    GRAIN,
    LEAST,
    SETTLE,
    back,
    back_coarse,
    forward,
    forward_coarse,
    integers,
    last_states,
)
from .trellis import CODES, HALF_BITS, LANES, PHASE, UNIT, Grid, Trellis

# Viterbi's algorithm in 16 lanes: what ``quantise.forward`` and ``quantise.back`` do, a row at a time.
#
# Add, compare and select is written out for each code, so that the processor sees every branch's place and label.

PLANE = 32  # survivor bits of a state's number below it share a row of 16; others follow in the next one
F1, F2, F4 = np.float32(1), np.float32(2), np.float32(4)


def planes(states: int) -> int:
    """Return how many rows of 16 hold the survivor bits of one row.

    Parameters
    ----------
    states : int
        Of the trellis.
    """
    return -(-states // PLANE)


def _pairs(trellis: Trellis) -> list[list[int]]:
    """Return the states in pairs that are entered from the same two."""
    pairs: dict[tuple[int, ...], list[int]] = {}
    for s in range(trellis.states):
        pairs.setdefault(tuple(sorted(int(b) >> 2 for b in trellis.before[2 * s : 2 * s + 2])), []).append(s)
    return list(pairs.values())


def _selection(trellis: Trellis) -> Any:
    """Return the intrinsic that brings all metrics a step further and stores the survivors."""

    @intrinsic
    def select(typingctx: Any, metric: Any, old: Any, new: Any, costs: Any, survivors: Any, place: Any) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def lanes_at(array: int, start: Any, offset: int, dtype: Any) -> Any:
                place = signature(types.void, sig.args[array], types.int64)
                index = builder.add(start, start.type(offset * LANES))
                return address(context, builder, place, (args[array], index), vector(dtype))

            cost, narrow = cgutils.unpack_tuple(builder, args[3], 4), sig.args[4].dtype
            taken = [vector(types.uint32)([0] * LANES) for _ in range(planes(trellis.states))]
            for pair in _pairs(trellis):
                before = {int(b) >> 2 for s in pair for b in trellis.before[2 * s : 2 * s + 2]}
                metrics = {p: builder.load(lanes_at(0, args[1], p, types.float32), align=4) for p in before}
                for s in pair:
                    upper, lower = (int(b) for b in trellis.before[2 * s : 2 * s + 2])
                    a = builder.fadd(metrics[upper >> 2], cost[upper & 3])
                    b = builder.fadd(metrics[lower >> 2], cost[lower & 3])
                    other = builder.fcmp_ordered("<", b, a)
                    builder.store(builder.select(other, b, a), lanes_at(0, args[2], s, types.float32), align=4)
                    bit = repeat(builder, ir.IntType(32)(1 << s % PLANE))
                    plane = taken[s // PLANE]
                    taken[s // PLANE] = builder.select(other, builder.or_(plane, bit), plane)
            for i, plane in enumerate(taken):
                value = plane if narrow.bitwidth == 32 else builder.trunc(plane, vector(narrow))
                builder.store(value, lanes_at(4, args[5], i, narrow), align=narrow.bitwidth // 8)
            return context.get_dummy_value()

        arguments = metric, types.int64, types.int64, costs, survivors, types.int64
        return signature(types.void, *arguments), emit

    return select


_select_4, _select_8, _select_64 = (_selection(CODES[states]) for states in (4, 8, 64))


@jit(inline="always")
def mix_lanes(index, first, second):
    """Return ``dither.mix`` of 16 indices."""
    h = index * np.uint32(0x9E3779B1) + first
    h = h ^ (h >> np.uint32(16))
    h = (h * np.uint32(0x85EBCA6B)) ^ second
    h = h ^ (h >> np.uint32(13))
    h = h * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


@jit(inline="always")
def _settle(metric, new, states):
    least = load(metric, new)
    for s in range(1, states):
        m = load(metric, new + s * LANES)
        least = choose(m < least, m, least)
    for s in range(states):
        place = new + s * LANES
        store(metric, place, load(metric, place) - least)


@jit(inline="always")
def distances(x, t, start, grid, floors):
    """Return a row's hashes and the distances of its points from residues 0 and 1; ``floors`` is filled."""
    r = load(x, t * LANES) * grid.scale * grid.inverse
    base = floor(r)
    h = mix_lanes(numbers(np.uint32((start + t) * LANES)), grid.first, grid.second)
    u = signed(h >> np.uint32(8)) * np.int32(2) + np.int32(1 - UNIT)
    y = (r - base) + real(u) * np.float32(2.0**-23)
    down = floor(y)
    bottom = whole(base) + whole(down)
    store(floors, t * LANES, bottom)
    g = real(bottom & np.int32(3)) + (y - down)
    even = choose(g < F4 - g, g, F4 - g)
    odd = choose(g < F1, F1 - g, g - F1)
    return h, even, choose(odd < F4 - odd, odd, F4 - odd)


@jit
def forward_rows(x, start, grid, states, metric, floors, survivors):
    """Bring ``metric`` (twice states rows of 16, flat) over all rows; returns where the last one's metrics begin.

    Parameters
    ----------
    start : int
        First row's number, x being a multiple of 16 long.
    """
    old, new, width = 0, states * LANES, survivors.shape[1]
    flat = survivors.reshape(-1)
    for t in range(x.size // LANES):
        _, even, odd = distances(x, t, start, grid, floors)
        costs = even * even, odd * odd, (F2 - even) * (F2 - even), (F2 - odd) * (F2 - odd)
        if states == 8:
            _select_8(metric, old, new, costs, flat, t * width)
        elif states == 64:
            _select_64(metric, old, new, costs, flat, t * width)
        else:
            _select_4(metric, old, new, costs, flat, t * width)
        if (start + t) % SETTLE == SETTLE - 1:
            _settle(metric, new, states)
        old, new = new, old
    return old


@jit(inline="always")
def back_row(s, survived, t, floors, code, start, grid):
    """Return the states before the states s of a row, whose floors become symbols.

    Parameters
    ----------
    survived : lanes of uint32
        The last bit of each says which branch into s survived.

    Notes
    -----
    B has no bit in the last place of a state and A has, so that this bit is the parity of the state before.  The two
    states before differ by B in what is left of them: the upper one has B's last bit, and z1 says whether B was added.
    """
    top, shift, a_word, b_word = code
    odd = s >> top  # the parity of the state before, then what is left of it but for B
    half = s ^ (odd * a_word)
    free = ((half >> shift) ^ survived) & np.uint32(1)
    parity = signed(odd)
    low = load(floors, t * LANES) - np.int32(1)
    n = low + ((signed(free) * np.int32(2) + parity - low) & np.int32(3))
    u = signed(mix_lanes(numbers(np.uint32((start + t) * LANES)), grid.first, grid.second) >> np.uint32(8))
    a = u * np.int32(2) + np.int32(1 - UNIT) - (parity << np.int32(HALF_BITS))
    k = ((n - parity) >> np.int32(1)) - (a >> np.int32(24))
    store(floors, t * LANES, (k << np.int32(6)) | ((a & np.int32(PHASE)) >> np.int32(18)))
    return ((half ^ (free * b_word)) << np.uint32(1)) | odd


def code_of(trellis: Trellis) -> tuple[np.uint32, ...]:
    """Return place of the last bit of a state, place of B's last bit, A, B.

    Parameters
    ----------
    trellis : Trellis
        With more than one state.
    """
    places = trellis.states.bit_length() - 2, trellis.b.bit_length() - 1
    return tuple(np.uint32(v) for v in (*places, trellis.a, trellis.b))


@jit
def back_rows(floors, survivors, state, code, start, grid):
    """Replace ``floors`` by packed symbols, last row first; ``state`` (uint32, 16) is brought to the first.

    Parameters
    ----------
    code : tuple of uint32
        See ``code_of``.
    """
    flat, width = survivors.reshape(-1), survivors.shape[1]
    s = load(state, 0)
    for t in range(floors.size // LANES - 1, -1, -1):
        taken = load(flat, t * width)
        if width > LANES:
            taken = choose(s < np.uint32(PLANE), taken, load(flat, t * width + LANES))
        s = back_row(s, taken >> (s & np.uint32(PLANE - 1)), t, floors, code, start, grid)
    store(state, 0, s)


def symbols_in_lanes(x: np.ndarray, grid: Any, before: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` (int32) with the packed symbols of 16 trellises side by side.

    Parameters
    ----------
    x : ndarray of float32, shape (d,)
        Values of one segment.
    grid : Grid
        What it is quantised to.
    before : ndarray of int32, shape (2 states,)
        The trellis; see ``Trellis.before``.
    """
    states, rows = before.size // 2, x.size // LANES
    kind, code = np.uint8 if states <= 8 else np.uint32, code_of(CODES[states])
    metric = np.full((2 * states, LANES), np.float32(np.inf), np.float32)
    metric[0] = 0
    survivors = np.empty((rows, planes(states) * LANES), kind)
    bulk, rest = slice(rows * LANES), x.size - rows * LANES
    top = forward_rows(x[bulk], 0, grid, states, metric.reshape(-1), out[bulk], survivors) // LANES
    state = metric[top : top + states].argmin(axis=0).astype(np.uint32)
    if rest:  # a row of its own; the lanes that it lacks end before it
        last, floors = np.zeros(LANES, np.float32), np.empty(LANES, np.int32)
        last[:rest] = x[bulk.stop :]
        end, taken = np.concatenate([metric[top : top + states]] * 2), np.empty((1, survivors.shape[1]), kind)
        forward_rows(last, rows, grid, states, end.reshape(-1), floors, taken)
        stopped = end[states:].argmin(axis=0).astype(np.uint32)
        back_rows(floors, taken, stopped, code, rows, grid)
        out[bulk.stop :], state[:rest] = floors[:rest], stopped[:rest]
    back_rows(out[bulk], survivors, state, code, 0, grid)


# What ``coarse`` does in 16 lanes: two states that are entered from the same two are 32 bytes side by side.
#
# Add, compare and select is written out as in ``_selection``.

BOTH, ONE = vector(types.uint8, 2 * LANES), vector(types.uint8)


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
    return builder.shuffle_vector(a, b, vector(types.uint32, 2 * LANES)(list(range(2 * LANES))))


def _pair_selection(trellis: Trellis) -> Any:
    """Return the intrinsic that brings all metrics a step further and stores the survivors, 32 bits for a pair."""
    where = places(trellis)

    @intrinsic
    def select(
        typingctx: Any, metric: Any, old: Any, new: Any, costs: Any, ties: Any, survivors: Any, place: Any
    ) -> Any:
        def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def pointer(array: int, start: Any, offset: int, kind: Any) -> Any:
                place = signature(types.void, sig.args[array], types.int64)
                return address(context, builder, place, (args[array], builder.add(start, start.type(offset))), kind)

            def before(state: int) -> Any:
                row = builder.load(pointer(0, args[1], LANES * int(where[state]), ONE), align=LANES)
                return _doubled(builder, row, row)

            cost = [builder.trunc(c, ONE) for c in cgutils.unpack_tuple(builder, args[3], 4)]
            pairs = [_doubled(builder, cost[j], cost[j ^ 2]) for j in range(4)]
            tie = builder.trunc(args[4], ONE)
            tie = _doubled(builder, tie, tie)
            for first in (s for s in range(trellis.states) if where[s] % 2 == 0):
                upper, lower = (int(b) for b in trellis.before[2 * first : 2 * first + 2])
                a = call(builder, "uadd.sat", BOTH, before(upper >> 2), pairs[upper & 3])
                b = call(builder, "uadd.sat", BOTH, before(lower >> 2), pairs[lower & 3])
                taken = builder.icmp_unsigned("<", builder.sub(b, tie), a)
                row = int(where[first])
                least = call(builder, "umin", BOTH, a, b)
                builder.store(least, pointer(0, args[2], LANES * row, BOTH), align=LANES)
                mask = builder.bitcast(taken, ir.IntType(2 * LANES))
                builder.store(mask, pointer(5, args[6], row // 2, ir.IntType(2 * LANES)), align=4)
            return context.get_dummy_value()

        arguments = metric, types.int64, types.int64, costs, ties, survivors, types.int64
        return signature(types.void, *arguments), emit

    return select


_select_128, _select_256 = (_pair_selection(CODES[states]) for states in (128, 256))


@intrinsic
def _settle_pairs(typingctx: Any, metric: Any, start: Any, count: Any) -> Any:
    """Subtract from the metrics of ``count`` pairs what brings each lane's least to 1."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def pointer(pair: Any) -> Any:
            index = builder.add(args[1], builder.mul(pair, pair.type(2 * LANES)))
            return address(context, builder, signature(types.void, sig.args[0], types.int64), (args[0], index), BOTH)

        least = cgutils.alloca_once_value(builder, BOTH([FULL] * 2 * LANES))
        with cgutils.for_range(builder, args[2]) as loop:
            pair = builder.load(pointer(loop.index), align=LANES)
            builder.store(call(builder, "umin", BOTH, builder.load(least), pair), least)
        both = builder.load(least)
        other = shuffle(builder, both, [(i + LANES) % (2 * LANES) for i in range(2 * LANES)])
        both = call(builder, "umin", BOTH, both, other)
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
def forward_pairs(x, start, grid, metric, floors, survivors):
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
            _settle_pairs(metric, new, pairs)
        old, new = new, old
    return old


@jit
def back_pairs(floors, survivors, state, code, start, grid):
    """Replace ``floors`` by packed symbols, last row first; ``state`` (uint32, 16) is brought to the first.

    Parameters
    ----------
    code : tuple of uint32
        See ``code_of``.
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


def symbols_in_pairs(x: np.ndarray, grid: Any, states: int, out: np.ndarray) -> None:
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
    top = forward_pairs(x[bulk], 0, grid, metric.reshape(-1), out[bulk], survivors) // LANES
    end = metric[top : top + states]
    state = last_states(end[where], grid).astype(np.uint32)
    if rest:  # a row of its own; the lanes that it lacks end before it
        final, floors = np.zeros(LANES, np.float32), np.empty(LANES, np.int32)
        final[:rest] = x[bulk.stop :]
        metrics, taken = np.concatenate([end] * 2), np.empty((1, states // 2), np.uint32)
        forward_pairs(final, rows, grid, metrics.reshape(-1), floors, taken)
        stopped = last_states(metrics[states:][where], grid).astype(np.uint32)
        back_pairs(floors, taken, stopped, code, rows, grid)
        out[bulk.stop :], state[:rest] = floors[:rest], stopped[:rest]
    back_pairs(out[bulk], survivors, state, code, 0, grid)


# A vector's symbols, by whichever kernels suit its length and code.


def symbols(x: np.ndarray, grid: Grid, trellis: Trellis, lanes: int) -> np.ndarray:
    """Return the packed symbols of a segment: int32, shape (d,).

    Parameters
    ----------
    x : ndarray of float32, shape (d,)
        Values of one segment.
    grid : Grid
        What it is quantised to.
    trellis : Trellis
        The code.
    lanes : int
        How many trellises run side by side.
    """
    out = np.empty(x.size, np.int32)
    if trellis.states == 1:
        integers(x, grid, out)
    elif lanes == LANES and trellis.coarse:
        symbols_in_pairs(x, grid, trellis.states, out)
    elif lanes == LANES:
        symbols_in_lanes(x, grid, trellis.before, out)
    elif trellis.coarse:
        _coarse(x, grid, trellis, out, lanes)
    else:
        _fine(x, grid, trellis, out, lanes)
    return out


def _fine(x: np.ndarray, grid: Grid, trellis: Trellis, out: np.ndarray, lanes: int) -> None:
    survivors = np.empty((-(-x.size // lanes), lanes), np.uint8 if trellis.states <= 8 else np.uint64)
    metric = np.full((trellis.states, lanes), np.float32(np.inf), np.float32)
    metric[0] = 0
    forward(x, grid, trellis.before, metric, out, survivors)
    back(out, survivors, metric.argmin(axis=0).astype(np.uint8), trellis.before.astype(np.uint8), grid)


def _coarse(x: np.ndarray, grid: Grid, trellis: Trellis, out: np.ndarray, lanes: int) -> None:
    survivors = np.empty((-(-x.size // lanes), lanes, trellis.states), np.uint8)
    metric = np.full((trellis.states, lanes), FULL, np.uint8)
    metric[0] = LEAST
    forward_coarse(x, grid, trellis.before, metric, out, survivors)
    back_coarse(out, survivors, last_states(metric, grid), trellis.before, grid)
