"""Averages of what models have besides parameters: buffers, and optimizer states where requested.

All ranks first exchange a row of numbers: digests of the layout and of the contents of their tensors.  Buffers that
have always been equal share one digest and are not sent while it agrees.  Only buffers that have differed are sent, and
only their names are stored.  All results are computed before anything is written.

States of optimizers are averaged by parameter name for ``optimizer_state="average"``.  Tensors of at least one
dimension are moments: a rank without one counts as zero, and gets the mean with the others.  Floating-point scalars
become the mean over the ranks that have them.  Counters (``step``, integers) become the largest.  Constants and integer
tensors must be equal on all ranks.  Other entries cannot be averaged.  States of parameters of other models are not
changed.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..processes.tensors import as_bytes, assign, flat
from ..processes.transport import Transport
from .mixing import Gossip, Mixing
from .structure import described, difference, digest, texts_of_all
from .worker import Buffers, Worker, averaged_buffers, contents, exact_mean, is_wide, not_finite, offenders, readable

MOMENT, SCALAR, COUNTER, CONSTANT, NO_MEAN = "moment", "scalar", "counter", "constant", "no mean"
Place = tuple[str, str]  # name of the parameter, and of the entry
OPTIMIZER: Place = ("", "optimizer")


@dataclass(frozen=True)
class Entry:
    """Description of one entry of an optimizer state.

    Parameters
    ----------
    kind : str
        "moment", "scalar", "counter", "constant" or "no mean".
    words : str
        Type, shape and dtype; for constants also the value.
    shape : tuple of int
        Shape of a tensor.
    dtype : str
        Dtype of a tensor, or "int" or "float".
    """

    kind: str
    words: str
    shape: tuple[int, ...] = ()
    dtype: str = ""


def entry_of(key: str, value: Any) -> Entry:
    """Return the description of the state entry ``key``."""
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided and not value.is_quantized:
        about = str(value.dtype).removeprefix("torch.")
        if value.is_floating_point() and value.ndim and not (key == "step" and value.numel() == 1):
            return Entry(MOMENT, described(value), tuple(value.shape), about)
        if value.is_complex():
            return Entry(MOMENT, described(value), tuple(value.shape), about)
        if value.numel() == 1 and value.dtype != torch.bool:
            counts = key == "step" or not value.is_floating_point()
            return Entry(COUNTER if counts else SCALAR, described(value), tuple(value.shape), about)
        return Entry(CONSTANT, f"{described(value)} with digest {digest(as_bytes(value).cpu().numpy().data):x}")
    if isinstance(value, bool | str):
        return Entry(CONSTANT, repr(value))
    if isinstance(value, int):
        return Entry(COUNTER if -(2**63) <= value < 2**63 else NO_MEAN, "int", dtype="int")
    if isinstance(value, float):
        return Entry(COUNTER if key == "step" else SCALAR, "float", dtype="float")
    return Entry(NO_MEAN, f"a {type(value).__name__}")


def entries(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[Place, tuple[Entry, Any]]:
    """Return the optimizer's entries and values by place, sorted; None counts as missing."""
    state: dict[Place, tuple[Entry, Any]] = {OPTIMIZER: (Entry(CONSTANT, type(optimizer).__name__), None)}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                state[name, str(key)] = entry_of(str(key), value), value
    return dict(sorted(state.items()))


def union(ranks: Sequence[Mapping[Place, Entry]]) -> dict[Place, Entry]:
    """Return the entries that any rank has; ``ranks`` are in rank order.

    Raises
    ------
    ValueError
        For an entry that differs between ranks, or that cannot be averaged.
    """
    common: dict[Place, Entry] = {}
    owner: dict[Place, int] = {}
    for rank, state in enumerate(ranks):
        for place, entry in state.items():
            if common.setdefault(place, entry) != entry:
                raise ValueError(
                    f'optimizer_state="average" needs equal states; {_named(place)} is {common[place].words} on rank '
                    f"{owner[place]} and {entry.words} on rank {rank}: use one optimizer, or keep or reset its state"
                )
            owner.setdefault(place, rank)
            if entry.kind == NO_MEAN:
                raise ValueError(
                    f'optimizer_state="average" cannot average {_named(place)}, which is {entry.words}: use '
                    'optimizer_state="keep" or "reset"'
                )
    return dict(sorted(common.items()))


def _named(place: Place) -> str:
    return place[1] if place == OPTIMIZER else f"{place[1]} of {place[0]}"


def word(entry: Entry, value: Any) -> int:
    """Return a counter or a scalar as a 64-bit integer."""
    number = value.item() if isinstance(value, torch.Tensor) else value
    return struct.unpack("<q", struct.pack("<d", number))[0] if _is_float(entry) else int(number)


def settled(entry: Entry, words: Sequence[int]) -> int | float:
    """Return the largest counter or the mean of scalars, from the integers of ``word``."""
    numbers = [struct.unpack("<d", struct.pack("<q", w))[0] for w in words] if _is_float(entry) else list(words)
    if entry.kind == COUNTER:
        return max(numbers)
    return numbers[0] if len(set(numbers)) == 1 else sum(number / len(numbers) for number in numbers)


def _is_float(entry: Entry) -> bool:
    return entry.dtype.startswith(("float", "bfloat"))


def moment_of(entry: Entry, value: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """Return a moment as a vector for averaging; zeros where a rank has none."""
    if value is None:
        value = torch.zeros(entry.shape, dtype=getattr(torch, entry.dtype), device=device)
    value = value.detach()
    value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return (value.float() if value.element_size() == 1 else value).reshape(-1)


FINITE = -1
LAYOUT, QUIET, LIVELY, SCALARS, BUFFERS_FINITE, MOMENTS_FINITE, MODEL_FINITE = range(7)
Found = dict[Place, tuple[Entry, Any]]


@dataclass
class Snapshot:
    """Buffers and optimizer state of one rank: those that it sends, or new values; what is missing does not change.

    Parameters
    ----------
    buffers : dict of str to tensor
        Buffers by name.
    states : dict
        Entries and values by place; empty unless states are averaged.
    """

    buffers: Buffers
    states: Found = field(default_factory=dict)


class BuffersAndStates:
    """Averages buffers and optimizer states of the ranks hosted here."""

    def __init__(self, workers: Sequence[Worker], transport: Transport, averages_states: bool) -> None:
        self._workers, self._transport, self._averages_states = workers, transport, averages_states
        self._lively: set[str] = set()  # buffers that have ever differed between ranks
        self._incomplete: set[str] = set()  # parameters whose states hold constants, which have no mean
        self.needed = averages_states or bool(workers[0].named_buffers)  # the same on all ranks

    def snapshots(self, *, copied: bool = False, states: bool = True) -> list[Snapshot]:
        """Return the snapshots of the workers hosted here.

        ``copied`` clones the buffers.  ``states`` includes optimizer states where they are averaged.
        """
        snapshots = []
        for worker in self._workers:
            if copied:  # replaced buffers are not detected between two averagings
                worker.named_buffers = averaged_buffers(worker.model)
            buffers = {name: b.clone() if copied else b for name, b in worker.named_buffers.items()}
            optimizer = worker.optimizer if states and self._averages_states else None
            snapshots.append(Snapshot(buffers, {} if optimizer is None else entries(worker.model, optimizer)))
        return snapshots

    def means(
        self,
        snapshots: Sequence[Snapshot],
        mixing: Mixing,
        round_index: int,
        *,
        models_finite: Sequence[int] | None = None,
        only_finite: bool = False,
    ) -> list[Snapshot]:
        """Return the new buffers and states of the ranks hosted here, without writing them.

        ``models_finite`` has the first non-finite entry of each model here, or -1.  ``only_finite`` averages buffers
        over the ranks where they are finite instead of raising.

        Raises
        ------
        ValueError
            On every rank, for tensors that differ in shape or dtype and for non-finite ones; the error names the
            tensor.
        """
        for worker in self._workers:
            worker.travelled = []
        if not self.needed and models_finite is None:
            return [Snapshot({}) for _ in snapshots]
        looked_at = models_finite or [FINITE] * len(snapshots)
        rows = self._numbers([self._row(s, finite) for s, finite in zip(snapshots, looked_at, strict=True)])
        members = mixing.members(round_index, self._transport.size)
        common, holders = self._agreed_entries(snapshots, rows)
        self._incomplete = {name for (name, _), entry in common.items() if entry.kind == CONSTANT}
        self._require_finite(rows, members, common, holders)
        buffers = self._mean_buffers(snapshots, rows, mixing, round_index, only_finite)
        states = self._mean_states(snapshots, rows, mixing, round_index, common, holders)
        return [Snapshot(*of_worker) for of_worker in zip(buffers, states, strict=True)]

    def load(self, means: Sequence[Snapshot]) -> None:
        """Write the result of ``means`` to buffers and optimizers."""
        for worker, mean in zip(self._workers, means, strict=True):
            for name, values in mean.buffers.items():
                assign(worker.named_buffers[name], values)
            if mean.states and worker.optimizer is not None:
                _load_states(worker, worker.optimizer, mean.states, self._incomplete)

    # -- rows of all ranks -----------------------------------------------------------------------------------
    def _row(self, snapshot: Snapshot, model_finite: int) -> list[int]:
        quiet = [b for name, b in snapshot.buffers.items() if name not in self._lively]
        lively = [b for name, b in snapshot.buffers.items() if name in self._lively]
        scalars = {place: pair for place, pair in snapshot.states.items() if pair[0].kind in (COUNTER, SCALAR)}
        moments = [value for entry, value in snapshot.states.values() if entry.kind == MOMENT]
        bad = (i for i, moment in enumerate(moments) if not torch.isfinite(readable(moment)).all())
        return [
            digest(_text(snapshot).encode()),
            contents(quiet),
            contents(lively),
            digest(repr([word(*pair) for pair in scalars.values()]).encode()),
            0 if not_finite(lively) else FINITE,
            next(bad, FINITE),
            model_finite,
        ]

    def _numbers(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        for worker in self._workers:
            worker.travelled.append(("numbers", len(rows[0])))
        return self._transport.all_gather_ints(rows)

    def _agreed_entries(
        self, snapshots: Sequence[Snapshot], rows: Sequence[Sequence[int]]
    ) -> tuple[dict[Place, Entry], list[set[Place]]]:
        """Return the optimizer-state entries that any rank has, and the set of every rank."""
        entries_here = {place: entry for place, (entry, _) in snapshots[0].states.items()}
        if len({row[LAYOUT] for row in rows}) == 1:
            return union([entries_here]), [set(entries_here)] * len(rows)
        texts = [json.loads(text) for text in texts_of_all(self._transport, [_text(s) for s in snapshots])]
        unlike = difference([[(name, words) for name, words in buffers] for buffers, _ in texts])
        if unlike:
            raise ValueError(f"{unlike}; give buffers one name, shape and dtype on all ranks, or use persistent=False")
        states = [
            {
                (parameter, key): Entry(kind, words, tuple(shape), dtype)
                for parameter, key, kind, words, shape, dtype in rows_of_rank
            }
            for _, rows_of_rank in texts
        ]
        return union(states), [set(state) for state in states]

    @staticmethod
    def _require_finite(
        rows: Sequence[Sequence[int]],
        members: Sequence[int],
        common: Mapping[Place, Entry],
        holders: Sequence[set[Place]],
    ) -> None:
        for rank in members:
            if rows[rank][MODEL_FINITE] != FINITE:
                raise NotFiniteModel(rank, rows[rank][MODEL_FINITE])
        for rank in members:
            if rows[rank][MOMENTS_FINITE] != FINITE:
                moments = [place for place in sorted(holders[rank]) if common[place].kind == MOMENT]
                name, key = moments[rows[rank][MOMENTS_FINITE]]
                raise ValueError(
                    f"the optimizer state {key} of {name} on rank {rank} is not finite: lower the learning rate, or "
                    "clip the gradients; recover() drops it and continues"
                )

    # -- buffers ---------------------------------------------------------------------------------------------
    def _mean_buffers(
        self,
        snapshots: Sequence[Snapshot],
        rows: Sequence[Sequence[int]],
        mixing: Mixing,
        round_index: int,
        only_finite: bool,
    ) -> list[Buffers]:
        quiet = [name for name in snapshots[0].buffers if name not in self._lively]
        finite = all(row[BUFFERS_FINITE] == FINITE for row in rows)
        travels = any(len({row[kind] for row in rows}) > 1 for kind in (LIVELY, QUIET))
        names = [name for name in snapshots[0].buffers if name in self._lively]
        if len({row[QUIET] for row in rows}) > 1:
            of_each = [
                [*(contents([s.buffers[n]]) for n in quiet), not_finite(list(s.buffers.values()))] for s in snapshots
            ]
            digests_of_all = self._numbers(of_each)
            differing = {
                n for n, digests in zip(quiet, zip(*digests_of_all, strict=True), strict=False) if len(set(digests)) > 1
            }
            finite = finite and not any(row[-1] for row in digests_of_all)
            self._lively |= differing
            names = [name for name in snapshots[0].buffers if name in self._lively]
        if not travels:
            return [{} for _ in snapshots]
        exactly = finite and not only_finite
        narrow = [name for name in names if exactly and not is_wide(snapshots[0].buffers[name])]
        wide = [name for name in names if name not in narrow]
        means = self._exact_means(snapshots, wide, mixing, round_index, only_finite)
        if narrow:
            vectors = [flat([readable(s.buffers[name]) for name in narrow], torch.float32) for s in snapshots]
            self._record_traffic("floats", vectors[0].numel())
            for found_here, s, vector in zip(
                means, snapshots, mixing.mix(self._transport, vectors, round_index), strict=True
            ):
                parts = vector.split([s.buffers[name].numel() for name in narrow])
                found_here |= {n: p.view(s.buffers[n].shape) for n, p in zip(narrow, parts, strict=True)}
        return means

    def _exact_means(
        self, snapshots: Sequence[Snapshot], names: Sequence[str], mixing: Mixing, round_index: int, only_finite: bool
    ) -> list[Buffers]:
        """Return means of integer, float64 and non-finite buffers, which all ranks send to all others."""
        if not any(snapshots[0].buffers[name].numel() for name in names):
            return [{} for _ in snapshots]
        owns = [torch.cat([as_bytes(s.buffers[name]).cpu() for name in names]) for s in snapshots]
        self._record_traffic("bytes", owns[0].numel())
        everyone = range(self._transport.size)
        received = self._transport.receive(owns, lambda rank: [r for r in everyone if r != rank])
        results: list[Buffers] = []
        for rank, vector, parts in zip(self._transport.ranks, owns, received, strict=True):
            of_ranks, start = {**parts, rank: vector}, 0
            result: Buffers = {}
            for name in names:
                like = snapshots[0].buffers[name]
                place = slice(start, start + like.nbytes)
                start += like.nbytes
                values = {r: _from_bytes(of_ranks[r][place], like) for r in everyone}
                result[name] = self._exact_mean(name, values, mixing, round_index, rank, only_finite)
            results.append(result)
        return results

    def _exact_mean(
        self,
        name: str,
        values: Mapping[int, torch.Tensor],
        mixing: Mixing,
        round_index: int,
        rank: int,
        only_finite: bool,
    ) -> torch.Tensor:
        members = list(mixing.members(round_index, self._transport.size))
        bad = [r for r in offenders(values) if r in members]
        if bad and not only_finite:
            raise ValueError(
                f"the buffer {name} of rank {bad[0]} is not finite: look for an overflow in the forward pass; "
                "recover() continues with the mean of the other ranks"
            )
        members = [r for r in members if r not in bad] or members
        if isinstance(mixing, Gossip) and not bad:
            weights = {r: w for r, w in enumerate(mixing.weights[rank]) if w}
        else:
            weights = {r: 1 / len(members) for r in members}
        return exact_mean({r: values[r] for r in weights}, weights)

    def _record_traffic(self, what: str, number: int) -> None:
        for worker in self._workers:
            worker.travelled.append((what, number))

    # -- states of optimizers --------------------------------------------------------------------------------
    def _mean_states(
        self,
        snapshots: Sequence[Snapshot],
        rows: Sequence[Sequence[int]],
        mixing: Mixing,
        round_index: int,
        common: Mapping[Place, Entry],
        holders: Sequence[set[Place]],
    ) -> list[Found]:
        members = mixing.members(round_index, self._transport.size)
        results: list[Found] = [{} for _ in snapshots]
        scalars = [place for place, entry in common.items() if entry.kind in (COUNTER, SCALAR)]
        if any(len({row[kind] for row in rows}) > 1 for kind in (SCALARS, LAYOUT)):
            of_each = [[word(*s.states[p]) if p in s.states else 0 for p in scalars] for s in snapshots]
            of_all = self._numbers(of_each)
            for i, place in enumerate(scalars):
                words = [of_all[rank][i] for rank in members if place in holders[rank]]
                if not words:
                    continue
                value = settled(common[place], words)
                if not math.isfinite(value) and len(set(words)) > 1:
                    raise ValueError(f"the optimizer state {place[1]} of {place[0]} is not finite on some rank")
                for result in results:
                    result[place] = common[place], value
        moments = [p for p, entry in common.items() if entry.kind == MOMENT and any(p in holders[r] for r in members)]
        if moments:
            owns = [
                flat([moment_of(common[p], s.states.get(p, (None, None))[1], worker.device) for p in moments])
                for s, worker in zip(snapshots, self._workers, strict=True)
            ]
            sizes = [moment_of(common[p], None, torch.device("meta")).numel() for p in moments]
            for result, mean in zip(results, mixing.mix(self._transport, owns, round_index), strict=True):
                for place, part in zip(moments, mean.split(sizes), strict=True):
                    result[place] = common[place], part
        return results


class NotFiniteModel(Exception):  # noqa: N818  the caller, which knows the names, explains it
    """Raised for a non-finite model in a mixing that does not show it to all ranks.

    Parameters
    ----------
    rank : int
        Rank of the model.
    entry : int
        Index of its first non-finite entry.
    """

    def __init__(self, rank: int, entry: int) -> None:
        super().__init__(f"entry {entry} of the model of rank {rank} is not finite")
        self.rank, self.entry = rank, entry


def _text(snapshot: Snapshot) -> str:
    """Return a description of the tensors of a rank."""
    buffers = [(name, described(b)) for name, b in snapshot.buffers.items()]
    states = [(*place, e.kind, e.words, e.shape, e.dtype) for place, (e, _) in snapshot.states.items()]
    return json.dumps([buffers, states])


def _from_bytes(data: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return data.clone().view(like.dtype).view(like.shape)


def _load_states(worker: Worker, optimizer: torch.optim.Optimizer, found: Found, incomplete: set[str]) -> None:
    """Write means to an optimizer.

    A parameter without a state gets all of its means, so that the next averaging does not count it as zero again;
    its optimizer makes the state of an ``incomplete`` one with its first gradient.
    """
    parameters = dict(worker.model.named_parameters())
    without = {name for name, _ in found if name not in incomplete and not optimizer.state.get(parameters[name])}
    for (name, key), (entry, value) in found.items():
        state = optimizer.state[parameters[name]] if name in without else optimizer.state.get(parameters[name], {})
        current = state.get(key)
        if current is None:
            if name in without:
                state[key] = _new(entry, value, parameters[name].device)
        elif not isinstance(current, torch.Tensor):
            state[key] = value
        elif isinstance(value, torch.Tensor):
            view = torch.view_as_real(current) if current.is_complex() else current
            assign(view, value.view(view.shape))
        else:
            assign(current, torch.full(entry.shape, value, dtype=current.dtype))


def _new(entry: Entry, value: Any, device: torch.device) -> Any:
    """Return a mean as an entry of its own."""
    if entry.dtype in ("int", "float"):
        return value
    dtype = getattr(torch, entry.dtype)
    if not isinstance(value, torch.Tensor):
        return torch.full(entry.shape, value, dtype=dtype)  # counters stay on the CPU
    tensor = torch.empty(entry.shape, dtype=dtype, device=device)
    view = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    assign(view, value.view(view.shape))
    return tensor
