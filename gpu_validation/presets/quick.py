"""The main job: every operator, three taus, a problem with known constants and two on real data."""

from operators import QSGD, Identity, RandomisedSparseDithering, ScaledSign, SparseDithering, TopK

from ..workloads import LogisticRegression, Quadratic, SmallNetwork
from .preset import Cells, Preset

PRESET = Preset(
    name="quick",
    description="six operators x tau on a known quadratic and on the digits: bits, bytes, errors, losses, time",
    operators=(
        Identity(),
        TopK(fraction=0.01),
        QSGD(levels=16),
        ScaledSign(),
        SparseDithering(nu=0.1),
        RandomisedSparseDithering(omega=1.0),
    ),
    cells=(
        Cells(Quadratic(), taus=(1, 4, 8), steps=200, seeds=tuple(range(6)), step_s=2e-3),
        Cells(LogisticRegression(), taus=(1, 4, 16), steps=64, seeds=(0,), step_s=5e-3),
        Cells(SmallNetwork(), taus=(1, 4, 16), steps=64, seeds=(0,), step_s=5e-3),
    ),
)
