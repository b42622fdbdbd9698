"""TCDQ's codec on the device: what the CPU decides, and the kernels' order."""

from __future__ import annotations

import math
import struct

import numpy as np
import torch
import triton
import triton.language as tl

from ..kernels.norms import cuda as norms
from ..kernels.philox.cuda import signed
from ..key import Key
from ..message import CorruptMessage
from ..quantisers.scale import TINY, nearest
from .codec import all_symbols, read_model, read_norm, whole, within_limits
from .fit import Choice, fitted, least_squares, stride
from .model import CLASSES, COMPONENTS, NORM_BYTES, THRESHOLDS, Model, Plan, Tables, build, lookup
from .rans import ROOM
from .subset import STREAM
from .trellis import COUNT_BYTES, shape
from .trellis import seeds as seeds_of

# Dither, trellis search and hashes in Triton.
#
# Every rounding is that of the CPU: binary32 products, sums, floors and comparisons, one by one, hence launches with
# ``enable_fp_fusion=False``; all else is integers.

BLOCK = 1024


@triton.jit
def mix(index, first, second):
    """Return the hash of indices (any integers), uint32."""
    h = index.to(tl.uint32) * 0x9E3779B1 + first.to(tl.uint32)
    h = h ^ (h >> 16)
    h = (h * 0x85EBCA6B) ^ second.to(tl.uint32)
    h = h ^ (h >> 13)
    h = h * 0xC2B2AE35
    return h ^ (h >> 16)


@triton.jit
def dither(index, first, second, SHIFT: tl.constexpr):
    """Return u in units of 2^-24 spacing: int32."""
    return (mix(index, first, second) >> SHIFT).to(tl.int32) * 2 + 1 - (1 << (32 - SHIFT))


@triton.jit
def point(value, u, unit, scale, inverse):
    """Return (F, y - F), F the floor of y = value scale inverse + u unit."""
    r = value * scale * inverse
    whole = tl.floor(r)
    g = (r - whole) + u.to(tl.float32) * unit
    down = tl.floor(g)
    return whole.to(tl.int32) + down.to(tl.int32), g - down


@triton.jit
def square(label, even, odd):
    """Return squared distance to the residue ``label``, from the distances to residues 0 and 1."""
    away = tl.where((label & 1) == 1, odd, even)
    away = tl.where((label & 2) == 2, 2.0 - away, away)
    return away * away


@triton.jit
def bounds(program, d, segment):
    """Return (first coordinate, the one after the last, rows of 16) of a segment."""
    start = program.to(tl.int64) * segment
    stop = tl.where(program == tl.num_programs(0) - 1, d, start + segment)
    return start, stop, ((stop - start + 15) // 16).to(tl.int32)


@triton.jit(do_not_specialize=["d", "segment", "first", "second"])
def _forward(x, before, floors, survivors, ends, d, segment, first, second, factors, STATES: tl.constexpr):
    """Viterbi's forward pass of one segment: floors, one survivor bit per state, and every lane's last state."""
    start, stop, rows = bounds(tl.program_id(0), d, segment)
    lane, state = tl.arange(0, 16), tl.arange(0, STATES)
    upper, lower = tl.load(before + 2 * state)[None, :], tl.load(before + 2 * state + 1)[None, :]
    whence, other = tl.broadcast_to(upper >> 2, (16, STATES)), tl.broadcast_to(lower >> 2, (16, STATES))
    metric = tl.where(state == 0, 0.0, float("inf"))[None, :] + tl.zeros((16, STATES), tl.float32)
    for t in tl.range(0, rows, num_stages=4):
        i = start + t * 16 + lane
        present = i < stop
        u = dither(i, first, second, 8)
        floor, fraction = point(tl.load(x + i, mask=present, other=0.0), u, 1.1920928955078125e-07, *factors)
        tl.store(floors + i, floor, mask=present)
        y = (floor & 3).to(tl.float32) + fraction
        even, odd = tl.minimum(y, 4.0 - y), tl.abs(y - 1.0)
        odd = tl.minimum(odd, 4.0 - odd)
        a = tl.gather(metric, whence, 1) + square(upper & 3, even[:, None], odd[:, None])
        b = tl.gather(metric, other, 1) + square(lower & 3, even[:, None], odd[:, None])
        taken = (b < a).to(tl.int64) << state[None, :]
        tl.store(survivors + i, tl.sum(taken, axis=1).to(survivors.dtype.element_ty), mask=present)
        metric = tl.where(present[:, None], tl.minimum(a, b), metric)
        if t % 16 == 15:
            metric -= tl.min(metric, axis=1)[:, None]
    least = tl.where(metric == tl.min(metric, axis=1)[:, None], state[None, :], STATES)
    tl.store(ends + tl.program_id(0) * 16 + lane, tl.min(least, axis=1))


@triton.jit(do_not_specialize=["d", "segment", "first", "second"])
def _back(before, floors, survivors, ends, d, segment, first, second):
    """From the last row to the first: ``floors`` become packed symbols."""
    start, stop, rows = bounds(tl.program_id(0), d, segment)
    lane = tl.arange(0, 16)
    state = tl.load(ends + tl.program_id(0) * 16 + lane)
    for r in tl.range(0, rows, num_stages=4):
        i = start + (rows - 1 - r) * 16 + lane
        present = i < stop
        survived = tl.load(survivors + i, mask=present, other=0).to(tl.int64) >> state
        branch = tl.load(before + 2 * state + (survived & 1).to(tl.int32))
        state = tl.where(present, branch >> 2, state)
        low = tl.load(floors + i, mask=present, other=0) - 1
        parity = branch & 1
        n = low + (((branch & 3) - low) & 3)
        a = dither(i, first, second, 8) - (parity << 23)
        k = ((n - parity) >> 1) - (a >> 24)
        tl.store(floors + i, (k << 6) | ((a & 0xFFFFFF) >> 18), mask=present)


@triton.jit(do_not_specialize=["d", "first", "second", "scale", "inverse"])
def _integers(x, out, d, first, second, scale, inverse, BLOCK: tl.constexpr):
    """Packed symbols of the code without a trellis."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    u = dither(i, first, second, 9)
    floor, rest = point(tl.load(x + i, mask=i < d, other=0.0), u, 5.9604644775390625e-08, scale, inverse)
    n = floor + (rest >= 0.5).to(tl.int32)
    tl.store(out + i, ((n - (u >> 24)) << 6) | ((u & 0xFFFFFF) >> 18), mask=i < d)


@triton.jit(do_not_specialize=["d", "first", "second"])
def _hashes(out, d, first, second, BLOCK: tl.constexpr):
    """Hashes less 2^31, as int32, so that their order is kept."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, (mix(i, first, second) ^ 0x80000000).to(tl.int32, bitcast=True), mask=i < d)


def words(seeds: tuple) -> tuple[int, int]:
    """Return the dither's seeds as kernel arguments of one type."""
    return signed(int(seeds[0])), signed(int(seeds[1]))


def symbols(x: torch.Tensor, plan: Plan, norm: float, seeds: tuple) -> torch.Tensor:
    """Return packed symbols: int32, shape (d,)."""
    step, scale = plan.step(norm)
    d, out = plan.d, torch.empty(plan.d, dtype=torch.int32, device=x.device)
    factors = 1 / scale, 1 / step
    if plan.code.states == 1:
        _integers[(triton.cdiv(d, BLOCK),)](x, out, d, *words(seeds), *factors, BLOCK=BLOCK, enable_fp_fusion=False)
        return out
    before, grid = torch.from_numpy(plan.code.before).to(x.device), (len(plan.segments),)
    wide = torch.int32 if plan.code.states <= 32 else torch.int64  # narrower ones cannot be fetched ahead of their use
    survivors = torch.empty(d, dtype=wide, device=x.device)
    ends = torch.empty(16 * grid[0], dtype=torch.int32, device=x.device)
    fixed = {"STATES": plan.code.states, "enable_fp_fusion": False, "num_warps": max(1, plan.code.states // 16)}
    _forward[grid](x, before, out, survivors, ends, d, plan.segment, *words(seeds), factors, **fixed)
    _back[grid](before, out, survivors, ends, d, plan.segment, *words(seeds), num_warps=1)
    return out


def hashes(d: int, seeds: tuple, device: torch.device) -> torch.Tensor:
    """Return every coordinate's hash less 2^31: int32, shape (d,)."""
    out = torch.empty(d, dtype=torch.int32, device=device)
    _hashes[(triton.cdiv(d, BLOCK),)](out, d, *words(seeds), BLOCK=BLOCK)
    return out


# Contexts and the interleaved coder of the long format in Triton: integers only.
#
# A row is one symbol of each of a segment's 16 coder states.  Their words follow one another lane by lane; how many a
# lane writes or reads does not depend on the others, so a prefix sum finds every lane's place.  A row with an escape
# is worked off lane by lane.

ROWS = 64


@triton.jit
def split(symbol, LOW: tl.constexpr):
    """Return (k, phase, low part) of a packed symbol."""
    k, phase, rest = symbol >> 6, symbol & 63, symbol & 0
    if LOW > 0:
        k += 1 << (LOW - 1)
        rest = k & ((1 << LOW) - 1)
        k, phase = k >> LOW, (phase + 32) >> LOW
    return k, phase, rest


@triton.jit
def magnitude(k, phase):
    """Return ``|n - u|`` in 1/64 spacings, rounded down: int64."""
    signed = k.to(tl.int64) * 64 - phase
    return tl.where(k > 0, signed - 1, -signed)


@triton.jit(do_not_specialize=["d", "per", "count"])
def _classes(symbols, thresholds, starts, groups, energy, d, per, count, LOW: tl.constexpr, ROWS: tl.constexpr):
    """The mixture of every row but each segment's first, from the row before; sums of (2 j + 1)^2."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    index = row[:, None] * 16 + tl.arange(0, 16)[None, :]
    k, phase, _ = split(tl.load(symbols + index, mask=index < d, other=0), LOW)
    j = tl.where(index < d, magnitude(k, phase), 0)
    odd = tl.where(index < d, 2 * j + 1, 0)
    tl.store(energy + tl.program_id(0), tl.sum(tl.sum(odd * odd, axis=1), axis=0))
    reached = tl.sum(j, axis=1)[:, None] >= tl.load(thresholds + tl.arange(0, 16))[None, :]
    group = tl.load(starts + tl.sum(reached.to(tl.int32), axis=1))
    follows = ((row + 1) * 16 < d) & (((row + 1) % per != 0) | ((row + 1) // per >= count))
    tl.store(groups + row + 1, group, mask=follows)


@triton.jit
def put(state, start, frequency, active):
    """Return (state, word, whether it is written) of the active lanes."""
    full = active & (state >= (frequency << 20))
    word = state & 0xFFFF
    small = tl.where(full, state >> 16, state)
    q = small // frequency
    return tl.where(active, (q << 12) + (small - q * frequency) + start, state), word, full.to(tl.int32)


@triton.jit
def put_alone(state, out, position, start, frequency, active):
    """Return ``put`` of at most one lane, and its word below ``position``."""
    state, word, full = put(state, start.to(tl.uint32), frequency.to(tl.uint32), active)
    position -= tl.sum(full, axis=0)
    tl.store(out + position + full * 0, word.to(tl.int32), mask=full > 0)
    return state, position


@triton.jit(do_not_specialize=["d", "segment", "room"])
def _write(symbols, groups, tables, out, states, firsts, d, segment, room, LOW: tl.constexpr):
    """Words of one segment backwards from the end of its room; its first word, or -1 if they do not fit."""
    widest, offset, pairs = tables
    begin, stop, rows = bounds(tl.program_id(0), d, segment)
    segment_out = out + tl.program_id(0).to(tl.int64) * room
    lane = tl.arange(0, 16)
    state = tl.full((16,), 65536, tl.uint32)
    first, spilt = room, 0
    for r in tl.range(0, rows, num_stages=4):
        row = rows - 1 - r
        coordinate = begin + row * 16 + lane
        present = coordinate < stop
        group = tl.load(groups + begin // 16 + row).to(tl.int32)
        top, base = tl.load(widest + group).to(tl.int32), tl.load(offset + group).to(tl.int32)
        k, phase, rest = split(tl.load(symbols + coordinate, mask=present, other=0), LOW)
        index = k + top - 1
        escape = present & ((index < 0) | (index >= 2 * top))
        entry = base + (phase >> 2) * (2 * top + 1) + tl.where(escape, 2 * top, index)
        pair = tl.load(pairs + entry, mask=present, other=1).to(tl.uint32, bitcast=True)
        start, frequency = pair >> 16, pair & 0xFFFF
        if first < 16 * 12:
            first, spilt = room, 1
        if tl.max(escape.to(tl.int32), axis=0) == 0:
            second, after = lane.to(tl.uint32), lane * 0
            if LOW > 0:
                unit = tl.full((16,), 1 << (12 - LOW), tl.uint32)
                state, second, after = put(state, rest.to(tl.uint32) << (12 - LOW), unit, present)
            state, word, full = put(state, start, frequency, present)
            many = full + after
            first -= tl.sum(many, axis=0)
            place = segment_out + first + tl.cumsum(many, axis=0) - many
            tl.store(place, word.to(tl.int32), mask=full > 0)
            tl.store(place + full, second.to(tl.int32), mask=after > 0)
        else:
            excess = tl.where(k > 0, k - top, 1 - top - k)
            length = lane * 0
            for i in tl.static_range(1, 27):
                length += (escape & ((excess >> i) > 0)).to(tl.int32)
            for q in range(16):
                alone = present & (lane == 15 - q)
                if LOW > 0:
                    state, first = put_alone(
                        state, segment_out, first, rest << (12 - LOW), lane * 0 + (1 << (12 - LOW)), alone
                    )
                escapes = alone & escape
                if tl.max(escapes.to(tl.int32), axis=0) == 1:
                    for i in tl.static_range(4):
                        width = tl.minimum(tl.maximum(length - 8 * i, 0), 8)
                        piece = (excess >> (8 * i)) & ((1 << width) - 1)
                        active = escapes & (width > 0)
                        state, first = put_alone(
                            state, segment_out, first, piece << (12 - width), 1 << (12 - width), active
                        )
                    field = tl.where(k > 0, length, length | 32)
                    state, first = put_alone(state, segment_out, first, field << 6, lane * 0 + 64, escapes)
                state, first = put_alone(state, segment_out, first, start, frequency, alone)
    tl.store(states + tl.program_id(0) * 16 + lane, state.to(tl.int32, bitcast=True))
    tl.store(firsts + tl.program_id(0), tl.where(spilt == 1, -1, first))


@triton.jit
def store_bytes(out, value, COUNT: tl.constexpr, mask):
    """The low COUNT bytes, most significant first."""
    for i in tl.static_range(COUNT):
        tl.store(out + i, ((value >> (8 * (COUNT - 1 - i))) & 255).to(tl.uint8), mask=mask)


@triton.jit(do_not_specialize=["room"])
def _join(found, states, firsts, ends, out, room, BLOCK: tl.constexpr):
    """The segments' bytes, each up to its end: number of words (not for the last), states, words."""
    j, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, lane = tl.load(firsts + j), tl.arange(0, 16)
    count = room - first
    body = out + tl.load(ends + j) - 2 * count
    i = block * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(found + j * room + first + i, mask=i < count, other=0)
    store_bytes(body + 2 * i, word, 2, i < count)
    if block == 0:
        store_bytes(body - 64 + 4 * lane, tl.load(states + j * 16 + lane), 4, lane >= 0)
        store_bytes(body - 68 + lane, lane * 0 + count, 4, (lane == 0) & (j < tl.num_programs(0) - 1))


@triton.jit
def load_bytes(payload, at, COUNT: tl.constexpr, mask):
    """Return COUNT bytes as a number, most significant first: uint32, 0 outside the mask."""
    value = tl.load(payload + at, mask=mask, other=0).to(tl.uint32)
    for i in tl.static_range(1, COUNT):
        value = (value << 8) | tl.load(payload + at + i, mask=mask, other=0).to(tl.uint32)
    return value


@triton.jit(do_not_specialize=["size", "at", "count"])
def _parts(payload, begins, counts, size, at, count):
    """Where each segment's states begin and how many words follow them; beyond the payload, the last begins at -1."""
    place = at.to(tl.int64)
    for j in range(count - 1):
        many = load_bytes(payload, place, 4, place + 4 <= size).to(tl.int64)
        tl.store(begins + j, place + 4)
        tl.store(counts + j, many)
        place = tl.minimum(place + 68 + 2 * many, size)
    rest = size - place - 64
    tl.store(begins + count - 1, tl.where((rest >= 0) & (rest % 2 == 0), place, -1))
    tl.store(counts + count - 1, rest // 2)


@triton.jit
def refill(state, payload, at, many, count, active):
    """Return the next word for the active lanes whose state is too small; ``many`` : words before each lane's."""
    short = active & (state < 65536)
    word = load_bytes(payload, at + 2 * many.to(tl.int64), 2, short & (many < count))
    return tl.where(short, (state << 16) | word, state)


@triton.jit
def take_alone(state, payload, at, read, count, width, active):
    """Return (field of ``width`` bits, state, words read) of at most one lane, and 0 for the others."""
    shift = (12 - width).to(tl.uint32)
    value = tl.where(active, ((state & 4095) >> shift).to(tl.int32), 0)
    kept = ((state >> 12) << shift) + (state & ((tl.full((16,), 1, tl.uint32) << shift) - 1))
    state = tl.where(active, kept, state)
    more = tl.sum((active & (state < 65536)).to(tl.int32), axis=0)
    return value, refill(state, payload, at, read + value * 0, count, active), read + more


@triton.jit(do_not_specialize=["d", "segment", "first", "second"])
def _read(
    payload, segments, tables, results, d, segment, code, first, second, factors,
    LOW: tl.constexpr, SHIFT: tl.constexpr, MANY: tl.constexpr,
):  # fmt: skip
    """One segment's coordinates, and whether its stream ends where it began."""
    begins, counts = segments
    thresholds, starts, widest, table = tables
    out, good = results
    a, b = code
    step, scale = factors
    begin, stop, rows = bounds(tl.program_id(0), d, segment)
    lane = tl.arange(0, 16)
    place, count = tl.load(begins + tl.program_id(0)), tl.load(counts + tl.program_id(0)).to(tl.int32)
    state = load_bytes(payload, place + 4 * lane, 4, lane >= 0)
    place += 64
    fine = tl.min((state >= 65536).to(tl.int32), axis=0)
    limits = tl.load(thresholds + tl.arange(0, 16))
    trellis, past, read = lane * 0, begin * 0, 0
    for t in range(rows):
        coordinate = begin + t * 16 + lane
        present = coordinate < stop
        group = tl.load(starts + tl.sum((past >= limits).to(tl.int32), axis=0)).to(tl.int32)
        top = tl.load(widest + group).to(tl.int32)
        shifted = dither(coordinate, first, second, SHIFT) - ((trellis & 1) << 23)
        w = shifted & 0xFFFFFF
        phase = w >> 18
        if LOW > 0:
            phase = (phase + 32) >> LOW
        slot = (state & 4095).to(tl.int32)
        entry = tl.load(table + (group << 16) + ((phase >> 2) << 12) + slot).to(tl.uint32, bitcast=True)
        state = tl.where(present, (entry >> 20) * (state >> 12) + ((entry >> 8) & 4095), state)
        index = (entry & 255).to(tl.int32)
        k, rest = (index + 1 - top).to(tl.int64), lane * 0
        escape = present & (index == 2 * top)
        if tl.max(escape.to(tl.int32), axis=0) == 0:
            short = present & (state < 65536)
            many = short.to(tl.int32)
            if LOW > 0:  # whether the field needs a word shows in the upper half, which the first word leaves alone
                many += (present & (tl.where(short, state, state >> 16) < (1 << LOW))).to(tl.int32)
            before = read + tl.cumsum(many, axis=0) - many
            state = refill(state, payload, place, before, count, present)
            if LOW > 0:
                rest = ((state & 4095) >> (12 - LOW)).to(tl.int32)
                kept = ((state >> 12) << (12 - LOW)) + (state & ((1 << (12 - LOW)) - 1))
                state = tl.where(present, kept, state)
                state = refill(state, payload, place, before + short.to(tl.int32), count, present)
            read += tl.sum(many, axis=0)
        else:
            for q in range(16):
                alone = present & (lane == q)
                more = tl.sum((alone & (state < 65536)).to(tl.int32), axis=0)
                state = refill(state, payload, place, read + lane * 0, count, alone)
                read += more
                escapes = alone & escape
                if tl.max(escapes.to(tl.int32), axis=0) == 1:
                    field, state, read = take_alone(state, payload, place, read, count, lane * 0 + 6, escapes)
                    left = field & 31
                    fine = tl.minimum(fine, tl.min((left <= 26).to(tl.int32), axis=0))
                    left = tl.minimum(left, 26)
                    excess = lane * 0 + 1
                    for _ in tl.static_range(4):
                        width = tl.where(left % 8 == 0, tl.minimum(left, 8), left % 8)
                        active = escapes & (width > 0)
                        piece, state, read = take_alone(state, payload, place, read, count, width, active)
                        excess = (excess << width) | piece
                        left -= width
                    k = tl.where(escapes, tl.where(field >= 32, 1 - top - excess, top + excess), k)
                if LOW > 0:
                    value, state, read = take_alone(state, payload, place, read, count, lane * 0 + LOW, alone)
                    rest += value
        if MANY:
            past = tl.sum(tl.where(present, magnitude(k, phase), 0), axis=0)
        if LOW > 0:
            k = (k << LOW) + rest - (1 << (LOW - 1))
        free = ((k + (shifted >> 24)) & 1).to(tl.int32)
        trellis = (trellis >> 1) ^ ((trellis & 1) * a) ^ (free * b)
        value = (k.to(tl.float32) - w.to(tl.float32) * 5.9604644775390625e-08) * step * scale
        tl.store(out + coordinate, value, mask=present)
    ended = tl.min((state == 65536).to(tl.int32), axis=0)
    tl.store(good + tl.program_id(0), tl.where((read == count) & (ended == 1), fine, 0))


def classify(symbols: torch.Tensor, model: Model, plan: Plan) -> tuple[torch.Tensor, int]:
    """Return (the mixture of every row: uint8; the sum of (2 j + 1)^2 over all magnitudes j)."""
    rows = -(-plan.d // 16)
    groups = torch.zeros(rows, dtype=torch.uint8, device=symbols.device)
    energy = torch.empty(triton.cdiv(rows, ROWS), dtype=torch.int64, device=symbols.device)
    sizes = plan.d, plan.segment // 16, len(plan.segments)
    contexts = _contexts(model, symbols.device)
    _classes[(energy.numel(),)](symbols, *contexts, groups, energy, *sizes, LOW=model.low, ROWS=ROWS)
    return groups, int(energy.sum())


def _contexts(model: Model, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (thresholds with one that nothing reaches, the mixtures of the classes)."""
    limits = np.append(THRESHOLDS, np.iinfo(np.int64).max)
    return torch.from_numpy(limits).to(device), torch.tensor(model.starts, dtype=torch.uint8, device=device)


def write(symbols: torch.Tensor, low: int, groups: torch.Tensor, tables: Tables, plan: Plan, room: int) -> torch.Tensor:
    """Return all segments' bytes: uint8.

    Parameters
    ----------
    room : int
        Words of a segment for which there is space at first.
    """
    device, count = symbols.device, len(plan.segments)
    pairs = (tables.start << np.uint32(16) | tables.frequency).view(np.int32)
    shared = tuple(torch.from_numpy(v).to(device) for v in (tables.widest, tables.offset, pairs))
    states = torch.empty(16 * count, dtype=torch.int32, device=device)
    firsts = torch.empty(count, dtype=torch.int32, device=device)
    while True:
        stored = torch.empty(count * room, dtype=torch.int32, device=device)
        into = stored, states, firsts, plan.d, plan.segment, room
        _write[(count,)](symbols, groups, shared, *into, LOW=low, num_warps=1)
        if int(firsts.min()) >= 0:
            break
        room *= 2
    size = COUNT_BYTES + 64 + 2 * (room - firsts.long())
    size[-1] -= COUNT_BYTES
    ends = size.cumsum(0)
    out = torch.empty(int(ends[-1]), dtype=torch.uint8, device=device)
    _join[(count, triton.cdiv(room, BLOCK))](stored, states, firsts, ends, out, room, BLOCK=BLOCK)
    return out


def read(
    payload: torch.Tensor, position: int, model: Model, tables: Tables, plan: Plan, norm: float, seeds: tuple
) -> torch.Tensor:
    """Return the vector whose segments begin at byte ``position``.

    Raises
    ------
    CorruptMessage
        If they are not those of an encoder.
    """
    device, count = payload.device, len(plan.segments)
    begins, counts = (torch.empty(count, dtype=torch.int64, device=device) for _ in range(2))
    _parts[(1,)](payload, begins, counts, payload.numel(), position, count, num_warps=1)
    if int(begins[-1]) < 0:
        raise CorruptMessage(f"the {count} segments do not fill the {payload.numel()} bytes of the message")
    out = torch.empty(plan.d, dtype=torch.float32, device=device)
    good = torch.empty(count, dtype=torch.int32, device=device)
    shared = torch.from_numpy(tables.widest).to(device), torch.from_numpy(lookup(tables).view(np.int32)).to(device)
    (step, scale), spacing = plan.step(norm), plan.code.spacing
    numbers = plan.d, plan.segment, (plan.code.a, plan.code.b), *words(seeds), (step * spacing, scale)
    fixed = {"LOW": model.low, "SHIFT": shape(spacing)[0], "MANY": model.groups > 1}
    fixed |= {"enable_fp_fusion": False, "num_warps": 1}
    inputs = payload, (begins, counts), (*_contexts(model, device), *shared)
    _read[(count,)](*inputs, (out, good), *numbers, **fixed)
    if not bool(good.all()):
        raise CorruptMessage("the words of a segment are not those of its coordinates")
    return out


def space(bits: float, plan: Plan) -> int:
    """Return words of the longest segment, from the estimated bits of all: somewhat too many."""
    longest = plan.d - plan.segments[-1].start
    return int(max(bits, plan.d / 8) / plan.d * longest * 1.02) // 16 + 16 * ROOM + 1024


HEAD = NORM_BYTES + 3 + CLASSES * (1 + COMPONENTS)  # bytes before the first segment at most


def encode(x: torch.Tensor, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See ``dispatch``; the long format only."""
    if norms.largest(x, plan.d).item() < TINY:
        return torch.zeros(NORM_BYTES, dtype=torch.uint8, device=x.device)
    norm = nearest(math.sqrt(norms.energy(x, plan.d).item()))
    if plan.code.coarse:
        packed = torch.from_numpy(all_symbols(x.cpu().numpy(), norm, plan, seeds)).to(x.device)
    else:
        packed = symbols(x, plan, norm, seeds)
    return within_limits(lambda choice: _payload(norm, packed, plan, choice), _choose(packed, plan), plan)


def _payload(norm: float, packed: torch.Tensor, plan: Plan, choice: Choice) -> torch.Tensor:
    head = struct.pack(">f", norm) + (choice.model.header() if plan.fits else b"")
    tables, groups = build(choice.model, plan.form), torch.as_tensor(choice.groups)
    body = write(packed, choice.model.low, groups, tables, plan, space(choice.bits, plan))
    return torch.cat([torch.tensor(list(head), dtype=torch.uint8, device=packed.device), body])


def _choose(packed: torch.Tensor, plan: Plan) -> Choice:
    """Return the CPU's choice: it sees the rows of the histogram, each with the one before it."""
    every = stride(plan)
    if every > 1:
        rows = torch.arange(0, -(-plan.d // 16), every, device=packed.device)
        index = torch.stack([rows - 1, rows], 1).reshape(-1)[1:, None] * 16 + torch.arange(16, device=packed.device)
        bits, model = fitted(packed[index[index < plan.d]].cpu().numpy(), 2, plan)
    else:
        bits, model = fitted(packed.cpu().numpy(), 1, plan)
    if not model.mixtures:
        groups = torch.zeros(-(-plan.d // 16), dtype=torch.uint8, device=packed.device)
        return Choice(model, groups, bits)
    groups, energy = classify(packed, model, plan)
    return Choice(model, groups, bits, least_squares(energy, plan.d, model.low))


def decode(payload: torch.Tensor, bits: int, plan: Plan, seeds: tuple) -> torch.Tensor:
    """See ``dispatch``; the long format only."""
    whole(bits)
    head = payload[:HEAD].cpu().numpy().tobytes()
    norm = read_norm(head, payload.numel())
    if norm == 0:
        return torch.zeros(plan.d, device=payload.device)
    model, position = read_model(head, plan)
    out = read(payload, position, model, build(model, plan.form), plan, norm, seeds)
    if not bool(torch.isfinite(out).all()):
        raise CorruptMessage("a decoded coordinate exceeds binary32")
    return out


def _drawn(d: int, k: int, key: Key, device: torch.device) -> torch.Tensor:
    """Return which coordinates have the k least hashes, of which no two are equal."""
    drawn = hashes(d, seeds_of(key.fold_in(STREAM)), device)
    return drawn <= drawn.sort().values[k - 1]


def gather(x: torch.Tensor, k: int, key: Key) -> torch.Tensor:
    """See ``dispatch``."""
    return x[_drawn(x.numel(), k, key, x.device)]


def scatter(part: torch.Tensor, d: int, key: Key, factor: float) -> torch.Tensor:
    """See ``dispatch``."""
    out = torch.zeros(d, device=part.device)
    out[_drawn(d, part.numel(), key, part.device)] = part * float(np.float32(factor))
    return out
