"""Merge rules for averages in flight, as analysed in ``bounds.dynamics.outer``.

A rule merges one part of the model on the workers that a process hosts.  ``overwrite`` and ``corrected`` send during
a round and merge at its end.  ``delayed`` and ``eager`` send at the end of a round and merge at the end of the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch

from .finite import is_finite
from .movements import Error
from .outer import Averaging, OuterOptimizer

Overlap = Literal["none", "corrected", "overwrite", "delayed", "eager"]
Vectors = list[torch.Tensor]


@dataclass(frozen=True)
class Arrival:
    """A received average.

    Parameters
    ----------
    mean : tensor, shape (d,)
        Mean of the workers' messages.
    is_movement : bool
        Whether the messages were movements rather than models.
    bits : tuple of int, bits
        Lengths of the ranks' messages.
    errors : list of Error
        Compression errors, one per worker hosted here.
    mean_bits : tuple of int, bits, optional
        Lengths of the owners' messages in two shots.
    buffers : list of dict of str to tensor, or None, optional
        Means of the buffers that differed, by name, per worker hosted here; None where buffers were not exchanged.
    members : tuple of int, optional
        Ranks that contributed; empty if no rank did.
    refused : str or None, optional
        Error that all ranks raise when they merge it.
    """

    mean: torch.Tensor
    is_movement: bool
    bits: tuple[int, ...]
    errors: list[Error]
    mean_bits: tuple[int, ...] = ()
    buffers: list[dict[str, torch.Tensor]] | None = None
    members: tuple[int, ...] = ()
    refused: str | None = None


@dataclass
class Common:
    """The common model of one part and the last message; with "eager" every worker has its own common model.

    Parameters
    ----------
    thetas : list of tensor, shape (d,)
        Common model of each worker hosted here; never written in place.
    outers : list of OuterOptimizer
        One per worker where the common models differ, else one.
    m : int
        Number of workers of the run.
    sent : list of tensor
        Last messages of the workers hosted here.
    base : tensor or None
        Model at which the movement of a sent model began; None if movements were sent.
    """

    thetas: Vectors
    outers: list[OuterOptimizer]
    m: int
    sent: Vectors = field(default_factory=list)
    base: torch.Tensor | None = None

    def step(self, arrival: Arrival) -> torch.Tensor:
        """Take the outer step for an arrival; store and return the new common model."""
        theta, (outer, *_) = self.thetas[0], self.outers
        if isinstance(outer, Averaging) and not arrival.is_movement and self.base is theta:
            theta = arrival.mean  # exactly, without the rounding errors of theta + (mean - theta)
        else:
            movement = arrival.mean if arrival.is_movement or self.base is None else arrival.mean - self.base
            theta = outer.step(theta, movement)
        if not is_finite(theta):
            raise ValueError("the outer step is not finite: lower the outer learning rate")
        self.thetas = [theta] * len(self.thetas)
        return theta


def _overwrite(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Replace the models by the new common model."""
    return [common.step(arrival)] * len(models) if arrival is not None else models


def _blend(local_weight: float, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Replace each model by w model + (1 - w) new common model."""
    if arrival is None:
        return models
    theta = common.step(arrival)
    return [local_weight * model + (1 - local_weight) * theta for model in models]


def _corrected(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Add the movement of each model since it was sent to the new common model."""
    if arrival is None:
        return models
    sent, theta = common.sent, common.step(arrival)
    return [theta + (model - before) for model, before in zip(models, sent, strict=True)]


def _delayed(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Replace the models, and send their own movement."""
    return [common.step(arrival) if arrival is not None else common.thetas[0]] * len(models)


def _eager(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Step by this worker's share of its current movement and the other workers' shares of the previous round."""
    thetas: Vectors = []
    for i, (theta, model) in enumerate(zip(common.thetas, models, strict=True)):
        movement = (model - theta) / common.m
        if not is_finite(movement):  # all ranks refuse it at its arrival
            thetas.append(theta)
            continue
        if arrival is not None:
            movement = movement + arrival.mean - common.sent[i] / common.m
        thetas.append(common.outers[i].step(theta, movement))
    common.thetas = thetas
    return [theta if is_finite(model) else model for theta, model in zip(thetas, models, strict=True)]


@dataclass(frozen=True)
class MergeRule:
    """How models are merged with an average that was in flight.

    Parameters
    ----------
    name : str
        Value of the option ``overlap``.
    within_round : bool
        Whether a message is sent and merged in the same round.
    is_common : bool
        Whether all workers have the same common model.
    keeps_steps : bool
        Whether workers continue from different models after a merge.
    merge : callable
        Map from common model, workers' models and arrival (None without one) to the workers' next models.  It also
        updates the common model.
    """

    name: str
    within_round: bool
    is_common: bool
    keeps_steps: bool
    merge: Callable[[Common, Vectors, Arrival | None], Vectors]

    def outgoing(self, common: Common, models: Vectors) -> tuple[Vectors, torch.Tensor | None]:
        """Return the workers' messages, and the model at which their movement began; None if movements are sent."""
        if self.is_common:
            return models, common.thetas[0]
        return [model - theta for model, theta in zip(models, common.thetas, strict=True)], None


RULES = {
    rule.name: rule
    for rule in (
        MergeRule("overwrite", within_round=True, is_common=True, keeps_steps=False, merge=_overwrite),
        MergeRule("corrected", within_round=True, is_common=True, keeps_steps=True, merge=_corrected),
        MergeRule("delayed", within_round=False, is_common=True, keeps_steps=False, merge=_delayed),
        MergeRule("eager", within_round=False, is_common=False, keeps_steps=True, merge=_eager),
    )
}


def merge_rule(name: str, local_weight: float = 0.0) -> MergeRule:
    """Return the rule of a name; "overwrite" keeps a share ``local_weight`` in [0, 1) of each worker's own model."""
    rule = RULES[name]
    return replace(rule, keeps_steps=True, merge=partial(_blend, local_weight)) if local_weight else rule


def plain(arrival: Arrival | None) -> dict[str, Any] | None:
    """Return an arrival as tensors and plain values."""
    return None if arrival is None else dict(vars(arrival))


def restored(arrival: dict[str, Any], like: torch.Tensor) -> Arrival:
    """Rebuild an arrival from the values of ``plain``, with the dtype and device of ``like``."""
    tuples = {name: tuple(arrival[name]) for name in ("bits", "members")}
    return Arrival(**{**arrival, **tuples, "mean": arrival["mean"].to(like)})
