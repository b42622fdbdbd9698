"""Messages of a head and fields of one width, encoded and decoded run by run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .kernels.threads import mapped
from .key import Key
from .message import CorruptMessage
from .operator import Size
from .pieces import InRuns, Runs


class Streamed(InRuns):
    """An operator whose message is a head, computed from all coordinates, and one field per coordinate.

    Subclasses write the hooks below for the CPU; ``_encode`` and ``_decode`` follow.  A class that derives from
    ``DeviceOperator`` first keeps its own, which the hooks must equal bit for bit.

    Attributes
    ----------
    width : int or Fraction
        Bits of a field; those of a run fill whole bytes.
    """

    width: int | Fraction

    def bits(self, d: int) -> Size:
        """Return the bits of the head and of the fields.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return Size.fixed(self._length(d))

    def _head_bytes(self, d: int) -> int:
        """Return the length of the head, by default that of one binary32 number."""
        return 4

    def _length(self, d: int) -> int:
        """Return the length of every message in bits."""
        return 8 * self._head_bytes(d) + -int(-d * self.width // 1)

    def _check_bits(self, bits: int, d: int) -> None:
        if bits != self._length(d):
            raise CorruptMessage(f"{self.name} sends {self._length(d)} bits at d = {d}; got {bits}")

    @abstractmethod
    def _survey(self, x: np.ndarray) -> np.ndarray:
        """Return the statistics of one run that the head needs: float64, rows that are concatenated over runs."""

    @abstractmethod
    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, Any]:
        """Return the head as bytes and the values that ``_fields`` needs."""

    @abstractmethod
    def _fields(self, x: np.ndarray, start: int, head: Any, key: Key) -> np.ndarray:
        """Return the fields of the run that begins at coordinate ``start``, as bytes."""

    @abstractmethod
    def _read_head(self, head: np.ndarray) -> Any:
        """Return the values that ``_values`` needs from the bytes of the head."""

    @abstractmethod
    def _values(self, fields: np.ndarray, start: int, head: Any, out: np.ndarray) -> Any:
        """Fill ``out`` from the fields of one run; return what ``_check`` needs."""

    def _check(self, answers: list[Any], head: Any) -> None:
        """Raise CorruptMessage if the results of ``_values`` contradict the head; accept all by default."""

    def _filled(self, part: slice, head: int) -> slice:
        """Return the bytes of the payload that hold the fields of one run."""
        return slice(head + int(part.start * self.width) // 8, head + -int(-part.stop * self.width // 8))

    def _written(
        self, survey: np.ndarray, parts: Iterable[tuple[slice, np.ndarray]], d: int, key: Key
    ) -> tuple[np.ndarray, int]:
        size = self._length(d)
        payload = np.empty((size + 7) // 8, np.uint8)
        head, needed = self._head(survey, d)
        payload[: head.size] = head

        def write(part: tuple[slice, np.ndarray]) -> None:
            payload[self._filled(part[0], head.size)] = self._fields(part[1], part[0].start, needed, key)

        if isinstance(parts, Sequence):
            mapped(write, parts, d=d)
        else:  # read once, and too long for memory
            for part in parts:
                write(part)
        return payload, size

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        parts = [(part, x[part]) for part in self._runs(x.size)]
        survey = np.concatenate(mapped(lambda part: self._survey(part[1]), parts, d=x.size))
        return self._written(survey, parts, x.size, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        self._check_bits(bits, d)
        size = self._head_bytes(d)
        head, out = self._read_head(payload[:size]), np.empty(d, np.float32)
        answers = mapped(
            lambda p: self._values(payload[self._filled(p, size)], p.start, head, out[p]), list(self._runs(d)), d=d
        )
        self._check(answers, head)
        return out

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        survey = np.concatenate([self._survey(x) for _, x in runs()])
        return self._written(survey, runs(), d, key)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        self._check_bits(bits, d)
        size = self._head_bytes(d)
        head, answers = self._read_head(payload[:size]), []
        for part in self._runs(d):
            out = np.empty(part.stop - part.start, np.float32)
            answers.append(self._values(payload[self._filled(part, size)], part.start, head, out))
            yield out
        self._check(answers, head)
