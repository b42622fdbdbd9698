"""Bit strings put one behind the other from any bit on, and windows on a payload that is read so: in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LEAST = 1 << 12  # bytes of a window
AHEAD = 2.0  # how many times what its run is expected to take
BEHIND = 64  # bits before a position that a window shows too: a range coder's decoder holds them


def grow(out: np.ndarray, size: int) -> None:
    """Give an array at least ``size`` bytes, with zeros behind those that are there, in place; no view may be left.

    Parameters
    ----------
    out : ndarray
        uint8, shape (n,).
    size : int
        Bytes; an eighth more is taken, so that few calls of many move them.
    """
    if size > out.size:
        out.resize(size + size // 8, refcheck=False)


class BitWriter:
    """A place in a buffer of zeros at which the next bit string begins.

    Parameters
    ----------
    out : ndarray or None, optional
        The buffer, uint8, of which a part is filled; None for one that grows and is filled from its start.
    position : int, optional
        Bit at which the part begins.
    stop : int, optional
        Bit at which it ends.
    """

    def __init__(self, out: np.ndarray | None = None, position: int = 0, stop: int = 0) -> None:
        self.grows = out is None
        self.out = np.zeros(0, np.uint8) if out is None else out
        self.position, self.stop = position, stop

    def append(self, string: np.ndarray, bits: int) -> None:
        """Put a bit string behind those before it; bits that others have set in its bytes stay.

        Parameters
        ----------
        string : ndarray
            uint8, zero-padded.
        bits : int
            Its length.

        Raises
        ------
        ValueError
            If it does not fit the part.
        """
        first, shift = divmod(self.position, 8)
        self.position += bits
        if self.grows:
            grow(self.out, (self.position + 7) // 8)
        elif self.position > self.stop:
            raise changed()
        self.out[first : first + string.size] |= string >> shift
        if shift:
            rest = self.out[first + 1 : (self.position + 7) // 8]
            rest |= (string << (8 - shift))[: rest.size]

    def close(self) -> None:
        """Raise ValueError unless the part is full."""
        if self.position != self.stop:
            raise changed()

    def finish(self) -> tuple[np.ndarray, int]:
        """Return (payload, bits) of a buffer that grows."""
        self.out.resize((self.position + 7) // 8, refcheck=False)
        return self.out, self.position


def changed() -> ValueError:
    """Return what to raise if strings do not fill the place that an earlier reading of the vector made for them."""
    return ValueError("pieces() must give the same numbers at every call; got others than at the call before")


def shift_down(out: np.ndarray, start: int, stop: int, by: int) -> None:
    """Move the bytes start .. stop - 1 by 0 to 7 bits towards the beginning, zeros behind them; in place.

    Parameters
    ----------
    out : ndarray
        uint8; the byte before ``start`` has zeros where the first bits go.
    start : int
        First byte.
    stop : int
        Byte after the last.
    by : int
        Bits.
    """
    if not by:
        return
    for first in range(start, stop, LEAST):
        last = min(first + LEAST, stop)
        before = out[first:last] >> (8 - by)
        out[first:last] <<= np.uint8(by)
        out[first - 1 : last - 1] |= before


def in_windows(
    payload: np.ndarray, bits: int, position: int, share: float, read: Callable[[np.ndarray, int, int], int]
) -> int:
    """Return the bit position at which a decoder stands after a run, -1 if the stream is corrupt.

    Parameters
    ----------
    payload : ndarray
        uint8, a message.
    bits : int
        Its length.
    position : int
        Where the decoder stands.
    share : float
        What part of the message the run is expected to take.
    read : callable
        Reads from (bytes, bit position in them, bits that are there) and returns the next position in them, a negative
        number where it cannot go on; called again with twice as many bytes where it cannot, or has gone beyond them.
    """
    first = 4 * (min(max(position - BEHIND, 0), bits) >> 5)
    size = LEAST + 4 * int(AHEAD * share * payload.size / 4)
    while True:
        part, there = payload[first : first + size], min(bits - 8 * first, 8 * size)
        stopped = read(part, position - 8 * first, there)
        if 0 <= stopped <= there or there == bits - 8 * first:
            return stopped + 8 * first if stopped >= 0 else -1
        size *= 2
