"""A model's parameters in one piece of memory, so that sending and loading them takes no copying together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..distributed.tensors import flat, load


class FlatParameters:
    """Parameters that become views of one vector where that is possible; else they are copied each time.

    It is possible for contiguous parameters of one dtype and device, each in memory of its own.  The parameters stay
    the same objects, with the same values; their ``data`` moves.  Parameters whose ``data`` somebody replaces
    afterwards are joined again, or copied.

    Parameters
    ----------
    spare : int
        Values for which there is room behind the parameters.
    """

    def __init__(self, parameters: Sequence[torch.Tensor], spare: int) -> None:
        self.parameters, self.spare = parameters, spare
        self.d = sum(p.numel() for p in parameters)
        self._memory: torch.Tensor | None = None
        self._copy: torch.Tensor | None = None

    def vector(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return all parameters, and further values behind them: the memory itself where they are joined.

        What is written to it is written to the parameters; where they are copied it is only valid until next time.
        """
        memory = self._joined()
        if memory is None:
            return self._copied([*self.parameters, *behind])
        offset = self.d
        for values in behind:
            memory[offset : offset + values.numel()] = values
            offset += values.numel()
        return memory[:offset]

    def load(self, vector: torch.Tensor) -> bool:
        """Copy a vector, shape (d,), into the parameters, and return whether it ``holds`` it.

        Nothing is copied if it is their own memory.
        """
        if self._memory is None or vector.data_ptr() != self._memory.data_ptr():
            memory = self._joined()
            if memory is None:
                load(vector, self.parameters)
            else:
                memory[: self.d] = vector
        return self.holds(vector)

    def part(self, start: int, stop: int) -> torch.Tensor:
        """Return the parameters' values from ``start`` to ``stop`` as a new vector."""
        memory = self._joined()
        return flat(self.parameters)[start:stop] if memory is None else memory[start:stop].clone()

    def load_part(self, start: int, values: torch.Tensor) -> None:
        """Copy values into the parameters from ``start`` on."""
        memory = self._joined()
        if memory is None:
            whole = flat(self.parameters)
            whole[start : start + values.numel()] = values
            load(whole, self.parameters)
        else:
            memory[start : start + values.numel()] = values

    def holds(self, vector: torch.Tensor) -> bool:
        """Return whether a vector lies in memory that will be written to again."""
        kept = [m.data_ptr() for m in (self._memory, self._copy) if m is not None]
        return vector.data_ptr() in kept

    def _copied(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        size = sum(t.numel() for t in tensors)
        if self._copy is None or size > len(self._copy):
            self._copy = flat(tensors)
            return self._copy
        return flat(tensors, out=self._copy[:size])  # fresh memory costs more than the copy

    def _joined(self) -> torch.Tensor | None:
        if self._memory is None or not self._intact(self._memory):
            self._memory = _join(self.parameters, self.spare) if _joinable(self.parameters) else None
        return self._memory

    def _intact(self, memory: torch.Tensor) -> bool:
        address, step = memory.data_ptr(), memory.element_size()
        for p in self.parameters:
            if p.data_ptr() != address or p.dtype != memory.dtype or not p.is_contiguous():
                return False
            address += step * p.numel()
        return True


def _joinable(parameters: Sequence[torch.Tensor]) -> bool:
    """Return alike, and nobody else's memory: tied or joined ones must stay what they are."""
    kinds = {(p.dtype, p.device) for p in parameters}
    in_own_memory = all(p.is_contiguous() and p.untyped_storage().nbytes() == p.nbytes for p in parameters)
    return (
        len(kinds) == 1
        and in_own_memory
        and len({p.untyped_storage().data_ptr() for p in parameters}) == len(parameters)
    )


def _join(parameters: Sequence[torch.Tensor], spare: int) -> torch.Tensor:
    memory = torch.cat([*(p.detach().reshape(-1) for p in parameters), parameters[0].new_zeros(spare)])
    offset = 0
    for p in parameters:
        p.data = memory[offset : offset + p.numel()].view_as(p)
        offset += p.numel()
    return memory
