"""The new global model replaces whatever the workers did while the mean travelled.

The ``delay`` steps in flight are thrown away: a round is a blocking one of tau - delay steps.
"""

from __future__ import annotations

import numpy as np

from .forms import AffineRound, Forms
from .merge import Merge
from .optimizer import OuterStep


def _round(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    theta, buffer = forms.state(0), forms.state(1)
    sent = forms.local_steps([theta] * forms.workers.m, tau - delay)
    return forms.round([*outer.apply(theta, buffer, theta - np.mean(sent, axis=0))])


MERGE = Merge("overwrite", models=lambda _: 1, buffers=lambda _: 1, global_models=lambda _: 1, round=_round)
