"""Linear forms: how one round is written down, so that its matrix, offset and noise need no algebra by hand.

A form holds, for every coordinate, the coefficients of a random number over the state at the round's start, the
constant 1 and independent standard normal numbers drawn in the round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .workers import Workers


@dataclass(frozen=True, eq=False)
class AffineRound:
    """state' = matrix state + offset + noise, coordinate by coordinate.

    Parameters
    ----------
    matrix : ndarray, shape (d, n, n)
        How the state of n numbers moves.
    offset : ndarray, shape (d, n)
        What is added, from the workers' centres.
    covariance : ndarray, shape (d, n, n)
        Of the round's noise.
    """

    matrix: np.ndarray
    offset: np.ndarray
    covariance: np.ndarray


class Forms:
    """The forms of one round.

    Parameters
    ----------
    workers : Workers
        Whose local steps are taken.
    eta : float
        Their learning rate.
    states : int
        Numbers that a round starts from, n.
    draws : int
        Groups of local steps that draw noise of their own.
    """

    def __init__(self, workers: Workers, eta: float, states: int, draws: int) -> None:
        self.workers, self.eta, self.n, self._draws = workers, eta, states, draws
        m, d = workers.eigenvalues.shape
        self._width, self._shape = states + 1 + draws * m, (d,)
        self._next_draw = 0

    def state(self, index: int) -> np.ndarray:
        """Return the form of one number of the state, shape (d, width).

        Parameters
        ----------
        index : int
            Which number.
        """
        return self._unit(index)

    def local_steps(self, models: list[np.ndarray], steps: int) -> list[np.ndarray]:
        """Return the models, one form a worker, after local steps with fresh noise.

        Parameters
        ----------
        models : list of ndarray
            A form of each worker, shape (d, width).
        steps : int
            How many.
        """
        kept, deviation = self.workers.kept(self.eta, steps), np.sqrt(self.workers.variance(self.eta, steps))
        first = self.n + 1 + self._next_draw * self.workers.m
        self._next_draw += 1
        constant = self._unit(self.n)
        after = []
        for i, model in enumerate(models):
            centre = self.workers.centres[i][:, None] * constant
            noise = deviation[i][:, None] * self._unit(first + i)
            after.append(centre + kept[i][:, None] * (model - centre) + noise)
        return after

    def round(self, after: list[np.ndarray]) -> AffineRound:
        """Return the round whose state afterwards are these forms.

        Parameters
        ----------
        after : list of ndarray
            One form a number of the state, shape (d, width).
        """
        forms = np.stack(after, axis=1)
        noise = forms[:, :, self.n + 1 :]
        return AffineRound(forms[:, :, : self.n], forms[:, :, self.n], noise @ np.swapaxes(noise, 1, 2))

    def _unit(self, index: int) -> np.ndarray:
        form = np.zeros((*self._shape, self._width))
        form[:, index] = 1.0
        return form
