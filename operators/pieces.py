"""Encode and decode vectors that are longer than memory, in pieces, bit for bit as a whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch

from bounds.fields import whole

from .inputs import canonical
from .kernels.philox import TILE
from .key import Key
from .message import CorruptMessage, Message
from .operator import Operator

RUN = 1 << 16  # coordinates per run, which fits the cache

Arrays = Callable[[], Iterator[np.ndarray]]  # each call reads all coordinates, in pieces of any length
Runs = Callable[[], Iterable[tuple[slice, np.ndarray]]]  # each call reads all coordinates: slice and values per run


class InPieces(Operator):
    """An operator whose message can be written and read piece by piece.

    Subclasses write ``_encode_arrays`` and ``_decode_arrays`` for the CPU, which must equal ``encode`` and ``decode``
    bit for bit.

    Attributes
    ----------
    whole_only : str
        Reason why this instance cannot work in pieces, or "".
    """

    whole_only: str = ""

    @abstractmethod
    def _encode_arrays(self, arrays: Arrays, d: int, key: Key) -> tuple[np.ndarray, int]:
        """Return (payload, bits) of a vector; every call of ``arrays`` yields its pieces."""

    @abstractmethod
    def _decode_arrays(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        """Yield the vector in pieces, as float32 arrays.

        Raise CorruptMessage, at the end at the latest, unless exactly ``bits`` bits are used.
        """

    def encode_pieces(self, pieces: Callable[[], Iterable[torch.Tensor | np.ndarray]], *, d: int, key: Key) -> Message:
        """Compress a vector that is read in pieces on the CPU; the message equals that of ``encode``, bit for bit.

        Parameters
        ----------
        pieces : callable
            Returns the pieces in order, of any length and d coordinates in total.  Called one to five times; must
            return the same numbers every time.
        d : int
            Number of coordinates.
        key : Key
            Stream of random numbers.

        Raises
        ------
        ValueError
            For NaN, infinity or a total other than d coordinates; where this instance
            cannot work in pieces.

        Notes
        -----
        Memory is needed for the message, an eighth more while it grows, a piece and a run of some 2^16 coordinates (of
        TCDQ a few times 2^17); it has whole columns, and whole buckets where fields have one width.
        """
        d = self._check_pieces(d)
        payload, bits = self._encode_arrays(lambda: (canonical(piece) for piece in pieces()), d, key)
        return Message(torch.from_numpy(payload), bits)

    def decode_pieces(self, message: Message, *, d: int, key: Key | None = None) -> Iterator[torch.Tensor]:
        """Yield the vector that ``decode`` returns in pieces of about 2^16 coordinates (2^17 for TCDQ).

        Parameters
        ----------
        message : Message
            A message of ``encode`` or ``encode_pieces``.
        d : int
            Number of coordinates.
        key : Key or None, optional
            The encoder's key; needed only if ``randomness`` is "shared".

        Raises
        ------
        CorruptMessage
            For a payload that no encoder can have produced, when the fault is reached; at the end for faults that
            only the whole message shows.
        ValueError
            For d < 1, a missing key, or where this instance cannot work in pieces.
        """
        d = self._check_pieces(d)
        self._check_key(key)
        self._check_padding(message)
        self._check_length(message, d)
        try:
            for part in self._decode_arrays(message.payload.cpu().numpy(), message.bits, d, key):
                yield torch.from_numpy(part)
        except MemoryError:
            raise CorruptMessage(f"d must fit memory in pieces; got d = {d}: give the d of the encoder") from None

    def _check_pieces(self, d: int) -> int:
        """Return d as a plain int; raise ValueError if this instance cannot work in pieces."""
        if (d := whole("d", d)) < 1:
            raise ValueError(f"d must satisfy d >= 1; got d = {d}")
        if self.whole_only:
            raise ValueError(f"{self.name} cannot work in pieces: {self.whole_only}")
        return d


class InRuns(InPieces):
    """An operator whose message can be written and read run by run; d alone determines the runs.

    Subclasses write ``_encode_runs`` and ``_decode_runs`` for the CPU, which must equal ``_encode`` and ``_decode`` bit
    for bit.
    """

    def _unit(self, d: int) -> int:
        """Return the run granularity in coordinates, a multiple of the tile."""
        return TILE

    def _runs(self, d: int) -> Iterator[slice]:
        unit = self._unit(d)
        length = unit * max(1, RUN // unit)
        return (slice(start, min(start + length, d)) for start in range(0, d, length))

    @abstractmethod
    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        """Return (payload, bits) of a vector; every call of ``runs`` yields the runs ``_runs(d)``."""

    @abstractmethod
    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        """Yield the runs ``_runs(d)`` as float32 arrays.

        Raise CorruptMessage, at the end at the latest, unless exactly ``bits`` bits are used.
        """

    def _joined(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        """Concatenate the runs of ``_decode_runs``."""
        out = np.empty(d, np.float32)
        for part, values in zip(self._runs(d), self._decode_runs(payload, bits, d, key), strict=True):
            out[part] = values
        return out

    def _encode_arrays(self, arrays: Arrays, d: int, key: Key) -> tuple[np.ndarray, int]:
        return self._encode_runs(lambda: cut(arrays(), self._runs(d), d), d, key)

    def _decode_arrays(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        return self._decode_runs(payload, bits, d, key)


def cut(pieces: Iterable[np.ndarray], parts: Iterator[slice], d: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Regroup pieces into the given parts; yield the slice and the coordinates of each part.

    Parameters
    ----------
    pieces : iterable of ndarray
        Pieces in order; a piece that equals a part is passed on without a copy.
    parts : iterator of slice
        Wanted slices, contiguous from 0 to d.
    d : int
        Number of coordinates.

    Raises
    ------
    ValueError
        If there are not d coordinates.
    """
    kept: list[np.ndarray] = []
    held = together = 0
    part = next(parts)
    for piece in pieces:
        together += piece.size
        while piece.size:
            missing = part.stop - part.start - held
            kept, held, piece = [*kept, piece[:missing]], held + min(missing, piece.size), piece[missing:]
            if held == part.stop - part.start:
                yield part, kept[0] if len(kept) == 1 else np.concatenate(kept)
                kept, held, part = [], 0, next(parts, slice(d, d + 1))
        if together > d:
            break
    if together != d:
        raise ValueError(f"the pieces must have d = {d} coordinates in total; got {together} or more")
