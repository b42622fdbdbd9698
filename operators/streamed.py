"""Messages of a head and then fields of one width: a vector is encoded and decoded in pieces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from .kernels.philox import TILE
from .key import Key
from .message import Message
from .operator import Operator, canonical

RUN = 1 << 16  # coordinates that are worked on together, in the cache


class Streamed(Operator):
    """An operator whose message is a head, known after a look at all coordinates, and then a field for each of them.

    Subclasses write the hooks below for the CPU; ``_encode`` and ``_decode`` follow.  What derives from
    ``DeviceOperator`` first keeps its own, which the hooks must equal bit for bit.

    Attributes
    ----------
    width : int or Fraction
        Bits of a field.
    whole_only : str
        Why this instance cannot work in pieces; empty where it can.
    """

    width: int | Fraction
    whole_only: str = ""

    def _unit(self, d: int) -> int:
        """Return after how many coordinates a run may end: they fill whole bytes and use up whole tiles of words."""
        return TILE

    @abstractmethod
    def _survey(self, x: np.ndarray) -> np.ndarray:
        """Return what the head needs of a run of coordinates: float64, rows that are put after those before them."""

    @abstractmethod
    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, Any]:
        """Return (the head as bytes, what the fields need of it)."""

    @abstractmethod
    def _fields(self, x: np.ndarray, start: int, head: Any, key: Key) -> np.ndarray:
        """Return the fields of the run that begins with coordinate ``start``, as bytes."""

    @abstractmethod
    def _read_head(self, payload: np.ndarray, bits: int, d: int) -> tuple[int, Any]:
        """Return (bytes of the head, what the values need of it)."""

    @abstractmethod
    def _values(self, fields: np.ndarray, start: int, head: Any, out: np.ndarray) -> Any:
        """Fill ``out`` from the fields of a run and return what ``_check`` asks of it."""

    def _check(self, answers: list[Any], head: Any) -> None:
        """Raise CorruptMessage if the answers of all runs do not fit the head: any do."""

    def _runs(self, d: int) -> Iterator[slice]:
        unit = self._unit(d)
        length = unit * max(1, RUN // unit)
        return (slice(start, min(start + length, d)) for start in range(0, d, length))

    def _filled(self, part: slice, head: int) -> slice:
        """Return which bytes of the payload the fields of a run fill."""
        return slice(head + int(part.start * self.width) // 8, head + -int(-part.stop * self.width // 8))

    def _written(
        self, survey: np.ndarray, parts: Iterable[tuple[slice, np.ndarray]], d: int, key: Key
    ) -> tuple[np.ndarray, int]:
        size = self.bits(d).exact
        assert size is not None  # a head and fields have one length
        payload = np.empty((size + 7) // 8, np.uint8)
        head, needed = self._head(survey, d)
        payload[: head.size] = head
        for part, x in parts:
            payload[self._filled(part, head.size)] = self._fields(x, part.start, needed, key)
        return payload, size

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self._written(self._survey(x), ((part, x[part]) for part in self._runs(x.size)), x.size, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        size, head = self._read_head(payload, bits, d)
        out = np.empty(d, np.float32)
        parts = self._runs(d)
        self._check([self._values(payload[self._filled(p, size)], p.start, head, out[p]) for p in parts], head)
        return out

    def encode_pieces(self, pieces: Callable[[], Iterable[torch.Tensor | np.ndarray]], *, d: int, key: Key) -> Message:
        """Compress a vector that is read in pieces, on the CPU: the message of ``encode``, bit for bit.

        Parameters
        ----------
        pieces : callable
            Returns the pieces in order, d coordinates together, of any lengths; called twice, and must give the same
            numbers.
        d : int
            Number of coordinates.
        key : Key
            Stream of random numbers.

        Raises
        ------
        ValueError
            As ``encode``, with the index within the piece; if there are not d coordinates; or where the format has no
            fields of one width.

        Notes
        -----
        Memory is needed for the message, a piece and some 2^16 coordinates.
        """
        self._check_width()

        def parts() -> Iterator[tuple[slice, np.ndarray]]:
            return cut((canonical(piece) for piece in pieces()), self._runs(d), d)

        survey = np.concatenate([self._survey(x) for _, x in parts()])
        payload, bits = self._written(survey, parts(), d, key)
        return Message(torch.from_numpy(payload), bits)

    def decode_pieces(self, message: Message, *, d: int, key: Key | None = None) -> Iterator[torch.Tensor]:
        """Yield the vector that ``decode`` returns in pieces of some 2^16 coordinates.

        Parameters
        ----------
        message : Message
            A message of ``encode`` or ``encode_pieces``.
        d : int
            Number of coordinates.
        key : Key or None, optional
            Of no use: none of these formats needs it.

        Raises
        ------
        CorruptMessage
            For a payload that no encoder can have produced, when what is wrong with it is reached; at the end for what
            only the whole message shows.
        ValueError
            Where the format has no fields of one width.
        """
        self._check_width()
        self._check_padding(message)
        payload, answers = message.payload.cpu().numpy(), []
        size, head = self._read_head(payload, message.bits, d)
        for part in self._runs(d):
            out = np.empty(part.stop - part.start, np.float32)
            answers.append(self._values(payload[self._filled(part, size)], part.start, head, out))
            yield torch.from_numpy(out)
        self._check(answers, head)

    def _check_width(self) -> None:
        if self.whole_only:
            raise ValueError(f"{self.name} cannot work in pieces: {self.whole_only}")


def cut(pieces: Iterable[np.ndarray], parts: Iterator[slice], d: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield each part's place and its coordinates.

    Parameters
    ----------
    pieces : iterable of ndarray
        What to cut anew; one that is a part is passed on as it is.
    parts : iterator of slice
        The wanted ones, which follow each other from 0 to d.
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
        raise ValueError(f"the pieces must have d = {d} coordinates together; got {together} or more")
