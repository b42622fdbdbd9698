"""Any operator in a model that ``fully_shard`` has sharded. ::

for block in model.blocks:
    fully_shard(block)
fully_shard(model)
shards = register(model, QSGD(levels=16))
...                                       # train as before
shards.payload_bytes                      # what this rank has sent
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule

from ..feedback.feedback import Feedback
from ..key import Key
from ..operator import Operator
from .reduce_scatter import CompressedReduceScatter


def register(
    model: torch.nn.Module,
    operator: Operator | Feedback,
    *,
    key: Key = Key(0),  # noqa: B008  frozen
) -> CompressedShards:
    """Let all modules of a model that are sharded by ``fully_shard`` compress what they reduce and scatter.

    Parameters
    ----------
    model : Module
        After ``fully_shard``.
    operator : Operator or Feedback
        Compresses; a Feedback keeps its states from step to step.
    key : Key, optional
        Of the operator's randomness; step and rank are filled in, and the number of the module is folded in.

    Raises
    ------
    ValueError
        For a model of which nothing is sharded.

    Notes
    -----
    All ranks must call it, with the same arguments.  Parameters are gathered as they are.  A module's gradients are one
    vector, zeros included where FSDP fills up a shard, and the operator's claim is for the length of a shard of it.
    PyTorch neither copies nor pickles a sharded model: save its state dict, and the ``state_dict()`` of what this
    returns on every rank.
    """
    modules = {name: module for name, module in model.named_modules() if isinstance(module, FSDPModule)}
    if not modules:
        raise ValueError("no module of the model is sharded: call fully_shard on its blocks and on the model first")
    shards = {
        name: CompressedReduceScatter(operator, key=key.fold_in(number), module=name)
        for number, name in enumerate(modules)
    }
    for name, module in modules.items():
        module.set_custom_reduce_scatter(shards[name])
    return CompressedShards(shards)


class CompressedShards:
    """What the modules of a model send, made by ``register``.

    Parameters
    ----------
    modules : mapping of str to CompressedReduceScatter
        By name of the module.
    """

    def __init__(self, modules: Mapping[str, CompressedReduceScatter]) -> None:
        self.modules = dict(modules)

    @property
    def codec_bits(self) -> int:
        """Lengths of this rank's messages, in bits."""
        return sum(module.codec_bits for module in self.modules.values())

    @property
    def payload_bytes(self) -> int:
        """What this rank has handed to the transport, in bytes, headers included."""
        return sum(module.payload_bytes for module in self.modules.values())

    @property
    def predicted_bytes(self) -> int:
        """What all ranks together should have handed over, in bytes, from the lengths of the messages alone."""
        return sum(module.predicted_bytes for module in self.modules.values())

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered and counted on this rank, by module: tensors and plain values only."""
        return {name: module.state_dict() for name, module in self.modules.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken, on the same rank of as many.

        Parameters
        ----------
        state : mapping
            What it gave.

        Raises
        ------
        ValueError
            For the state of a model with other sharded modules.
        """
        if set(state) != set(self.modules):
            raise ValueError(f"the state is of the modules {sorted(state)}; sharded here are {sorted(self.modules)}")
        for name, module in self.modules.items():
            module.load_state_dict(state[name])
