"""Parameters as one vector, copied in and out without moving them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import torch


class FlatParameters:
    """Copies parameters into a private vector and back.

    The entries of a parameter are in row-major order, whatever its strides.  The vector has the promoted dtype of all
    parameters and the device of the first.  ``parameters`` is read at every call, so that an entry may be replaced by
    one of the same shape and dtype.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.parameters = parameters
        self.dtype = reduce(torch.promote_types, (p.dtype for p in parameters))
        self.device = parameters[0].device
        self._sizes = [p.numel() for p in parameters]
        self.d = sum(self._sizes)
        self._memory = torch.empty(0, dtype=self.dtype, device=self.device)
        self._views: list[torch.Tensor] = []

    def vector(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return all parameters and further values behind them, in memory that the next call overwrites."""
        n = self.d + sum(values.numel() for values in behind)
        if n > self._memory.numel():  # allocate once: allocation costs more than the copy
            self._memory = torch.empty(n, dtype=self.dtype, device=self.device)
            self._views = self._views_of(self._memory)
        with torch.no_grad():
            torch._foreach_copy_(self._views, list(self.parameters))
        offset = self.d
        for values in behind:
            self._memory[offset : offset + values.numel()] = values
            offset += values.numel()
        return self._memory[:n]

    def load(self, vector: torch.Tensor) -> bool:
        """Copy a vector, shape (d,), into the parameters; return whether the next ``vector`` overwrites it."""
        overwritten = self._memory.numel() > 0 and vector.data_ptr() == self._memory.data_ptr()
        with torch.no_grad():
            torch._foreach_copy_(list(self.parameters), self._views if overwritten else self._views_of(vector))
        return overwritten

    def part(self, start: int, stop: int) -> torch.Tensor:
        """Return the entries from ``start`` to ``stop`` as a new vector."""
        values = torch.empty(stop - start, dtype=self.dtype, device=self.device)
        for p, inside, place in self._pieces(start, stop):
            values[place] = p.detach().reshape(-1)[inside]
        return values

    def load_part(self, start: int, values: torch.Tensor) -> None:
        """Copy values into the parameters, beginning at entry ``start``."""
        for p, inside, place in self._pieces(start, start + values.numel()):
            entries = p.detach().reshape(-1)  # a copy where the strides allow no view
            entries[inside] = values[place].to(entries)
            if not p.is_contiguous():
                p.detach().copy_(entries.view_as(p))

    def _views_of(self, vector: torch.Tensor) -> list[torch.Tensor]:
        parts = vector[: self.d].split(self._sizes)
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[torch.Tensor, slice, slice]]:
        """Yield the parameters with entries in [start, stop), their slices, and their places relative to start."""
        first = 0
        for p, size in zip(self.parameters, self._sizes, strict=True):
            low, high = max(start, first), min(stop, first + size)
            if low < high:
                yield p, slice(low - first, high - first), slice(low - start, high - start)
            first += size
