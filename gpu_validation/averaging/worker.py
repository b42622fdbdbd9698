"""One worker: its model as a vector, its buffers, the start of its round, and its state from round to round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import torch

from operators.fingerprint import require_like

from ..processes.learning_rates import RoundRates, learning_rate
from ..processes.reduction import precision
from ..processes.tensors import as_bytes, distinct, flat
from .structure import (
    by_module,
    digest,
    is_sharded,
    local,
    require_averageable,
    require_unwrapped,
    reshard,
    trained,
    without_aliases,
)

Buffers = dict[str, torch.Tensor]


def averaged_buffers(model: torch.nn.Module) -> Buffers:
    """Return the buffers that averagings make equal, by name, as views that can be written entry by entry.

    Buffers with ``persistent=False``, boolean buffers and buffers in the memory of a parameter are left out.  The view
    of an expanded buffer has every entry once.  The view of a complex buffer has real and imaginary parts.
    """
    taken = [_extent(p) for p in map(local, model.parameters()) if p.numel()]
    buffers: Buffers = {}
    ids: set[int] = set()
    for path, module in model.named_modules():
        for name, buffer in module._buffers.items():
            if buffer is None or name in module._non_persistent_buffers_set or id(buffer) in ids:
                continue
            ids.add(id(buffer))
            if buffer.dtype == torch.bool or (buffer.numel() and _overlaps(_extent(buffer), taken)):
                continue
            view = distinct(buffer)
            buffers[f"{path}.{name}" if path else name] = torch.view_as_real(view) if view.is_complex() else view
    return dict(sorted(buffers.items()))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of a tensor's memory and the first byte behind it."""
    last = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _overlaps(extent: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(extent[0] < stop and start < extent[1] for start, stop in others)


def contents(buffers: Sequence[torch.Tensor]) -> int:
    """Return a digest of the bytes of some buffers, which have the same order on all ranks."""
    if not buffers:
        return 0
    if all(buffer.device.type == "cpu" for buffer in buffers):
        return digest(*(as_bytes(buffer).numpy().data for buffer in buffers))
    return digest(torch.cat([as_bytes(buffer).to(buffers[0].device) for buffer in buffers]).cpu().numpy().data)


def is_wide(buffer: torch.Tensor) -> bool:
    """Return whether a float64 mean of the entries may lose digits or overflow: True for integers and float64."""
    return not buffer.is_floating_point() or buffer.dtype == torch.float64


def not_finite(buffers: Sequence[torch.Tensor]) -> bool:
    """Return whether any entry of a floating-point buffer is not finite."""
    return any(b.is_floating_point() and not torch.isfinite(readable(b)).all() for b in buffers)


def exact_mean(parts: Mapping[int, torch.Tensor], weights: Mapping[int, float]) -> torch.Tensor:
    """Return the weighted mean of one buffer over ranks, in the same dtype.

    Entries that are bitwise equal on all ranks are not changed.  Floating-point entries are summed in float64 in rank
    order, integers exactly.  The result is rounded once, to nearest even.  The weights are >= 0 with sum 1.
    """
    ranks = sorted(parts)
    plain = len({weights[r] for r in ranks}) == 1
    first = parts[ranks[0]]
    if not first.is_floating_point():
        arrays = [_integers(parts[r]) for r in ranks]
        mean = integer_mean(arrays) if plain else _weighted_integers(arrays, [weights[r] for r in ranks])
        exact = torch.from_numpy(mean.view(np.int64)).view(first.shape)
        return exact.view(first.dtype) if first.dtype == torch.uint64 else exact.to(first.dtype)
    values = np.stack([readable(parts[r]).double().cpu().numpy().reshape(-1) for r in ranks])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = _sum(values) / len(ranks) if plain else _sum(values * np.array([[weights[r]] for r in ranks]))
        overflown = ~np.isfinite(mean) & np.isfinite(values).all(0)
        mean[overflown] = _sum(values[:, overflown] / len(ranks))
    same = _equal_bits([parts[r] for r in ranks])
    result = torch.from_numpy(mean).view(first.shape).to(first.dtype)
    as_bytes(result).view(-1, first.element_size())[same] = as_bytes(first).cpu().view(-1, first.element_size())[same]
    return result


def offenders(parts: Mapping[int, torch.Tensor]) -> list[int]:
    """Return the ranks with a non-finite entry that is not equal on all ranks."""
    ranks = sorted(parts)
    if not parts[ranks[0]].is_floating_point():
        return []
    differ = ~_equal_bits([parts[r] for r in ranks])
    return [r for r in ranks if bool((~torch.isfinite(readable(parts[r]).cpu()).reshape(-1) & differ).any())]


def integer_mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of integer arrays of one shape, all int64 or all uint64.

    It is rounded once, to nearest even; no intermediate result is rounded.
    """
    m = arrays[0].dtype.type(len(arrays))
    quotient, remainder = np.zeros_like(arrays[0]), np.zeros(arrays[0].shape, np.int64)
    for array in arrays:
        quotient += array // m  # the sum may wrap around; the mean fits
        remainder += (array % m).astype(np.int64)
    quotient += (remainder // len(arrays)).astype(quotient.dtype)
    twice = 2 * (remainder % len(arrays))
    up = (twice > len(arrays)) | ((twice == len(arrays)) & (quotient % 2 == 1))
    return quotient + up.astype(quotient.dtype)


def _weighted_integers(arrays: Sequence[np.ndarray], weights: Sequence[float]) -> np.ndarray:
    exact = [Fraction(weight) for weight in weights]
    columns = zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)
    total = sum(exact)
    means = [round(sum(w * x for w, x in zip(exact, column, strict=True)) / total) for column in columns]
    return np.array(means, arrays[0].dtype).reshape(arrays[0].shape)


def _integers(buffer: torch.Tensor) -> np.ndarray:
    """Return the entries as a vector of int64, or of uint64 for that dtype."""
    if buffer.dtype == torch.uint64:
        return buffer.detach().cpu().contiguous().view(torch.int64).reshape(-1).numpy().view(np.uint64)
    return buffer.detach().cpu().to(torch.int64).reshape(-1).numpy()


def readable(buffer: torch.Tensor) -> torch.Tensor:
    """Return floating-point entries in a dtype that supports arithmetic."""
    return buffer.float() if buffer.element_size() == 1 else buffer


def _sum(values: np.ndarray) -> np.ndarray:
    """Return the sum over the first axis, in order."""
    total = values[0].copy()
    for row in values[1:]:
        total += row
    return total


def _equal_bits(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a mask of the entries that are bitwise equal in all parts."""
    first, *rest = (as_bytes(part).cpu().view(-1, part.element_size()) for part in parts)
    same = torch.ones(len(first), dtype=torch.bool)
    for part in rest:
        same &= (part == first).all(1)
    return same


def refresh(workers: Sequence[Worker]) -> bool:
    """Adopt replaced tensors in every model; return whether names and kinds of all parameters are unchanged."""
    return all([worker.refresh() for worker in workers])  # noqa: C419  all refresh, also after one that has changed


def deltas(workers: Sequence[Worker]) -> list[torch.Tensor]:
    """Return the movement of every worker in this round."""
    return [worker.delta() for worker in workers]


def begin(workers: Sequence[Worker], anchor: torch.Tensor) -> None:
    """Start every worker's next round from the model ``anchor``, shape (d,)."""
    for worker in workers:
        worker.begin(anchor)


class FlatParameters:
    """Copies parameters into a private vector and back.

    The entries of a parameter are in row-major order, whatever its strides.  The vector has the promoted dtype of all
    parameters and the device of the first.  ``parameters`` is read at every call, so that an entry may be replaced by
    one of the same shape and dtype.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.parameters = parameters
        self.dtype = reduce(torch.promote_types, (p.dtype for p in parameters))
        self.device = parameters[0].device
        self._sizes = [p.numel() for p in parameters]
        self.d = sum(self._sizes)
        self._memory = torch.empty(0, dtype=self.dtype, device=self.device)
        self._views: list[torch.Tensor] = []

    def vector(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return all parameters and further values behind them, in memory that the next call overwrites."""
        n = self.d + sum(values.numel() for values in behind)
        if n > self._memory.numel():  # allocate once: allocation costs more than the copy
            self._memory = torch.empty(n, dtype=self.dtype, device=self.device)
            self._views = self._views_of(self._memory)
        with torch.no_grad():
            torch._foreach_copy_(self._views, list(self.parameters))
        offset = self.d
        for values in behind:
            self._memory[offset : offset + values.numel()] = values
            offset += values.numel()
        return self._memory[:n]

    def load(self, vector: torch.Tensor) -> bool:
        """Copy a vector, shape (d,), into the parameters; return whether the next ``vector`` overwrites it."""
        overwritten = self._memory.numel() > 0 and vector.data_ptr() == self._memory.data_ptr()
        with torch.no_grad():
            torch._foreach_copy_(list(self.parameters), self._views if overwritten else self._views_of(vector))
        return overwritten

    def part(self, start: int, stop: int) -> torch.Tensor:
        """Return the entries from ``start`` to ``stop`` as a new vector."""
        values = torch.empty(stop - start, dtype=self.dtype, device=self.device)
        for p, inside, place in self._pieces(start, stop):
            values[place] = p.detach().reshape(-1)[inside]
        return values

    def load_part(self, start: int, values: torch.Tensor) -> None:
        """Copy values into the parameters, beginning at entry ``start``."""
        for p, inside, place in self._pieces(start, start + values.numel()):
            entries = p.detach().reshape(-1)  # a copy where the strides allow no view
            entries[inside] = values[place].to(entries)
            if not p.is_contiguous():
                p.detach().copy_(entries.view_as(p))

    def _views_of(self, vector: torch.Tensor) -> list[torch.Tensor]:
        parts = vector[: self.d].split(self._sizes)
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[torch.Tensor, slice, slice]]:
        """Yield the parameters with entries in [start, stop), their slices, and their places relative to start."""
        first = 0
        for p, size in zip(self.parameters, self._sizes, strict=True):
            low, high = max(start, first), min(stop, first + size)
            if low < high:
                yield p, slice(low - first, high - first), slice(low - start, high - start)
            first += size


class Worker:
    """A model, its optimizer and its state from round to round.

    Attributes
    ----------
    anchor
        Model at which the current round began, shape (d,), in float32 (float64 for float64 models).
    start
        The anchor as the model stores it, rounded to the parameters' dtype.  The anchor keeps what the rounding
        dropped.
    parameters
        Parameters that require a gradient, in the order of ``modules`` and of the model; one of several with the same
        memory.
    ends
        Where the entries of each of ``modules`` begin and end in the vector of all.
    names
        Names of ``parameters``.
    named_buffers
        Buffers that averagings make equal, by name; see ``buffers.averaged_buffers``.
    travelled
        Kinds and numbers of entries of buffers and optimizer states that the last averaging sent.

    Raises
    ------
    ValueError
        For models that ``structure.require_averageable`` refuses.
    TypeError
        For models that ``structure.require_averageable`` refuses.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None,
        modules: Sequence[str] = (),
        ranks: Sequence[int] | None = None,
    ) -> None:
        require_unwrapped(model, optimizer)
        self.model, self.optimizer, self._modules = model, optimizer, modules
        reshard(model)
        self._sharded = any(map(is_sharded, model.parameters()))
        self._ranks = ranks if self._sharded else None  # a model sharded later is refused
        self.names: list[str] = []
        self.parameters: list[torch.Tensor] = []
        self.losses: list[float | torch.Tensor] = []
        self.rates: RoundRates | None = None
        self.sender: Any
        self.mixing_state: Mapping[str, torch.Tensor] = {}
        self.keeps_anchor = True
        self.travelled: list[tuple[str, int]] = []
        self.begins = 0  # how often averagings have written the parameters
        self.register()

    def register(self) -> None:
        """Register the model's current parameters for averaging, and begin a round at their values."""
        self._reshard()
        self.require_averageable()
        parameters, self.ends = by_module(trained(self.model), self._modules)
        self._kinds, self.names, self._contents = _kinds(parameters), list(parameters), _contents(self.model)
        self.parameters[:] = parameters.values()  # in place: probes share this list
        self.named_buffers = averaged_buffers(self.model)
        self._has_buffers = bool(self.named_buffers)
        self._flat = FlatParameters(self.parameters)
        vector = self.vector()
        self.dtype, self.device = vector.dtype, vector.device
        self.full_precision = all(p.dtype == precision(vector.dtype) for p in self.parameters)
        self.anchor = self.start = vector.to(precision(vector.dtype))

    def require_averageable(self) -> None:
        """Refuse a model that has become one that cannot be averaged."""
        require_averageable(self.model, self._ranks)

    def _reshard(self) -> None:
        if self._sharded:
            reshard(self.model)

    def refresh(self) -> bool:
        """Adopt replaced parameters and buffers.

        Return False, and adopt no parameters, if names, kinds or the set of frozen parameters have changed.
        """
        self._reshard()
        contents = _contents(self.model)
        if contents == self._contents:
            return True
        self.named_buffers = averaged_buffers(self.model)
        first_buffer = bool(self.named_buffers) and not self._has_buffers  # the other ranks do not expect any
        try:
            parameters, _ = by_module(trained(self.model), self._modules)
        except ValueError:  # ``require_averageable`` raises it once all ranks know
            parameters = {}
        if _kinds(parameters) != self._kinds or first_buffer:
            self._contents = []
            return False
        self.parameters[:] = parameters.values()
        self._contents = contents
        return True

    @property
    def buffers(self) -> list[torch.Tensor]:
        """The buffers that averagings make equal."""
        return list(self.named_buffers.values())

    def once_averaged(self) -> list[torch.Tensor]:
        """Return every parameter that is averaged now or was so far; ranks may differ in any of them."""
        named = [(name, local(p), p.requires_grad) for name, p in self.model.named_parameters()]
        return [*without_aliases({name: p for name, p, trains in named if trains or name in self.names}).values()]

    def vector(self) -> torch.Tensor:
        """Return all parameters as one new vector in their common dtype."""
        return flat(self.parameters)

    def outgoing(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return all parameters and further values behind them, in memory that the next call overwrites."""
        return self._flat.vector(*behind)

    def nothing(self, *behind: torch.Tensor) -> torch.Tensor:
        """Return zeros in place of the parameters, and further values behind them."""
        return torch.cat([torch.zeros(self.anchor.numel(), dtype=self.dtype, device=self.device), *behind])

    def delta(self) -> torch.Tensor:
        """Return the movement of this round in float32, shape (d,); the encoder checks that it is finite."""
        return self.movement().to(torch.float32)

    def movement(self) -> torch.Tensor:
        """Return the model minus its value at the start of this round, shape (d,)."""
        return self.outgoing().to(self.start.dtype) - self.start

    def name_of(self, entry: int) -> str:
        """Return index and parameter name of an entry of the vector."""
        for name, p in zip(self.names, self.parameters, strict=True):
            if entry < p.numel():
                return f"entry {entry} of {name}"
            entry -= p.numel()
        return f"entry {entry} behind the parameters"

    def begin(self, anchor: torch.Tensor) -> None:
        """Start the next round from ``anchor``, shape (d,).

        The vector is kept and never changed if the anchor is needed.
        """
        self.begins += 1
        self._reshard()
        overwritten = self._flat.load(anchor)
        if self.keeps_anchor:
            self.anchor = anchor.clone() if overwritten else anchor
            self.start = self.anchor if self.full_precision else self.vector().to(anchor.dtype)

    def part(self, start: int, stop: int) -> torch.Tensor:
        """Return a copy of entries start to stop of the parameters' vector."""
        return self._flat.part(start, stop)

    def load_part(self, start: int, values: torch.Tensor) -> None:
        """Write ``values`` into the parameters' vector from entry ``start``."""
        self._reshard()
        self._flat.load_part(start, values)

    def unrounded(self, mixed: torch.Tensor) -> torch.Tensor:
        """Return the next anchor: the mixed models, shape (d,), plus the rounding error of this rank's start."""
        return mixed if self.full_precision else mixed + (self.anchor - self.start)

    def record_loss(self, loss: torch.Tensor | float) -> None:
        """Store the loss of one step without synchronising with its device."""
        if isinstance(loss, torch.Tensor):
            loss = loss.item() if loss.device.type == "cpu" else loss.detach()
        self.losses.append(loss)

    def drop_states_not_finite(self) -> None:
        """Delete the optimizer's state of every parameter whose state is not finite."""
        state = self.optimizer.state if self.optimizer is not None else {}
        for parameter, entries in list(state.items()):
            tensors = [local(v) for v in entries.values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
            if not all(torch.isfinite(tensor).all() for tensor in tensors):
                del state[parameter]

    def round_losses(self) -> list[float]:
        """Return the losses of this round so far."""
        if not any(isinstance(loss, torch.Tensor) for loss in self.losses):
            return [float(loss) for loss in self.losses]
        values = [torch.as_tensor(loss, dtype=torch.float64).reshape(()) for loss in self.losses]
        return torch.stack(values).tolist()

    def eta(self) -> float:
        """Return the learning rate of the optimizer's groups that ``learning_rate`` returns."""
        assert self.optimizer is not None  # checked at the start
        return learning_rate(self.optimizer.param_groups)

    def watch_rates(self) -> None:
        """Read the learning rate after every local step from now on."""
        assert self.optimizer is not None  # checked at the start
        self.rates = RoundRates(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs besides model and optimizer, as tensors and plain values."""
        return {
            "d": self.anchor.numel(),
            "anchor": self.anchor if self.keeps_anchor else None,
            "start": self.start if self.keeps_anchor else None,
            "sender": self.sender.state,
            "mixing": dict(self.mixing_state),
            "losses": [float(loss) for loss in self.losses],
            "rates": None if self.rates is None else self.rates.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``.

        Raises
        ------
        ValueError
            If the state belongs to a model of another size or to another operator.
        """
        if state["d"] != self.anchor.numel():
            raise ValueError(
                f"the state is for d = {state['d']} parameters that require a gradient; this model has "
                f"d = {self.anchor.numel()}: build and freeze it as it was before it is averaged"
            )
        require_like(state["sender"], self.sender.state, "sender")
        if self.keeps_anchor:
            require_like(state["anchor"], self.anchor, "anchor")
            require_like(state["start"], self.start, "start")
            self.anchor, self.start = state["anchor"].to(self.anchor), state["start"].to(self.anchor)
        self.sender.state, self.mixing_state = state["sender"], dict(state["mixing"])
        self.losses = list(state["losses"])
        if self.rates is not None and state.get("rates") is not None:
            self.rates.load_state_dict(state["rates"])


def _kinds(parameters: Mapping[str, torch.Tensor]) -> list[Any]:
    """Return what a vector depends on: names, types, shapes, dtypes and devices of the parameters."""
    return [(name, type(p), p.shape, p.dtype, p.device) for name, p in parameters.items()]


def _address(p: torch.Tensor) -> int:
    try:
        return p.data_ptr() or int(local(p).data_ptr())  # a DTensor has the address of this rank's shard
    except RuntimeError:  # some wrappers have no address
        return 0


def _contents(model: torch.nn.Module) -> list[Any]:
    """Return names, identities and layouts of all parameters and buffers, to detect any replacement quickly."""
    contents: list[Any] = []
    for module in model.modules():
        contents += module._modules
        for name, p in module._parameters.items():
            if p is not None:
                contents += name, id(p), p.requires_grad, p.shape, p.dtype, p.device, _address(p)
        for name, b in module._buffers.items():
            if b is not None:
                kept = name in module._non_persistent_buffers_set
                contents += name, id(b), b.dtype, b.shape, b.stride(), b.data_ptr(), kept
    return contents
