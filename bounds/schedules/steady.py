"""How long a round may be where progress has ended and the loss is bent.

Workers at x + e_i around their mean x move it by the mean of g(x + e_i), g = f', not by g(x): by a bias
b = mean g(x + e_i) - g(x), which is 0 on quadratics, g'' mean e_i^2/2 of third order, and half the jump of g' times
the mean distance where x lies on a kink.  Progress ends where g(x) = -b, while on a quadratic no tau costs anything
there.

Seen.  The bend f(y) - f(x) - <h + u, y - x>/2 is the trapezoid rule's error along e = y - x: -g'' e^3/12 for a cubic,
``|y| - |x|`` for ``f = |x|`` with x, y on both sides of 0, and 0 on quadratics.  A convex f lies above its tangents, so
that its bend is at most the curve <h - u, y - x>/2.  The bend changes its sign with e, and with the side of a kink that
x is on: it tells that the loss is no quadratic, not how large b is, and its square is averaged.  Where it is larger
than the curve the loss is not convex, or the gradient is not its own (clipped, say): nothing is concluded.

The rule does nothing while there is progress.  Without progress, the mean movements of successive rounds turn
back: with s = eta L tau the deviation from the minimiser is x' = exp(-s) x + noise, and the cosine of two movements
-(1 - exp(-s))/2, so that s = -log(1 + 2 cosine).  The gradient at the mean then has variance eta L sigma^2/(2 m), and a
worker's differs from it by L eta sigma sqrt(tau/2) in the root mean square over a round.  With b a share beta of that,
the bias adds b^2/(2 L) to a floor of eta sigma^2/(4 m): beta^2 m s of it.  The rule takes s = 1/(2 m), which leaves
beta^2/2; on a kink beta is at most .56, and about .3 on those that are hardest for 16 steps.
"""

from __future__ import annotations

import math

BENT = 0.01  # bend over curve from which the loss is no quadratic: above the roundings of a loss in float32
LEAST_COSINE = -0.45  # that is believed: at -1/2 a round forgets where it began


def steady_period(*, turn: float, tau: float, workers: int) -> float:
    """Return tau/(2 m s), the steps of a round at which bias adds little to the floor of noise; infinite with progress.

    Parameters
    ----------
    turn : float
        Cosine between successive mean movements.
    tau : float
        Steps of their rounds.
    workers : int
        m.
    """
    if turn >= 0:
        return math.inf
    return tau / (2 * workers * -math.log1p(2 * max(turn, LEAST_COSINE)))
