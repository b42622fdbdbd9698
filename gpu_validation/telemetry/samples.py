"""Samples and rounds of an unbounded run in bounded memory: samples are merged, rounds are thinned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..records.compression import ATOMS, Atom, Sample

BUFFER = 256  # numbers kept before they are summed up
KEPT_ROUNDS = 512  # at most twice as many as at least


def joined(a: Sample, b: Sample) -> Sample:
    """Merge two samples: exact moments, and at most ATOMS groups.

    The ends of a group are the extremes of its draws, so that results computed from groups are conservative.

    Parameters
    ----------
    a : Sample
        First sample.
    b : Sample
        Second sample, of other draws.
    """
    n = a.n + b.n
    squares = (a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2 + (b.mean - a.mean) ** 2 * a.n * b.n / n
    mean = a.mean + (b.mean - a.mean) * b.n / n
    sd = math.sqrt(squares / (n - 1))
    return Sample(n, mean, sd, min(a.low, b.low), max(a.high, b.high), _grouped([*a.atoms, *b.atoms]))


def pooled(samples: Iterable[Sample | None]) -> Sample | None:
    """Return the sample of all draws; None if there are none.

    Parameters
    ----------
    samples : iterable of Sample or None
        Samples of disjoint draws; None counts as empty.
    """
    total: Sample | None = None
    for sample in samples:
        if sample is not None:
            total = sample if total is None else joined(total, sample)
    return total


def _grouped(atoms: Sequence[Atom]) -> tuple[Atom, ...]:
    """Merge equal groups; if more than ATOMS remain, merge them in cells of the smallest sufficient width 2^k.

    Cells of different k are nested, so that a group does not widen each time it moves to another cell.
    """
    if len({(low, high) for low, high, _ in atoms}) <= ATOMS:
        return _merged(atoms, lambda low, high: (low, high))
    lows = np.array([low for low, _, _ in atoms])
    width = 2.0 ** math.ceil(math.log2(max(float(np.ptp(lows)), 1e-300) / ATOMS))
    while np.unique(np.floor(lows / width)).size > ATOMS:
        width *= 2
    return _merged(atoms, lambda low, _: (math.floor(low / width), 0.0))


def _merged(atoms: Sequence[Atom], place: Callable[[float, float], tuple[float, float]]) -> tuple[Atom, ...]:
    groups: dict[tuple[float, float], Atom] = {}
    for low, high, count in sorted(atoms):
        first, last, before = groups.get(place(low, high), (low, high, 0))
        groups[place(low, high)] = min(first, low), max(last, high), before + count
    return tuple(groups.values())


class Stream:
    """A growing sample; numbers that are not finite are counted separately."""

    def __init__(self) -> None:
        self._sample: Sample | None = None
        self._buffer: list[float] = []
        self.odd = 0

    def add(self, value: float) -> None:
        """Add one number.

        Parameters
        ----------
        value : float
            The number.
        """
        self._buffer.append(value)
        if len(self._buffer) >= BUFFER:
            self._sum_up()

    def sample(self) -> Sample | None:
        """Return the sample of all finite numbers so far; None if there are none."""
        self._sum_up()
        return self._sample

    def _sum_up(self) -> None:
        values = np.asarray(self._buffer, float)
        self._buffer = []
        finite = values[np.isfinite(values)]
        self.odd += values.size - finite.size
        if finite.size:
            self._sample = pooled([self._sample, Sample.of(finite)])


@dataclass(frozen=True)
class KeptRound:
    """Record of one round on one rank; unknown numbers are nan.

    Parameters
    ----------
    index : int
        Index of the round, from 0.
    steps : int
        Local steps of the run up to its end.
    tau : int
        Local steps of the round.
    compute_s : float, seconds
        Time of its local steps, without telemetry.
    averaging_s : float, seconds
        Time of its averaging, without telemetry.
    bits : int, bits
        Length of this rank's message, without bits that only carry an output.
    ratio : float
        ``|C(x) - x|^2/|x|^2`` of its movement x.
    away2 : float, optional
        ``|own model - common model|^2`` before the averaging.
    model2 : float, optional
        ``|averaged model|^2``.
    paired : float, optional
        <x, mean of the other ranks' decoded movements>.
    norm2 : float, optional
        ``|x|^2``.
    loss : float, optional
        Loss of its last local step.
    eta : float, optional
        Learning rate of its last local step.
    checksum : int, optional
        Checksum of the averaged model's bits; -1 if not computed.
    sent : float, optional
        Projection of this rank's contribution: its model, or its decoded movement.
    merged : float, optional
        Projection of the mean that the averaging returned.
    applied : float, optional
        Projection of the parameters after the averaging, or of their change since the round's start.
    rates : float, optional
        Sum of the learning rates of all parameter groups.
    optimizer_steps : int, optional
        Optimizer steps in this round; -1 if not counted.
    begun : int, optional
        Whether the round's first step started from the parameters of the last averaging; -1 if not compared.
    still : int, optional
        Whether no local step changed the parameters; -1 if not compared.
    key : int, optional
        Digest of the message's key; -1 without one.
    """

    index: int
    steps: int
    tau: int
    compute_s: float
    averaging_s: float
    bits: int
    ratio: float
    away2: float = math.nan
    model2: float = math.nan
    paired: float = math.nan
    norm2: float = math.nan
    loss: float = math.nan
    eta: float = math.nan
    checksum: int = -1
    sent: float = math.nan
    merged: float = math.nan
    applied: float = math.nan
    rates: float = math.nan
    optimizer_steps: int = -1
    begun: int = -1
    still: int = -1
    key: int = -1

    def row(self) -> list[float | int | None]:
        """Return the fields as JSON values, with null for numbers that are not finite."""
        values = [getattr(self, name) for name in self.__dataclass_fields__]
        return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]

    @classmethod
    def of(cls, row: Sequence[float | int | None]) -> KeptRound:
        """Read a round from ``row``.

        Parameters
        ----------
        row : sequence of float or int or None
            Values of a row.

        Raises
        ------
        TypeError
            For another number of values.
        """
        return cls(*(math.nan if value is None else value for value in row))  # type: ignore[arg-type]


@dataclass
class Thinned:
    """Every stride-th round; the stride doubles when there are too many, so that all ranks keep the same rounds.

    Parameters
    ----------
    stride : int, optional
        Distance between kept rounds.
    rounds : list of KeptRound, optional
        Kept rounds, ascending.
    fresh : list of KeptRound, optional
        Kept rounds that ``take_fresh`` has not returned yet.
    """

    stride: int = 1
    rounds: list[KeptRound] = field(default_factory=list)
    fresh: list[KeptRound] = field(default_factory=list)

    def wants(self, index: int) -> bool:
        """Return whether to keep the round of this index.

        Parameters
        ----------
        index : int
            Index of the round, from 0.
        """
        return index % self.stride == 0

    def add(self, kept: KeptRound) -> None:
        """Add one round; drop every second one if there are too many.

        Parameters
        ----------
        kept : KeptRound
            The round.
        """
        self.rounds.append(kept)
        self.fresh.append(kept)
        if len(self.rounds) > KEPT_ROUNDS:
            self.stride *= 2
            self.rounds = [kept_round for kept_round in self.rounds if self.wants(kept_round.index)]
            self.fresh = [kept_round for kept_round in self.fresh if self.wants(kept_round.index)]

    def take_fresh(self) -> list[KeptRound]:
        """Return the rounds added since the last call."""
        fresh, self.fresh = self.fresh, []
        return fresh
