"""The outer step: an optimizer that sees what a round did to the common model as a gradient, and moves it.

With theta where the round began and Delta = theta - mean of the workers' models, a plain averaging is theta - Delta.
DiLoCo's outer optimizer is Nesterov's; any optimizer of torch will do, which every rank runs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from bounds.dynamics.outer import OuterStep

LEAST_RATE = 1e-20  # a smaller learning rate counts as 0: binary32 could not hold movement / rate

OuterFactory = Callable[[list[torch.Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class SGD:
    """``theta <- theta - lr u`` with ``u <- momentum u + Delta``, which is ``torch.optim.SGD``.

    Parameters
    ----------
    lr : float
        Outer learning rate, > 0; 1 without momentum is plain averaging.
    momentum : float, optional
        Heavy ball's, in [0, 1).

    Raises
    ------
    ValueError
        For values outside these ranges.
    """

    lr: float
    momentum: float = 0.0

    def __post_init__(self) -> None:
        self.theory  # noqa: B018  raises for what is none

    @property
    def theory(self) -> OuterStep:
        """The same step of the exact models in ``bounds.dynamics.outer``."""
        from bounds.dynamics.outer import OuterStep  # and sympy with it, which training does without

        return OuterStep(self.lr, self.momentum, nesterov=False)

    def __call__(self, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        """Return the optimizer.

        Parameters
        ----------
        parameters : list of tensor
            What it moves.
        """
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum)


@dataclass(frozen=True)
class Nesterov:
    """``theta <- theta - lr (Delta + momentum u)`` with ``u <- momentum u + Delta``, as in ``torch.optim.SGD``.

    Parameters
    ----------
    lr : float
        Outer learning rate, > 0; ``bounds.dynamics.outer.largest_lr`` says below which a quadratic is stable.
    momentum : float
        Nesterov's, in [0, 1).

    Raises
    ------
    ValueError
        For values outside these ranges.
    """

    lr: float
    momentum: float

    def __post_init__(self) -> None:
        self.theory  # noqa: B018  raises for what is none

    @property
    def theory(self) -> OuterStep:
        """The same step of the exact models in ``bounds.dynamics.outer``."""
        from bounds.dynamics.outer import OuterStep  # and sympy with it, which training does without

        return OuterStep(self.lr, self.momentum)

    def __call__(self, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        """Return the optimizer.

        Parameters
        ----------
        parameters : list of tensor
            What it moves.
        """
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, nesterov=self.momentum > 0)


class OuterOptimizer(Protocol):
    """Moves the common model; every rank has one in the same state."""

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return the next common model, shape (d,), in memory of its own.

        Parameters
        ----------
        theta : tensor
            Where the round began, shape (d,); it is not written to.
        movement : tensor
            Mean of what the workers' steps did to it, shape (d,).
        """

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs; tensors and plain values only."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
        """


class Averaging:
    """The outer step without an optimizer: theta becomes theta + movement."""

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return the sum.

        Parameters
        ----------
        theta : tensor
            Where the round began, shape (d,).
        movement : tensor
            Mean of what the workers' steps did to it, shape (d,).
        """
        return theta + movement

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: there is nothing to remember."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take nothing.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
        """


class BlockMomentum:
    """The outer heavy ball in units of gradients: u <- beta u + G, theta <- theta + movement - eta beta u.

    G = -movement/eta_r is the mean sum of gradients of a round, eta_r the mean inner learning rate of its steps, so
    that the momentum survives a change of the rate as that of ``torch.optim.SGD`` inside would.  eta is the rate at the
    averaging.  With a constant rate the step is theta - eta u for the new u.

    Where eta is 0 (warm-up, end of a decay) the momentum moves nothing.  Where eta_r is 0 the gradients of the round
    are unknown: they count as 0, and u becomes beta u.  Where the rate is None, u is in units of movements.

    Parameters
    ----------
    beta : float
        Of u, in [0, 1).
    rates : callable
        Gives (eta, eta_r), the same on all ranks; None where the optimizer has no learning rate.
    d : int
        Number of coordinates.
    """

    def __init__(self, beta: float, rates: Callable[[], tuple[float, float] | None], d: int) -> None:
        self.beta, self.rates = beta, rates
        self.momentum = torch.zeros(d)

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return theta after one step.

        Parameters
        ----------
        theta : tensor
            Where the round began, shape (d,).
        movement : tensor
            Mean of what the workers' steps did to it, shape (d,).
        """
        eta, eta_round = self.rates() or (1.0, 1.0)
        carried = self.beta * self.momentum.to(theta)
        self.momentum = carried - movement / eta_round if eta_round >= LEAST_RATE else carried
        return theta + movement - eta * carried

    def state_dict(self) -> dict[str, Any]:
        """Return u."""
        return {"momentum": self.momentum}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take u.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
        """
        self.momentum = state["momentum"]


class TorchOuter:
    """An optimizer of torch whose only parameter is the common model, and whose gradient is Delta.

    Parameters
    ----------
    factory : callable
        From a list of one tensor to the optimizer.
    theta : tensor
        The common model, shape (d,), in the precision in which it is kept.

    Raises
    ------
    ValueError
        For a factory that gives no optimizer of torch.
    """

    def __init__(self, factory: OuterFactory, theta: torch.Tensor) -> None:
        self.theta = theta.detach().clone().requires_grad_()
        self.optimizer = factory([self.theta])
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise ValueError(
                "outer must make an optimizer of torch from a list of tensors, as Nesterov(lr=0.7, momentum=0.9) or "
                f"functools.partial(torch.optim.Adam, lr=0.1) do; it made {type(self.optimizer).__name__}"
            )

    def step(self, theta: torch.Tensor, movement: torch.Tensor) -> torch.Tensor:
        """Return theta after one step of the optimizer.

        Parameters
        ----------
        theta : tensor
            Where the round began, shape (d,).
        movement : tensor
            Mean of what the workers' steps did to it, shape (d,).
        """
        with torch.no_grad():
            self.theta.copy_(theta)
        self.theta.grad = movement.neg()
        self.optimizer.step()
        return self.theta.detach().clone()

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Give it to the optimizer.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
        """
        self.optimizer.load_state_dict(dict(state))
