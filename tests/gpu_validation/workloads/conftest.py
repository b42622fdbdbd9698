"""PASGD in one process, written as plainly as possible: what the workloads are held against."""

import pytest
import torch

from gpu_validation.processes.tensors import flat, load
from operators import Key


@pytest.fixture(scope="session")
def averaged_path():
    """The mean model before each step and after the last, shape (steps + 1, d), float64."""

    def run(workload, *, m, tau, steps, seed=0):
        models = [workload.model() for _ in range(m)]
        path = []
        for k in range(steps):
            path.append(mean_of(models).double())
            for rank, model in enumerate(models):
                value = workload.loss(model, key=Key(seed, step=k, rank=rank))
                parameters = list(model.parameters())
                for p, g in zip(parameters, torch.autograd.grad(value, parameters), strict=True):
                    p.data -= workload.eta * g
            if (k + 1) % tau == 0:
                mean = mean_of(models)
                for model in models:
                    load(mean, list(model.parameters()))
        return torch.stack([*path, mean_of(models).double()]).numpy()

    return run


@pytest.fixture(scope="session")
def gradient():
    """The gradient of a value by all parameters of a model, shape (d,), float64."""

    def of(model, value):
        parts = torch.autograd.grad(value, list(model.parameters()))
        return torch.cat([g.reshape(-1).double() for g in parts]).numpy()

    return of


def mean_of(models):
    return torch.stack([flat(list(model.parameters())) for model in models]).mean(dim=0)
