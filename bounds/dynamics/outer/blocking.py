"""All wait for the mean: the outer step starts the next round."""

from __future__ import annotations

import numpy as np

from .forms import AffineRound, Forms
from .merge import Merge
from .optimizer import OuterStep


def _round(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    theta, buffer = forms.state(0), forms.state(1)
    models = forms.local_steps([theta] * forms.workers.m, tau)
    return forms.round([*outer.apply(theta, buffer, theta - np.mean(models, axis=0))])


MERGE = Merge("blocking", models=lambda _: 1, buffers=lambda _: 1, global_models=lambda _: 1, round=_round)
