"""Outer step: an optimizer moves the common model, with the movement of a round as its gradient.

With theta at the start of the round and Delta = theta - mean of the workers' models, plain averaging gives
theta - Delta.  DiLoCo uses Nesterov.  Any torch optimizer works; every rank runs the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from operators.fingerprint import require_like

from ..records.numbers import real_number

if TYPE_CHECKING:
    from bounds.dynamics.outer import OuterStep

LEAST_RATE = 1e-20  # a smaller learning rate counts as 0: binary32 could not hold movement / rate

OuterFactory = Callable[[list[torch.Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class SGD:
    """Outer SGD: ``u <- momentum u + Delta``, then ``theta <- theta - lr u``, as in ``torch.optim.SGD``.

    Parameters
    ----------
    lr : float
        Outer learning rate, > 0; 1 without momentum is plain averaging.
    momentum : float, optional
        Heavy-ball momentum, in [0, 1).

    Raises
    ------
    ValueError
        For values outside these ranges.
    """

    lr: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        self.theory  # noqa: B018  raises for values out of range

    @property
    def theory(self) -> OuterStep:
        """The same step in the exact models of ``bounds.dynamics.outer``."""
        from bounds.dynamics.outer import OuterStep  # imports sympy, which training does not need

        return OuterStep(self.lr, self.momentum, nesterov=False)

    def __call__(self, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        """Return the torch optimizer of these parameters.

        Parameters
        ----------
        parameters : list of tensor
            The common model.
        """
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum)


@dataclass(frozen=True)
class Nesterov:
    """Outer Nesterov: ``u <- momentum u + Delta``, then ``theta <- theta - lr (Delta + momentum u)``, as in torch.

    Parameters
    ----------
    lr : float
        Outer learning rate, > 0; ``bounds.dynamics.outer.largest_lr`` returns the stability limit on a quadratic.
    momentum : float
        Nesterov momentum, in [0, 1).

    Raises
    ------
    ValueError
        For values outside these ranges.
    """

    lr: float
    momentum: float

    def __post_init__(self) -> None:
        self.theory  # noqa: B018  raises for values out of range

    @property
    def theory(self) -> OuterStep:
        """The same step in the exact models of ``bounds.dynamics.outer``."""
        from bounds.dynamics.outer import OuterStep  # imports sympy, which training does not need

        return OuterStep(self.lr, self.momentum)

    def __call__(self, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        """Return the torch optimizer of these parameters.

        Parameters
        ----------
        parameters : list of tensor
            The common model.
        """
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, nesterov=self.momentum > 0)


@dataclass(frozen=True)
class BlockMomentum:
    """Outer heavy ball in units of gradients: u <- beta u + G, x <- anchor - eta u.

    G is the mean sum of the gradients of a round, and eta the learning rate of the inner optimizer.

    Parameters
    ----------
    beta : float
        Momentum, in [0, 1).

    Raises
    ------
    ValueError
        For any other value.
    """

    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", real_number("beta", self.beta))
        if not 0 <= self.beta < 1:
            raise ValueError(f"block momentum must satisfy 0 <= beta < 1; got {self.beta}")


class OuterOptimizer(Protocol):
    """Interface of the optimizers of the common model; every rank has one in the same state."""

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return the next common model, shape (d,), in new memory.

        Parameters
        ----------
        theta : tensor
            Common model at the start of the round, shape (d,); not written in place.
        movement : tensor
            Mean movement of the workers, shape (d,).
        """

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as tensors and plain values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``.

        Parameters
        ----------
        state : mapping
            Result of ``state_dict``.
        """


class Averaging:
    """Outer step without an optimizer: theta becomes theta + movement."""

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return theta + movement."""
        return theta + movement

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Ignore the state."""


class HeavyBall:
    """Optimizer of ``BlockMomentum``: u <- beta u + G, theta <- theta + movement - eta beta u.

    G = -movement/eta_r is the mean sum of gradients of a round, where eta_r is the mean inner learning rate of its
    steps.  The momentum therefore survives a change of the rate, as in ``torch.optim.SGD``.  eta is the rate at the
    averaging.  With a constant rate the step is theta - eta u for the new u.

    If eta is 0 (warm-up, end of a decay), the momentum moves nothing.  If eta_r is 0, the round's gradients are unknown
    and count as 0: u becomes beta u.  If there is no rate, u is in units of movements.

    Parameters
    ----------
    beta : float
        Momentum, in [0, 1).
    rates : callable
        Returns (eta, eta_r), the same on all ranks; None if the optimizer has no learning rate.
    theta : tensor
        Common model, shape (d,).
    """

    def __init__(self, beta: float, rates: Callable[[], tuple[float, float] | None], theta: torch.Tensor) -> None:
        self.beta, self.rates = beta, rates
        self.momentum = torch.zeros_like(theta)

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return theta after one step."""
        eta, eta_round = self.rates() or (1.0, 1.0)
        carried = self.beta * self.momentum.to(theta)
        self.momentum = carried - movement / eta_round if eta_round >= LEAST_RATE else carried
        return theta + movement - eta * carried

    def state_dict(self) -> dict[str, Any]:
        """Return u."""
        return {"momentum": self.momentum}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore u; raises ValueError for one of another shape."""
        require_like(dict(state), self.state_dict(), "outer")
        self.momentum = state["momentum"]


class TorchOuter:
    """A torch optimizer whose only parameter is the common model and whose gradient is Delta.

    Parameters
    ----------
    factory : callable
        Makes the optimizer from a list of one tensor.
    theta : tensor
        Common model, shape (d,), in the precision of the anchor.

    Raises
    ------
    ValueError
        For a factory that does not return a torch optimizer.
    """

    def __init__(self, factory: OuterFactory, theta: torch.Tensor) -> None:
        self.theta = theta.detach().clone().requires_grad_()
        self.optimizer = factory([self.theta])
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise ValueError(
                "outer must make a torch optimizer from a list of tensors, as Nesterov(lr=0.7, momentum=0.9) or "
                f"functools.partial(torch.optim.Adam, lr=0.1) do; it made {type(self.optimizer).__name__}"
            )

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return theta after one step of the optimizer."""
        with torch.no_grad():
            self.theta.copy_(theta)
        self.theta.grad = movement.neg()
        self.optimizer.step()
        return self.theta.detach().clone()

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the optimizer's state; raises ValueError for tensors of another length than the common model."""
        for name, value in state["state"].get(0, {}).items():
            if isinstance(value, torch.Tensor) and value.numel() > 1 and len(value) != self.theta.numel():
                raise ValueError(
                    f"the saved state of outer, {name} must have length {self.theta.numel()}; got {len(value)}: start "
                    "without a state"
                )
        self.optimizer.load_state_dict(dict(state))
