"""Estimates of the constants of the third-order bound, from the probes of one worker.

The bend of a loss whose Hessian is Q-Lipschitz is at most Q |y - x|^3/12 (error of the trapezoid rule), with equality
where the third derivative is constant along y - x.  So 12 |bend|/|y - x|^3 is at most the Q of that batch's loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

RESOLVED = 1e-6  # of the loss: what a bend of losses in float32 is at least


@dataclass(frozen=True)
class ThirdOrder:
    """Estimates of Q and of the kurtosis, which no rank sends.

    Parameters
    ----------
    hessian_lipschitz : float or None, optional
        Largest 12 |bend|/|y - x|^3 of the probes, 0 where the losses do not resolve it; None before the first.
    probes : int, optional
        Number of probes.
    square : float, optional
        Sum of the squared norms of the gradients at the mean model.
    fourth : float, optional
        Sum of their squares.

    Notes
    -----
    Both are estimates on single batches, no bounds on F: ``tau_third_order`` from them is an estimate too.
    """

    hessian_lipschitz: float | None = None
    probes: int = 0
    square: float = 0.0
    fourth: float = 0.0

    @property
    def kurtosis(self) -> float | None:
        """E|g|^4/(E|g|^2)^2 of a batch's gradient g, weighted by the optimizer's preconditioner.

        It is that of the noise where noise dominates.  None before two probes.
        """
        if self.probes < 2 or not self.square:
            return None
        return max(1.0, self.probes * self.fourth / self.square**2)

    def after(self, *, bend: float, distance2: float, loss: float, norm2: float) -> ThirdOrder:
        """Return the estimates with one more probe.

        Parameters
        ----------
        bend : float
            Of the loss; nan if it was not measured.
        distance2 : float
            |y - x|^2 of the worker's model and the mean; nan if it was not measured.
        loss : float
            At the mean model.
        norm2 : float
            Squared norm of the gradient there.
        """
        Q = self.hessian_lipschitz
        if math.isfinite(bend) and distance2 > 0:
            estimated = 12 * abs(bend) / distance2**1.5 if abs(bend) > RESOLVED * abs(loss) else 0.0
            Q = estimated if Q is None else max(Q, estimated)
        square, fourth = self.square + norm2, self.fourth + norm2**2
        return replace(self, hessian_lipschitz=Q, probes=self.probes + 1, square=square, fourth=fourth)
