"""Common base of ridge and logistic regression: one linear layer in float64, exact constants, a certified minimum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from .supervised import Supervised
from .workload import Constants

NEWTON_STEPS = 100
CERTIFIED = 1e-12  # bound |grad F|^2/(2 mu) on F(x) - F*, relative to max(1, F)
SETTLED = 1e-22  # bound on F(x) - F* at which the iteration ends


@dataclass(frozen=True)
class Optimum:
    """Certified minimum of F.

    Parameters
    ----------
    x : ndarray
        Minimiser as a vector in the order of the model's parameters, float64.
    value : float
        F at x.
    error : float
        Upper bound on F(x) - inf F, by strong convexity.
    """

    x: np.ndarray
    value: float
    error: float


@dataclass(frozen=True)
class LinearModel(Supervised):
    """A strongly convex problem in weights and intercepts of one linear layer, which starts at zero.

    Parameters
    ----------
    decay : float, optional
        Weight decay, > 0; it makes the minimiser unique and certifiable.

    Raises
    ------
    ValueError
        For decay <= 0.
    """

    decay: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay <= 0:
            raise ValueError(f"decay must be > 0, so that the minimum can be certified; got {self.decay}")

    @abstractmethod
    def rows(self) -> int:
        """Return the number of outputs of the layer."""

    @abstractmethod
    def curvature(self) -> float:
        """Return the largest eigenvalue of the Hessian of one sample's loss in the outputs, over all outputs."""

    @abstractmethod
    def derivatives(self, x: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and Hessian of the mean loss over some training samples, without the decay.

        Parameters
        ----------
        x : ndarray
            Parameters as a vector.
        part : ndarray
            Indices of training samples.
        """

    @abstractmethod
    def variance(self) -> tuple[float, str]:
        """Return the variance of one sample's gradient or a bound on it for all x, and the reason if it is neither."""

    def model(self) -> torch.nn.Module:
        """Return one linear layer at zero, float64."""
        d = self.data().train.inputs.shape[1]
        layer = torch.nn.utils.skip_init(torch.nn.Linear, d, self.rows(), dtype=torch.float64)
        for p in layer.parameters():
            torch.nn.init.zeros_(p)
        return layer

    def features(self) -> np.ndarray:
        """Return the training inputs with a column of ones, shape (n, d + 1), float64."""
        table = self.data().train.inputs.numpy()
        return np.concatenate([table, np.ones((len(table), 1))], axis=1)

    def flat(self, model: torch.nn.Module) -> np.ndarray:
        """Return the model's parameters as a vector: weights by row, then intercepts.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).cpu().numpy()

    def gradient(self, x: np.ndarray, part: np.ndarray | None = None) -> np.ndarray:
        """Return the gradient of F, or of the mean loss over some samples plus decay.

        Parameters
        ----------
        x : ndarray
            Parameters as a vector.
        part : ndarray or None, optional
            Indices of training samples; None takes all.
        """
        everything = np.arange(len(self.data().train)) if part is None else part
        return self.derivatives(x, everything)[0] + self.decay * x

    def optimum(self) -> Optimum:
        """Return the minimiser; F at it is within 1e-12 max(1, F*) of the infimum.

        Raises
        ------
        RuntimeError
            If this accuracy is not reached.
        """
        return _optimum(self)

    def suboptimality(self, model: torch.nn.Module) -> float:
        """Return F - F*, accurate to ``optimum().error`` and the rounding error of F.

        Parameters
        ----------
        model : Module
            Model of ``model()``.
        """
        return max(0.0, float(self.objective(model).detach()) - self.optimum().value)

    def constants(self) -> Constants:
        """Return exact L and mu, the gap to the certified minimum, and the noise of a mini-batch.

        L is the supremum over x of the Hessian's largest eigenvalue; it is attained, or approached along the
        intercepts.  With a split, heterogeneity is the mean over workers of ``|grad F_i(x*)|^2``.
        """
        sigma2, reason = (0.0, "") if self.batch is None else self.variance()
        heterogeneity = 0.0
        if self.split is not None:
            reason, heterogeneity = "the workers have different samples", self._heterogeneity()
        return Constants(
            L=self.curvature() * top_eigenvalue(self.features()) + self.decay,
            sigma2=sigma2 / (self.batch or 1),
            gap=self.suboptimality(self.model()),
            exact=not reason,
            reason=reason,
            mu=self.mu(),
            heterogeneity=heterogeneity,
        )

    def mu(self) -> float:
        """Return the infimum over x of the Hessian's smallest eigenvalue."""
        return self.decay

    def shares(self) -> list[tuple[np.ndarray, float]]:
        """Return every worker's sample indices and the weight of its mean loss in its objective."""
        if self.split is None:
            return [(self.shard(None), 1.0)]
        m, n = self.split.workers, len(self.data().train)
        parts = [self.shard(i) for i in range(m)]
        return [(part, len(part) * m / n) for part in parts]

    def local_smoothness(self) -> float:
        """Return the largest L of all workers' own objectives."""
        A = self.features()
        return max(w * self.curvature() * top_eigenvalue(A[part]) for part, w in self.shares()) + self.decay

    def _heterogeneity(self) -> float:
        x = self.optimum().x
        local_gradients = [w * self.derivatives(x, part)[0] + self.decay * x for part, w in self.shares()]
        return float(np.mean([g @ g for g in local_gradients]))


def top_eigenvalue(features: np.ndarray) -> float:
    """Return the largest eigenvalue of A^T A/n.

    Parameters
    ----------
    features : ndarray
        A, shape (n, d).
    """
    return float(np.linalg.eigvalsh(features.T @ features / len(features))[-1])


@lru_cache(maxsize=32)
def _optimum(problem: LinearModel) -> Optimum:
    """Minimise by Newton's method from zero with step halving, until F - F* is at rounding level."""
    everything = np.arange(len(problem.data().train))
    x = problem.flat(problem.model())
    value, gradient, hessian = _second_order(problem, x, everything)
    error = float(gradient @ gradient) / (2 * problem.mu())
    for _ in range(NEWTON_STEPS):
        if error <= SETTLED:
            break
        step = np.linalg.solve(hessian, gradient)
        moved = _second_order(problem, x - step, everything)
        while moved[0] > value and error > CERTIFIED:
            step = step / 2
            moved = _second_order(problem, x - step, everything)
        x = x - step
        value, gradient, hessian = moved
        error = float(gradient @ gradient) / (2 * problem.mu())
    if error > CERTIFIED * max(1.0, abs(value)):
        raise RuntimeError(f"the minimum of {problem.name} was only found to {error:g}: give it a larger decay")
    return Optimum(x, value, error)


def _second_order(problem: LinearModel, x: np.ndarray, part: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    model = problem.model()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(x), model.parameters())
    with torch.no_grad():
        value = float(problem.objective(model))
    gradient, hessian = problem.derivatives(x, part)
    return value, gradient + problem.decay * x, hessian + problem.decay * np.eye(len(x))


def numpy_targets(problem: Supervised, part: np.ndarray) -> np.ndarray:
    """Return the targets of some training samples.

    Parameters
    ----------
    problem : Supervised
        Workload with the samples.
    part : ndarray
        Indices of training samples.
    """
    return problem.data().train.targets.numpy()[part]
