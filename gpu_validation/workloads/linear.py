"""Ridge and logistic regression: one linear layer in float64, exact constants, a certified minimum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch.nn.functional import cross_entropy, softplus

from .data import Bundled, Source
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


DIABETES = Bundled("diabetes")


@dataclass(frozen=True)
class Ridge(LinearModel):
    """F(x) = mean (a_i . x - b_i)^2/2 + decay/2 ``|x|^2``, including the intercept.

    Parameters
    ----------
    source : Source, optional
        Regression data, or data of two classes, whose targets become -1 and 1.
    eta : float, optional
        Learning rate.

    Raises
    ------
    ValueError
        For more than two classes, when the data are read.

    Notes
    -----
    The variance of a mini-batch gradient grows with x.  So no theorem with a uniform sigma^2 has a verdict unless
    ``batch`` is None.  sigma2 is the variance at the start.
    """

    source: Source = DIABETES
    eta: float = 0.05

    name = "ridge"

    def rows(self) -> int:
        """Return 1: a regression has a single output."""
        return 1

    def curvature(self) -> float:
        return 1.0

    def mu(self) -> float:
        """Return the smallest eigenvalue of A^T A/n plus the decay."""
        A = self.features()
        return max(0.0, float(np.linalg.eigvalsh(A.T @ A / len(A))[0])) + self.decay

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return half the squared residuals."""
        return 0.5 * (outputs[:, 0] - self._signed(targets).to(outputs)) ** 2

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the class with the nearer target."""
        return (outputs[:, 0] > 0).long()

    def derivatives(self, x: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A^T (A x - b)/n and A^T A/n."""
        A = self.features()[part]
        b = self._signed(torch.from_numpy(numpy_targets(self, part))).numpy()
        return A.T @ (A @ x - b) / len(part), A.T @ A / len(part)

    def variance(self) -> tuple[float, str]:
        """Return the variance at the start, where the gradients are -b_i a_i."""
        b = self._signed(self.data().train.targets).numpy()
        each = self.features() * b[:, None]
        return float(each.var(axis=0).sum()), "the variance grows with x; sigma2 is that at the start"

    def _signed(self, targets: torch.Tensor) -> torch.Tensor:
        classes = self.data().classes
        if classes > 2:
            raise ValueError(f"ridge regression needs numbers or two classes; {self.data().name} has {classes} classes")
        return 2.0 * targets - 1.0 if classes else targets


DIGITS = Bundled("digits")


@dataclass(frozen=True)
class LogisticRegression(LinearModel):
    """Mean logistic loss plus decay/2 ``|x|^2`` in weights and intercepts; softmax loss for three or more classes.

    L = c lambda_max(A^T A/n) + decay, with c = 1/4 for two classes (attained at x = 0) and c = 1/2 for more (approached
    if two classes share all the probability).  mu = decay, which is approached as all probabilities saturate.  sigma2
    is at most ``c' mean |a_i|^2`` over the batch for all x, with c' = 1 or 2, since ``|p - y|^2`` is at most c'.

    Raises
    ------
    ValueError
        For regression data, when they are read.
    """

    source: Source = DIGITS

    name = "logistic"

    @property
    def binary(self) -> bool:
        """Whether there are two classes, and so a single output."""
        classes = self.data().classes
        if not classes:
            raise ValueError(f"logistic regression needs labels; {self.data().name} is a regression")
        return classes == 2

    def rows(self) -> int:
        """Return the number of outputs: 1 for two classes, else as many as classes."""
        return 1 if self.binary else self.data().classes

    def curvature(self) -> float:
        """Return the largest eigenvalue of diag(p) - p p^T; of p (1 - p) for one output."""
        return 0.25 if self.binary else 0.5

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return -log p of the true label."""
        if not self.binary:
            return cross_entropy(outputs, targets, reduction="none")
        return softplus((1 - 2 * targets).to(outputs) * outputs[:, 0])

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the most probable labels."""
        return (outputs[:, 0] > 0).long() if self.binary else outputs.argmax(dim=1)

    def derivatives(self, x: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and Hessian in the order of the model's parameters: weights by row, then intercepts."""
        A, y = self.features()[part], numpy_targets(self, part)
        n, d = A.shape
        rows = self.rows()
        W = np.concatenate([x[: rows * (d - 1)].reshape(rows, d - 1), x[rows * (d - 1) :, None]], axis=1)
        p = _probabilities(A @ W.T)
        wrong = p - (y[:, None] if self.binary else np.eye(rows)[y])
        gradient = wrong.T @ A / n  # (rows, d)
        hessian = np.empty((rows, d, rows, d))
        for j in range(rows):
            for k in range(j + 1):
                weight = p[:, j] * ((j == k) - p[:, k])
                hessian[j, :, k] = hessian[k, :, j] = A.T @ (A * weight[:, None]) / n
        order = _order(rows, d)
        return gradient.reshape(-1)[order], hessian.reshape(rows * d, rows * d)[np.ix_(order, order)]

    def variance(self) -> tuple[float, str]:
        """Return a bound for all x: ``E|g_i|^2`` with the largest ``|p - y|^2``."""
        largest = 1.0 if self.binary else 2.0
        return largest * float(np.square(self.features()).sum(axis=1).mean()), ""


def _probabilities(outputs: np.ndarray) -> np.ndarray:
    """Return the probability of label 1 for one output, of every label for more; same shape as the outputs."""
    if outputs.shape[1] == 1:
        return np.exp(-np.logaddexp(0, -outputs))
    shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _order(rows: int, d: int) -> np.ndarray:
    """Return the positions in a (rows, d) table, intercepts last, in the order of the parameters."""
    place = np.arange(rows * d).reshape(rows, d)
    return np.concatenate([place[:, :-1].reshape(-1), place[:, -1]])
