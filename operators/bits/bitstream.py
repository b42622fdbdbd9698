"""Bit strings, most significant bit first: packing of fixed and variable fields, and checked reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from ..compilation import jit
from ..message import CorruptMessage
from . import elias

SPARE_WORDS = 3  # of zeros behind a payload's words, which a loop may look at
FIELDS = 4096  # of a buffer that is filled and then appended by ``write_fields``


@jit
def pack_fields(values, widths, out, position):
    """Append each value in its width (0 to 64 bits) to ``out`` (zeroed) from bit ``position``; returns the end.

    Parameters
    ----------
    values
        The numbers, unsigned.
    widths
        Bits of each field.
    out
        The array that is filled.
    position
        Bit position.
    """
    for i in range(values.size):
        value, width = values[i], int(widths[i])
        while width > 0:
            free = 8 - (position & 7)
            take = min(free, width)
            chunk = (value >> np.uint64(width - take)) & np.uint64((1 << take) - 1)
            out[position >> 3] |= np.uint8(chunk << np.uint64(free - take))
            position += take
            width -= take
    return position


@jit
def read_field(payload, position, width):
    """Return ``width`` (0 to 64) bits from bit ``position`` as uint64; the caller has checked that they exist.

    Parameters
    ----------
    payload
        The bytes of a message.
    position
        Bit position.
    width
        Bits of a field.
    """
    value = np.uint64(0)
    while width > 0:
        free = 8 - (position & 7)
        take = min(free, width)
        chunk = (int(payload[position >> 3]) >> (free - take)) & ((1 << take) - 1)
        value = (value << np.uint64(take)) | np.uint64(chunk)
        position += take
        width -= take
    return value


@jit
def write_bits(out, state, value, width):
    """Append ``width`` (0 to 32) bits of ``value`` to a stream under construction; returns its new state.

    Parameters
    ----------
    out
        The array that is filled.
    state
        (64-bit accumulator, bits in it below 32, next byte of ``out``); begin with (uint64(0), 0, 0).
    value
        Unsigned, below 2^width.
    width
        Bits of a field.
    """
    acc, filled, next_byte = state
    acc = (acc << np.uint64(width)) | np.uint64(value)
    filled += width
    if filled >= 32:
        filled -= 32
        word = acc >> np.uint64(filled)
        out[next_byte] = np.uint8(word >> np.uint64(24))
        out[next_byte + 1] = np.uint8(word >> np.uint64(16))
        out[next_byte + 2] = np.uint8(word >> np.uint64(8))
        out[next_byte + 3] = np.uint8(word)
        acc &= (np.uint64(1) << np.uint64(filled)) - np.uint64(1)
        next_byte += 4
    return acc, filled, next_byte


@jit
def write_fields(out, state, values, widths, n):
    """Append the first n fields of 0 to 32 bits; returns the new state.

    The loop repeats ``write_bits`` in place: calling it would count references to ``out`` at every field, which takes
    ten times longer than the work.

    Parameters
    ----------
    out
        The array that is filled.
    state
        What the method remembers.
    values
        The numbers, unsigned.
    widths
        Bits of each field.
    n
        How many of the values are written.
    """
    acc, filled, next_byte = state
    for i in range(n):
        acc = (acc << np.uint64(widths[i])) | values[i]
        filled += widths[i]
        if filled >= 32:
            filled -= 32
            word = acc >> np.uint64(filled)
            out[next_byte] = np.uint8(word >> np.uint64(24))
            out[next_byte + 1] = np.uint8(word >> np.uint64(16))
            out[next_byte + 2] = np.uint8(word >> np.uint64(8))
            out[next_byte + 3] = np.uint8(word)
            next_byte += 4
    return acc & ((np.uint64(1) << np.uint64(filled)) - np.uint64(1)), filled, next_byte


@jit
def flush(out, state):
    """Write what the accumulator still holds, zero-padded to a byte.

    Parameters
    ----------
    out
        The stream under construction.
    state
        Its state.
    """
    acc, filled, next_byte = state
    while filled > 0:
        shift = filled - 8
        out[next_byte] = np.uint8(acc >> np.uint64(shift)) if shift >= 0 else np.uint8(acc << np.uint64(-shift))
        next_byte += 1
        filled -= 8


@jit
def peek(padded, position):
    """Return 57 bits or more from bit ``position``, at the top of a uint64; ``padded`` ends with 8 spare bytes.

    Parameters
    ----------
    padded
        Packed bytes, uint8, with 8 spare ones at the end.
    position
        Bit position.
    """
    first = position >> 3
    word = (
        (np.uint64(padded[first]) << np.uint64(56))
        | (np.uint64(padded[first + 1]) << np.uint64(48))
        | (np.uint64(padded[first + 2]) << np.uint64(40))
        | (np.uint64(padded[first + 3]) << np.uint64(32))
        | (np.uint64(padded[first + 4]) << np.uint64(24))
        | (np.uint64(padded[first + 5]) << np.uint64(16))
        | (np.uint64(padded[first + 6]) << np.uint64(8))
        | np.uint64(padded[first + 7])
    )
    return word << np.uint64(position & 7)


@jit
def write_string(out, state, payload, bits):
    """Append a whole bit string; returns the new state of the stream.

    Parameters
    ----------
    out
        The array that is filled.
    state
        What the method remembers.
    payload
        The bytes of a message.
    bits : bits
        Length in bits.
    """
    values, widths = np.zeros(FIELDS, np.uint64), np.full(FIELDS, 8, np.int64)
    whole = bits >> 3
    for start in range(0, whole, FIELDS):
        m = min(FIELDS, whole - start)
        for i in range(m):
            values[i] = payload[start + i]
        state = write_fields(out, state, values, widths, m)
    if bits & 7:
        state = write_bits(out, state, payload[whole] >> (8 - (bits & 7)), bits & 7)
    return state


@jit
def copy_bits(padded, position, bits, out):
    """Write bits position .. position + bits to ``out`` from its start, zero-padded.

    Parameters
    ----------
    padded
        A payload with 8 spare bytes behind it.
    position
        Bit position.
    bits : bits
        Length in bits.
    out
        The array that is filled.
    """
    for i in range(out.size):
        out[i] = np.uint8(peek(padded, position + 8 * i) >> np.uint64(56))
    if bits & 7:
        out[out.size - 1] &= np.uint8(0xFF << (8 - (bits & 7)))


def padded(payload: np.ndarray) -> np.ndarray:
    """Return the payload followed by 8 zero bytes, so that ``peek`` may read at its end.

    Parameters
    ----------
    payload : ndarray
        The bytes of a message.
    """
    out = np.zeros(payload.size + 8, np.uint8)
    out[: payload.size] = payload
    return out


def words(payload: np.ndarray) -> np.ndarray:
    """Return the payload as native uint32 words, first bits highest, followed by at least 3 words of zeros.

    With i = position >> 5, ``((words[i] << 32) | words[i + 1])`` << (position & 31) shows at least 33 bits at the top
    of 64; loops write it in place for the reason given in ``write_fields``.

    Parameters
    ----------
    payload : ndarray
        The bytes of a message.
    """
    out = np.zeros(-(-payload.size // 4) + SPARE_WORDS, np.uint32)
    set_words(payload, out)
    return out


@jit
def set_words(payload, out):
    """Write the payload as ``words``, for loops that call nothing before.

    Parameters
    ----------
    payload
        The bytes of a message.
    out
        Zeros, a word for every four bytes or part of it, and ``SPARE_WORDS``.
    """
    whole = payload.size >> 2
    for i in range(whole):
        high = (np.uint32(payload[4 * i]) << np.uint32(24)) | (np.uint32(payload[4 * i + 1]) << np.uint32(16))
        out[i] = high | (np.uint32(payload[4 * i + 2]) << np.uint32(8)) | np.uint32(payload[4 * i + 3])
    for i in range(4 * whole, payload.size):
        out[whole] |= np.uint32(payload[i]) << np.uint32(24 - 8 * (i & 3))


def pack(values: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, int]:
    """Return concatenate fields: (payload uint8, bits).

    Parameters
    ----------
    values : ndarray
        uint64.
    widths : ndarray
        0..64, same shape (n,).
    """
    bits = int(widths.sum())
    out = np.zeros((bits + 7) // 8, np.uint8)
    pack_fields(values.astype(np.uint64, copy=False), widths.astype(np.int64, copy=False), out, 0)
    return out, bits


def pack32(values: np.ndarray, widths: np.ndarray, n: int) -> tuple[np.ndarray, int]:
    """Return ``pack`` of the first n fields, faster, for widths up to 32.

    Parameters
    ----------
    values : ndarray
        The numbers, unsigned.
    widths : ndarray
        Bits of each field.
    n : int
        How many of the values are written.
    """
    bits = int(widths[:n].sum())
    out = np.zeros((bits + 7) // 8, np.uint8)
    _pack32(values, widths, n, out)
    return out, bits


@jit
def _pack32(values, widths, n, out):
    flush(out, write_fields(out, (np.uint64(0), np.int64(0), np.int64(0)), values, widths, n))


class BitReader:
    """A position in a payload; every read is checked against the announced length.

    Parameters
    ----------
    payload : ndarray
        The bytes of a message.
    bits : int, bits
        Length in bits.
    position : int, optional
        Bit position.
    """

    def __init__(self, payload: np.ndarray, bits: int, position: int = 0) -> None:
        self.payload = payload
        self.bits = bits
        self.position = position

    @property
    def remaining(self) -> int:
        """Bits not yet read."""
        return self.bits - self.position

    def read(self, width: int) -> int:
        """Return the next field.

        Parameters
        ----------
        width : int
            Bits of a field.

        Raises
        ------
        CorruptMessage
            If fewer than ``width`` bits remain.
        """
        if width > self.remaining:
            raise CorruptMessage(f"a field of {width} bits is announced but {self.remaining} bits remain")
        value = int(read_field(self.payload, self.position, width))
        self.position += width
        return value

    def read_float(self) -> float:
        """Return a binary32 number (norms and scales).

        Raises
        ------
        CorruptMessage
            If it is negative or not finite.
        """
        value = np.uint32(self.read(32)).view(np.float32)
        if not np.isfinite(value) or np.signbit(value):
            raise CorruptMessage(f"a scale must be finite and not negative; got {value}")
        return float(value)

    def finish(self) -> None:
        """Raise CorruptMessage if bits are left over."""
        if self.remaining:
            raise CorruptMessage(f"{self.remaining} bits are left over after the last field")


def float_bytes(values: torch.Tensor) -> torch.Tensor:
    """Return float32 tensor, shape (n,), as 4 n big-endian bytes (uint8) on its device.

    Parameters
    ----------
    values : float32, shape (n,)
    """
    return values.view(torch.uint8).reshape(-1, 4).flip(1).reshape(-1)


def read_floats(payload: torch.Tensor) -> torch.Tensor:
    """Return the inverse of ``float_bytes``.

    Parameters
    ----------
    payload : tensor
        The bytes of a message.
    """
    return payload.reshape(-1, 4).flip(1).contiguous().view(torch.float32).reshape(-1)


# Bit strings put one behind the other from any bit on, and windows on a payload that is read so: in bounded memory.

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


# Several bit strings in one, without padding between them, and back.


def concatenate(fields: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """Join bit strings without padding between them; return the bytes and the number of bits.

    Parameters
    ----------
    fields : sequence of (ndarray, int)
        Each bit string as uint8, zero-padded, and its length in bits.
    """
    bits = sum(width for _, width in fields)
    out, state = np.zeros((bits + 7) // 8, np.uint8), (np.uint64(0), 0, 0)
    for payload, width in fields:
        acc, filled, next_byte = write_string(out, state, payload, width)
        state = (np.uint64(acc), filled, next_byte)
    flush(out, state)
    return out, bits


def join_messages(messages: Sequence[tuple[np.ndarray, int]], exact: Sequence[int | None]) -> tuple[np.ndarray, int]:
    """Join messages into one bit string; before a message of unknown length stands its length.

    Parameters
    ----------
    messages : sequence of (ndarray, int)
        Payload, uint8, and length in bits of each.
    exact : sequence of int or None
        The length of each message where the receiver knows it, in bits.
    """
    fields: list[tuple[np.ndarray, int]] = []
    for (payload, bits), length in zip(messages, exact, strict=True):
        if length is None:
            code, width = elias.build(bits + 1)
            fields.append((np.array([code << (64 - width)], ">u8").view(np.uint8), int(width)))
        fields.append((payload, bits))
    return concatenate(fields)


def split_messages(payload: np.ndarray, bits: int, exact: Sequence[int | None]) -> list[tuple[np.ndarray, int]]:
    """Return the messages that ``join_messages`` has joined, each with its length in bits.

    Parameters
    ----------
    payload : ndarray
        uint8, the joined bit string.
    bits : int
        Its length.
    exact : sequence of int or None
        As for ``join_messages``.

    Raises
    ------
    CorruptMessage
        Unless they use up all bits.
    """
    buffer, position, messages = padded(payload), 0, []
    for number, length in enumerate(exact):
        if length is None:
            n, used = elias.parse(np.uint64(peek(buffer, position))) if position < bits else (0, 0)
            if used == 0:
                raise CorruptMessage(f"the length of part {number} is missing at bit {position}")
            position, length = position + used, n - 1
        if position + length > bits:
            raise CorruptMessage(f"part {number} of {length} bits is cut off at bit {bits}")
        messages.append((extract(buffer, position, length), length))
        position += length
    if position != bits:
        raise CorruptMessage(f"{bits - position} bits are left over after the last part")
    return messages


def extract(buffer: np.ndarray, position: int, bits: int) -> np.ndarray:
    """Return bits position .. position + bits of a padded payload as bytes of their own, zero-padded.

    Parameters
    ----------
    buffer : ndarray
        uint8, from ``padded``.
    position : int
        The first bit.
    bits : int
        How many.
    """
    out = np.zeros((bits + 7) // 8, np.uint8)
    copy_bits(buffer, position, bits, out)
    return out
