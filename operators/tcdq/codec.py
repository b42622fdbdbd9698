"""Vector to payload and back.

Payload, every field big-endian: the norm as binary32 (zero: nothing follows); from d = 1024 on the model; for each
segment the number of its words (32 bits; not for the last), the final coder states (one of 64 bits, or 16 of 32
bits), and words of 32 or 16 bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import torch

from ..message import CorruptMessage
from ..scale import TINY, energy, largest, nearest
from .dither import shape
from .fit import Choice, choose
from .model import CLASSES, COMPONENTS, THRESHOLDS, Model
from .plan import NORM_BYTES, Plan
from .rans import LONG_BASE, RECIPROCAL, ROOM, SHORT_BASE, encode_long, encode_short
from .rans_decode import decode_long, decode_short
from .segments import COUNT_BYTES, seeds_from
from .size import limit
from .symbols import symbols
from .tables import Tables, build, lookup

Payload = TypeVar("Payload", np.ndarray, torch.Tensor)


def quantised(x: np.ndarray, plan: Plan, seeds: tuple) -> tuple[float, np.ndarray]:
    """(norm, packed symbols); the norm is 0, and the symbols are empty, for a negligible vector."""
    total = energy(x)
    if total < x.size * TINY**2 and largest(x) < TINY:  # the first is implied by the second, and known already
        return 0.0, np.empty(0, np.int32)
    norm = nearest(math.sqrt(total))
    step, scale = plan.step(norm)
    packed = np.empty(plan.d, np.int32)
    for own in plan.segments:
        words = seeds_from(own.start, seeds)
        packed[own] = symbols(x[own], 1 / scale, 1 / step, plan.code.before, plan.lanes, words)
    return norm, packed


def encode(x: np.ndarray, plan: Plan, seeds: tuple, *, mixtures: int = CLASSES) -> np.ndarray:
    """The payload, whole bytes.  mixtures : most that the model may have."""
    norm, packed = quantised(x, plan, seeds)
    head = struct.pack(">f", norm)
    if not norm:
        return np.frombuffer(bytearray(head), np.uint8)
    return within_limits(lambda choice: _payload(head, packed, plan, choice), choose(packed, plan, mixtures), plan)


def within_limits(payload_of: Callable[[Choice], Payload], choice: Choice, plan: Plan) -> Payload:
    """The payload under a model, or under the Gaussian where that keeps the declared limits and the other does not."""
    payload = payload_of(choice)
    if choice.model.mixtures and 8 * len(payload) > limit(plan, choice.least_squares):
        return payload_of(choice.gaussian(plan))
    return payload


def _payload(head: bytes, packed: np.ndarray, plan: Plan, choice: Choice) -> np.ndarray:
    if plan.fits:
        head += choice.model.header()
    tables, parts = build(choice.model, plan.form), [np.frombuffer(head, np.uint8)]
    entries = _entries(tables)
    for own in plan.segments:
        ends, body = _words(packed[own], choice, own, plan, (tables.widest, tables.offset, *entries))
        if own.stop < plan.d:
            parts.append(np.array([body.size // plan.form.word], ">u4").view(np.uint8))
        parts += [ends, body]
    return np.concatenate(parts)


def _entries(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """What the encoder reads of each entry: frequency and start, in the long format joined, and with a reciprocal."""
    if tables.form.streams == 1:
        return tables.frequency, tables.start
    reciprocal = -(-(1 << RECIPROCAL) // tables.frequency.astype(np.int64))
    return tables.start << np.uint32(16) | tables.frequency, reciprocal.astype(np.uint64)


def _words(packed: np.ndarray, choice: Choice, own: slice, plan: Plan, tables: tuple) -> tuple[np.ndarray, np.ndarray]:
    """(states, words) of a segment as bytes; the estimated bits say how much room the words probably need."""
    wide = plan.form.streams > 1
    word = np.uint16 if wide else np.uint32
    bits = choice.bits * packed.size / plan.d
    room = int(max(bits, packed.size / 8) * 1.02) // (8 * plan.form.word) + 16 * ROOM + 1024
    groups = choice.groups[own.start // plan.form.streams :]
    common = (packed, choice.model.low, groups, *tables, plan.form.shift)
    while True:
        out = np.empty(room, word)
        if wide:
            states = np.empty(plan.form.streams, np.uint64)
            first = encode_long(*common, out, states)
            head = states.astype(">u4").tobytes()
        else:
            state, first = encode_short(*common, out)
            head = int(state).to_bytes(8, "big")
        if first >= 0:
            body = out[first:].astype(out.dtype.newbyteorder(">")).view(np.uint8)
            return np.frombuffer(head, np.uint8), body
        room *= 2


def decode(payload: np.ndarray, bits: int, plan: Plan, seeds: tuple) -> np.ndarray:
    """The vector.  Raises CorruptMessage for a payload that no encoder can have produced."""
    whole(bits)
    data = payload.tobytes()
    norm, out = read_norm(data, len(data)), np.zeros(plan.d, np.float32)
    if norm == 0:
        return out
    model, at = read_model(data, plan)
    reader = _reader(model, plan, norm)
    for own in plan.segments:
        states, words, at = _part(data, at, plan, last=own.stop == plan.d)
        reader(states, words, seeds_from(own.start, seeds), out[own])
    if not math.isfinite(largest(out)):
        raise CorruptMessage("a decoded coordinate exceeds binary32")
    return out


def whole(bits: int) -> None:
    """Raises CorruptMessage unless these are whole bytes."""
    if bits % 8:
        raise CorruptMessage(f"a message is a whole number of bytes; got {bits} bits")


def read_norm(data: bytes, size: int) -> float:
    """The norm of a payload of ``size`` bytes that begins with ``data``."""
    (norm,) = struct.unpack(">f", _take(data, 0, NORM_BYTES))
    if not (math.isfinite(norm) and math.copysign(1, norm) > 0):
        raise CorruptMessage(f"the norm must be finite and not negative; got {norm}")
    if norm == 0 and size != NORM_BYTES:
        raise CorruptMessage(f"{size - NORM_BYTES} bytes are left over after the norm 0")
    if 0 < norm < TINY:
        raise CorruptMessage(f"a norm is 0 or at least 2^-126; got {norm}")
    return norm


def _take(data: bytes, at: int, n: int) -> bytes:
    if at + n > len(data):
        raise CorruptMessage(f"{n} bytes are announced at byte {at} but the message has {len(data)}")
    return data[at : at + n]


def read_model(data: bytes, plan: Plan) -> tuple[Model, int]:
    """(model, position after it)."""
    at = NORM_BYTES
    if not plan.fits:
        return Model(plan.sigma, low=plan.low), at
    (kind,) = _take(data, at, 1)
    if kind == 0:
        return Model(plan.sigma, low=plan.low), at + 1
    mask = int.from_bytes(_take(data, at + 1, 2), "big")
    low = kind >> 1
    if not kind & 1 or low > plan.low or not mask & 1:
        raise CorruptMessage(f"a model is 0, or odd with a mask of its first class; got {kind} and mask {mask:#x}")
    at += 3
    starts = tuple((mask & ((2 << c) - 1)).bit_count() - 1 for c in range(CLASSES))
    mixtures = []
    for _ in range(starts[-1] + 1):
        (n,) = _take(data, at, 1)
        weights = tuple(_take(data, at + 1, n))
        if not 1 <= n <= COMPONENTS or max(weights) != 255 or weights[-1] == 0:
            raise CorruptMessage(f"a mixture has 1 to {COMPONENTS} weights, the largest 255; got {weights}")
        mixtures.append(weights)
        at += 1 + n
    return Model(plan.sigma, starts, tuple(mixtures), low), at


def _part(data: bytes, at: int, plan: Plan, *, last: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """(states, words, position after them) of one segment, in the machine's byte order."""
    form, size = plan.form, plan.form.word
    announced = None if last else int.from_bytes(_take(data, at, COUNT_BYTES), "big")
    at += 0 if last else COUNT_BYTES
    states = np.frombuffer(_take(data, at, form.state * form.streams), f">u{form.state}").astype(np.uint64)
    at += form.state * form.streams
    lowest, above = (LONG_BASE, 1 << 32) if form.streams > 1 else (SHORT_BASE, 1 << 63)
    if states.min() < lowest or int(states.max()) >= above:
        raise CorruptMessage(f"a coder state must lie in [{lowest}, {above}); got {states.min()} to {states.max()}")
    if announced is None and (len(data) - at) % size:
        raise CorruptMessage(f"{len(data) - at} bytes are no whole number of words")
    count = (len(data) - at) // size if announced is None else announced
    words = np.frombuffer(_take(data, at, count * size), f">u{size}").astype(f"u{size}")
    return states, words, at + count * size


def _reader(model: Model, plan: Plan, norm: float) -> Callable[[np.ndarray, np.ndarray, tuple, np.ndarray], None]:
    """The function (states, words, seeds, out) that decodes one segment into ``out``."""
    tables, starts = build(model, plan.form), np.array(model.starts, np.int64)
    step, scale = plan.step(norm)
    wide, cell = plan.form.streams > 1, shape(plan.code.spacing)
    factors, table = (np.float32(step * plan.code.spacing), np.float32(scale)), table_of(tables) if wide else None

    def read(states: np.ndarray, words: np.ndarray, seeds: tuple, out: np.ndarray) -> None:
        room = np.zeros(words.size + plan.form.streams * ROOM, words.dtype)
        room[: words.size] = words
        if wide:
            args = (room, states, model.low, starts, THRESHOLDS, tables.widest, table, plan.code.a, plan.code.b)
            done = decode_long(*args, (*seeds, *cell), *factors, out)
        else:
            common = (starts, THRESHOLDS, tables.widest, tables.offset, tables.frequency, tables.start, plan.form.shift)
            dither = (*seeds, *cell, plan.lanes)
            done = decode_short(room, states[0], model.low, *common, plan.code.after, dither, *factors, out)
        if done != words.size:
            raise CorruptMessage(f"the {words.size} words are not those of {out.size} coordinates")

    return read


@lru_cache(maxsize=4)
def table_of(tables: Tables) -> np.ndarray:
    """The decoder's lookup table of tables that are kept (those of a Gaussian)."""
    return lookup(tables)
