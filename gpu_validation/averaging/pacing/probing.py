"""Probes of schedule="auto": one more gradient on the last batch of a round, and what rounds reveal.

h is the gradient of the last local step, read from ``p.grad``.  u is the gradient of the user's closure at the averaged
model x.  The probe returns <u - h, P u> and <u, P u>, where P is the optimizer's preconditioner: the learning rates of
the parameter groups and, for Adam-like optimizers, one over the root of the second moment.  With P = S^2 these are the
plain products in the coordinates S^-1 x, in which the preconditioned step is a gradient step.  Momentum is one factor
for all coordinates and has no part in P.

A probe restores gradients, buffers (BatchNorm) and torch's generators.  Dropout uses the same mask in u as in h: the
generators' state is stored at the first call of the model in the round's last step.

The bend of the worker's loss f between its own model y and the mean x is f(y) - f(x) - <h + u, y - x>/2, the error of
the trapezoid rule.  The curve is <h - u, y - x>/2.  Terms linear in the model, such as additive noise of the batch,
cancel in both.  ``bounds.schedules.steady`` uses them.  If the Hessian of f is Q-Lipschitz, the bend is at most
Q |y - x|^3/12.  So 12 |bend|/|y - x|^3 is at most the Q of that batch's loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import mul
from typing import Any

import numpy as np
import torch

from bounds.schedules import Measured

from ...processes.learning_rates import group_rate, require_rates
from ...processes.tensors import wait_for
from ..worker import Worker
from .clock import Clock
from .inputs import Closure, NoInputs, PeriodController, Row


def bend(
    rise: float,
    last: Sequence[torch.Tensor | None],
    again: Sequence[torch.Tensor | None],
    place: Sequence[torch.Tensor],
    mean: Sequence[torch.Tensor],
) -> tuple[float, float]:
    """Return bend and curve of a loss.

    ``rise`` is f(y) - f(x).  ``last`` and ``again`` are h and u per parameter, where None counts as zero.  ``place``
    and ``mean`` are y and x per parameter.
    """
    slope = slope_at_mean = 0.0
    for h, u, y, x in zip(last, again, place, mean, strict=True):
        way = (y - x.detach()).flatten().double()
        slope += _along(h, way)
        slope_at_mean += _along(u, way)
    return rise - (slope + slope_at_mean) / 2, (slope - slope_at_mean) / 2


def _along(gradient: torch.Tensor | None, way: torch.Tensor) -> float:
    if gradient is None:
        return 0.0
    detached = gradient.detach()
    return float((detached.to_dense() if detached.layout is not torch.strided else detached).flatten().double() @ way)


def squared_distance(place: Sequence[torch.Tensor], mean: Sequence[torch.Tensor]) -> float:
    """Return |y - x|^2 of two models, each a list of its parameters."""
    return sum(float((y - x.detach()).flatten().double().square().sum()) for y, x in zip(place, mean, strict=True))


RESOLVED = 1e-6  # of the loss: what a bend of losses in float32 is at least


@dataclass(frozen=True)
class ThirdOrder:
    """Estimates of Q and of the kurtosis, which no rank sends.

    Parameters
    ----------
    hessian_lipschitz : float or None, optional
        Largest 12 |bend|/|y - x|^3 of the probes, 0 where the losses do not resolve it; None before the first.
    probes : int, optional
        Number of probes.
    square : float, optional
        Sum of the squared norms of the gradients at the mean model.
    fourth : float, optional
        Sum of their squares.

    Notes
    -----
    Both are estimates on single batches, no bounds on F: ``tau_third_order`` from them is an estimate too.
    """

    hessian_lipschitz: float | None = None
    probes: int = 0
    square: float = 0.0
    fourth: float = 0.0

    @property
    def kurtosis(self) -> float | None:
        """E|g|^4/(E|g|^2)^2 of a batch's gradient g, weighted by the optimizer's preconditioner.

        It is that of the noise where noise dominates.  None before two probes.
        """
        if self.probes < 2 or not self.square:
            return None
        return max(1.0, self.probes * self.fourth / self.square**2)

    def after(self, *, bend: float, distance2: float, loss: float, norm2: float) -> ThirdOrder:
        """Return the estimates with one more probe.

        Parameters
        ----------
        bend : float
            Of the loss; nan if it was not measured.
        distance2 : float
            |y - x|^2 of the worker's model and the mean; nan if it was not measured.
        loss : float
            At the mean model.
        norm2 : float
            Squared norm of the gradient there.
        """
        Q = self.hessian_lipschitz
        if math.isfinite(bend) and distance2 > 0:
            estimated = 12 * abs(bend) / distance2**1.5 if abs(bend) > RESOLVED * abs(loss) else 0.0
            Q = estimated if Q is None else max(Q, estimated)
        square, fourth = self.square + norm2, self.fourth + norm2**2
        return replace(self, hessian_lipschitz=Q, probes=self.probes + 1, square=square, fourth=fourth)


Weights = list[torch.Tensor | float]
CPU_BLOCK = 1 << 16

SECOND_MOMENTS = ("max_exp_avg_sq", "exp_avg_sq", "square_avg", "sum")  # Adam (amsgrad, plain), RMSprop, Adagrad


class Probe:
    """Gradient probe of one worker.

    Parameters
    ----------
    model : Module
        Model that the closure calls.  If it is called in another form (functional), randomness is not repeated.
    optimizer : Optimizer
        Its learning rates and second moments weight the coordinates.

    Attributes
    ----------
    place
        Parameters before the last step of the round, once that step is awaited; else empty.
    third_order
        Estimates from the probes so far.
    """

    def __init__(
        self, model: torch.nn.Module, parameters: list[torch.Tensor], optimizer: torch.optim.Optimizer
    ) -> None:
        self.model, self.parameters, self.optimizer = model, parameters, optimizer
        self._before: list[torch.Tensor] | None = None
        self.place: list[torch.Tensor] = []
        self.third_order = ThirdOrder()
        self._hook: Any = None

    def await_last_step(self) -> None:
        """Store the parameters now, and the generators' state at the model's next call (the round's last step)."""
        self._before, self.place = None, [p.detach().clone() for p in self.parameters]
        self._on_next_call(lambda: setattr(self, "_before", self._generators()))

    def forget_place(self) -> None:
        """Drop the stored parameters, because the round has ended by another step."""
        self.place = []

    def weights(self) -> Weights:
        """Return the diagonal of P up to a factor, from the optimizer's current state."""
        groups = self.optimizer.param_groups
        largest = max((rate for group in groups if 0 < (rate := group_rate(group)) < math.inf), default=1.0)
        by_parameter = {
            p: _weight(group, self.optimizer.state.get(p, {}), largest) for group in groups for p in group["params"]
        }
        return [by_parameter.get(p, 0.0) for p in self.parameters]

    def measure(self, closure: Closure, weights: Weights, loss: float = math.nan) -> tuple[float, ...]:
        """Return (<u - h, P u>, <u, P u>, jump of the loss, its bend, its curve).

        Entries are nan if they need a loss that the closure does not return, or parameters that were not stored.
        ``loss`` is that of the last local step.

        Raises
        ------
        ValueError
            If p.grad is None for all parameters, before or after the closure.
        """
        last = [p.grad for p in self.parameters]
        if all(h is None for h in last):
            raise ValueError(
                "the probe needs the gradients of the last local step in p.grad, which are None: call averaging.step "
                "after optimizer.step and before zero_grad"
            )
        with self._undisturbed(last):
            now = scalar(closure())
            again = [p.grad for p in self.parameters]
        if all(u is None for u in again):
            raise ValueError("the closure has left no gradient in p.grad: let it call backward and return the loss")
        lost, fresh = retention(last, again, weights)
        place, self.place = self.place, []
        bent = bend(loss - now, last, again, place, self.parameters) if place else (math.nan, math.nan)
        distance2 = squared_distance(place, self.parameters) if place else math.nan
        self.third_order = self.third_order.after(bend=bent[0], distance2=distance2, loss=now, norm2=fresh)
        return lost, fresh, now - loss, *bent

    @contextmanager
    def _undisturbed(self, last: list[torch.Tensor | None]) -> Iterator[None]:
        """Inside, a forward and backward pass may run; gradients, buffers and generators are restored afterwards."""
        generators = self._generators()
        buffers = [(b, b.detach().clone()) for b in self.model.buffers()]
        for p in self.parameters:
            p.grad = None
        before = self._before
        if before is not None:
            self._on_next_call(lambda: self._set_generators(before))
        try:
            with torch.enable_grad():
                yield
        finally:
            self._forget_hook()
            self._before = None
            for p, h in zip(self.parameters, last, strict=True):
                p.grad = h
            with torch.no_grad():
                for buffer, kept in buffers:
                    buffer.copy_(kept)
            self._set_generators(generators)

    # -- randomness --------------------------------------------------------------------------------------
    def _on_next_call(self, act: Callable[[], None]) -> None:
        """Call ``act`` once, before the next call of the model, and remove the hook."""
        self._forget_hook()

        def once(module: torch.nn.Module, arguments: Any) -> None:
            self._forget_hook()
            act()

        self._hook = self.model.register_forward_pre_hook(once)

    def _forget_hook(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _generators(self) -> list[torch.Tensor]:
        """Return the states of the CPU generator and, for parameters on a GPU, of its generator."""
        device = self.parameters[0].device
        return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]

    def _set_generators(self, states: list[torch.Tensor]) -> None:
        torch.set_rng_state(states[0])
        if len(states) > 1:
            torch.cuda.set_rng_state(states[1], self.parameters[0].device)


def scalar(loss: Any) -> float:
    """Return a loss as a float; nan for None."""
    if loss is None:
        return math.nan
    return float(loss.detach() if isinstance(loss, torch.Tensor) else loss)


def retention(
    last: list[torch.Tensor | None], again: list[torch.Tensor | None], weights: Weights
) -> tuple[float, float]:
    """Return (<u - h, P u>, <u, P u>), accumulated per tensor in float32 or better; a gradient of None counts as zero.

    The difference precedes the product, which limits cancellation.  All products leave the device in one transfer.
    """
    factors, products = [], []
    for h, u, weight in zip(last, again, weights, strict=True):
        if u is None:
            continue
        new = _dense(u)
        old = torch.zeros_like(new) if h is None else _dense(h)
        factor, diagonal = (1.0, _blocks(weight.flatten())) if isinstance(weight, torch.Tensor) else (weight, ())
        for a, b, p in zip_longest(_blocks(new), _blocks(old), diagonal):
            weighed = a if p is None else p * a
            factors.append(factor)
            products += [(a - b) @ weighed, a @ weighed]
    values = torch.stack(products).tolist()
    return sum(map(mul, factors, values[::2])), sum(map(mul, factors, values[1::2]))


def _blocks(vector: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Split a vector on a CPU into blocks that fit into its cache."""
    return vector.split(CPU_BLOCK) if vector.device.type == "cpu" else (vector,)


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    detached = gradient.detach()
    detached = detached.to_dense() if detached.layout is not torch.strided else detached
    return (detached if detached.dtype == torch.float64 else detached.float()).flatten()


def _weight(group: dict[str, Any], state: dict[str, Any], largest: float) -> torch.Tensor | float:
    """Return the factor by which the optimizer multiplies a gradient, over the largest learning rate."""
    rate = group_rate(group)
    rate = 1.0 if math.isnan(rate) else rate / largest if 0 <= rate < math.inf else 0.0
    second = next((state[name] for name in SECOND_MOMENTS if name in state), None)
    if second is None:
        return rate
    unbiased = 1 - group["betas"][1] ** float(state["step"]) if "betas" in group else 1.0
    eps = group.get("eps", 0.0)
    least = eps[0] if isinstance(eps, tuple | list) else eps  # Adafactor has two
    return rate / ((second / unbiased).sqrt() + (least or 0.0))


COORDINATES = 1 << 13  # coordinates in the sample: error of the cosine about 1/sqrt(COORDINATES)


class Turning:
    """Tracks a model from averaging to averaging: all its entries, or evenly spaced ones of a large model."""

    def __init__(self) -> None:
        self._point: np.ndarray | None = None
        self._movement: np.ndarray | None = None

    def cosine(self, model: torch.Tensor) -> float:
        """Return the cosine of the angle between the last two movements; nan before there are two."""
        followed = model.detach()[:: -(-model.numel() // COORDINATES)].float().cpu()
        point, before, last = np.array(followed.numpy()), self._point, self._movement
        self._point = point
        self._movement = None if before is None or before.shape != point.shape else point - before
        if last is None or self._movement is None:
            return math.nan
        product, new2, last2 = (float(a @ b) for a, b in ((last, self._movement), (self._movement,) * 2, (last,) * 2))
        return product / math.sqrt(new2 * last2) if new2 > 0 and last2 > 0 else math.nan

    def state(self) -> list[torch.Tensor]:
        """Return the last point and movement, as far as they exist."""
        return [torch.from_numpy(kept) for kept in (self._point, self._movement) if kept is not None]

    def load(self, state: Sequence[torch.Tensor]) -> None:
        """Restore a state of ``state``."""
        self._point, self._movement = (*(kept.numpy() for kept in state), None, None)[:2]


NUMBERS = 10  # length of a row: clock, learning rate, then the numbers of Measured.shared
UNKNOWN = [math.nan] * 8
NEEDED = (
    'schedule="auto" needs a closure: call averaging.step(loss, closure), where closure() '
    "computes the gradient of the last step again (zero_grad, loss, backward) and returns the loss"
)


class MeasuredInputs(NoInputs):
    """Measurements of the workers hosted here.

    Every averaging sends a row: seconds of the round's local steps, seconds of the previous averaging, and the result
    of the probe after it.  So no collective is added, and results of an averaging and its probe arrive one round later.
    """

    looks = True
    numbers = NUMBERS
    times_synchronisations = True

    def __init__(self, workers: Sequence[Worker], periods: PeriodController, ranks: Sequence[int]) -> None:
        self.workers, self.periods, self.ranks = workers, periods, ranks
        self.probes = [Probe(w.model, w.parameters, w.optimizer) for w in workers if w.optimizer is not None]
        self._found = [list(UNKNOWN) for _ in workers]
        self._last: list[tuple[Any, Closure | None]] = [(None, None)] * len(workers)
        self._weights: list[Weights] | None = None
        self._turning = Turning()
        self._has_common_model = not getattr(periods.schedule, "overlapped", False)  # averagings end in a common model
        self.evaluations = 0  # of the closures, on each worker

    @property
    def due(self) -> bool:
        """Whether the current round ends with a probe."""
        return bool(self.periods.rule.probe)

    def record_step(
        self,
        losses: Sequence[Any],
        closures: Sequence[Closure | None] | None,
        participants: Sequence[int],
        clock: Clock,
    ) -> None:
        """Store losses and closures of one local step; a worker that idles has None.

        Raises
        ------
        ValueError
            Without a closure from a worker that takes part.
        """
        given = closures if closures is not None else [None] * len(self.workers)
        if None in given:
            silent = [rank for rank, closure in zip(self.ranks, given, strict=True) if closure is None]
            if not set(silent).isdisjoint(participants):
                raise ValueError(NEEDED)
        if not self.periods.tau:  # no measurements to share yet
            eta = self.workers[0].eta()  # an invalid one is refused at the first averaging, by all ranks
            self.periods.decide_by(time_s=0.0, eta=eta if 0 <= eta < math.inf else None, measured=Measured())
        if self.periods.rule.probe:  # else they are not needed
            kept = [loss.detach() if isinstance(loss, torch.Tensor) else loss for loss in losses]
            self._last = list(zip(kept, given, strict=True))

    def step_counted(self) -> None:
        """Prepare the probes for the round's last step, if one is due."""
        if self.periods.local_steps == self.periods.tau - 1 and self.due:
            for probe in self.probes:
                probe.await_last_step()

    def start_sync(self, clock: Clock) -> list[Row]:
        """Time the round's local steps, and store the weights if a probe is due."""
        for worker in self.workers:
            wait_for(worker.parameters[0].device)
        clock.start_sync(self.periods.local_steps)
        for measured, seconds in zip(self._found, clock.computed(self.ranks), strict=True):
            measured[0] = seconds
        if self.periods.local_steps != self.periods.tau:
            for probe in self.probes:
                probe.forget_place()
        due = self.due and self.periods.local_steps > 1
        self._weights = [probe.weights() for probe in self.probes] if due else None
        return self.rows(clock)

    def rows(self, clock: Clock) -> list[list[float]]:
        """Return clock, learning rate and measurements of every worker."""
        now = clock.seconds()
        return [[now, w.eta(), *measured] for w, measured in zip(self.workers, self._found, strict=True)]

    def drop_probe(self) -> None:
        """Cancel the probe, because the last gradients belong to other parameters."""
        self._weights = None

    def end_sync(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period by the members' measurements and the first member's clock and learning rate.

        Then read the synchronisation's time, and run a probe if one is due.
        """
        time_s, eta = arrived[0][0], require_rates([row[1] for row in arrived])[0]
        self.periods.decide_by(time_s=time_s, eta=eta, measured=Measured.shared(row[2:] for row in arrived))
        self._found = [[math.nan, seconds, *UNKNOWN[2:]] for seconds in clock.averaged(self.ranks)]
        if self._weights is not None:
            for i, rank in enumerate(self.ranks):
                loss, closure = self._last[i]
                if rank in members and closure is not None:
                    self._found[i][2:7] = self.probes[i].measure(closure, self._weights[i], scalar(loss))
            self._weights = None
            self.evaluations += 1
            clock.pass_probe()
        self._turn()
        clock.end_sync()

    def _turn(self) -> None:
        """Store the angle between the mean model's last two movements, which is the same for all workers."""
        if not self._has_common_model:
            return
        cosine = self._turning.cosine(self.workers[0].outgoing())
        for measured in self._found:
            measured[7] = cosine

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements that are not sent yet."""
        return {
            "found": [list(row) for row in self._found],
            "evaluations": self.evaluations,
            "path": self._turning.state(),
            "places": [probe.place for probe in self.probes],
        }

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Restore a state of ``state_dict``."""
        assert state is not None  # of a run that measures too
        self._found, self.evaluations = [list(row) for row in state["found"]], state["evaluations"]
        self._turning.load(state["path"])
        for probe, place in zip(self.probes, state["places"], strict=True):
            probe.place = list(place)


MOVEMENTS = 3  # numbers of a row: error2, norm2 and mean2 of Measured.shared


class ChoosingInputs(MeasuredInputs):
    """Measurements of the workers hosted here and of their movements; each is sent with the next averaging."""

    numbers = NUMBERS + MOVEMENTS

    def __init__(self, workers: Sequence[Worker], periods: PeriodController, ranks: Sequence[int]) -> None:
        super().__init__(workers, periods, ranks)
        self._movements: list[tuple[float, ...]] = [(math.nan,) * MOVEMENTS for _ in workers]

    def rows(self, clock: Clock) -> list[Row]:
        """Return clock, learning rate and measurements of every worker, followed by those of its movement."""
        return [[*row, *of_movement] for row, of_movement in zip(super().rows(clock), self._movements, strict=True)]

    def record_movements(self, movements: Sequence[tuple[float, float, float]]) -> None:
        """Store (error2, norm2, mean2) of every worker hosted here for the next rows.

        They are the squared error of its message, the squared norm of its movement and that of the decoded mean.
        """
        self._movements = list(movements)

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements that are not sent yet."""
        return {**super().state_dict(), "movements": [list(row) for row in self._movements]}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Restore a state of ``state_dict``."""
        super().load_state_dict(state)
        assert state is not None  # checked above
        self._movements = [tuple(row) for row in state["movements"]]
