"""A vector in pieces: the message that it has as a whole, in memory for that message and a few segments.

The norm comes first and the model depends on symbols from all over the vector, so that the pieces are read three times:
for the norm, for the model, to be written; a fourth time if mixtures would break a declared limit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np

from ..message import CorruptMessage
from ..pieces import Arrays, cut
from ..quantisers.scale import largest, nearest, norm_of
from . import codec
from .classes import classify
from .fit import fitted, gaussian, least_squares, stride
from .model import THRESHOLDS, Model
from .plan import Plan
from .size import limit


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
    for segment, symbols in packed:
        first = segment.start // width
        for row in range(-(-first // every) * every, -(-segment.stop // width), every):
            start = (row - first) * width
            if row > 0:
                kept.append(symbols[start - width : start].copy() if start else before)
            kept.append(symbols[start : start + width].copy())  # a view would keep the segment
        before = symbols[-width:].copy()
    return np.concatenate(kept)


def encode(pieces: Arrays, plan: Plan, seeds: tuple) -> np.ndarray:
    """Return the payload, as ``dispatch.encode`` does, of a vector whose pieces a function returns: uint8."""
    if plan.form.streams == 1:
        return codec.encode(np.concatenate(list(pieces())), plan, seeds)
    norm = norm_of(lambda: in_segments(pieces(), plan), nearest)
    head = struct.pack(">f", norm)
    if not norm:
        return np.frombuffer(bytearray(head), np.uint8)

    def packed() -> Iterator[tuple[slice, np.ndarray]]:
        for segment, x in in_segments(pieces(), plan):
            yield segment, codec.symbols_of(x, segment.start, norm, plan, seeds)

    every = stride(plan)
    if every > 1:
        bits, model = fitted(_sample(packed(), plan), 2, plan)
    else:
        bits, model = fitted(np.concatenate([symbols for _, symbols in packed()]), 1, plan)
    payload, squares = _written(head, packed(), model, bits, plan)
    if model.mixtures and 8 * payload.size > limit(plan, squares):
        return _written(head, packed(), gaussian(plan), bits, plan)[0]
    return payload


def _written(
    head: bytes, packed: Iterator[tuple[slice, np.ndarray]], model: Model, bits: float, plan: Plan
) -> tuple[np.ndarray, float]:
    """Return (payload, a lower bound of sum r^2)."""
    write, width = codec.Writer(model, bits, plan), plan.form.streams
    starts, energy = np.array(model.starts, np.uint8), 0
    parts = [np.frombuffer(head + write.header, np.uint8)]
    for segment, symbols in packed:
        classes = np.zeros(-(-symbols.size // width), np.uint8)
        if model.mixtures:
            energy += int(classify(symbols, model.low, THRESHOLDS, width, classes))
        parts += write.segment(symbols, starts[classes], last=segment.stop == plan.d)
    return np.concatenate(parts), least_squares(energy, plan.d, model.low)


def decode(payload: np.ndarray, bits: int, plan: Plan, seeds: tuple) -> Iterator[np.ndarray]:
    """Yield the segments of what ``dispatch.decode`` returns: float32 arrays.

    Raises
    ------
    CorruptMessage
        For a payload that no encoder can have produced, when what is wrong with it is reached.
    """
    empty = True
    for segment, fill in codec.reader(payload, bits, plan, seeds):
        empty = False
        out = np.zeros(segment.stop - segment.start, np.float32)
        fill(out)
        if not math.isfinite(largest(out)):
            raise CorruptMessage("a decoded coordinate exceeds binary32")
        yield out
    if empty:
        for segment in plan.segments:
            yield np.zeros(segment.stop - segment.start, np.float32)
