"""Real data: the 1797 handwritten digits bundled with scikit-learn (8 x 8 pixels, ten classes)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from operators import Key
from operators.random import uniform

from .workload import Constants, Description, Draw, Workload

CLASSES = 10
PIXELS = 64


@lru_cache(maxsize=1)
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images in [0, 1], shape (1797, 64), float32, and labels, shape (1797,), int64."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.data / 16.0, dtype=torch.float32), torch.tensor(data.target, dtype=torch.int64)


@dataclass(frozen=True)
class Digits(Workload):
    """Softmax classification of the digits; each worker draws mini-batches from the whole set."""

    batch: int = 32
    eta: float = 0.1
    decay: float = 0.0

    def draw(self, *, key: Key) -> Draw:
        """(indices,) of ``batch`` images drawn with replacement."""
        return (torch.from_numpy((uniform(key, self.batch) * len(digits()[1])).astype(np.int64)),)

    def loss_on(self, model: torch.nn.Module, draw: Draw) -> torch.Tensor:
        """Mean loss over the drawn images."""
        images, labels = digits()
        return self._loss(model, images[draw[0]], labels[draw[0]])

    def description(self) -> Description:
        """Real images."""
        images, _ = digits()
        return Description("digits", synthetic=False, samples=len(images), shape=(PIXELS,), classes=CLASSES)

    def objective(self, model: torch.nn.Module) -> torch.Tensor:
        """Mean loss over all images."""
        return self._loss(model, *digits())

    def _loss(self, model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        value = torch.nn.functional.cross_entropy(model(images), labels)
        if self.decay:
            value = value + 0.5 * self.decay * sum(p.square().sum() for p in model.parameters())
        return value

    def _sigma2(self, model: torch.nn.Module) -> float:
        """Variance of one worker's mini-batch gradient at the start, from every single image's gradient."""
        images, labels = digits()
        parameters: dict[str, torch.Tensor] = dict(model.named_parameters())

        def single(values: dict[str, torch.Tensor], image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
            output = torch.func.functional_call(model, values, (image[None],))
            return torch.nn.functional.cross_entropy(output, label[None])

        each = torch.func.vmap(torch.func.grad(single), in_dims=(None, 0, 0))(parameters, images, labels)
        spread = torch.stack([g.double().var(dim=0, unbiased=False).sum() for g in each.values()]).sum()
        return float(spread.detach()) / self.batch


@dataclass(frozen=True)
class LogisticRegression(Digits):
    """Multinomial logistic regression, 650 parameters, starting at zero.  Convex and smooth."""

    decay: float = 1e-3
    eta: float = 0.1

    name = "logistic"

    def model(self) -> torch.nn.Module:
        """One linear layer at zero."""
        layer = torch.nn.utils.skip_init(torch.nn.Linear, PIXELS, CLASSES)
        for p in layer.parameters():
            torch.nn.init.zeros_(p)
        return layer

    def constants(self) -> Constants:
        """L is an upper bound (the softmax Hessian is at most 1/2); sigma2 is measured at the start."""
        images, _ = digits()
        augmented = torch.cat([images, torch.ones(len(images), 1)], dim=1).double()
        top = float(torch.linalg.matrix_norm(augmented, ord=2) ** 2) / len(images)
        start = self.model()
        return Constants(
            L=0.5 * top + self.decay,
            sigma2=self._sigma2(start),
            gap=float(self.objective(start).detach()),
            exact=False,
            reason="sigma2 is measured at the start and not uniform in x, and inf F is only known to be >= 0",
        )


@dataclass(frozen=True)
class SmallNetwork(Digits):
    """64-32-10 network with tanh units, 2410 parameters.  Not convex."""

    hidden: int = 32
    eta: float = 0.2

    name = "network"

    def model(self) -> torch.nn.Module:
        """Two layers, started from a fixed stream of the project's own generator."""
        network = torch.nn.Sequential(
            torch.nn.utils.skip_init(torch.nn.Linear, PIXELS, self.hidden),
            torch.nn.Tanh(),
            torch.nn.utils.skip_init(torch.nn.Linear, self.hidden, CLASSES),
        )
        with torch.no_grad():
            for index, p in enumerate(network.parameters()):
                width = p.shape[1] if p.ndim == 2 else self.hidden
                values = 2 * uniform(Key(0).fold(index), p.numel()) - 1
                p.copy_(torch.from_numpy(values / np.sqrt(width)).view_as(p))
        return network

    def constants(self) -> Constants:
        """L is the largest Hessian eigenvalue at the start, by power iteration: an estimate, local."""
        start = self.model()
        return Constants(
            L=top_curvature(self, start),
            sigma2=self._sigma2(start),
            gap=float(self.objective(start).detach()),
            exact=False,
            reason="L is the curvature at the start only, sigma2 is not uniform in x, inf F is not known",
        )


def top_curvature(workload: Workload, model: torch.nn.Module, *, iterations: int = 30) -> float:
    """Largest |eigenvalue| of the Hessian of F at the model, by power iteration with exact products."""
    parameters = list(model.parameters())
    gradient = torch.autograd.grad(workload.objective(model), parameters, create_graph=True)
    direction = [torch.ones_like(p) for p in parameters]
    size = _norm(direction)
    for _ in range(iterations):
        direction = [v / size for v in direction]
        along = torch.stack([(g * v).sum() for g, v in zip(gradient, direction, strict=True)]).sum()
        direction = list(torch.autograd.grad(along, parameters, retain_graph=True))
        size = _norm(direction)
    return size


def _norm(tensors: list[torch.Tensor]) -> float:
    return float(torch.stack([t.square().sum() for t in tensors]).sum().sqrt())
