"""DiLoCo around an optimizer's steps, with the interface of ``torchft.local_sgd.DiLoCo`` and without its server. ::

    with DiLoCo(model, optimizer, outer=Nesterov(0.7, 0.9), sync_every=500, operator=QSGD(levels=16)):
        for batch in batches:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()

Every step of the optimizer is counted by a hook.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self, Unpack

import torch

from ..averaging.periodic_averaging import PeriodicAveraging
from ..averaging.settings import name_parts
from ..records.numbers import whole_number
from .keywords import AveragedSteps, AveragingKeywords, innermost, local_gradients


class DiLoCo(AveragedSteps):
    """Context in which every step of the inner optimizer is a local step; ``sync_every`` steps form a round.

    Parameters
    ----------
    model : Module
        The whole model.  If it is in DistributedDataParallel, gradients are not averaged.
    inner_optimizer : Optimizer
        Optimizer whose steps are counted.
    sync_every : int
        Local steps per round, >= 1.
    **settings
        Keywords of ``PeriodicAveraging``: outer (DiLoCo's outer optimizer), operator, merge and others.

    Attributes
    ----------
    averaging
        The ``PeriodicAveraging``, whose transport counts bytes.

    Raises
    ------
    ValueError
        For a ``sync_every`` that is not an integer, and for models and settings that ``PeriodicAveraging`` refuses.

    Notes
    -----
    torchft's ``model_fragments``, ``fragment_sync_delay`` and ``fragment_update_alpha`` are ``fragments`` (names of
    modules), ``delay`` and ``local_weight`` of ``merge=Overwrite(...)``; its list of outer optimizers is ``outer``.  A
    delay of 0, torchft's default, waits for the average.

    At the end of ``with`` the current round is ended; torchft leaves the models different.  An error inside is raised
    immediately, without an averaging.  The next ``with`` of the same object then starts from rank 0's model, without
    states of feedback and outer momentum.  All ranks must make equally many steps, also where a ``GradScaler`` skips
    one.
    """

    averaging: PeriodicAveraging

    @name_parts(AveragingKeywords, schedule="sync_every")
    def __init__(
        self,
        model: torch.nn.Module,
        inner_optimizer: torch.optim.Optimizer,
        *,
        sync_every: int,
        **settings: Unpack[AveragingKeywords],
    ) -> None:
        try:
            sync_every = whole_number("sync_every", sync_every)
        except ValueError:
            raise ValueError(
                "sync_every must be a number of local steps, for DiLoCo has neither losses nor a closure; got "
                f"sync_every = {sync_every!r}: for a rule or 'auto' call PeriodicAveraging.step in the training loop"
            ) from None
        inner = innermost(model)
        local = partial(local_gradients, model, inner, "leave the sharding out")
        local()  # refuses a sharded model
        self._optimizer = inner_optimizer
        super().__init__(local, partial(PeriodicAveraging, inner, inner_optimizer, schedule=sync_every, **settings))

    def __enter__(self) -> Self:
        super().__enter__()
        self._entered.callback(self._optimizer.register_step_post_hook(self._count).remove)
        return self

    def _count(self, optimizer: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
        self.averaging.step()
