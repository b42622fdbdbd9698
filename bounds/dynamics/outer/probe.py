"""What a round takes off an error, h, measured in two rounds: for inner optimizers without a formula, such as Adam.

Model.  A round changes a model theta by Delta(theta) = theta - mean of the workers' models.  Between two nearby starts
Delta(theta) - Delta(theta') = H (theta - theta'), with H = 1 - (1 - eta A)^tau for SGD on a quadratic.  With
s = theta - theta' the step between two rounds' starts, ::

    h = <Delta - Delta', s>/<s, s>

is the Rayleigh quotient of H along s, at most the largest h.  Outer rates above ``largest_lr`` at it are too large.
Smaller ones may be too large as well.

Noise.  s holds this round's Delta with a weight c (lr (1 + momentum) for Nesterov, lr for heavy ball), noise included,
which adds c times its variance to <Delta, s>.  The workers' spread estimates it: with b_i = <Delta_i - Delta_i', s> - c
``|Delta_i - Delta|^2/(m - 1)``, the mean of the b_i has the mean of <s, H s> for workers with the same data.  The
quotient is still biased where noise makes up much of s: by -.08 where it is .22 of ``|s|^2`` (without the correction
+.14).  The interval is Student's of the m values.  Where data differ the spread is not all noise, and the correction
too large: so the interval's upper end leaves it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...interval import Interval
from .optimizer import OuterStep


@dataclass(frozen=True)
class ProbedRound:
    """What two rounds say of h.

    Parameters
    ----------
    h : float
        The estimate, along the outer step that was taken between the rounds.
    interval : Interval
        Around it.
    level : float
        Chance that the interval covers h, if the workers' values are normal.
    """

    h: float
    interval: Interval
    level: float

    def largest_lr(self, momentum: float = 0.0) -> Interval:
        """Return between what the largest rate of a blocking Nesterov step lies that is stable along this step.

        Parameters
        ----------
        momentum : float, optional
            beta in [0, 1).
        """
        most = 2 * (1 + momentum) / (1 + 2 * momentum)
        ends = [most / end if end > 0 else math.inf for end in (self.interval.hi, self.interval.lo)]
        return Interval(*ends)


def share_of(outer: OuterStep) -> float:
    """Return the weight c of a round's Delta in the outer step that follows it.

    Parameters
    ----------
    outer : OuterStep
        The step.
    """
    return outer.lr * (1 + outer.momentum) if outer.nesterov else outer.lr


def probe(first: np.ndarray, second: np.ndarray, *, step: np.ndarray, share: float, level: float = 0.95) -> ProbedRound:
    """Return h from the workers' displacements in two successive rounds.

    Parameters
    ----------
    first : ndarray, shape (m, d)
        Of every worker, the model where the first round began less its own where it ended.
    second : ndarray, shape (m, d)
        The same of the second round.
    step : ndarray, shape (d,)
        Where the first round began less where the second did.
    share : float
        Weight of the first round's mean displacement in ``step``, as ``share_of`` gives it.
    level : float, optional
        Of the interval.

    Raises
    ------
    ValueError
        For fewer than two workers, a step of length zero, or shapes that differ.
    """
    first, second, step = (np.asarray(values, float) for values in (first, second, step))
    if first.ndim != 2 or first.shape != second.shape or first.shape[1:] != step.shape:
        raise ValueError(
            f"displacements must be (m, d) twice and the step (d,); got {first.shape}, {second.shape}, {step.shape}"
        )
    spread = ((first - first.mean(0)) ** 2).sum(1)
    products = (first @ step, second @ step)
    return probe_of_products(*products, spread=spread, step_square=float(step @ step), share=share, level=level)


def probe_of_products(
    first: np.ndarray,
    second: np.ndarray,
    *,
    spread: np.ndarray,
    step_square: float,
    share: float,
    level: float = 0.95,
) -> ProbedRound:
    """Return h from three numbers of every worker, so that no vector has to travel for it.

    Parameters
    ----------
    first : ndarray, shape (m,)
        <Delta_i, s> of each worker's displacement in the first round.
    second : ndarray, shape (m,)
        The same in the second round.
    spread : ndarray, shape (m,)
        Squared distance of the first round's displacement from the workers' mean.
    step_square : float
        <s, s> of the outer step between the rounds.
    share : float
        Weight of the first round's mean displacement in it.
    level : float, optional
        Of the interval, in (0, 1).

    Raises
    ------
    ValueError
        For fewer than two workers, a step of length zero, or a level outside its range.
    """
    from scipy.special import stdtrit

    m = len(first)
    if not (m >= 2 and step_square > 0 and 0 < level < 1):
        raise ValueError(
            f"a probe needs two workers, a step and 0 < level < 1; got m = {m}, |step|^2 = {step_square:g}, "
            f"level = {level}"
        )
    plain = (np.asarray(first) - np.asarray(second)) / step_square
    corrected = plain - share * np.asarray(spread) / (m - 1) / step_square
    quantile = float(stdtrit(m - 1, (1 + level) / 2))
    below, above = (quantile * float(values.std(ddof=1)) / math.sqrt(m) for values in (corrected, plain))
    h, raw = float(corrected.mean()), float(plain.mean())
    return ProbedRound(h, Interval(h - below, max(h, raw) + above), level)
