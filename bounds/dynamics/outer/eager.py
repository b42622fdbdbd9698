"""Every worker uses its own difference at once and those of the others one round late (Kale et al. 2025).

Worker i keeps a global model and a momentum buffer of its own; its difference counts with share 1/m in the round in
which it was made, the other workers' with theirs in the next one.  The mean of these global models is what is read.
"""

from __future__ import annotations

import numpy as np

from .forms import AffineRound, Forms
from .merge import Merge
from .optimizer import OuterStep


def _round(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    rows = forms.workers.m
    thetas, buffers, late = ([forms.state(k * rows + i) for i in range(rows)] for k in range(3))
    models = forms.local_steps(thetas, tau)
    fresh = [theta - model for theta, model in zip(thetas, models, strict=True)]
    late_mean = np.mean(late, axis=0)
    steps = [outer.apply(thetas[i], buffers[i], fresh[i] / m + late_mean - late[i] / m) for i in range(rows)]
    return forms.round([*(theta for theta, _ in steps), *(buffer for _, buffer in steps), *fresh])


MERGE = Merge(
    "eager", models=lambda rows: rows, buffers=lambda rows: 2 * rows, global_models=lambda rows: rows, round=_round
)
