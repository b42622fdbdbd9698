"""Main study: every operator and three taus on problems of known law and on real data; bits, losses and seconds."""

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

# Variance of the compression as large as claimed: a wrong m (most kept) or omega (few kept) in the compressed theorem
# violates its bound.
MOST_KEPT, FEW_KEPT = (
    Cells(
        Quadratic(d=80, smallest=1.0, noise=noise, eta=eta),
        taus=(1,),
        steps=32,
        seeds=(0,),
        step_s=2e-3,
        virtual=63,
        operators=(RandomK(fraction=fraction),),
    )
    for fraction, eta, noise in ((0.9, 0.4, 25.0), (0.2, 0.1, 200.0))
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
        Cells(
            Quadratic(d=80, smallest=1.0, noise=25.0),
            taus=(1, 4, 8),
            steps=32,
            seeds=(0, 1),
            step_s=2e-3,
            delay_s=8e-3,
            virtual=62,
        ),
        # noise that grows with the gradient: the law of a run depends on tau
        Cells(
            MultiplicativeQuadratic(d=80, smallest=1.0, eta=0.25),
            taus=(1, 4, 8),
            steps=64,
            seeds=(0,),
            step_s=2e-3,
            virtual=63,
            operators=(Identity(),),
        ),
        # a kink, where local steps push the mean away from the minimum
        Cells(
            Kink(d=40, slope=0.3, noise=10.0),
            taus=(1, 4, 8),
            steps=32,
            seeds=(0,),
            step_s=2e-3,
            virtual=63,
            operators=(Identity(),),
        ),
        Cells(DIFFERENT, taus=(1, 4, 8), steps=64, seeds=(0,), step_s=2e-3, operators=(Identity(),)),
        Cells(LogisticRegression(), taus=(1, 4, 16), steps=64, seeds=(0,), step_s=5e-3, delay_s=15e-3),
        Cells(SmallNetwork(), taus=(1, 4, 16), steps=64, seeds=(0,), step_s=5e-3, delay_s=15e-3),
        MOST_KEPT,
        FEW_KEPT,
    ),
)
