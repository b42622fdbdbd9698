"""The codec written plainly: numpy for the vector, Python integers for the stream.  Slow; same payload bit for bit."""

from __future__ import annotations

import math
import struct

import numpy as np

from operators.message import CorruptMessage
from operators.tcdq.codec import read_model
from operators.tcdq.fit import choose
from operators.tcdq.model import NORM_BYTES, THRESHOLDS, Model, Plan, Tables, build
from operators.tcdq.quantise import EARLY, FIRST_COST, FULL, GRAIN, LEAST, SETTLE
from operators.tcdq.rans import FIELD, MOST_LENGTH, PIECE
from operators.tcdq.trellis import CODES, COUNT_BYTES, HALF_BITS, PHASE, UNIT, WEYL, Trellis, shape

Op = tuple[int, int]  # (start, frequency) of 2^P


def hashed(index: int, first: int, second: int) -> int:
    """The same hash in plain integers."""
    mask = 0xFFFFFFFF
    h = (index * WEYL + first) & mask
    h ^= h >> 16
    h = (h * 0x85EBCA6B & mask) ^ second
    h ^= h >> 13
    h = h * 0xC2B2AE35 & mask
    return h ^ (h >> 16)


def dither(plan: Plan, seeds: tuple) -> np.ndarray:
    """Return u in units of 2^-24 spacing: int64, shape (d,)."""
    shift, offset = shape(plan.code.spacing)
    first, second = (int(s) for s in seeds)
    return np.array([2 * (hashed(i, first, second) >> shift) + 1 - offset for i in range(plan.d)], np.int64)


def labels(cost: np.ndarray, trellis: Trellis) -> np.ndarray:
    """Return residues modulo 4 of the admitted sequence of least total cost: int64, shape (d,).

    Parameters
    ----------
    cost : ndarray
        cost[t, j] of residue j at time t, float32.  Equal costs: the branch from the lower state wins.
    """
    metric = np.full(trellis.states, np.inf, np.float32)
    metric[0] = 0
    came = np.empty((len(cost), trellis.states), np.int64)
    branches = trellis.before.reshape(-1, 2)
    for t in range(len(cost)):
        sums = metric[branches >> 2] + cost[t][branches & 3]
        second = sums[:, 1] < sums[:, 0]
        came[t] = branches[np.arange(trellis.states), second.astype(int)]
        metric = sums.min(axis=1)
        if t % SETTLE == SETTLE - 1:
            metric -= metric.min()
    state, out = int(metric.argmin()), np.empty(len(cost), np.int64)
    for t in range(len(cost) - 1, -1, -1):
        branch = int(came[t, state])
        out[t], state = branch & 3, branch >> 2
    return out


def labels_coarse(cost: np.ndarray, trellis: Trellis, hashes: list[int]) -> np.ndarray:
    """The same with whole metrics.

    Parameters
    ----------
    hashes : list of int
        Of the coordinates: the last bit of each says which of two equal branches wins, the last bits of the first one
        which of several equal ends.
    """
    metric = [LEAST] + [FULL] * (trellis.states - 1)
    came = []
    branches = trellis.before.reshape(-1, 2).tolist()
    for t, h in enumerate(hashes):
        most = FIRST_COST if t < EARLY else FULL
        whole = [min(int(c * GRAIN), most) for c in cost[t]]
        sums = [[min(metric[b >> 2] + whole[b & 3], FULL) for b in pair] for pair in branches]
        second = [b <= a if h & 1 else b < a for a, b in sums]
        came.append([pair[taken] for pair, taken in zip(branches, second, strict=True)])
        metric = [min(pair) for pair in sums]
        if t % SETTLE == SETTLE - 1:
            metric = [m - min(metric) + LEAST for m in metric]
    last = hashes[0] % trellis.states
    state, out = min(range(trellis.states), key=lambda s: (metric[s], s ^ last)), np.empty(len(cost), np.int64)
    for t in range(len(cost) - 1, -1, -1):
        branch = came[t][state]
        out[t], state = branch & 3, branch >> 2
    return out


def parities(n: np.ndarray, trellis: Trellis) -> np.ndarray:
    """Return the parities that the state forces along an admitted sequence;

    Raises
    ------
    ValueError
        If it is not admitted.
    """
    state, out = 0, np.empty_like(n)
    for t, value in enumerate(n):
        out[t] = state & 1
        if trellis.states > 1 and (value - out[t]) % 2:
            raise ValueError(f"n[{t}] = {value} has the wrong parity in state {state}")
        state = trellis.following(state, (int(value) >> 1) & 1)
    return out


def nearest(y: tuple[np.ndarray, np.ndarray], trellis: Trellis, hashes: list[int]) -> np.ndarray:
    """Return the admitted integers nearest to one lane's points, given as (floor, fraction)."""
    floor, fraction = y
    if trellis.states == 1:
        return floor + (fraction >= 0.5)
    point = np.float32(floor & 3) + fraction
    cost = np.empty((len(floor), 4), np.float32)
    for j in (0, 1):
        away = np.abs(point - np.float32(j))
        away = np.minimum(away, np.float32(4) - away)
        cost[:, j], cost[:, j + 2] = away * away, (np.float32(2) - away) ** 2
    residues = labels_coarse(cost, trellis, hashes) if trellis.coarse else labels(cost, trellis)
    return floor - 1 + (residues - floor + 1) % 4


def trellises(plan: Plan) -> list[slice]:
    """Return the coordinates of each trellis."""
    return [slice(s.start + i, s.stop, plan.lanes) for s in plan.segments for i in range(plan.lanes)]


def quantise(x: np.ndarray, norm: float, plan: Plan, seeds: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return (k, w): n - u = v (k - w 2^-24), both int64, shape (d,)."""
    step, scale = plan.step(norm)
    u, words = dither(plan, seeds), [int(s) for s in seeds]
    r = x * np.float32(1 / scale) * np.float32(1 / step)
    g = (r - np.floor(r)) + u.astype(np.float32) * np.float32(plan.code.spacing / UNIT)
    floor = np.floor(r).astype(np.int64) + np.floor(g).astype(np.int64)
    parity, n = np.empty_like(floor), np.empty_like(floor)
    for own in trellises(plan):
        hashes = [hashed(i, *words) for i in range(plan.d)[own]]
        n[own] = nearest((floor[own], (g - np.floor(g))[own]), plan.code, hashes)
        parity[own] = parities(n[own], plan.code)
    a = u - (parity << HALF_BITS)
    return (n - parity) // plan.code.spacing - (a >> 24), a & PHASE


def raw(value: int, width: int, precision: int) -> Op:
    """Return a field without a model."""
    return value << (precision - width), 1 << (precision - width)


def parts(k: int, phase: int, low: int) -> tuple[int, int, int]:
    """Return (k, phase, low part) once the last bits are set apart."""
    if low == 0:
        return k, phase, 0
    k += 1 << (low - 1)
    return k >> low, (phase + 32) >> low, k & ((1 << low) - 1)


def operations(k: int, phase: int, low: int, group: int, tables: Tables) -> list[Op]:
    """Return what one coordinate writes, in the decoder's order."""
    k, phase, rest = parts(k, phase, low)
    top, precision = int(tables.widest[group]), tables.form.precision
    row = tables.rows(group)[phase >> tables.form.shift].tolist()
    index = k + top - 1 if 1 - top <= k <= top else 2 * top
    out = [(sum(row[:index]), row[index])]
    if index == 2 * top:
        excess = k - top if k > 0 else 1 - top - k
        length = excess.bit_length() - 1
        out.append(raw((32 if k <= 0 else 0) | length, FIELD, precision))
        while length > 0:
            width = length % PIECE or PIECE
            length -= width
            out.append(raw((excess >> length) & ((1 << width) - 1), width, precision))
    return out + ([raw(rest, low, precision)] if low else [])


def encode(x: np.ndarray, plan: Plan, seeds: tuple) -> bytes:
    """Return the payload of a vector."""
    if np.abs(x).max() < 2.0**-126:
        return bytes(NORM_BYTES)
    norm = float(np.float32(math.sqrt(math.fsum(float(v) ** 2 for v in x))))
    k, w = quantise(x, norm, plan, seeds)
    phase = w >> 18
    choice = choose((k << 6 | phase).astype(np.int32), plan)
    model, tables, streams = choice.model, build(choice.model, plan.form), plan.form.streams
    coordinates = zip(k.tolist(), phase.tolist(), np.repeat(choice.groups, streams).tolist(), strict=False)
    ops = [operations(k, p, model.low, g, tables) for k, p, g in coordinates]
    out = struct.pack(">f", norm) + (model.header() if plan.fits else b"")
    for own in plan.segments:
        states, words = write(ops[own], plan)
        out += b"" if own.stop == plan.d else len(words).to_bytes(COUNT_BYTES, "big")
        out += b"".join(s.to_bytes(plan.form.state, "big") for s in states)
        out += b"".join(v.to_bytes(plan.form.word, "big") for v in words)
    return out


def write(ops: list[list[Op]], plan: Plan) -> tuple[list[int], list[int]]:
    """Return (final states, words) of a segment."""
    streams, word = plan.form.streams, 8 * plan.form.word
    base = 1 << (31 if streams == 1 else 16)
    states, words = [base] * streams, []
    for i in range(len(ops) - 1, -1, -1):
        for start, frequency in reversed(ops[i]):
            state = states[i % streams]
            if state >= frequency * (base >> plan.form.precision) << word:
                words.append(state & ((1 << word) - 1))
                state >>= word
            states[i % streams] = (state // frequency << plan.form.precision) + state % frequency + start
    return states, words[::-1]


class Stream:
    """The decoder's side of the states and words."""

    def __init__(self, data: bytes, streams: int, precision: int) -> None:
        size = 8 if streams == 1 else 4
        self.base, self.word, self.precision = 1 << (31 if streams == 1 else 16), 4 * size, precision
        self.states = [int.from_bytes(data[size * i : size * i + size], "big") for i in range(streams)]
        body = data[size * streams :]
        step = self.word // 8
        self.words = [int.from_bytes(body[i : i + step], "big") for i in range(0, len(body), step)][::-1]

    def take(self, i: int, row: list[int]) -> int:
        """Return the next symbol of state i under these frequencies."""
        state = self.states[i]
        slot, symbol = state & ((1 << self.precision) - 1), 0
        while slot >= row[symbol]:
            slot -= row[symbol]
            symbol += 1
        return self._advance(i, row[symbol] * (state >> self.precision) + slot, symbol)

    def field(self, i: int, width: int) -> int:
        """Return the next field of state i without a model."""
        state, shift = self.states[i], self.precision - width
        symbol = (state >> shift) & ((1 << width) - 1)
        return self._advance(i, (state >> self.precision << shift) + state % (1 << shift), symbol)

    def _advance(self, i: int, state: int, symbol: int) -> int:
        if state < self.base:
            if not self.words:
                raise CorruptMessage("words are missing")
            state = state << self.word | self.words.pop()
        self.states[i] = state
        return symbol

    def finish(self) -> None:
        """Raise CorruptMessage unless the encoder's beginning is reached with no word left."""
        if self.words or set(self.states) != {self.base}:
            raise CorruptMessage("the stream does not end where it began")


def decode(data: bytes, plan: Plan, seeds: tuple) -> np.ndarray:
    """Return the vector of a well-formed payload."""
    (norm,) = struct.unpack(">f", data[:NORM_BYTES])
    if norm == 0:
        return np.zeros(plan.d, np.float32)
    model, at = read_model(data, plan)
    u = dither(plan, seeds).tolist()
    k: list[int] = []
    w: list[int] = []
    for own in plan.segments:
        stop = len(data)
        if own.stop < plan.d:
            words, at = int.from_bytes(data[at : at + COUNT_BYTES], "big"), at + COUNT_BYTES
            stop = at + plan.form.state * plan.form.streams + plan.form.word * words
        stream = Stream(data[at:stop], plan.form.streams, plan.form.precision)
        read = _read(stream, model, plan, u[own])
        stream.finish()
        k, w, at = k + read[0], w + read[1], stop
    step, scale = plan.step(norm)
    r = np.array(k).astype(np.float32) - np.array(w).astype(np.float32) * np.float32(1 / UNIT)
    return r * np.float32(step * plan.code.spacing) * np.float32(scale)


def _read(stream: Stream, model: Model, plan: Plan, u: list[int]) -> tuple[list[int], list[int]]:
    tables, width, low = build(model, plan.form), plan.lanes, model.low
    rows = [tables.rows(g).tolist() for g in range(model.groups)]
    state, past, group = [0] * width, 0, model.starts[0]
    ks, ws = [], []
    for i in range(len(u)):
        if i % plan.form.streams == 0:
            group = model.starts[int((past >= THRESHOLDS).sum())]
            past -= past * plan.form.streams // 16
        s, own = state[i % width], i % plan.form.streams
        a = u[i] - ((s & 1) << HALF_BITS)
        _, phase, _ = parts(0, (a & PHASE) >> 18, low)
        top = int(tables.widest[group])
        k = stream.take(own, rows[group][phase >> plan.form.shift]) + 1 - top
        if k == top + 1:
            field = stream.field(own, FIELD)
            length, excess = field & 31, 1
            if length > MOST_LENGTH:
                raise CorruptMessage(f"an excess has at most {MOST_LENGTH} bits; got {length}")
            while length > 0:
                piece = length % PIECE or PIECE
                excess = excess << piece | stream.field(own, piece)
                length -= piece
            k = 1 - top - excess if field & 32 else top + excess
        past += 64 * k - phase - 1 if k > 0 else phase - 64 * k
        if low:
            k = (k << low) + stream.field(own, low) - (1 << (low - 1))
        state[i % width] = CODES[plan.code.states].following(s, (k + (a >> 24)) & 1)
        ks.append(k)
        ws.append(a & PHASE)
    return ks, ws
