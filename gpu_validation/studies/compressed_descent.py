"""Gradient descent over workers that send compressed gradients: plain, with learned shifts (DIANA), and EF21.

All workers live in one process and are visited in rank order; their messages are the real ones, encoded and decoded,
and every bit is counted.  Gradients are full, so that compression is the only randomness; what is sent is a gradient
or its change against a memory that both ends keep, and no worker has a model, an optimizer or a mini-batch of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch

from bounds.claims import Claim, Contractive, NoClaim, Unbiased
from operators import Key, Operator

from ..processes.tensors import flat, load
from ..workloads.linear import LinearModel

FLOAT_BITS = 32  # of a coordinate that is sent as it is


@dataclass(frozen=True, eq=False)
class Landmarks:
    """What the theorems need to know of a problem over m workers.

    Parameters
    ----------
    L : float
        Largest smoothness constant of a worker's objective.
    mu : float
        Strong convexity of F.
    minimiser : ndarray
        x*, shape (d,).
    value : float
        F* = F(x*).
    R0 : float
        ``|x_1 - x*|``.
    gap : float
        F(x_1) - F*.
    sigma2_opt : float
        mean over workers of ``|grad F_i(x*)|^2``.
    """

    L: float
    mu: float
    m: int
    d: int
    minimiser: np.ndarray
    value: float
    R0: float
    gap: float
    sigma2_opt: float


@lru_cache(maxsize=8)
def landmarks(workload: LinearModel) -> Landmarks:
    """Return them, computed exactly.

    Raises
    ------
    ValueError
        For a workload without a split over workers.
    """
    if workload.split is None:
        raise ValueError("compressed descent needs a worker for every part of the data: give the workload a split")
    whole = replace(workload, batch=None)
    constants, best = whole.constants(), whole.optimum()
    start = flat(list(whole.model().parameters())).numpy()
    return Landmarks(
        L=whole.local_smoothness(),
        mu=constants.mu,
        m=workload.split.workers,
        d=len(start),
        minimiser=best.x,
        value=best.value,
        R0=float(np.linalg.norm(start - best.x)),
        gap=constants.gap,
        sigma2_opt=constants.heterogeneity,
    )


class Method(ABC):
    """How compressed messages become a direction; subclasses are stateless.

    Attributes
    ----------
    name : str
        In records.
    memory
        h, one vector a worker, shape (m, d), that both ends know: the differences of the gradients to it are
        compressed, and it is added to what arrives.
    """

    name: ClassVar[str]

    @abstractmethod
    def level(self, claim: Claim) -> float | None:
        """Return the constant of the operator that the method's theorem uses; None if it does not cover the
        operator.
        """

    @abstractmethod
    def eta(self, at: Landmarks, level: float) -> float:
        """Return the step size of the theorem."""

    def initial(self, gradients: np.ndarray) -> np.ndarray:
        """Return the memory before the first step; a row that is not zero was sent as it is.  Zero unless said
        otherwise.
        """
        return np.zeros_like(gradients)

    def remembered(self, decoded: np.ndarray, memory: np.ndarray, level: float) -> np.ndarray:
        """Return the memory after the step; unchanged unless said otherwise."""
        return memory

    def potential(self, x: np.ndarray, memory: np.ndarray, at: Landmarks, own: np.ndarray, level: float) -> float:
        """Return what the theorem says shrinks;

        Parameters
        ----------
        own : ndarray
            The workers' gradients at x*.  ``|x - x*|^2`` unless said otherwise.
        """
        return float(np.square(x - at.minimiser).sum())


def omega_of(claim: Claim) -> float | None:
    """Return omega of an unbiased operator, 0 of a lossless one."""
    if isinstance(claim, Unbiased):
        return claim.omega
    return 0.0 if isinstance(claim, Contractive) and claim.alpha == 0 else None


class CompressedDescent(Method):
    """x+ = x - eta mean C_i(grad F_i): converges to a ball (Khirirat et al. 2018, arXiv:1806.06573)."""

    name = "dcgd"

    def level(self, claim: Claim) -> float | None:
        """Return omega."""
        return omega_of(claim)

    def eta(self, at: Landmarks, level: float) -> float:
        """Return the largest of the theorem, less what rounding might add."""
        return (1 - 2.0**-40) / (at.L * (1 + 2 * level / at.m))


class Diana(Method):
    """Messages are differences to shifts that learn the gradients at x* (Mishchenko et al. 2019, arXiv:1901.09269)."""

    name = "diana"

    def level(self, claim: Claim) -> float | None:
        """Return omega."""
        return omega_of(claim)

    def eta(self, at: Landmarks, level: float) -> float:
        """Return 1/(L (1 + 6 omega/m))."""
        return 1 / (at.L * (1 + 6 * level / at.m))

    def remembered(self, decoded: np.ndarray, memory: np.ndarray, level: float) -> np.ndarray:
        """Return h + m/(1 + omega)."""
        return memory + decoded / (1 + level)

    def potential(self, x: np.ndarray, memory: np.ndarray, at: Landmarks, own: np.ndarray, level: float) -> float:
        """Return ``|x - x*|^2 + 4 omega (1 + omega) eta^2/m`` times the mean of ``|h_i - grad F_i(x*)|^2``."""
        spread = float(np.square(memory - own).sum(axis=1).mean())
        weight = 4 * level * (1 + level) * self.eta(at, level) ** 2 / at.m
        return float(np.square(x - at.minimiser).sum()) + weight * spread


class Ef21(Method):
    """Both ends keep an estimate of each gradient, messages change it (Richtarik et al. 2021, arXiv:2106.05203)."""

    name = "ef21"

    def level(self, claim: Claim) -> float | None:
        """Return alpha."""
        return claim.alpha if isinstance(claim, Contractive) else None

    def eta(self, at: Landmarks, level: float) -> float:
        """Return (1 - sqrt(alpha))/L."""
        return (1 - level**0.5) / at.L

    def initial(self, gradients: np.ndarray) -> np.ndarray:
        """Return the gradients at the start."""
        return gradients

    def remembered(self, decoded: np.ndarray, memory: np.ndarray, level: float) -> np.ndarray:
        """Return the new estimates."""
        return memory + decoded


class Unproved(Method):
    """``dcgd`` for operators without a claim, at a tenth of the step size of exact gradients."""

    name = "plain"

    def level(self, claim: Claim) -> float | None:
        """Return 0: nothing is known, and nothing used."""
        return 0.0 if isinstance(claim, NoClaim) else None

    def eta(self, at: Landmarks, level: float) -> float:
        """Return 0.1/L."""
        return 0.1 / at.L


METHODS: dict[str, Method] = {m.name: m for m in (CompressedDescent(), Diana(), Ef21(), Unproved())}


def methods_for(claim: Claim) -> list[Method]:
    """Return the methods that cover an operator with this claim; a lossless one goes without EF21."""
    methods = [method for method in METHODS.values() if method.level(claim) is not None]
    return [m for m in methods if omega_of(claim) is None or m.name != "ef21"]


@dataclass(frozen=True)
class Path:
    """One run, at the points that were asked for.

    Parameters
    ----------
    step : list of int
        Steps done.
    bits : list of int, bits
        Codec bits sent by all workers so far.
    gap : list of float
        F - F*.
    potential : list of float
        What the method's theorem says shrinks, ``Method.potential``.
    gradient2 : list of float
        mean of ``|grad F|^2`` over the steps so far, the start included.
    """

    step: list[int]
    bits: list[int]
    gap: list[float]
    potential: list[float]
    gradient2: list[float]


def descend(
    workload: LinearModel,
    method: Method,
    operator: Operator,
    *,
    steps: int,
    seed: int,
    every: int = 1,
    until: Callable[[float], bool] = lambda _: False,
) -> Path:
    """Run a method from the workload's start with full gradients.

    Parameters
    ----------
    steps : int
        At most.
    every : int, optional
        How often the path is recorded, the start and the end included.
    until : callable, optional
        Of the potential at a recorded point, ends the run.  An initial memory is sent as it is and counted.

    Raises
    ------
    ValueError
        If the method does not cover the operator's claim.
    """
    marks = landmarks(workload)
    level = method.level(operator.claim(marks.d))
    if level is None:
        raise ValueError(f"{method.name} does not cover {operator}, which claims {operator.claim(marks.d)}")
    shards = _Shards(workload, marks)
    eta, local_gradients = method.eta(marks, level), shards.gradients(marks.minimiser)
    x = shards.start()
    memory = method.initial(shards.gradients(x))
    bits = FLOAT_BITS * int(np.count_nonzero(memory.any(axis=1))) * marks.d
    path, slopes = Path([], [], [], [], []), 0.0
    for k in range(steps + 1):
        gradients = shards.gradients(x)
        slopes += float(np.square(gradients.mean(axis=0)).sum())
        if k % every == 0 or k == steps:
            path.step.append(k)
            path.bits.append(bits)
            path.gap.append(shards.value(x) - marks.value)
            path.potential.append(method.potential(x, memory, marks, local_gradients, level))
            path.gradient2.append(slopes / (k + 1))
            if until(path.potential[-1]):
                break
        decoded, spent = _through(operator, gradients - memory, seed, k)
        x = x - eta * (memory + decoded).mean(axis=0)
        memory = method.remembered(decoded, memory, level)
        bits += spent
    return path


class _Shards:
    """The workers' full gradients as float64 rows."""

    def __init__(self, workload: LinearModel, at: Landmarks) -> None:
        self.workload = replace(workload, batch=None)
        self.model = self.workload.model()
        self.parameters = list(self.model.parameters())
        self.draws = [self.workload.draw(key=Key(0, rank=i)) for i in range(at.m)]

    def start(self) -> np.ndarray:
        return flat(list(self.workload.model().parameters())).numpy()

    def gradients(self, x: np.ndarray) -> np.ndarray:
        """Return shape (m, d)."""
        load(torch.from_numpy(x), self.parameters)
        losses = [self.workload.loss_on(self.model, draw) for draw in self.draws]
        return np.array([flat(torch.autograd.grad(loss, self.parameters)).numpy() for loss in losses])

    def value(self, x: np.ndarray) -> float:
        """Return F."""
        load(torch.from_numpy(x), self.parameters)
        with torch.no_grad():
            return float(self.workload.objective(self.model))


def _through(operator: Operator, rows: np.ndarray, seed: int, step: int) -> tuple[np.ndarray, int]:
    """Return every worker's vector encoded and decoded, shape (m, d), and the bits of all messages."""
    decoded, bits = np.empty_like(rows), 0
    for rank, row in enumerate(rows):
        key = Key(seed, step=step, rank=rank)
        message = operator.encode(row, key=key)
        decoded[rank] = operator.decode(message, d=len(row), key=key).numpy()
        bits += message.bits
    return decoded, bits
