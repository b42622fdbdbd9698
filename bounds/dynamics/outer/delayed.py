"""A round's mean arrives when the next one ends: the outer step uses the difference of the round before."""

from __future__ import annotations

import numpy as np

from .forms import AffineRound, Forms
from .merge import Merge
from .optimizer import OuterStep


def _round(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    theta, buffer, late = (forms.state(k) for k in range(3))
    models = forms.local_steps([theta] * forms.workers.m, tau)
    return forms.round([*outer.apply(theta, buffer, late), theta - np.mean(models, axis=0)])


MERGE = Merge("delayed", models=lambda _: 1, buffers=lambda _: 2, global_models=lambda _: 1, round=_round)
