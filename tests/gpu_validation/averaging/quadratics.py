"""Simulated workers on a quadratic in float64, whose rounds ``bounds.dynamics.outer`` describes exactly."""

import numpy as np
import torch

from gpu_validation.averaging.merge.rules import Eager
from gpu_validation.averaging.simulated import SimulatedWorkers


class Point(torch.nn.Module):
    def __init__(self, start):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))


def trajectory(eigenvalues, *, eta, tau, rounds, m=2, start=None, kicks=None, **settings):
    """The common model after every round, shape (rounds, d), and the workers; ``kicks(rank, step)`` joins gradients."""
    eigenvalues = torch.tensor(eigenvalues, dtype=torch.float64)
    start = np.ones(len(eigenvalues)) if start is None else start
    models = [Point(start) for _ in range(m)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=eta) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=tau, **settings)
    path = []
    for step in range(rounds * tau):
        for rank, model in enumerate(models):
            model.x.grad = eigenvalues * model.x.detach()
            if kicks is not None:
                model.x.grad += torch.as_tensor(kicks(rank, step))
            optimizers[rank].step()
        if workers.step() is not None:
            path.append(common_model(workers))
    return np.array(path), workers


def common_model(workers):
    if workers.engine.overlapped is not None:
        thetas = [theta.numpy() for theta in workers.engine.overlapped.thetas()]
        return np.mean(thetas, axis=0) if isinstance(workers.engine.overlapped.rule, Eager) else thetas[0]
    worker = workers.engine.workers[0]
    return (worker.anchor if worker.keeps_anchor else worker.model.x.detach()).numpy().copy()


def growth(path):
    """By what the largest entry has grown from the first third of a path to the last."""
    third = len(path) // 3
    return np.abs(path[-third:]).max() / np.abs(path[:third]).max()
