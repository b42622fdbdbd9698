"""The new global model arrives, and every worker adds to it the steps that it made while the mean travelled.

A round makes tau - delay steps, sends the models y_i, makes ``delay`` more and then continues from
theta + (x_i - y_i) (CoCoD-SGD, OLDSGD).  With lr = 1 and no momentum the mean of the models makes plain steps, as if it
had waited for nothing.
"""

from __future__ import annotations

import numpy as np

from .forms import AffineRound, Forms
from .merge import Merge
from .optimizer import OuterStep


def _round(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    rows = forms.workers.m
    theta, models, buffer = forms.state(0), [forms.state(1 + i) for i in range(rows)], forms.state(1 + rows)
    sent = forms.local_steps(models, tau - delay)
    gone_on = forms.local_steps(sent, delay)
    theta, buffer = outer.apply(theta, buffer, theta - np.mean(sent, axis=0))
    models = [theta + after - before for after, before in zip(gone_on, sent, strict=True)]
    return forms.round([theta, *models, buffer])


MERGE = Merge(
    "corrected",
    models=lambda rows: 1 + rows,
    buffers=lambda _: 1,
    global_models=lambda _: 1,
    round=_round,
    draws=2,
)
