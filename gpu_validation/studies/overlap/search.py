"""How the numbers of a method are chosen: by as many trials for each, in stages that close in on the best so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from .problems import ADACOMM, AUTO, FIXED, HEADLINE, LEFT, METHODS, TAUS, Task, Trial

STAGES = 3
SHRINKS = 3  # every stage's box, in every coordinate
LONGEST = 128  # tau tried with the methods that have no grid of them
AUTO_SHARE = 3  # "auto", which has only a rate, is tried less often by this factor
TRIALS_AGAIN, RATES_AGAIN = 7, 3  # finalists of a method for a target; of the fixed tau, for each tau
DIGITS_KEPT = 4  # of a trial's numbers
Measure = Callable[[list[Trial]], list[list[float]]]  # trials -> seconds to every target, infinite without arrival


@dataclass(frozen=True)
class Tried:
    """The trials of a method in their order, and what came of them.

    Parameters
    ----------
    trials : list of Trial
        What was tried.
    times : list of list of float, seconds
        Of each trial, to every target; infinite where it did not arrive.
    """

    trials: list[Trial]
    times: list[list[float]]

    def best(self, target: int, among: Sequence[int] | None = None) -> int:
        """Return the trial that came to a target first; where none did, that which came to the target before.

        Parameters
        ----------
        target : int
            Which target.
        among : sequence of int, optional
            Trials that are compared; by default all.
        """
        return self.first(1, target, among)[0]

    def first(self, n: int, target: int, among: Sequence[int] | None = None) -> list[int]:
        """Return the n trials that came to a target first, in their order.

        Parameters
        ----------
        n : int
            How many.
        target : int
            Which target.
        among : sequence of int, optional
            Trials that are compared; by default all.
        """
        compared = range(len(self.times)) if among is None else among
        return sorted(compared, key=lambda i: self.times[i][target::-1])[:n]

    def by_tau(self) -> list[list[int]]:
        """Return the trials of every tau of the fixed tau's grid."""
        return [[i for i, trial in enumerate(self.trials) if trial.tau == tau] for tau in TAUS]

    def finalists(self, method: str) -> list[int]:
        """Return the trials that are tried again with other seeds: the best for either target, in their order.

        Of the fixed tau, the best rates of every tau.

        Parameters
        ----------
        method : str
            Whose trials these are.
        """
        groups = [(RATES_AGAIN, among) for among in self.by_tau()] if method == FIXED else [(TRIALS_AGAIN, None)]
        targets = range(len(LEFT))
        return sorted({i for n, among in groups for target in targets for i in self.first(n, target, among)})


def search(task: Task, method: str, points: int, measure: Measure) -> Tried:
    """Return what was tried with a method: ``STAGES`` times as many trials as points.

    The first stage covers the whole range: Halton's sequence, logarithmic in every coordinate.  Each later one covers
    a box a third as wide in every coordinate around the trial that came to the headline's target first.  The fixed tau
    is searched at every tau of its grid, with a share of the points each.

    Parameters
    ----------
    task : Task
        Whose range of rates it is.
    method : str
        Of ``METHODS``.
    points : int
        Trials in a stage.
    measure : callable
        Returns the seconds of trials.
    """
    tried = Tried([], [])
    searches = [_Box(method, points, tau) for tau in (TAUS if method == FIXED else (None,))]
    for _ in range(STAGES):
        stage = [list(box.places()) for box in searches]
        trials = [box.trial(task, place) for box, places in zip(searches, stage, strict=True) for place in places]
        first = len(tried.trials)
        tried.trials.extend(trials)
        tried.times.extend(measure(trials))
        for box, places in zip(searches, stage, strict=True):
            box.close_in(places, tried, first)
            first += len(places)
    return tried


class _Box:
    """What is searched next, in the unit cube."""

    def __init__(self, method: str, points: int, tau: int | None) -> None:
        self.method, self.tau = method, tau
        self.points = max(1, points // {FIXED: len(TAUS), AUTO: AUTO_SHARE}.get(method, 1))
        self.dimension = 4 if method == ADACOMM or METHODS[method].outer else 1 if method in (FIXED, AUTO) else 2
        self.low, self.side = np.zeros(self.dimension), 1.0
        self._best: tuple[list[float], np.ndarray] | None = None

    def places(self) -> Iterator[np.ndarray]:
        """Return the points of this stage, shape (dimension,) each."""
        if self.dimension == 1:
            unit = (np.arange(self.points)[:, None] + 0.5) / self.points
        else:
            unit = qmc.Halton(self.dimension, scramble=False).fast_forward(1).random(self.points)
        yield from self.low + self.side * unit

    def trial(self, task: Task, place: np.ndarray) -> Trial:
        """Return what a point of the cube means."""
        low, high = task.rates
        u, v, w, x = np.pad(place, (0, 4 - self.dimension)).tolist()
        rate = _short(low * (high / low) ** u)
        if self.tau is not None:
            return Trial(rate, self.tau)
        if self.method == ADACOMM:
            return Trial(rate, round(5 * 40**v), share=_short(16 ** (w - 1) / 4), saturates=x < 0.5)
        tau = round(2 * (LONGEST / 2) ** v)
        return (
            Trial(rate, tau, _short(0.3 * 5**w), _short(1 - 10**-x)) if METHODS[self.method].outer else Trial(rate, tau)
        )

    def close_in(self, places: list[np.ndarray], tried: Tried, first: int) -> None:
        """Shrink around the best so far, of which the last stage's trials begin at ``first``."""
        i = tried.best(HEADLINE, range(first, first + len(places)))
        times = tried.times[i][HEADLINE::-1]
        if self._best is None or times < self._best[0]:
            self._best = times, places[i - first]
        self.side /= SHRINKS
        self.low = np.clip(self._best[1] - self.side / 2, 0, 1 - self.side)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS_KEPT}g}")
