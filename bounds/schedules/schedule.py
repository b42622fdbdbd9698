"""The one interface of every rule for tau: ``(state, observation) -> (state, tau)``, pure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from ..runtime.checks import positive_integer
from .measured import Measured

LONGEST = 2**53  # local steps; no run is longer


@dataclass(frozen=True)
class Observation:
    """What a rule may look at, taken at an averaging (or before the first round); the same on every rank.

    Parameters
    ----------
    time_s : float, seconds
        Wall-clock time since the start, >= 0.
    step : int
        Local steps done.
    eta : float or None
        Learning rate of the coming round, >= 0; 0 in a warm-up or at the end of a decay, None where the optimizer has
        a step size of its own.
    loss : float or None, optional
        F at the averaged model, averaged over all ranks and measured on held-out data or as a running mean (one
        mini-batch is too noisy); None if it was not measured.
    steps_left : int or None, optional
        Local steps still to do; None if open.
    measured : Measured or None, optional
        Times and gradients, for rules that measure.

    Raises
    ------
    ValueError
        For anything else, in particular for a loss that is nan or infinite.
    """

    time_s: float
    step: int
    eta: float | None
    loss: float | None = None
    steps_left: int | None = None
    measured: Measured | None = None

    def __post_init__(self) -> None:
        for field, kind in (("time_s", float), ("step", int), ("eta", float), ("loss", float), ("steps_left", int)):
            given = getattr(self, field)
            if given is not None:
                object.__setattr__(self, field, kind(given))  # plain numbers keep states serialisable
                if kind is int and getattr(self, field) != given:
                    raise ValueError(f"{field} must be a whole number; got {field} = {given}")
        if not 0 <= self.time_s < math.inf:
            raise ValueError(f"time_s must be finite and >= 0; got time_s = {self.time_s}")
        if self.eta is not None and not 0 <= self.eta < math.inf:
            raise ValueError(f"eta must be None or finite and >= 0; got eta = {self.eta}")
        if self.step < 0:
            raise ValueError(f"step must be >= 0; got step = {self.step}")
        if self.loss is not None and not math.isfinite(self.loss):
            raise ValueError(f"the loss must be finite; got {self.loss}: the run has diverged")
        if self.steps_left is not None and self.steps_left < 0:
            raise ValueError(f"steps_left must be >= 0; got steps_left = {self.steps_left}")

    @classmethod
    def shared(
        cls, losses: Iterable[float], *, time_s: float, step: int, eta: float | None, steps_left: int | None = None
    ) -> Self:
        """Return the observation from the losses of all ranks: their exactly rounded mean, the same in every order.

        Parameters
        ----------
        losses : iterable of float
            Mean loss of every worker since the last observation.
        time_s : float, seconds
            Seconds since the start of the run.
        step : int
            Local steps that have been done.
        eta : float or None
            Learning rate of the last step; None if it is unknown.
        steps_left : int or None, optional
            Local steps until the end of the run; None if that is not known.
        """
        values = [float(value) for value in losses]
        if not values:
            raise ValueError("losses needs one value for each rank; got none")
        return cls(time_s, step, eta, math.fsum(values) / len(values), steps_left)


@dataclass(frozen=True)
class State:
    """What a rule remembers: plain numbers in a frozen record."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold; ``Schedule.restore`` is the inverse."""
        return asdict(self)


class Schedule(ABC):
    """A rule for the number of local steps; subclasses are frozen, final dataclasses without randomness.

    Call it once at the start and once at every averaging: ``state, tau = schedule(state, observation)`` gives the
    number of local steps of the coming round, >= 1.  Ranks that observe the same decide the same.

    Attributes
    ----------
    measures : ClassVar
        Whether the rule needs ``Observation.measured``.
    """

    measures: ClassVar[bool] = False

    @abstractmethod
    def init(self) -> Any:
        """Return the state before the first call."""

    @abstractmethod
    def __call__(self, state: Any, observation: Observation) -> tuple[Any, int]:
        """Return the next state and the number of local steps of the coming round."""

    def restore(self, data: Mapping[str, Any]) -> Any:
        """Return the state from what ``to_dict`` gave.

        Parameters
        ----------
        data : mapping
            What ``plain`` returned.

        Raises
        ------
        TypeError
            For fields of another rule.
        """
        return type(self.init())(**data)


def ceil_up(value: float) -> int:
    """Return the ceiling, not raised by a rounding error of 1e-12; at least 1."""
    return max(1, math.ceil(value * (1 - 1e-12)))


def check_tau(name: str, tau: int) -> int:
    """Return tau if it is an integer >= 1.

    Raises
    ------
    ValueError
        For other arguments, also for a whole float: tau counts.
    """
    return positive_integer(name, tau)
