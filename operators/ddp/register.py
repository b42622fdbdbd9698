"""Any operator as a communication hook of DistributedDataParallel. ::

    model = DistributedDataParallel(network)
    hook = register(model, QSGD(levels=16))
    ...                                       # train as before
    hook.payload_bytes                        # what this rank has sent

Every rank compresses its own gradient, gathers the messages of all, decodes them and takes their mean in rank
order in float64: all ranks get the same gradient, bit for bit.  A message is under way while the backward pass
computes the next bucket, and is decoded in the background.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, Unpack, overload

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
from .comm_hook import compress_hook
from .equal_settings import connected, device_of
from .hook import CompressedGradients, Scope, SummedGradients

# The state of a model's hook, made without registering it.


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


@overload
def register(
    model: DistributedDataParallel,
    operator: Summed,
    *,
    scope: Scope = "bucket",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
) -> SummedGradients: ...
@overload
def register(
    model: DistributedDataParallel,
    operator: Operator | Feedback | str | Callable[..., Any],
    *,
    feedback: Callable[[Operator], Feedback] | None = None,
    scope: Scope = "bucket",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
    exchange: Exchange = "gather",
    second: Operator | Feedback | None = None,
    ranks_per_node: int = 1,
    allocation: WaterFilling | None = None,
) -> CompressedGradients: ...
def register(
    model: DistributedDataParallel,
    operator: Operator | Feedback | Summed | str | Callable[..., Any],
    *,
    feedback: Callable[[Operator], Feedback] | None = None,
    scope: Scope = "bucket",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
    exchange: Exchange = "gather",
    second: Operator | Feedback | None = None,
    ranks_per_node: int = 1,
    allocation: WaterFilling | None = None,
) -> CompressedGradients | SummedGradients:
    """Let the model exchange compressed gradients from its next backward pass on; returns the hook.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    operator : Operator or Feedback or Summed or str or callable
        Compresses; a Feedback keeps its states from step to step; a Summed (``operators.summed``) is added on the way,
        and ``exchange`` is then its own: the hook is ``SummedGradients``.  A specification such as "qsgd:4" or
        "mine:f", or a function ``x -> x_hat`` that says its ``bits``: what it returns travels as it is, and
        ``codec_bits`` counts the bits that it states.
    feedback : callable or None, optional
        A method to put around an operator, as in ``register(model, ScaledSign(), feedback=ErrorFeedback)``.
    scope : Scope, optional
        "bucket" compresses each of the model's buckets as one vector, "layer" each parameter by itself.
    key : Key, optional
        Of the operator's randomness; step and rank are filled in, and the parameter is folded in.
    group : ProcessGroup or None, optional
        Of the ranks that exchange gradients; the model's own if None.
    exchange : {"gather", "two_shot", "auto"}, optional
        "gather": every rank sends its message to all.  "two_shot": every rank sends each shard to its owner, which
        sends the compressed mean of its shard to all; what a rank sends does not grow with the number of ranks.
        "auto" takes what sends fewer bytes, by the sizes that the operators declare for the model's parameters; the
        hook's ``exchange`` says which.
    second : Operator or Feedback or None, optional
        Compresses the means of two shots; by default as the gradients are, with error feedback too.
    ranks_per_node : int, optional
        More than 1: as many consecutive ranks sum exactly among themselves, and nodes exchange compressed gradients;
        the hook's ``inside`` counts what does not leave them.
    allocation : WaterFilling or None, optional
        With scope="layer": gives the parameters operators of one family with different numbers of bits, by the
        variances of the decoded means.  The family is unbiased, or contractive with feedback=ErrorFeedback.  The hook's
        ``assignment`` has the operators; each claim holds for its parameter.

    Raises
    ------
    ValueError
        For an unknown scope or exchange, a second operator without two shots, feedback around a Feedback; feedback,
        second, two shots, nodes or an allocation with a Summed; an allocation without scope="layer", of a family
        without a claim, or of too few bits; nodes that the ranks do not fill; parameters that are no floats, a
        method whose states need scope="layer", or ranks that differ.

    Notes
    -----
    All ranks must call it, with the same arguments; what it sends to see to that is not counted.  TypeError for an
    operator that is none; RuntimeError if the model has a hook.  Rank 0 emits ``operators.BiasWarning`` for an operator
    that claims only a contraction and has no feedback.

    A message that is not as long as its operator declares exactly costs one attempt more: all ranks of the exchange
    hear of it, lengths travel first from then on, and the bytes of the attempt are counted; a warning names the rank.

    All ranks are notified of what cannot be compressed or merged, but not of a mean that a rank cannot decode: that
    would take one collective more a bucket.  If its sender has damaged it, every rank that gets it raises, with nodes
    every rank at all.  If it was damaged on its way to one rank, that rank raises, with nodes all of its node; when
    these have ended, the others' next exchange fails, at the latest after the time-out of the group.

    ``copy.deepcopy`` and ``torch.save`` copy a model with its hook left out: PyTorch averages the gradients of the copy
    until ``register`` is called on it.  Save the hook's ``state_dict()`` on every rank to go on where it was.

    A rank that has gone is an error on the others, at the latest after the time-out of the group: gloo does not always
    hear of the end of a connection.  ``torch.distributed.init_process_group(timeout=)`` sets it; 30 minutes by default.
    """
    state = state_of(
        model,
        operator,
        feedback=feedback,
        scope=scope,
        key=key,
        group=group,
        exchange=exchange,
        second=second,
        ranks_per_node=ranks_per_node,
        allocation=allocation,
    )
    model.register_comm_hook(state, compress_hook)
    return state


def register_summed(
    model: DistributedDataParallel,
    method: Summed,
    *,
    scope: Scope = "layer",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
) -> SummedGradients:
    """Let the model sum compressed gradients from its next backward pass on; returns the hook.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    method : Summed
        Compresses; a matrix method without a shape takes every parameter's own.
    scope : Scope, optional
        "layer" compresses each parameter by itself, "bucket" each of the model's buckets as one vector.
    key : Key, optional
        Of the method's randomness; step and rank are filled in, and the parameter is folded in.
    group : ProcessGroup or None, optional
        Of the ranks that exchange gradients; the model's own if None.

    Raises
    ------
    TypeError
        For a method that is not summed on the way.
    ValueError
        For an unknown scope, and for a method with memory and scope="bucket".

    Notes
    -----
    All ranks must call it, with the same arguments.
    """
    group = group or model.process_group
    make = partial(SummedGradients, model, method, scope, key, group)
    hook = connected(make, group=group, device=device_of(group, dict(model.module.named_parameters())))
    model.register_comm_hook(hook, compress_hook)
    return hook
