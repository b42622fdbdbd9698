"""Structure of a model: what is averaged, in which order, in which memory, and whether all ranks agree on it.

Parameters may be sharded over other ranks (FSDP2).  Every rank then averages its own shard with the ranks that have the
same one.  Only the public interface of DTensor and of FSDP2 is used, and nothing is imported for other models.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from operators.fingerprint import require_accepted

from ..processes.tensors import overlaps_itself
from ..processes.transport import Transport


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


def ranks_of(group: dist.ProcessGroup | None) -> list[int] | None:
    """Return the global ranks of a process group; None where no group has been made."""
    return dist.get_process_group_ranks(group) if dist.is_initialized() else None


P = TypeVar("P", bound=torch.Tensor)


@dataclass(frozen=True)
class _Place:
    """Bytes of a storage between a tensor's first and last entry."""

    name: str
    tensor: torch.Tensor
    storage: int
    start: int
    stop: int

    @classmethod
    def of(cls, name: str, tensor: torch.Tensor) -> _Place:
        """Return the place of a tensor with at least one entry."""
        last = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
        start = int(tensor.storage_offset()) * tensor.element_size()
        stop = start + (int(last) + 1) * tensor.element_size()
        return cls(name, tensor, tensor.untyped_storage().data_ptr(), start, stop)


def without_aliases(parameters: Mapping[str, P]) -> dict[str, P]:
    """Return the parameters without those whose entries all lie in another returned one.

    Raises
    ------
    ValueError
        If two parameters share only some of their entries, or if entries of one parameter share memory.

    Notes
    -----
    ``torch.nn.Module.named_parameters`` already names a parameter once that several modules share.  This function
    handles different parameters with common memory, such as a weight and its transpose, or a fused matrix and its
    blocks.
    """
    aliases = {
        name
        for places in _overlapping(parameters)
        for name in ([] if len(places) == 1 and places[0].tensor.is_contiguous() else _covered(places))
    }
    return {name: p for name, p in parameters.items() if name not in aliases}


def _overlapping(parameters: Mapping[str, torch.Tensor]) -> Iterator[list[_Place]]:
    """Yield groups of places whose byte ranges overlap; each place is in one group."""
    wrapped = is_traceable_wrapper_subclass  # such as DTensor, which has no own memory
    places = [_Place.of(name, p) for name, p in parameters.items() if p.numel() and not wrapped(p)]
    group: list[_Place] = []
    for place in sorted(places, key=lambda place: (place.storage, place.start)):
        if group and (place.storage != group[0].storage or place.start >= max(other.stop for other in group)):
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _covered(places: list[_Place]) -> list[str]:
    """Return the names of places whose entries lie in larger ones."""
    if len({place.tensor.dtype for place in places}) > 1:
        first, second = places[0].name, next(p.name for p in places if p.tensor.dtype != places[0].tensor.dtype)
        raise ValueError(f"{first} and {second} must not share memory, for their dtypes differ: copy one of them")
    begin = min(place.start for place in places) // places[0].tensor.element_size()
    end = max(place.stop for place in places) // places[0].tensor.element_size()
    taken = places[0].tensor.new_zeros(end - begin, dtype=torch.bool)
    covered: list[str] = []
    kept: list[str] = []
    for place in sorted(places, key=lambda place: -place.tensor.numel()):  # stable: of equal ones the first is kept
        entries = _entries(place, torch.zeros_like(taken), begin)
        shared = int((entries & taken).sum())
        if shared and shared < place.tensor.numel():
            others = ", ".join(kept)
            raise ValueError(
                f"a parameter must share all of its entries with a larger one, or none; {place.name} shares {shared} "
                f"of {place.tensor.numel()} with {others}: copy it, or use one parameter and slices of it in forward"
            )
        taken |= entries
        (covered if shared else kept).append(place.name)
    return covered


def _entries(place: _Place, mask: torch.Tensor, begin: int) -> torch.Tensor:
    """Set the mask to True at the entries of a tensor and return it."""
    tensor = place.tensor
    repeats = [size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    if not any(repeats):
        mask.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - begin).fill_(True)
    if any(repeats) or int(mask.sum()) < tensor.numel():
        raise ValueError(
            f"entries of a parameter must not share memory; {place.name} of shape {tuple(tensor.shape)} has "
            f"strides {tensor.stride()}: make it contiguous, and expand it in forward"
        )
    return mask


Layout = list[tuple[str, str]]  # names and descriptions of tensors

WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel")


def require_unwrapped(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Refuse a model in a wrapper that exchanges gradients itself, and an optimizer of another model.

    Raises
    ------
    ValueError
        For either; the error names what to pass instead.
    """
    inner = getattr(model, "_orig_mod", model)  # torch.compile
    for kind in type(inner).__mro__:
        if kind.__name__ in WRAPPERS and kind.__module__.startswith("torch."):
            raise ValueError(
                f"the model must not be in {kind.__name__}, which exchanges or splits the model at every step; pass "
                "the module inside it, and train that"
            )
    if optimizer is None:
        return
    owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if owned.isdisjoint(id(p) for p in model.parameters()):
        raise ValueError(
            "the optimizer must be of this model; it has none of its parameters: pass the one made from "
            "model.parameters(), or None where nothing needs it"
        )


def require_averageable(model: torch.nn.Module, ranks: Sequence[int] | None = None) -> None:
    """Refuse a model that cannot be averaged over the global ``ranks``; None refuses sharded parameters.

    Raises
    ------
    TypeError
        For parameters that are not floating-point, sparse, quantized or sharded in another way than by Shard.
    ValueError
        If no parameter requires a gradient, if one has no shape yet, or if ranks have several shards of one.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise TypeError(
                f"an averaging needs dense tensors; {name} is sparse or quantized: keep it outside the "
                "model's parameters and buffers, or make it dense"
            )
        if is_sharded(tensor):
            require_one_rank_per_shard(name, tensor, ranks)
        if getattr(tensor, "_is_flat_param", False):
            raise TypeError(f"{name} is sharded by FullyShardedDataParallel, which flattens it: call fully_shard")
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} has no shape yet: run one batch through the model before it is averaged")
    for name, tensor in model.named_buffers():
        if overlaps_itself(tensor):
            raise ValueError(f"the entries of {name} share memory (unfold, as_strided): register a clone of it")
    for name, p in model.named_parameters():
        _require_memory(name, local(p))
    if not any(True for _ in model.parameters()):
        raise ValueError("there is nothing to average: the model has no parameters")
    parameters = {name: local(p) for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ValueError("there is nothing to average: no parameter of the model requires a gradient")
    for name, p in parameters.items():
        if not p.is_floating_point():
            raise TypeError(f"parameters must be floating-point to be averaged; got {name} of {p.dtype}")
    if not any(p.numel() for p in parameters.values()):
        raise ValueError("there is nothing to average: all parameters that require a gradient are empty")
    without_aliases(parameters)


def _require_memory(name: str, p: torch.Tensor) -> None:
    """Refuse a parameter that cannot be written in place."""
    if p.device.type == "meta":
        raise ValueError(f"{name} has no values, for it is on the meta device: load the weights first")
    if p.layout != torch.strided:
        raise TypeError(f"a parameter must be dense to be averaged; {name} has the layout {p.layout}: make it dense")
    if p.is_inference():
        raise ValueError(
            f"{name} was made in inference mode and cannot be written to: make the model outside torch.inference_mode()"
        )


def trained(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters that require a gradient by name, without aliases of the same memory; of shards this rank's.

    Raises
    ------
    ValueError
        For parameters that share a part of their memory, from ``shared_memory.without_aliases``.
    """
    return without_aliases({name: local(p) for name, p in model.named_parameters() if p.requires_grad})


def by_module(
    parameters: Mapping[str, torch.Tensor], modules: Sequence[str]
) -> tuple[dict[str, torch.Tensor], list[int]]:
    """Return the parameters module by module, and where the entries of each module begin and end.

    Raises
    ------
    ValueError
        For a name that no parameter has or begins with, a parameter that is not in exactly one of the modules, and a
        module whose parameters are empty.
    """
    if not modules:
        return dict(parameters), []
    owners = {n: [module for module in modules if n == module or n.startswith(f"{module}.")] for n in parameters}
    members = {module: [n for n in parameters if module in owners[n]] for module in modules}
    empty = [module for module, names in members.items() if not any(parameters[n].numel() for n in names)]
    if empty:
        raise ValueError(
            f"a fragment must have parameters that require a gradient; {empty[0]} has none: name a module of "
            "model.named_modules(), or leave it out"
        )
    for name, of in owners.items():
        if len(of) != 1:
            raise ValueError(
                f"every parameter that requires a gradient must be in one fragment; {name} is in "
                f"{' and '.join(of) or 'none'}: name modules or parameters that cover the model once"
            )
    sizes = (sum(parameters[name].numel() for name in names) for names in members.values())
    return {name: parameters[name] for names in members.values() for name in names}, [0, *accumulate(sizes)]


def layout(model: torch.nn.Module) -> Layout:
    """Return name and description of every parameter and buffer; models with equal layouts can be averaged."""
    refusals: list[tuple[str, str]] = []
    try:
        sent = trained(model).keys()
    except ValueError as refusal:  # raised on all ranks after the layouts are compared
        sent, refusals = dict[str, torch.Tensor]().keys(), [("memory", str(refusal))]
    parameters = []
    for name, p in model.named_parameters():
        aside = "" if name in sent else ", in the memory of another" if p.requires_grad else ", frozen"
        parameters.append((name, described(p) + aside))
    return [*parameters, *refusals, *((name, described(b)) for name, b in model.named_buffers())]


def described(tensor: torch.Tensor) -> str:
    """Return dtype, shape and shard as text."""
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}{in_words(tensor)}"


def digest(*parts: bytes | memoryview) -> int:
    """Return a signed 64-bit digest of some bytes."""
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        state.update(part)
    return int.from_bytes(state.digest(), "big", signed=True)


def require_same_layout(transport: Transport, models: Sequence[torch.nn.Module]) -> None:
    """Compare parameters and buffers of all ranks' models before any of them is sent.

    Raises
    ------
    ValueError
        On every rank, naming the first tensor in which two ranks differ.
    """
    layouts = _layouts_of_all(transport, [layout(model) for model in models])
    if layouts:
        raise ValueError(
            f"{difference(layouts)}; build and freeze the same model on all ranks, and average the same shards"
        )


def warn_of_replaced_models(ranks: Sequence[int]) -> None:
    """Warn that the models of some ranks differed from that of rank 0, which has replaced them."""
    if ranks:
        them = f"models of ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"model of rank {ranks[0]}"
        warnings.warn(
            f"the {them} differed from that of rank 0 and {'were' if len(ranks) > 1 else 'was'} replaced by it: set "
            "the same seed on all ranks before the model is built, or load the same checkpoint",
            stacklevel=2,
        )


def require_accepted_by_all(transport: Transport, refusal: Exception | None) -> None:
    """Raise on all ranks if one rank refuses its arguments; 8 bytes per rank are sent and not counted.

    Raises
    ------
    Exception
        The refusal of this rank.
    ValueError
        On the other ranks, naming the first refusing rank and its reason.
    """
    with transport.uncounted():
        refused = transport.all_gather_int([int(refusal is not None)])
    if any(refused):
        reasons = texts_of_all(transport, [str(refusal)])
        if refusal is not None:
            raise refusal
        require_accepted([reason if refuses else None for reason, refuses in zip(reasons, refused, strict=True)])


def _layouts_of_all(transport: Transport, layouts: Sequence[Layout]) -> list[Layout]:
    """Return the layouts of all ranks in rank order; an empty list if they are equal."""
    texts = [json.dumps(rows) for rows in layouts]
    if len(set(transport.all_gather_int([digest(text.encode()) for text in texts]))) == 1:
        return []
    return [[(name, words) for name, words in json.loads(text)] for text in texts_of_all(transport, texts)]


def difference(layouts: Sequence[Layout]) -> str:
    """Describe the first tensor in which two ranks' layouts differ; empty if they agree."""
    first = layouts[0]
    for rank, rows in enumerate(layouts):
        of_rank, of_first = dict(rows), dict(first)
        for i, (ours, theirs) in enumerate(zip_longest(first, rows)):
            if ours == theirs:
                continue
            for name in (row[0] for row in (ours, theirs) if row):
                ours_is, theirs_is = of_first.get(name, "missing"), of_rank.get(name, "missing")
                if ours_is != theirs_is:
                    where = f"{ours_is} on rank 0 and {theirs_is} on rank {rank}"
                    return f"all ranks must hold the same tensors; {name} is {where}"
            return (
                f"all ranks must hold their tensors in one order; number {i} is {ours[0]} on rank 0 and {theirs[0]} on "
                f"rank {rank}"
            )
    return ""


def texts_of_all(transport: Transport, texts: Sequence[str]) -> list[str]:
    """Return a text of every rank in rank order; the bytes are not counted."""
    data = [text.encode() for text in texts]
    lengths = transport.all_gather_int([len(part) for part in data])
    padded = [torch.frombuffer(bytearray(part.ljust(max(lengths), b" ")), dtype=torch.uint8) for part in data]
    everyone = range(transport.size)
    with transport.uncounted():
        parts = transport.receive(padded, lambda rank: [r for r in everyone if r != rank])[0]
    parts[transport.ranks[0]] = padded[0]
    return [bytes(parts[rank].tolist()).decode().rstrip() for rank in everyone]
