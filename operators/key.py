"""Keys of random streams: seed, step, rank and layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from bounds.fields import Fields, whole


@dataclass(frozen=True)
class Key(Fields):
    """One independent random stream per (seed, step, rank, layer) and per path of folds.

    Parameters
    ----------
    seed : int in [0, 2^64)
    step : int in [0, 2^64), optional
    rank : int or None, optional
        In [0, 2^64), or None for a stream that all ranks share.
    layer : int in [0, 2^64), optional
    path : tuple of int, optional
        Indices of ``fold_in``.

    Raises
    ------
    ValueError
        For arguments outside that range.
    """

    seed: int
    step: int = 0
    rank: int | None = 0
    layer: int = 0
    path: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("seed", "step", "rank", "layer"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1 << 64:
                raise ValueError(f"{name} must satisfy 0 <= {name} < 2^64; got {value}")

    def fold_in(self, index: int) -> Key:
        """Return the stream of one part of a composition, independent of this one and of all other parts.

        Parameters
        ----------
        index : int
            Number of the part.
        """
        return self._with(path=(*self.path, index if type(index) is int else whole("index", index)))

    def of_ranks(self, ranks: Iterable[int], *, step: int) -> list[Key]:
        """Return the streams of several ranks at one step, in their order.

        Parameters
        ----------
        ranks : iterable of int
            Ranks, in the wanted order.
        step : int
            Number of the step.
        """
        return [self._with(step=step, rank=rank) for rank in ranks]

    def shared(self) -> Key:
        """Return the stream shared by all ranks: the rank is dropped, not set to 0."""
        return self._with(rank=None)

    def _with(self, **changes: int | tuple[int, ...] | None) -> Key:
        """Return a key with other fields; skip the checks for plain whole numbers in range."""
        if any(type(value) is int and not 0 <= value < 1 << 64 for value in changes.values()) or any(
            type(value) not in (int, tuple, NoneType) for value in changes.values()
        ):
            return replace(self, **changes)  # type: ignore[arg-type]  # refused, or made plain, by the constructor
        key = object.__new__(type(self))
        key.__dict__.update(self.__dict__, **changes)
        return key


class Keys(Sequence[Key]):
    """The streams of several ranks of one run, one for each row of a batch.

    It is a sequence of ``Key`` that makes a key when it is indexed, so that a batch of many ranks needs no object for
    each of them.

    Parameters
    ----------
    key : Key
        The stream; its rank is replaced.
    ranks : sequence of int
        The ranks in [0, 2^64), in the order of the rows.
    """

    def __init__(self, key: Key, ranks: Sequence[int]) -> None:
        self.key, self.ranks = key, ranks

    def __len__(self) -> int:
        return len(self.ranks)

    def __getitem__(self, index: Any) -> Any:
        """Return the key of one row, or the keys of a slice of the rows."""
        if isinstance(index, slice):
            return Keys(self.key, self.ranks[index])
        return self.key._with(rank=int(self.ranks[index]))
