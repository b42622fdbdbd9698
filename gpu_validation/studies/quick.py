"""Main study: every operator and three taus on problems of known law and on real data; bits, losses and seconds."""

from collections.abc import Callable
from functools import partial
from typing import Any

from operators import QSGD, Identity, RandomisedSparseDithering, RandomK, ScaledSign, SparseDithering, TopK

from ..workloads import (
    HeterogeneousQuadratics,
    Kink,
    LogisticRegression,
    MultiplicativeQuadratic,
    Quadratic,
    SmallNetwork,
)
from .grid.records import Cells
from .grid.study import Preset

DIFFERENT = HeterogeneousQuadratics(
    hessians=tuple(((a, 0.0), (0.0, b)) for a, b in ((1.0, 0.2), (0.3, 1.0), (0.6, 0.5), (0.9, 0.8))),
    centres=((1.0, 0.0), (-1.0, 1.0), (0.5, -2.0), (-1.5, 0.5)),
)

_short: Callable[..., Cells] = partial(Cells, seeds=(0,), step_s=2e-3)
_real: Callable[..., Cells] = partial(Cells, taus=(1, 4, 16), steps=64, seeds=(0,), step_s=5e-3, delay_s=15e-3)
LOSSLESS: dict[str, Any] = {"virtual": 63, "operators": (Identity(),)}

# Variance of the compression as large as claimed: a wrong m (most kept) or omega (few kept) in the compressed theorem
# violates its bound.
MOST_KEPT, FEW_KEPT = (
    _short(Quadratic(d=80, smallest=1.0, noise=noise, eta=eta), (1,), 32, virtual=63, operators=(RandomK(fraction=f),))
    for f, eta, noise in ((0.9, 0.4, 25.0), (0.2, 0.1, 200.0))
)

PRESET = Preset(
    name="quick",
    description="six operators x tau on problems of known law and on the digits: bits, bytes, errors, losses, time",
    operators=(
        Identity(),
        TopK(fraction=0.01),
        QSGD(levels=16),
        ScaledSign(),
        SparseDithering(nu=0.1),
        RandomisedSparseDithering(omega=1.0),
    ),
    cells=(
        # equal eigenvalues: there Theorem 1 is tight at tau = 1; so much noise that its other terms count as well
        _short(Quadratic(d=80, smallest=1.0, noise=25.0), (1, 4, 8), 32, seeds=(0, 1), delay_s=8e-3, virtual=62),
        # noise that grows with the gradient: the law of a run depends on tau
        _short(MultiplicativeQuadratic(d=80, smallest=1.0, eta=0.25), (1, 4, 8), 64, **LOSSLESS),
        # a kink, where local steps push the mean away from the minimum
        _short(Kink(d=40, slope=0.3, noise=10.0), (1, 4, 8), 32, **LOSSLESS),
        _short(DIFFERENT, (1, 4, 8), 64, operators=(Identity(),)),
        _real(LogisticRegression()),
        _real(SmallNetwork()),
        MOST_KEPT,
        FEW_KEPT,
    ),
)
