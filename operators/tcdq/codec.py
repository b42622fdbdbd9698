"""Vector to payload and back.

Payload, every field big-endian: the norm as binary32 (zero: nothing follows); from d = 1024 on the model; for each
segment the number of its words (32 bits; not for the last), the final coder states (one of 64 bits, or 16 of 32
bits), and words of 32 or 16 bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import chain
from typing import TypeVar

import numpy as np
import torch

from ..kernels.norms import cpu as norms_of
from ..kernels.threads import mapped, shared
from ..message import CorruptMessage, Messages
from ..pieces import Arrays, cut
from ..quantisers.scale import TINY, energy, largest, nearest, norm_of
from .fit import Choice, choose, fitted, gaussian, least_squares, limit, stride
from .model import CLASSES, COMPONENTS, NORM_BYTES, THRESHOLDS, Model, Plan, Tables, build, lookup
from .quantise import integer_rows
from .rans import (
    LONG_BASE,
    RECIPROCAL,
    ROOM,
    SHORT_BASE,
    classify,
    decode_long,
    decode_rows,
    decode_short,
    encode_long,
    encode_rows,
    encode_short,
)
from .trellis import (
    COUNT_BYTES,
    LANES,
    Contexts,
    Grid,
    Lattice,
    LongDecoder,
    LongTables,
    ShortDecoder,
    ShortTables,
    seeds_from,
    shape,
)
from .viterbi import symbols

Payload = TypeVar("Payload", np.ndarray, torch.Tensor)


def quantised(x: np.ndarray, plan: Plan, seeds: tuple) -> tuple[float, np.ndarray]:
    """Return (norm, packed symbols); the norm is 0, and the symbols are empty, for a negligible vector."""
    total = energy(x)
    if total < x.size * TINY**2 and largest(x) < TINY:  # the first is implied by the second, and known already
        return 0.0, np.empty(0, np.int32)
    norm = nearest(math.sqrt(total))
    return norm, all_symbols(x, norm, plan, seeds)


def all_symbols(x: np.ndarray, norm: float, plan: Plan, seeds: tuple) -> np.ndarray:
    """Return the packed symbols of a vector of this norm."""
    packed = np.empty(plan.d, np.int32)

    def fill(segment: slice) -> None:
        packed[segment] = symbols_of(x[segment], segment.start, norm, plan, seeds)

    mapped(fill, plan.segments, d=plan.d)
    return packed


def symbols_of(x: np.ndarray, start: int, norm: float, plan: Plan, seeds: tuple) -> np.ndarray:
    """Return the packed symbols of one segment.

    Parameters
    ----------
    x : ndarray of float32
        Its coordinates.
    start : int
        The first one's index.
    norm : float
        Of the whole vector.
    plan : Plan
        What both ends know.
    seeds : pair of uint32
        Seeds of the dither's stream.
    """
    step, scale = plan.step(norm)
    grid = Grid(np.float32(1 / scale), np.float32(1 / step), *seeds_from(start, seeds))
    return symbols(x, grid, plan.code, plan.lanes)


def encode(x: np.ndarray, plan: Plan, seeds: tuple, *, mixtures: int = CLASSES) -> np.ndarray:
    """Return the payload, whole bytes.

    Parameters
    ----------
    mixtures : int, optional
        Most that the model may have.
    """
    norm, packed = quantised(x, plan, seeds)
    head = struct.pack(">f", norm)
    if not norm:
        return np.frombuffer(bytearray(head), np.uint8)
    return within_limits(lambda choice: _payload(head, packed, plan, choice), choose(packed, plan, mixtures), plan)


def within_limits(payload_of: Callable[[Choice], Payload], choice: Choice, plan: Plan) -> Payload:
    """Return the payload under a model, or under the Gaussian where that keeps the declared limits and the other does
    not.
    """
    payload = payload_of(choice)
    if choice.model.mixtures and 8 * len(payload) > limit(plan, choice.least_squares):
        return payload_of(choice.gaussian(plan))
    return payload


def _payload(head: bytes, packed: np.ndarray, plan: Plan, choice: Choice) -> np.ndarray:
    write = Writer(choice.model, choice.bits, plan)
    groups, width = np.asarray(choice.groups), plan.form.streams

    def written(segment: slice) -> list[np.ndarray]:
        return write.segment(packed[segment], groups[segment.start // width :], last=segment.stop == plan.d)

    return np.concatenate(
        [np.frombuffer(head + write.header, np.uint8), *chain(*mapped(written, plan.segments, d=plan.d))]
    )


class Writer:
    """What follows the norm, part by part.

    Parameters
    ----------
    model : Model
        What the coder assumes.
    bits : float, bits
        Estimate of the whole message.
    plan : Plan
        What both ends know.

    Attributes
    ----------
    header : bytes
        The model, if one is sent.
    """

    def __init__(self, model: Model, bits: float, plan: Plan) -> None:
        self.header = model.header() if plan.fits else b""
        self._tables = _encoder(build(model, plan.form), model.low)
        self._each, self._word = max(bits / plan.d, 1 / 8), plan.form.word

    def segment(self, packed: np.ndarray, groups: np.ndarray, *, last: bool) -> list[np.ndarray]:
        """Return number of words (not of the last segment), states and words, as bytes.

        Parameters
        ----------
        packed : ndarray of int32
            Symbols of the segment.
        groups : ndarray
            Mixture of each of its rows.
        last : bool
            Whether no segment follows.
        """
        room = int(self._each * packed.size * 1.02) // (8 * self._word)
        ends, body = _words(packed, groups, self._tables, room + 16 * ROOM + 1024)
        count = [] if last else [np.array([body.size // self._word], ">u4").view(np.uint8)]
        return [*count, ends, body]


def _encoder(tables: Tables, low: int) -> ShortTables | LongTables:
    """Return what the encoder reads of the tables: in the long format pairs, and reciprocals in place of divisions."""
    shift, widest, offset = tables.form.shift, tables.widest, tables.offset
    if tables.form.streams == 1:
        return ShortTables(low, shift, widest, offset, tables.frequency, tables.start)
    pairs = tables.start << np.uint32(16) | tables.frequency
    order = np.concatenate(  # by index, then by bin
        [
            first + np.arange(size * tables.form.bins).reshape(-1, size).T.reshape(-1)
            for first, size in zip(offset, 2 * widest + 1, strict=True)
        ]
    )
    reciprocal = np.minimum((1 << RECIPROCAL) // tables.frequency.astype(np.int64), (1 << RECIPROCAL) - 1)
    return LongTables(low, widest, offset, pairs[order], reciprocal.astype(np.uint32)[order])


def _words(
    packed: np.ndarray, groups: np.ndarray, tables: ShortTables | LongTables, room: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (states, words) of a segment as bytes.

    Parameters
    ----------
    room : int
        Words that they probably need; more if they do not fit.
    """
    while True:
        if isinstance(tables, LongTables):
            out, states = np.empty(room, np.uint16), np.empty(LANES, np.uint32)
            first = encode_long(packed, groups, tables, out, states)
            head = states.astype(">u4").tobytes()
        else:
            out = np.empty(room, np.uint32)
            state, first = encode_short(packed, groups, tables, out)
            head = int(state).to_bytes(8, "big")
        if first >= 0:
            body = out[first:].astype(out.dtype.newbyteorder(">")).view(np.uint8)
            return np.frombuffer(head, np.uint8), body
        room *= 2


def decode(payload: np.ndarray, bits: int, plan: Plan, seeds: tuple) -> np.ndarray:
    """Return the vector.

    Raises
    ------
    CorruptMessage
        For a payload that no encoder can have produced.
    """
    out = np.zeros(plan.d, np.float32)
    mapped(lambda part: part[1](out[part[0]]), list(reader(payload, bits, plan, seeds)), d=plan.d)
    if not math.isfinite(largest(out)):
        raise CorruptMessage("a decoded coordinate exceeds binary32")
    return out


def reader(
    payload: np.ndarray, bits: int, plan: Plan, seeds: tuple
) -> Iterator[tuple[slice, Callable[[np.ndarray], None]]]:
    """Yield segments in order with what fills an array of zeros with each one's values; none if the norm is 0."""
    whole(bits)
    data = np.ascontiguousarray(payload).data
    norm = read_norm(data, len(data))
    if norm == 0:
        return
    model, position = read_model(data, plan)
    tables = build(model, plan.form)
    for segment in plan.segments:
        states, words, position = _part(data, position, plan, last=segment.stop == plan.d)
        decoder = _decoder(model, tables, plan, _lattice(plan, norm, seeds_from(segment.start, seeds)))
        yield segment, partial(_read, states, words, decoder)


def whole(bits: int) -> None:
    """Raise CorruptMessage unless these are whole bytes."""
    if bits % 8:
        raise CorruptMessage(f"a message is a whole number of bytes; got {bits} bits")


def read_norm(data: bytes | memoryview, size: int) -> float:
    """Return the norm of a payload of ``size`` bytes that begins with ``data``."""
    (norm,) = struct.unpack(">f", _take(data, 0, NORM_BYTES))
    if not (math.isfinite(norm) and math.copysign(1, norm) > 0):
        raise CorruptMessage(f"the norm must be finite and not negative; got {norm}")
    if norm == 0 and size != NORM_BYTES:
        raise CorruptMessage(f"{size - NORM_BYTES} bytes are left over after the norm 0")
    if 0 < norm < TINY:
        raise CorruptMessage(f"a norm is 0 or at least 2^-126; got {norm}")
    return norm


def _take(data: bytes | memoryview, position: int, n: int) -> bytes | memoryview:
    if position + n > len(data):
        raise CorruptMessage(f"{n} bytes are announced at byte {position} but the message has {len(data)}")
    return data[position : position + n]


def read_model(data: bytes | memoryview, plan: Plan) -> tuple[Model, int]:
    """Return (model, position after it)."""
    position = NORM_BYTES
    if not plan.fits:
        return Model(plan.sigma, low=plan.low), position
    (kind,) = _take(data, position, 1)
    if kind == 0:
        return Model(plan.sigma, low=plan.low), position + 1
    mask = int.from_bytes(_take(data, position + 1, 2), "big")
    low = kind >> 1
    if not kind & 1 or low > plan.low or not mask & 1:
        raise CorruptMessage(f"a model is 0, or odd with a mask of its first class; got {kind} and mask {mask:#x}")
    position += 3
    starts = tuple((mask & ((2 << c) - 1)).bit_count() - 1 for c in range(CLASSES))
    mixtures = []
    for _ in range(starts[-1] + 1):
        (n,) = _take(data, position, 1)
        weights = tuple(_take(data, position + 1, n))
        if not 1 <= n <= COMPONENTS or max(weights) != 255 or weights[-1] == 0:
            raise CorruptMessage(f"a mixture has 1 to {COMPONENTS} weights, the largest 255; got {weights}")
        mixtures.append(weights)
        position += 1 + n
    return Model(plan.sigma, starts, tuple(mixtures), low), position


def _part(data: bytes | memoryview, position: int, plan: Plan, *, last: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Return (states, words, position after them) of one segment, in the machine's byte order."""
    form, size = plan.form, plan.form.word
    announced = None if last else int.from_bytes(_take(data, position, COUNT_BYTES), "big")
    position += 0 if last else COUNT_BYTES
    states = np.frombuffer(_take(data, position, form.state * form.streams), f">u{form.state}").astype(np.uint64)
    position += form.state * form.streams
    lowest, above = (LONG_BASE, 1 << 32) if form.streams > 1 else (SHORT_BASE, 1 << 63)
    if states.min() < lowest or int(states.max()) >= above:
        raise CorruptMessage(f"a coder state must lie in [{lowest}, {above}); got {states.min()} to {states.max()}")
    if announced is None and (len(data) - position) % size:
        raise CorruptMessage(f"{len(data) - position} bytes are no whole number of words")
    count = (len(data) - position) // size if announced is None else announced
    words = np.frombuffer(_take(data, position, count * size), f">u{size}").astype(f"u{size}")
    return states, words, position + count * size


def _lattice(plan: Plan, norm: float, seeds: tuple) -> Lattice:
    (step, scale), (first, second), (shift, centre) = plan.step(norm), seeds, shape(plan.code.spacing)
    return Lattice(np.float32(step * plan.code.spacing), np.float32(scale), first, second, shift, centre)


def _decoder(model: Model, tables: Tables, plan: Plan, lattice: Lattice) -> ShortDecoder | LongDecoder:
    """Return what a segment's words are read with."""
    contexts = Contexts(np.array(model.starts, np.int64), THRESHOLDS)
    if plan.form.streams > 1:
        return LongDecoder(model.low, tables.widest, table_of(tables), contexts, lattice, plan.code.a, plan.code.b)
    start = np.concatenate([tables.start, np.zeros(LANES, np.uint32)])  # sixteen are looked at, be there fewer
    entries = ShortTables(model.low, plan.form.shift, tables.widest, tables.offset, tables.frequency, start)
    return ShortDecoder(entries, contexts, lattice, plan.code.after, plan.lanes)


def _read(states: np.ndarray, words: np.ndarray, decoder: ShortDecoder | LongDecoder, out: np.ndarray) -> None:
    """Decode one segment into ``out``.

    Raises
    ------
    CorruptMessage
        Unless all words are used.
    """
    spare = np.zeros(words.size + states.size * ROOM, words.dtype)
    spare[: words.size] = words
    if isinstance(decoder, LongDecoder):
        used = decode_long(spare, states.astype(np.uint32), decoder, out)
    else:
        used = decode_short(spare, states[0], decoder, out)
    if used != words.size:
        raise CorruptMessage(f"the {words.size} words are not those of {out.size} coordinates")


@lru_cache(maxsize=4)
def table_of(tables: Tables) -> np.ndarray:
    """Return the decoder's lookup table of tables that are kept (those of a Gaussian)."""
    return lookup(tables)


# Batches of vectors that are too short for a model: one compiled loop writes, and one reads, the messages of all rows.


def encode_batch(x: np.ndarray, plan: Plan, seeds: np.ndarray) -> tuple[Messages, float]:
    """Return the messages of all rows, and the largest norm.

    Parameters
    ----------
    x : ndarray of float32, shape (m, d)
        The rows; d is below ``MODEL_FROM``.
    plan : Plan
        The plan for d coordinates.
    seeds : ndarray of uint32, shape (m, 2)
        Seeds of each row's dither.

    Raises
    ------
    ValueError
        If a norm exceeds binary32.
    """
    (m, d), flat = x.shape, torch.from_numpy(x).view(-1)
    roots = np.sqrt(norms_of.energy(flat, d).numpy())
    nearest(float(roots.max()))  # refused if it is infinite
    norms = np.where(norms_of.largest(flat, d).numpy() < TINY, 0, roots).astype(np.float32)
    step, scale = plan.steps(norms)
    grids = (1 / scale).astype(np.float32), (1 / step).astype(np.float32), seeds
    bits, model = fitted(np.empty(0, np.int32), 1, plan)
    tables = _encoder(build(model, plan.form), model.low)

    def write(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        rows, packed = slice(start, stop), np.empty((stop - start, d), np.int32)
        if plan.code.states == 1:
            integer_rows(x[rows], *(v[rows] for v in grids), packed)
        else:
            for i, (coordinates, a, b, words) in enumerate(zip(x[rows], *(v[rows] for v in grids), strict=True)):
                packed[i] = symbols(coordinates, Grid(a, b, *words), plan.code, plan.lanes)
        ends, end, room = np.empty(stop - start, np.int64), -1, int(max(bits, d / 8) * 1.02) // 32 + 2 * ROOM
        while end < 0:
            out = np.empty((stop - start) * (NORM_BYTES + plan.form.state + 4 * room), np.uint8)
            end = encode_rows(packed, norms[rows].view(np.uint32), tables, np.empty(room, np.uint32), out, ends)
            room *= 2
        return out[:end], np.diff(ends, prepend=0)

    payloads, sizes = zip(*shared(m, 1, write, size=d), strict=True)
    return Messages(torch.from_numpy(np.concatenate(payloads)), 8 * np.concatenate(sizes)), float(norms.max())


def decode_batch(messages: Messages, plan: Plan, seeds: np.ndarray) -> np.ndarray:
    """Return the vectors: float32, shape (m, d).

    Parameters
    ----------
    messages : Messages
        What ``encode_batch`` returned.
    plan : Plan
        The encoder's plan.
    seeds : ndarray of uint32, shape (m, 2)
        The encoder's seeds.

    Raises
    ------
    CorruptMessage
        If no encoder can have produced one of them; the caller finds out which.
    """
    data, ends, sizes = messages.payload.numpy(), messages.ends, messages.nbytes
    whole(int(np.bitwise_or.reduce(messages.bits)))  # a multiple of 8 if every length is
    _check(sizes.min() >= NORM_BYTES)
    norms = data[(ends - sizes)[:, None] + np.arange(NORM_BYTES)].view(">f4")[:, 0].astype(np.float32)
    empty = norms.view(np.uint32) == 0
    body = sizes - NORM_BYTES - plan.form.state
    full = (norms >= TINY) & np.isfinite(norms) & (body >= 0) & (body % plan.form.word == 0)
    _check(np.where(empty, sizes == NORM_BYTES, full).all())
    step, scale = plan.steps(norms)
    numbers = (step * plan.code.spacing).astype(np.float32), scale.astype(np.float32), seeds
    model = Model(plan.sigma, low=plan.low)
    decoder = _decoder(model, build(model, plan.form), plan, _lattice(plan, 1.0, tuple(seeds[0])))
    out = np.zeros((len(messages), plan.d), np.float32)

    def read(start: int, stop: int) -> None:
        first, rows = int(ends[start] - sizes[start]), slice(start, stop)
        part = data[first : ends[stop - 1]], ends[rows] - first
        _check(decode_rows(*part, *(v[rows] for v in numbers), decoder, out[rows]))

    shared(len(messages), 1, read, size=plan.d)
    _check(math.isfinite(largest(out.reshape(-1))))
    return out


def _check(good: bool | np.bool_) -> None:
    """Raise CorruptMessage, without a reason, unless all rows are good."""
    if not good:
        raise CorruptMessage("a message of the batch is corrupt")


# A vector in pieces: the message that it has as a whole, in memory for that message and a few segments.
#
# The norm comes first and the model depends on symbols from all over the vector, so that the pieces are read three
# times: for the norm, for the model, to be written; a fourth time if mixtures would break a declared limit.


def in_segments(pieces: Iterator[np.ndarray], plan: Plan) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield each segment's place and its coordinates.

    Parameters
    ----------
    pieces : iterator of ndarray
        The runs to cut into segments.
    plan : Plan
        Whose segments are meant.

    Raises
    ------
    ValueError
        If there are not d coordinates.
    """
    return cut(pieces, iter(plan.segments), plan.d)


def _sample(packed: Iterator[tuple[slice, np.ndarray]], plan: Plan) -> np.ndarray:
    """Return every ``stride``-th row of symbols, each but the first with the row before it."""
    width, every, kept = plan.form.streams, stride(plan), []
    before = np.empty(0, np.int32)
    for segment, coded in packed:
        first = segment.start // width
        for row in range(-(-first // every) * every, -(-segment.stop // width), every):
            start = (row - first) * width
            if row > 0:
                kept.append(coded[start - width : start].copy() if start else before)
            kept.append(coded[start : start + width].copy())  # a view would keep the segment
        before = coded[-width:].copy()
    return np.concatenate(kept)


def encode_in_pieces(pieces: Arrays, plan: Plan, seeds: tuple) -> np.ndarray:
    """Return the payload, as ``dispatch.encode`` does, of a vector whose pieces a function returns: uint8."""
    if plan.form.streams == 1:
        return encode(np.concatenate(list(pieces())), plan, seeds)
    norm = norm_of(lambda: in_segments(pieces(), plan), nearest)
    head = struct.pack(">f", norm)
    if not norm:
        return np.frombuffer(bytearray(head), np.uint8)

    def packed() -> Iterator[tuple[slice, np.ndarray]]:
        for segment, x in in_segments(pieces(), plan):
            yield segment, symbols_of(x, segment.start, norm, plan, seeds)

    every = stride(plan)
    if every > 1:
        bits, model = fitted(_sample(packed(), plan), 2, plan)
    else:
        bits, model = fitted(np.concatenate([coded for _, coded in packed()]), 1, plan)
    payload, squares = _written(head, packed(), model, bits, plan)
    if model.mixtures and 8 * payload.size > limit(plan, squares):
        return _written(head, packed(), gaussian(plan), bits, plan)[0]
    return payload


def _written(
    head: bytes, packed: Iterator[tuple[slice, np.ndarray]], model: Model, bits: float, plan: Plan
) -> tuple[np.ndarray, float]:
    """Return (payload, a lower bound of sum r^2)."""
    write, width = Writer(model, bits, plan), plan.form.streams
    starts, energy = np.array(model.starts, np.uint8), 0
    parts = [np.frombuffer(head + write.header, np.uint8)]
    for segment, coded in packed:
        classes = np.zeros(-(-coded.size // width), np.uint8)
        if model.mixtures:
            energy += int(classify(coded, model.low, THRESHOLDS, width, classes))
        parts += write.segment(coded, starts[classes], last=segment.stop == plan.d)
    return np.concatenate(parts), least_squares(energy, plan.d, model.low)


def decode_in_pieces(payload: np.ndarray, bits: int, plan: Plan, seeds: tuple) -> Iterator[np.ndarray]:
    """Yield the segments of what ``dispatch.decode`` returns: float32 arrays.

    Raises
    ------
    CorruptMessage
        For a payload that no encoder can have produced, when what is wrong with it is reached.
    """
    empty = True
    for segment, fill in reader(payload, bits, plan, seeds):
        empty = False
        out = np.zeros(segment.stop - segment.start, np.float32)
        fill(out)
        if not math.isfinite(largest(out)):
            raise CorruptMessage("a decoded coordinate exceeds binary32")
        yield out
    if empty:
        for segment in plan.segments:
            yield np.zeros(segment.stop - segment.start, np.float32)
