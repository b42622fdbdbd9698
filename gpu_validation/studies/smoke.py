"""Test of an installation in seconds: start processes, exchange messages, judge them."""

from operators import QSGD, Identity, ScaledSign

from ..workloads import Quadratic
from .grid.records import Cells
from .grid.study import Preset

PRESET = Preset(
    name="smoke",
    description="a quadratic, two processes: checks the installation",
    operators=(Identity(), QSGD(levels=16), ScaledSign()),
    cells=(Cells(Quadratic(), taus=(1, 4), steps=40, seeds=(0, 1, 2), step_s=1e-3),),
    processes=2,
    probe_d=200,
    probe_messages=20,
    minutes=0.2,
)
