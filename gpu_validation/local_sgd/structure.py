"""Checks whether a model can be averaged, and whether all ranks have the same model."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate, zip_longest

import torch

from operators.fingerprint import require_accepted

from ..distributed.tensors import overlaps_itself
from ..distributed.transport import Transport
from .sharded import in_words, is_sharded, local, require_one_rank_per_shard
from .shared_memory import without_aliases

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
        For a parameter that is not in exactly one of the modules, and for a module without parameters.
    """
    if not modules:
        return dict(parameters), []
    members: dict[str, list[str]] = {module: [] for module in modules}
    for name in parameters:
        owners = [module for module in modules if name == module or name.startswith(f"{module}.")]
        if len(owners) != 1:
            raise ValueError(
                f"every parameter that requires a gradient must be in one fragment; {name} is in "
                f"{' and '.join(owners) or 'none'}: name modules or parameters that cover the model once"
            )
        members[owners[0]].append(name)
    empty = [module for module, names in members.items() if not any(parameters[name].numel() for name in names)]
    if empty:
        raise ValueError(
            f"a fragment must have parameters that require a gradient; {empty[0]} has none: name a module of "
            "model.named_modules(), or leave it out"
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
