"""Messages of a head and fields of one width: one description for whole vectors, pieces, threads and batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import torch

from . import pieces, rows
from .bits.bitstream import read_floats
from .kernels.philox import TILE
from .kernels.threads import mapped
from .key import Key
from .message import CorruptMessage, Messages
from .operator import DeviceOperator, Operator, Size
from .pieces import InRuns, Runs
from .quantisers.rotation import prescale, unscale
from .quantisers.scale import negligible, total


class FixedLength(Operator):
    """An operator whose message is a head of numbers and one field per coordinate, so that d determines its length.

    Attributes
    ----------
    width : int or Fraction
        Bits of a field.
    head_name : str
        What the numbers of the head are, for errors; "" if there is none, the default.
    head_type : str
        The numpy type of the head's numbers, binary32 by default.
    """

    width: int | Fraction
    head_name: ClassVar[str] = ""
    head_type: ClassVar[str] = ">f4"

    def bits(self, d: int) -> Size:
        """Return the bits of the head and of the fields.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return Size.fixed(self._length(d))

    def _count(self, d: int) -> int:
        """Return how many numbers the head has."""
        return 1 if self.head_name else 0

    def _head_bytes(self, d: int) -> int:
        return self._count(d) * int(self.head_type[-1])

    def _length(self, d: int) -> int:
        """Return the length of every message in bits."""
        return 8 * self._head_bytes(d) + -int(-d * self.width // 1)

    def _check_bits(self, bits: int, d: int) -> None:
        if bits != self._length(d):
            raise CorruptMessage(f"{self.name} sends {self._length(d)} bits at d = {d}; got {bits}")

    def _head(self, numbers: Any) -> torch.Tensor:
        """Return the numbers as bytes."""
        return torch.from_numpy(np.array(numbers, self.head_type).view(np.uint8))

    def _read_head(self, head: np.ndarray | torch.Tensor) -> Any:
        """Return the numbers of ``_head``; raise CorruptMessage if no encoder computes them."""
        if isinstance(head, torch.Tensor) and not head.is_cpu and self.head_type == ">f4":
            return self._checked([number.item() for number in read_floats(head)])  # without a copy of its bytes
        raw = head if isinstance(head, np.ndarray) else head.cpu().numpy()
        return self._checked(np.frombuffer(raw.tobytes(), self.head_type).tolist())

    def _checked(self, numbers: list[float]) -> list[float]:
        for number in numbers:
            if not math.isfinite(number) or math.copysign(1, number) < 0:
                raise CorruptMessage(f"the {self.head_name} must be finite and not negative; got {number}")
        return numbers


class Rotated(FixedLength):
    """A ``FixedLength`` operator that quantises a rotated vector, of moderate size, and sends positive scales of it.

    The message of a negligible vector is all zeros.
    """

    bits_per_coordinate: int
    head_name = "scale"

    @property
    def width(self) -> int:  # type: ignore[override]
        """Bits per coordinate."""
        return self.bits_per_coordinate

    @abstractmethod
    def _write(self, y: np.ndarray, factor: float, key: Key, fields: np.ndarray) -> list[float]:
        """Fill the fields (zeros) of y = factor x; return the numbers of the head, the first not 0."""

    @abstractmethod
    def _read(self, fields: np.ndarray, d: int, numbers: list[float], key: Key) -> np.ndarray:
        """Return the decoded vector in units of the first number: float32, a new array."""

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        bits, head = self._length(x.size), self._head_bytes(x.size)
        payload = np.zeros((bits + 7) // 8, np.uint8)
        if not negligible(x):
            payload[:head] = self._head(self._write(*prescale(x), key, payload[head:]))
        return payload, bits

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        self._check_bits(bits, d)
        head = self._head_bytes(d)
        numbers = self._read_head(payload[:head])
        if numbers[0]:
            return unscale(self._read(payload[head:], d, numbers, key), numbers[0])
        if payload.any():
            raise CorruptMessage("the message of a zero vector must be all zeros")
        return np.zeros(d, np.float32)


class Streamed(FixedLength, InRuns):
    """A ``FixedLength`` operator whose head is computed from all coordinates; the fields of a run fill whole bytes.

    Whole vectors, threads, pieces and batches follow from the hooks below, on the CPU.  The hooks work on matrices, of
    one vector per row, or of one run of a vector.
    """

    def _statistics(self, x: torch.Tensor, step: int) -> Any:
        """Return (a maximum, a sum) of each ``step`` coordinates of every row: float64; none by default."""
        return np.empty((0, 2))

    def _combined(self, statistics: np.ndarray) -> np.ndarray:
        """Return the statistics of a vector from those of its pieces."""
        return np.array([[statistics[:, 0].max(), total(statistics[:, 1])]])

    def _number(self, top: float, total: float, d: int) -> float:
        """Return the number of the head from the statistics of a whole vector."""
        return 0.0

    def _numbers(self, statistics: Any, d: int) -> Any:
        """Return the numbers of all vectors, one after the other, from their statistics."""
        return [self._number(top, total, d) for top, total in statistics.tolist()]

    @abstractmethod
    def _fields(self, x: np.ndarray, start: int, numbers: Any, keys: Sequence[Key]) -> np.ndarray:
        """Return the fields of every row, from coordinate ``start`` of its vector on, as rows of bytes."""

    @abstractmethod
    def _values(self, fields: np.ndarray, start: int, numbers: Any, out: np.ndarray) -> Any:
        """Fill the rows of ``out`` from their fields; return what ``_check`` needs."""

    def _check(self, answers: list[Any], numbers: Any) -> None:
        """Raise CorruptMessage if the results of ``_values`` contradict the head; accept all by default."""

    def _filled(self, part: slice, head: int) -> slice:
        """Return the bytes of the payload that hold the fields of one run."""
        return slice(head + int(part.start * self.width) // 8, head + -int(-part.stop * self.width // 8))

    def _parts(self, d: int) -> list[slice]:
        """Return the runs of a whole vector; a short one has a single run."""
        return [slice(0, d)] if d <= 2 * pieces.RUN else list(self._runs(d))

    def _written(
        self, numbers: Any, parts: Iterable[tuple[slice, np.ndarray]], d: int, key: Key
    ) -> tuple[np.ndarray, int]:
        """Return (payload, bits) of one vector from the numbers of its head and its runs."""
        size, head = self._length(d), self._head_bytes(d)
        payload = np.empty((size + 7) // 8, np.uint8)
        if head:
            payload[:head] = self._head(numbers).numpy()

        def write(part: tuple[slice, np.ndarray]) -> None:
            payload[self._filled(part[0], head)] = self._fields(part[1][None], part[0].start, numbers, [key])[0]

        mapped(write, parts, d=d)
        return payload, size

    def _numbers_of_rows(self, x: torch.Tensor, d: int) -> Any:
        """Return the numbers of a vector, or of all rows."""
        return self._numbers(self._statistics(x, d), d)

    def _numbers_of(self, parts: Iterable[tuple[slice, np.ndarray]], d: int) -> Any:
        """Return the numbers of one vector from its runs."""
        statistics = np.concatenate([self._statistics(torch.from_numpy(x), TILE) for _, x in parts])
        return self._numbers(self._combined(statistics) if len(statistics) > 1 else statistics, d)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        return self._written(self._numbers_of(runs(), d), runs(), d, key)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        d, parts = x.size, [(part, x[part]) for part in self._parts(x.size)]
        return self._written(self._numbers_of_rows(torch.from_numpy(x), d), parts, d, key)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages | None:
        d = x.shape[1]
        numbers = self._numbers_of_rows(torch.from_numpy(x), d)
        heads = [self._head(numbers).numpy().reshape(len(x), -1)] if self._count(d) else []
        return rows.joined(self._length(d), *heads, self._fields(x, 0, numbers, keys))

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        self._check_bits(bits, d)
        size, out = self._head_bytes(d), np.empty(d, np.float32)
        numbers = self._read_head(payload[:size]) if size else []

        def read(part: slice) -> Any:
            return self._values(payload[None, self._filled(part, size)], part.start, numbers, out[None, part])

        self._check(mapped(read, self._parts(d), d=d), numbers)
        return out

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        self._check_bits(bits, d)
        size, answers = self._head_bytes(d), []
        numbers = self._read_head(payload[:size])
        for part in self._runs(d):
            out = np.empty(part.stop - part.start, np.float32)
            answers.append(self._values(payload[None, self._filled(part, size)], part.start, numbers, out[None]))
            yield out
        self._check(answers, numbers)

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray | None:
        payload, size = messages.rows(self._length(d)), self._head_bytes(d)
        numbers, out = self._read_head(payload[:, :size]), np.empty((len(messages), d), np.float32)
        self._check([self._values(np.ascontiguousarray(payload[:, size:]), 0, numbers, out)], numbers)
        return out


class Format(DeviceOperator, Streamed):
    """A ``Streamed`` operator on any device: kernels work on a whole vector, and split it over threads themselves.

    Whole vectors, pieces and batches follow from ``_pack`` and ``_unpack``, which work on a vector, a run of it, or a
    matrix of one vector per row.
    """

    @abstractmethod
    def _pack(self, x: torch.Tensor, start: int, numbers: Any, keys: Sequence[Key]) -> torch.Tensor:
        """Return the fields of each vector, from coordinate ``start`` on: uint8."""

    @abstractmethod
    def _unpack(self, fields: torch.Tensor, n: int, start: int, numbers: Any) -> tuple[torch.Tensor, Any]:
        """Return n coordinates of each vector, float32, and what ``_check`` needs."""

    def _sealed(self, numbers: Any, fields: torch.Tensor, d: int) -> tuple[torch.Tensor, int]:
        """Return the message of one vector from its head and its fields."""
        if self._count(d):
            fields = torch.cat((self._head(numbers).to(fields.device), fields))
        return fields, self._length(d)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d = x.numel()
        numbers = self._numbers_of_rows(x, d)
        return self._sealed(numbers, self._pack(x, 0, numbers, [key]), d)

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        self._check_bits(bits, d)
        size, numbers = self._head_bytes(d), []
        if size:
            numbers, payload = self._read_head(payload[:size]), payload[size:]
        values, answer = self._unpack(payload, d, 0, numbers)
        self._check([answer], numbers)
        return values

    def _fields(self, x: np.ndarray, start: int, numbers: Any, keys: Sequence[Key]) -> np.ndarray:
        matrix = torch.from_numpy(x)
        return self._pack(matrix if len(x) > 1 else matrix[0], start, numbers, keys).numpy().reshape(len(x), -1)

    def _values(self, fields: np.ndarray, start: int, numbers: Any, out: np.ndarray) -> Any:
        matrix = torch.from_numpy(fields)
        values, answer = self._unpack(matrix if len(out) > 1 else matrix[0], out.shape[1], start, numbers)
        out[:] = values.numpy()
        return answer
