"""Merge rules: when the workers' mean arrives, and what becomes of the steps done meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .forms import AffineRound, Forms
from .optimizer import OuterStep
from .workers import Workers


@dataclass(frozen=True)
class Merge:
    """A rule by which the workers' mean and the steps done while it travels become one model.

    The state between rounds is a number of models, which all begin at the start, and of buffers, which begin at 0.

    Parameters
    ----------
    name : str
        Word of the option ``overlap``.
    models : callable
        Their count, from the number of workers that differ.
    buffers : callable
        The same for the buffers.
    global_models : callable
        How many of the first models have the global model as their mean.
    round : callable
        From forms, outer step, tau, steps in flight and number of workers to the forms of the next state.
    draws : int, optional
        Groups of local steps in a round, each with noise of its own.
    """

    name: str
    models: Callable[[int], int]
    buffers: Callable[[int], int]
    global_models: Callable[[int], int]
    round: Callable[[Forms, OuterStep, int, int, int], AffineRound]
    draws: int = 1

    def of(self, workers: Workers, *, outer: OuterStep, eta: float, tau: int, delay: int = 0) -> AffineRound:
        """Return one round.

        Parameters
        ----------
        workers : Workers
            Whose quadratics are descended.
        outer : OuterStep
            The global step.
        eta : float
            Inner learning rate, > 0.
        tau : int
            Local steps of a round, >= 1.
        delay : int, optional
            Local steps done while a message travels, 0 to tau; ``blocking``, ``delayed`` and ``eager`` do not use it:
            nothing travels while the first works, and a message of the others has the whole next round.

        Raises
        ------
        ValueError
            For a rate or steps outside these ranges.
        """
        return self.of_rows(workers.reduced(), workers.m, outer=outer, eta=eta, tau=tau, delay=delay)

    def of_rows(self, rows: Workers, m: int, *, outer: OuterStep, eta: float, tau: int, delay: int = 0) -> AffineRound:
        """Return one round of m workers that differ, or of one that stands for all.

        Parameters
        ----------
        rows : Workers
            All m, or one with 1/m of the noise of each.
        m : int
            Number of workers.
        outer : OuterStep
            The global step.
        eta : float
            Inner learning rate, > 0.
        tau : int
            Local steps of a round, >= 1.
        delay : int, optional
            Local steps done while a message travels, 0 to tau.

        Raises
        ------
        ValueError
            For a rate or steps outside these ranges.
        """
        if not (eta > 0 and tau >= 1 and 0 <= delay <= tau):
            raise ValueError(
                f"eta must be > 0, tau >= 1 and 0 <= delay <= tau; got eta = {eta}, tau = {tau}, delay = {delay}"
            )
        states = self.models(rows.m) + self.buffers(rows.m)
        return self.round(Forms(rows, eta, states, self.draws), outer, tau, delay, m)


def _blocking(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    """All wait for the mean: the outer step starts the next round."""
    theta, buffer = forms.state(0), forms.state(1)
    models = forms.local_steps([theta] * forms.workers.m, tau)
    return forms.round([*outer.apply(theta, buffer, theta - np.mean(models, axis=0))])


BLOCKING = Merge("blocking", models=lambda _: 1, buffers=lambda _: 1, global_models=lambda _: 1, round=_blocking)


def _overwrite(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    """The new global model replaces whatever the workers did while the mean travelled.

    The ``delay`` steps in flight are thrown away: a round is a blocking one of tau - delay steps.
    """
    theta, buffer = forms.state(0), forms.state(1)
    sent = forms.local_steps([theta] * forms.workers.m, tau - delay)
    return forms.round([*outer.apply(theta, buffer, theta - np.mean(sent, axis=0))])


OVERWRITE = Merge("overwrite", models=lambda _: 1, buffers=lambda _: 1, global_models=lambda _: 1, round=_overwrite)


def blended(local_weight: float) -> Merge:
    """Return the rule after which a worker's model is w model + (1 - w) new global model.

    ``local_weight`` 0 is ``overwrite``.  The workers' models differ after a merge, and a round's movement is that from
    the global model before it to the sent models.  It is torchft's ``fragment_update_alpha``.

    Parameters
    ----------
    local_weight : float
        w, 0 <= w < 1.

    Raises
    ------
    ValueError
        For a weight outside its range.
    """
    if not 0 <= local_weight < 1:
        raise ValueError(f"local_weight must satisfy 0 <= local_weight < 1; got {local_weight}")
    if local_weight == 0:
        return OVERWRITE

    return _of_own_models(
        f"overwrite, local weight {local_weight:g}",
        lambda theta, after, before: local_weight * after + (1 - local_weight) * theta,
    )


def _delayed(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    """A round's mean arrives when the next one ends: the outer step uses the difference of the round before."""
    theta, buffer, late = (forms.state(k) for k in range(3))
    models = forms.local_steps([theta] * forms.workers.m, tau)
    return forms.round([*outer.apply(theta, buffer, late), theta - np.mean(models, axis=0)])


DELAYED = Merge("delayed", models=lambda _: 1, buffers=lambda _: 2, global_models=lambda _: 1, round=_delayed)


def _eager(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
    """Every worker uses its own difference at once and those of the others one round late (Kale et al. 2025).

    Worker i keeps a global model and a momentum buffer of its own; its difference counts with share 1/m in the round in
    which it was made, the other workers' with theirs in the next one.  The mean of these global models is what is read.
    """
    rows = forms.workers.m
    thetas, buffers, late = ([forms.state(k * rows + i) for i in range(rows)] for k in range(3))
    models = forms.local_steps(thetas, tau)
    fresh = [theta - model for theta, model in zip(thetas, models, strict=True)]
    late_mean = np.mean(late, axis=0)
    steps = [outer.apply(thetas[i], buffers[i], fresh[i] / m + late_mean - late[i] / m) for i in range(rows)]
    return forms.round([*(theta for theta, _ in steps), *(buffer for _, buffer in steps), *fresh])


EAGER = Merge(
    "eager", models=lambda rows: rows, buffers=lambda rows: 2 * rows, global_models=lambda rows: rows, round=_eager
)


def _of_own_models(name: str, merged: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Merge:
    """Return a rule after which the workers' models differ.

    A round makes tau - delay steps, sends the models y_i, makes ``delay`` more and then continues from
    merged(theta, x_i, y_i), theta the new global model.
    """

    def one_round(forms: Forms, outer: OuterStep, tau: int, delay: int, m: int) -> AffineRound:
        rows = forms.workers.m
        theta, models, buffer = forms.state(0), [forms.state(1 + i) for i in range(rows)], forms.state(1 + rows)
        sent = forms.local_steps(models, tau - delay)
        gone_on = forms.local_steps(sent, delay)
        theta, buffer = outer.apply(theta, buffer, theta - np.mean(sent, axis=0))
        models = [merged(theta, after, before) for after, before in zip(gone_on, sent, strict=True)]
        return forms.round([theta, *models, buffer])

    return Merge(
        name,
        models=lambda rows: 1 + rows,
        buffers=lambda _: 1,
        global_models=lambda _: 1,
        round=one_round,
        draws=2,
    )


# The new global model arrives, and every worker adds to it the steps that it made while the mean travelled (CoCoD-SGD,
# OLDSGD).  With lr = 1 and no momentum the mean of the models makes plain steps, as if it had waited for nothing.
CORRECTED = _of_own_models("corrected", lambda theta, after, before: theta + after - before)


_BY_NAME = {rule.name: rule for rule in (BLOCKING, OVERWRITE, DELAYED, EAGER, CORRECTED)}
RULES = tuple(_BY_NAME)


def merge_of(name: str | Merge) -> Merge:
    """Return the merge rule of a name; a rule is returned as it is.

    Parameters
    ----------
    name : str or Merge
        Word of the option ``overlap``, or a rule such as that of ``blended``.

    Raises
    ------
    ValueError
        For a name that is none of ``blocking``, ``overwrite``, ``delayed``, ``eager`` and ``corrected``.
    """
    if isinstance(name, Merge):
        return name
    if name not in RULES:
        raise ValueError(f"a merge rule is one of {', '.join(RULES)}; got {name!r}")
    return _BY_NAME[name]
