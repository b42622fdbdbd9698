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
from typing import Any, overload

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..allocation import WaterFilling
from ..exchange.choice import Exchange
from ..feedback.feedback import Feedback
from ..key import Key
from ..operator import Operator
from ..summed.summed import Summed
from .comm_hook import compress_hook
from .hook import CompressedGradients, Scope
from .state import state_of
from .summed import SummedGradients


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
    operator that is none; RuntimeError if the model has a hook.

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
