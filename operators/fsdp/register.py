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
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from ..allocation import WaterFilling
from ..ddp.equal_settings import device_of, refusals_sent, require_equal_settings
from ..feedback.feedback import Feedback
from ..feedback.memoryless import warn_of_bias
from ..fingerprint import Fingerprint, fingerprint, require_own_state
from ..key import Key
from ..operator import Operator
from .reduce_scatter import BackwardPass, CompressedReduceScatter


def register(
    model: torch.nn.Module,
    operator: Operator | Feedback,
    *,
    key: Key = Key(0),  # noqa: B008  frozen
    allocation: WaterFilling | None = None,
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
    allocation : None, optional
        A ``WaterFilling`` as for ``operators.ddp.register`` is refused: the shards of a module are not its parameters,
        and no rank has the whole mean, from which variances are measured.

    Raises
    ------
    ValueError
        For an allocation, and a model of which nothing is sharded; on every rank, if ranks differ in the operator, the
        key or the model.

    Notes
    -----
    All ranks must call it, with the same arguments.  Parameters are gathered as they are.  A module's gradients are one
    vector, zeros included where FSDP fills up a shard, and the operator's claim is for the length of a shard of it.
    A gradient that is not finite in binary32 raises ValueError on every rank of the mesh at the end of the backward
    pass.  The gradients of its module are then NaN, and feedback returns to its states before the pass.  A script may
    catch the error, skip the step and go on.

    PyTorch neither copies nor pickles a sharded model: save its state dict, and the ``state_dict()`` of what this
    returns on every rank.
    """
    if allocation is not None:
        raise ValueError(
            f"allocation must be None for a sharded model; got {allocation}: leave it out, one message of tcdq adapts "
            "to the scales in its shard; or use operators.ddp.register(..., scope='layer')"
        )
    modules = {name: module for name, module in model.named_modules() if isinstance(module, FSDPModule)}
    if not modules:
        raise ValueError("no module of the model is sharded: call fully_shard on its blocks and on the model first")
    place, groups = _place(model)
    device = device_of(groups[0], dict(model.named_parameters()))
    if all(dist.get_rank(group) == 0 for group in groups):
        warn_of_bias(operator, d=max(sum(p.numel() for p in model.parameters()), 1))
    with refusals_sent(groups, device):
        shards = {
            name: CompressedReduceScatter(operator, key=key.fold_in(number), module=name)
            for number, name in enumerate(modules)
        }
        prints = fingerprint({"operator": operator, "key": replace(key, step=0, rank=0), "model": _kinds(model)})
    require_equal_settings(prints, group=groups, device=device)
    together = BackwardPass(groups if len(groups) > 1 else (), device)
    for shard in shards.values():
        shard.backward_pass = together
    for name, module in modules.items():
        module.set_custom_reduce_scatter(shards[name])
    return CompressedShards(shards, prints, place)


class CompressedShards:
    """What the modules of a model send, made by ``register``.

    Parameters
    ----------
    modules : mapping of str to CompressedReduceScatter
        By name of the module.
    prints : mapping of str to int
        The fingerprint of the settings.
    place : list of list of int
        This rank's coordinates in the mesh, and the mesh's shape.
    """

    def __init__(
        self, modules: Mapping[str, CompressedReduceScatter], prints: Fingerprint, place: list[list[int]]
    ) -> None:
        self.modules, self._fingerprint, self._place = dict(modules), prints, place

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
        return {
            "fingerprint": dict(self._fingerprint),
            "place": self._place,
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken, on the same rank of as many.

        Parameters
        ----------
        state : mapping
            What it gave.

        Raises
        ------
        ValueError
            For the state of another rank or number of ranks, of other settings or another model, and one that is not
            finite; nothing has changed then.
        """
        state = require_own_state(state, self._fingerprint, of="this model")
        saved = state["modules"]
        if state["place"] != self._place:
            (rank, size), (own_rank, own_size) = state["place"], self._place
            raise ValueError(
                f"the state is of rank {rank} in a mesh of {size}; this is rank {own_rank} of {own_size}: states "
                "cannot be moved, start without one"
            )
        if set(saved) != set(self.modules):
            raise ValueError(f"the state is of the modules {sorted(saved)}; sharded here are {sorted(self.modules)}")
        before = {name: module.state_dict() for name, module in self.modules.items()}
        try:
            for name, module in self.modules.items():
                module.load_state_dict(saved[name])
        except BaseException:
            for name, module in self.modules.items():
                module.load_state_dict(before[name])
            raise


def _kinds(model: torch.nn.Module) -> list[object]:
    """Return name, whole shape, dtype and placement of every parameter; whether it is trained too."""
    return [
        (name, tuple(p.shape), p.dtype, p.requires_grad, str(getattr(p, "placements", "")))
        for name, p in model.named_parameters()
    ]


def _place(model: torch.nn.Module) -> tuple[list[list[int]], list[dist.ProcessGroup]]:
    """Return this rank's coordinates in the mesh with the mesh's shape, and the groups of its dimensions."""
    mesh = next(p.device_mesh for p in model.parameters() if isinstance(p, DTensor))
    groups = [mesh.get_group(dimension) for dimension in range(mesh.ndim)]
    return [[dist.get_rank(group) for group in groups], [dist.get_world_size(group) for group in groups]], groups
