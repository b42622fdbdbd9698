"""The state of a model's hook, made without registering it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, Unpack

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..allocation import WaterFilling
from ..catalogue import compressor
from ..exchange.channel import with_memory
from ..exchange.choice import Exchange
from ..feedback.feedback import Feedback
from ..feedback.memoryless import Memoryless
from ..key import Key
from ..operator import Operator
from ..summed.summed import Summed
from .equal_settings import connected, device_of
from .hook import CompressedGradients, Scope
from .summed import SummedGradients


class HookSettings(TypedDict, total=False):
    """The keywords of ``register``."""

    feedback: Callable[[Operator], Feedback] | None
    scope: Scope
    key: Key
    group: dist.ProcessGroup | None
    exchange: Exchange
    second: Operator | Feedback | None
    ranks_per_node: int
    allocation: WaterFilling | None


def state_of(
    model: DistributedDataParallel,
    operator: Operator | Feedback | Summed | str | Callable[..., Any],
    **settings: Unpack[HookSettings],
) -> CompressedGradients | SummedGradients:
    """Return what ``compress_hook`` needs: counters, and what error feedback remembers; all ranks must call it.

    Parameters
    ----------
    model : DistributedDataParallel
        The model; it stays as it is.
    operator : Operator or Feedback or Summed or str or callable
        As for ``register``.
    **settings
        The keywords of ``register``, with their defaults.

    Raises
    ------
    TypeError
        For an operator that is none.
    ValueError
        As ``register``.
    """
    group = settings.get("group") or model.process_group
    make = partial(_state, model, operator, settings, group)
    return connected(make, group=group, device=device_of(group, dict(model.module.named_parameters())))


def _state(
    model: DistributedDataParallel,
    operator: Operator | Feedback | Summed | str | Callable[..., Any],
    settings: HookSettings,
    group: Any,
) -> CompressedGradients | SummedGradients:
    """Return the state that the arguments mean, not yet connected."""
    scope, key = settings.get("scope", "bucket"), settings.get("key", Key(0))
    feedback, second = settings.get("feedback"), settings.get("second")
    exchange, ranks_per_node = settings.get("exchange", "gather"), settings.get("ranks_per_node", 1)
    allocation = settings.get("allocation")
    if isinstance(operator, Summed):
        if allocation is not None:
            raise ValueError(
                f"an allocation needs an operator or a family; got {operator}, which is summed: leave it out"
            )
        if feedback is not None or second is not None or exchange == "two_shot" or ranks_per_node != 1:
            raise ValueError(
                f"{operator} is summed on the way and has an exchange of its own: leave feedback, exchange, "
                f"second and ranks_per_node out; got feedback = {feedback}, exchange = {exchange!r}, second = {second} "
                f"and ranks_per_node = {ranks_per_node}"
            )
        return SummedGradients(model, operator, scope, key, group)
    if isinstance(operator, str) or (callable(operator) and not isinstance(operator, type | Operator)):
        operator = compressor(operator)
    if not isinstance(operator, Operator | Feedback):
        raise TypeError(
            f"operator must be an instance of Operator or Feedback, a specification or a function; got {operator!r}"
        )
    if isinstance(operator, Operator):
        operator = (feedback or Memoryless)(operator)
    elif feedback is not None:
        raise ValueError(f"{operator} is a feedback method already: leave feedback = None")
    if second is not None and exchange == "gather":
        raise ValueError(
            'second compresses the means of two shots: pass exchange="two_shot" or "auto", or leave it out'
        )
    later = operator if second is None else with_memory(second)
    return CompressedGradients(model, operator, scope, key, group, exchange, later, ranks_per_node, allocation)
