"""What becomes of the steps that were made while a mean travelled: the merge rules of ``bounds.dynamics.outer``, run.

They look at one part of the model, at the workers that a process hosts.  ``overwrite`` and ``corrected`` send within a
round and merge at its end; ``delayed`` and ``eager`` send at the end of a round and merge at the end of the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from .finite import is_finite
from .movements import Error
from .outer import Averaging, OuterOptimizer

Overlap = Literal["none", "corrected", "overwrite", "delayed", "eager"]
Vectors = list[torch.Tensor]


@dataclass(frozen=True)
class Arrival:
    """What has travelled.

    Parameters
    ----------
    mean : tensor, shape (d,)
        Of what the workers sent.
    is_movement : bool
        Whether that were movements, and not models.
    bits : tuple of int, bits
        Lengths of the ranks' messages.
    errors : list of Error
        Of compression, one for each worker hosted here.
    mean_bits : tuple of int, bits, optional
        Lengths of the owners' messages in two shots.
    buffers : list of dict of str to tensor, or None, optional
        The means of the buffers that differed, by name, for each worker hosted here; None where none were looked at.
    members : tuple of int, optional
        The ranks that it is of; none if nobody had anything to say.
    refused : str or None, optional
        Why all ranks refuse it when they merge it.
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
    """The common model of one part, or one for each worker where they differ, and the last message.

    Parameters
    ----------
    thetas : list of tensor, shape (d,)
        One for each worker hosted here; never written to.
    outers : list of OuterOptimizer
        One for each of them where the common models differ, else one.
    m : int
        Workers of the run.
    sent : list of tensor
        What the workers hosted here have sent.
    base : tensor or None
        Where the movement of a sent model began; None if movements were sent.
    """

    thetas: Vectors
    outers: list[OuterOptimizer]
    m: int
    sent: Vectors = field(default_factory=list)
    base: torch.Tensor | None = None

    def step(self, arrival: Arrival) -> torch.Tensor:
        """Return the common model after the outer step by what has arrived, and keep it.

        Parameters
        ----------
        arrival : Arrival
            What has arrived.
        """
        theta, (outer, *_) = self.thetas[0], self.outers
        if isinstance(outer, Averaging) and not arrival.is_movement and self.base is theta:
            theta = arrival.mean  # the mean itself, without the rounding of two sums
        else:
            movement = arrival.mean if arrival.is_movement or self.base is None else arrival.mean - self.base
            theta = outer.step(theta, movement)
        if not is_finite(theta):
            raise ValueError("the outer step is not finite: lower the outer learning rate")
        self.thetas = [theta] * len(self.thetas)
        return theta


def _overwrite(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Replace the models."""
    return [common.step(arrival)] * len(models) if arrival is not None else models


def _corrected(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Add to the new common model what the models have moved since they were sent."""
    if arrival is None:
        return models
    sent, theta = common.sent, common.step(arrival)
    return [theta + (model - before) for model, before in zip(models, sent, strict=True)]


def _delayed(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Replace the models, whose own movement is only sent now."""
    return [common.step(arrival) if arrival is not None else common.thetas[0]] * len(models)


def _eager(common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
    """Step by the share of the own movement now, and by those of the others that were sent a round ago."""
    thetas: Vectors = []
    for i, (theta, model) in enumerate(zip(common.thetas, models, strict=True)):
        movement = (model - theta) / common.m
        if not is_finite(movement):  # all ranks refuse it when it arrives
            thetas.append(theta)
            continue
        if arrival is not None:
            movement = movement + arrival.mean - common.sent[i] / common.m
        thetas.append(common.outers[i].step(theta, movement))
    common.thetas = thetas
    return [theta if is_finite(model) else model for theta, model in zip(thetas, models, strict=True)]


@dataclass(frozen=True)
class MergeRule:
    """A rule.

    Parameters
    ----------
    name : str
        Word of the option ``overlap``.
    within_round : bool
        Whether a message is sent and merged in the same round.
    is_common : bool
        Whether all workers keep the same common model.
    keeps_steps : bool
        Whether workers go on from different models after a merge.
    merge : callable
        From the common model, the workers' models and what has arrived, None if nothing was under way, to their next
        models; the common model is moved.
    """

    name: str
    within_round: bool
    is_common: bool
    keeps_steps: bool
    merge: Callable[[Common, Vectors, Arrival | None], Vectors]

    def outgoing(self, common: Common, models: Vectors) -> tuple[Vectors, torch.Tensor | None]:
        """Return what workers with these models send, and where that began; None if movements are sent.

        Parameters
        ----------
        common : Common
            The common model.
        models : list of tensor
            The models of the workers hosted here, which are not written to.
        """
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


def plain(arrival: Arrival | None) -> dict[str, Any] | None:
    """Return an arrival as tensors and plain values.

    Parameters
    ----------
    arrival : Arrival or None
        What has arrived.
    """
    return None if arrival is None else dict(vars(arrival))


def restored(arrival: dict[str, Any], like: torch.Tensor) -> Arrival:
    """Return the arrival of which ``plain`` gave the values.

    Parameters
    ----------
    arrival : dict
        The values.
    like : tensor
        In what dtype and where the mean is kept.
    """
    tuples = {name: tuple(arrival[name]) for name in ("bits", "members")}
    return Arrival(**{**arrival, **tuples, "mean": arrival["mean"].to(like)})
