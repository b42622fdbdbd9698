"""Messages of a head and fields of one width, encoded and decoded run by run."""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import torch

from . import rows
from .bits.bitstream import read_floats
from .kernels.norms.cpu import LANES, sum_of_pieces
from .kernels.philox import TILE
from .kernels.threads import mapped
from .key import Key
from .message import CorruptMessage, Messages
from .operator import DeviceOperator, Size
from .pieces import InRuns, Runs

HEAD_BYTES = 4  # of a head of one binary32 number


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


class Format(DeviceOperator, Streamed):
    """A ``Streamed`` operator on any device whose head is one binary32 number, or empty.

    Whole vectors, pieces, threads and batches follow from the hooks below.  ``_pack`` and ``_unpack`` work on a vector,
    a run of it, or a matrix with one vector per row; they get one number and one key per vector.

    Attributes
    ----------
    head_name : str
        What the number of the head is, for errors; "" if there is none, the default.
    """

    head_name: ClassVar[str] = ""

    def _statistics(self, x: torch.Tensor, step: int) -> torch.Tensor:
        """Return (a maximum, a sum) of each ``step`` coordinates of a vector: float64; none by default."""
        return torch.empty(0, 2)

    def _number(self, top: float, total: float, d: int) -> float:
        """Return the number of the head from the statistics of a whole vector."""
        return 0.0

    def _numbers(self, x: torch.Tensor, d: int) -> list[float]:
        """Return the number of each vector of d coordinates."""
        statistics = self._statistics(x, d).tolist()
        return [self._number(top, total, d) for top, total in statistics] or [0.0] * (x.numel() // d)

    @abstractmethod
    def _pack(self, x: torch.Tensor, start: int, numbers: Sequence[float], keys: Sequence[Key]) -> torch.Tensor:
        """Return the fields of each vector, from coordinate ``start`` on: uint8."""

    @abstractmethod
    def _unpack(self, fields: torch.Tensor, n: int, numbers: Sequence[float]) -> torch.Tensor:
        """Return n coordinates of each vector: float32."""

    def _head_bytes(self, d: int) -> int:
        return HEAD_BYTES if self.head_name else 0

    def _checked(self, number: float) -> float:
        """Raise CorruptMessage if the number of a head is negative or not finite."""
        if not math.isfinite(number) or math.copysign(1, number) < 0:
            raise CorruptMessage(f"the {self.head_name} must be finite and not negative; got {number}")
        return number

    def _sealed(self, number: float, fields: torch.Tensor, d: int) -> tuple[torch.Tensor, int]:
        """Return the message of one vector from its head and its fields."""
        if not self.head_name:
            return fields, self._length(d)
        head = torch.frombuffer(bytearray(struct.pack(">f", number)), dtype=torch.uint8).to(fields.device)
        return torch.cat((head, fields)), self._length(d)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d = x.numel()
        numbers = self._numbers(x, d)
        return self._sealed(numbers[0], self._pack(x, 0, numbers, [key]), d)

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        self._check_bits(bits, d)
        if not self.head_name:
            return self._unpack(payload, d, [0.0])
        number = self._checked(float(read_floats(payload[:HEAD_BYTES]).item()))
        return self._unpack(payload[HEAD_BYTES:], d, [number])

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        d, matrix = x.shape[1], torch.from_numpy(x)
        numbers = self._numbers(matrix.view(-1), d)
        fields = self._pack(matrix, 0, numbers, keys).numpy()
        heads = [rows.floats(np.array(numbers).reshape(-1, 1))] if self.head_name else []
        return rows.joined(self._length(d), *heads, fields)

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        payload, head = torch.from_numpy(messages.rows(self._length(d))), self._head_bytes(d)
        numbers = rows.read_floats(payload[:, :head].numpy()).reshape(-1).tolist() or [0.0] * len(messages)
        return self._unpack(payload[:, head:].contiguous(), d, [self._checked(x) for x in numbers]).numpy()

    def _survey(self, x: np.ndarray) -> np.ndarray:
        return self._statistics(torch.from_numpy(x), TILE).numpy()

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, float]:
        sums, number = np.ascontiguousarray(survey[:, 1]), 0.0
        if sums.size:
            number = self._number(float(survey[:, 0].max()), float(sum_of_pieces(sums, np.empty(LANES))), d)
        return np.array([number] if self.head_name else [], ">f4").view(np.uint8), number

    def _fields(self, x: np.ndarray, start: int, head: float, key: Key) -> np.ndarray:
        return self._pack(torch.from_numpy(x), start, [head], [key]).numpy()

    def _read_head(self, head: np.ndarray) -> float:
        return self._checked(struct.unpack(">f", head.tobytes())[0]) if head.size else 0.0

    def _values(self, fields: np.ndarray, start: int, head: float, out: np.ndarray) -> Any:
        out[:] = self._unpack(torch.from_numpy(fields), out.size, [head]).numpy()
