"""Wrong runs: one lossless cell is computed again with a fault in its local steps or its averagings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import torch

from gpu_validation.averaging.exchange.movements import Receiver
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.runs import ensemble
from gpu_validation.workloads import Draw, Quadratic
from operators import Key, Message
from tests.gpu_validation.mutations.bench import LOSSLESS, Bench
from tests.gpu_validation.mutations.mutation import Mutation

Messages = Mapping[int, Message]
Mean = tuple[torch.Tensor, dict[int, torch.Tensor]]
_honest_mean, _honest_step = Receiver.mean, ensemble._step


# -- averagings --------------------------------------------------------------------------------------------------
def _averaging(change: Callable[[torch.Tensor, int], torch.Tensor]) -> AbstractContextManager[Any]:
    """Parameters
    ----------
    change : callable
        (the mean of the decoded deltas, m) -> what is applied.
    """

    def mean(
        self: Receiver,
        messages: Mapping[int, Message],
        members: Sequence[int],
        keys: Sequence[Key],
        keep: Sequence[int],
    ) -> Mean:
        honest, kept = _honest_mean(self, messages, members, keys, keep)
        return change(honest, len(members)), kept

    return mock.patch.object(Receiver, "mean", mean)


def _dropping(kept: Callable[[Sequence[int]], Sequence[int]]) -> AbstractContextManager[Any]:
    """Return only some of the members count."""

    def mean(
        self: Receiver,
        messages: Mapping[int, Message],
        members: Sequence[int],
        keys: Sequence[Key],
        keep: Sequence[int],
    ) -> Mean:
        everyone = _honest_mean(self, messages, members, keys, keep)[1]
        return _honest_mean(self, messages, kept(members), keys, ())[0], everyone

    return mock.patch.object(Receiver, "mean", mean)


# -- local steps -------------------------------------------------------------------------------------------------
def _stepping(change: Callable[[torch.Tensor, dict[str, torch.Tensor]], torch.Tensor]) -> AbstractContextManager[Any]:
    """Parameters
    ----------
    change : callable
        (gradients, what is remembered from step to step) -> what is applied.
    """
    memory: dict[str, torch.Tensor] = {}

    def step(models: Sequence[torch.nn.Module], gradients: torch.Tensor, eta: float) -> None:
        _honest_step(models, change(gradients, memory), eta)

    return mock.patch.object(ensemble, "_step", step)


def _stale(gradients: torch.Tensor, memory: dict[str, torch.Tensor]) -> torch.Tensor:
    before, memory["gradients"] = memory.get("gradients", gradients), gradients
    return before


def _momentum(gradients: torch.Tensor, memory: dict[str, torch.Tensor]) -> torch.Tensor:
    memory["velocity"] = 0.5 * memory.get("velocity", torch.zeros_like(gradients)) + gradients
    return memory["velocity"]


def _one_idles(m: int) -> Callable[[torch.Tensor, dict[str, torch.Tensor]], torch.Tensor]:
    def change(gradients: torch.Tensor, memory: dict[str, torch.Tensor]) -> torch.Tensor:
        kept = gradients.clone()
        kept[m - 1 :: m] = 0
        return kept

    return change


# -- noise -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OneNoise(Quadratic):
    """All workers draw with one key."""

    def draw(self, *, key: Key) -> Draw:
        """Return the same for all ranks."""
        return super().draw(key=replace(key, rank=0))


@dataclass(frozen=True)
class OneStep(Quadratic):
    """Every step draws with the first one's key."""

    def draw(self, *, key: Key) -> Draw:
        """Return the same for all steps."""
        return super().draw(key=replace(key, step=0))


def _again(bench: Bench, done: int | None = None, **wrong: Any) -> list[Comparison]:
    """Return the middle cell computed again under whatever is patched, with another workload, if given."""
    honest, cell = bench.middle, replace(bench.cell(LOSSLESS, bench.taus[1]), **wrong)
    record = bench.trained(cell, done=done)
    return bench.in_place_of_the_middle(
        replace(record, workload=honest.workload, parameters=honest.parameters, problem=honest.problem)
    )


def _under(fault: Callable[[Bench], AbstractContextManager[Any]]) -> Callable[[Bench], list[Comparison]]:
    def rows(bench: Bench) -> list[Comparison]:
        with fault(bench):
            return _again(bench)

    return rows


def _averaged(name: str, change: Callable[[torch.Tensor, int], torch.Tensor], survives: str = "") -> Mutation:
    return Mutation(name, "run", _under(lambda _: _averaging(change)), survives=survives)


def _workload(change: Callable[[Quadratic], Quadratic]) -> Callable[[Bench], list[Comparison]]:
    def rows(bench: Bench) -> list[Comparison]:
        assert isinstance(bench.known, Quadratic)  # whose law the rows know
        return _again(bench, workload=change(bench.known))

    return rows


def _with_draws_of(kind: type[Quadratic]) -> Callable[[Bench], list[Comparison]]:
    return _workload(lambda w: kind(**{name: getattr(w, name) for name in w.__dataclass_fields__}))


def _at_period(tau: int | None) -> Callable[[Bench], list[Comparison]]:
    return lambda bench: _again(bench, done=tau or bench.steps)


WRONG_RUNS = (
    Mutation("one worker dropped from the mean", "run", _under(lambda _: _dropping(lambda members: members[:-1]))),
    _averaged("mean over m - 1", lambda mean, m: mean * m / (m - 1) if m > 1 else mean),
    _averaged("sum in place of the mean", lambda mean, m: mean * m),
    _averaged("mean x .9", lambda mean, _: mean * 0.9, "so small a step less is within the interval of 64 seeds"),
    _averaged("mean x .5", lambda mean, _: mean * 0.5),
    _averaged("averagings without effect: every round is lost", lambda mean, _: mean * 0),
    Mutation("averaging after every fifth step, not fourth", "run", _at_period(5)),
    Mutation("averaging after every third step, not fourth", "run", _at_period(3)),
    Mutation("averaging at every eighth step, not fourth", "run", _at_period(8)),
    Mutation("averaging at every step, not every fourth", "run", _at_period(1)),
    Mutation("no averaging before the end", "run", _at_period(None)),
    Mutation("gradients one step old", "run", _under(lambda _: _stepping(_stale))),
    Mutation("momentum .5 that nobody declared", "run", _under(lambda _: _stepping(_momentum))),
    Mutation("one worker's steps are lost", "run", _under(lambda bench: _stepping(_one_idles(bench.m)))),
    Mutation("learning rate x 1.1 in the run", "run", _workload(lambda w: replace(w, eta=1.1 * w.eta))),
    Mutation("noise of the gradients x 1.2", "run", _workload(lambda w: replace(w, noise=1.2 * w.noise))),
    Mutation("all workers share one seed", "run", _with_draws_of(OneNoise)),
    Mutation("every step reuses one seed", "run", _with_draws_of(OneStep)),
)
