"""Frequencies of the entropy coder: for each mixture and each bin of the dither's phase, integers adding to 2^P."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .model import Model, density, tail_mass, total_mass, widest


@dataclass(frozen=True)
class Format:
    """How the coder works.

    Parameters
    ----------
    precision : int
        P, frequencies add to 2^P.
    bins : int
        Of the phase, C.
    streams : int
        Interleaved coder states of a segment.
    rarest : int
        Symbols of probability below 2^-rarest are escapes; each one above takes at least 2^-P.
    state : int
        Bytes of a final state.
    word : int
        Bytes of a word.
    """

    precision: int
    bins: int
    streams: int
    rarest: int
    state: int
    word: int

    @property
    def shift(self) -> int:
        """A phase in 1/64 becomes a bin by this shift."""
        return 6 - self.bins.bit_length() + 1


SHORT = Format(precision=16, bins=64, streams=1, rarest=30, state=8, word=4)
LONG = Format(precision=12, bins=16, streams=16, rarest=13, state=4, word=2)


@dataclass(frozen=True, eq=False)
class Tables:
    """Every group's frequencies one after the other.

    Parameters
    ----------
    widest : ndarray
        K of each group, int64; symbols 1 - K .. K have indices 0 .. 2 K - 1, the escape 2 K.
    offset : ndarray
        Where a group begins, int64; entry offset + bin (2 K + 1) + index.
    frequency : ndarray
        uint32.
    start : ndarray
        uint32.
    """

    form: Format
    widest: np.ndarray
    offset: np.ndarray
    frequency: np.ndarray
    start: np.ndarray

    def rows(self, group: int) -> np.ndarray:
        """Return the frequencies of one group: shape (C, 2 K + 1)."""
        size = 2 * int(self.widest[group]) + 1
        first = int(self.offset[group])
        return self.frequency[first : first + self.form.bins * size].reshape(-1, size)


def build(model: Model, form: Format) -> Tables:
    """Return the tables of a model."""
    return _gaussian(model.sigma, form) if not model.mixtures else _build(model, form)


@lru_cache(maxsize=64)
def _gaussian(sigma: float, form: Format) -> Tables:
    return _build(Model(sigma), form)


def _build(model: Model, form: Format) -> Tables:
    groups = [_group(model, g, form) for g in range(model.groups)]
    sizes = [rows.size for rows in groups]
    starts = [np.cumsum(rows, axis=1) - rows for rows in groups]
    return Tables(
        form,
        np.array([rows.shape[1] // 2 for rows in groups], np.int64),
        np.cumsum([0, *sizes[:-1]]).astype(np.int64),
        np.concatenate([rows.reshape(-1) for rows in groups]).astype(np.uint32),
        np.concatenate([rows.reshape(-1) for rows in starts]).astype(np.uint32),
    )


def _group(model: Model, group: int, form: Format) -> np.ndarray:
    values, total = density(model, group, form.bins), total_mass(model, group)
    k = widest(values, total, form.bins, form.rarest)
    symbol = np.arange(1 - k, k + 1)[None, :] * form.bins
    bins = np.arange(form.bins)[:, None]
    near = values[np.where(symbol > 0, symbol - bins - 1, bins - symbol)]
    share = np.concatenate([near, np.full((form.bins, 1), tail_mass(model, group, k))], axis=1)
    spare = (1 << form.precision) - share.shape[1]
    frequency = share * spare // share.sum(axis=1, keepdims=True) + 1
    rest = (1 << form.precision) - frequency.sum(axis=1)
    frequency[np.arange(form.bins), frequency.argmax(axis=1)] += rest
    return frequency


def lookup(tables: Tables) -> np.ndarray:
    """Return a flat uint32 table by group, bin and low 12 bits of the state.

    An entry is index ``|`` (slot - start) ``<< 8 |`` frequency << 20.
    """
    parts = [np.tile(np.arange(2 * k + 1), tables.form.bins) for k in tables.widest]
    index, frequency = np.concatenate(parts).astype(np.uint32), tables.frequency
    entry = index - (tables.start << np.uint32(8)) + (frequency << np.uint32(20))  # wraps until the slot is added
    slot = np.arange(1 << tables.form.precision, dtype=np.uint32) << np.uint32(8)
    flat = np.repeat(entry, frequency).reshape(-1, slot.size)
    return (flat + slot).reshape(-1)
