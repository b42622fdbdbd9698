"""Parameters sharded over other ranks: every rank averages its own shard with the ranks that have the same one.

Only the public interface of DTensor and of FSDP2 is used.  Nothing is imported for models that are not sharded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from bounds.schedules import Fixed

if TYPE_CHECKING:
    from .config import Settings


def _of_torch(module: str, name: str) -> Any:
    """Return a class of torch, or () if nothing has imported its module."""
    return getattr(sys.modules.get(module), name, ())


def is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a DTensor."""
    return isinstance(tensor, _of_torch("torch.distributed.tensor", "DTensor"))


def local(tensor: Any) -> Any:
    """Return the entries that this rank has, in the same memory; a plain tensor as it is."""
    if not is_sharded(tensor):
        return tensor
    with torch.no_grad():
        return tensor.to_local()


def reshard(model: torch.nn.Module) -> None:
    """Let FSDP2 register the sharded parameters again, after a forward pass without a backward pass."""
    for module in model.modules():
        if isinstance(module, _of_torch("torch.distributed.fsdp", "FSDPModule")):
            module.reshard()


def _axes(tensor: Any) -> Iterator[tuple[int, int, int]]:
    """Yield dimension, place of this rank and number of shards, for every mesh dimension that shards the tensor."""
    mesh = tensor.device_mesh
    coordinate = mesh.get_coordinate()
    for axis, placement in enumerate(tensor.placements):
        if placement.is_shard():
            yield placement.dim, coordinate[axis], mesh.size(axis)


def shard_of(tensor: Any) -> tuple[int, int]:
    """Return the number of this rank's shard and the number of shards; (0, 1) for a plain tensor."""
    number, count = 0, 1
    for _, place, size in _axes(tensor) if is_sharded(tensor) else ():
        number, count = number * size + place, count * size
    return number, count


def in_words(tensor: Any) -> str:
    """Return which shard of a tensor this rank has, for comparison with other ranks; empty for a plain tensor."""
    number, count = shard_of(tensor)
    dims = ", ".join(str(dim) for dim, _, _ in _axes(tensor)) if count > 1 else ""
    return f", shard {number} of {count} along dimension {dims}" if count > 1 else ""


def require_one_rank_per_shard(name: str, tensor: Any, ranks: Sequence[int] | None) -> None:
    """Refuse a DTensor that the global ``ranks`` of an averaging cannot average; None stands for simulated workers.

    Raises
    ------
    TypeError
        For placements other than Shard and Replicate, and where no process group is used.
    ValueError
        If several of the ranks are in the mesh of the tensor.
    """
    if ranks is None:
        raise TypeError(
            f"{name} is sharded over the ranks (DTensor): shard a model before PeriodicAveraging is made, and do not "
            "simulate its workers"
        )
    kinds = [_of_torch("torch.distributed.tensor", kind) for kind in ("Shard", "Replicate")]
    for placement in tensor.placements:
        if type(placement) not in kinds:
            raise TypeError(
                f"a sharded parameter must have the placements Shard or Replicate; {name} has {placement}: shard it "
                "over one dimension of the mesh, as fully_shard does"
            )
    common = sorted(set(tensor.device_mesh.mesh.flatten().tolist()) & set(ranks))
    if len(common) > 1:
        raise ValueError(
            f"process_group must have one rank of the mesh over which {name} is sharded; it has ranks {common}: call "
            'fully_shard with mesh["inner"] of a 2-D mesh, and pass process_group=mesh.get_group("outer")'
        )


def place_of(model: torch.nn.Module, settings: Settings) -> int:
    """Return the number of this rank's shard, 0 for a model that is not sharded; refuse settings that do not fit.

    Raises
    ------
    ValueError
        For a sharded model with a schedule that is not fixed, averaged optimizer states, uneven inputs, a quorum, or an
        operator beside parameters that every rank has in full.
    """
    shards = {name: shard_of(p) for name, p in model.named_parameters() if p.requires_grad}
    places = {number for number, count in shards.values() if count > 1}
    if not places:
        return 0
    whole = [name for name, (_, count) in shards.items() if count == 1]
    wrong = {
        f"schedule = {settings.rule}": not isinstance(settings.rule, Fixed),
        'optimizer_state = "average"': settings.merge.optimizer_state == "average",
        "uneven": settings.uneven,
        "a quorum": settings.least > 0,
        f"operator = {settings.operator} and whole parameters {whole[:3]}": whole and settings.operator is not None,
    }
    for setting, refused in wrong.items():
        if refused:
            raise ValueError(
                f"a sharded model does not work with {setting}: fix tau, keep or reset the optimizers, give all ranks "
                "as many steps, and with an operator shard every parameter"
            )
    return max(places)


def ranks_of(group: dist.ProcessGroup | None) -> list[int] | None:
    """Return the global ranks of a process group; None where no group has been made."""
    return dist.get_process_group_ranks(group) if dist.is_initialized() else None
