"""Parameter histories that other projects record of the same rounds of local steps."""

import pytest
import torch

from gpu_validation import SGD, Nesterov, SimulatedWorkers


class Vector(torch.nn.Module):
    def __init__(self, values):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(values))


def history(values, steps, **settings):
    """The parameters of two workers whose gradients are all 2, at a learning rate of 1."""
    models = [Vector(values) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in models]
    workers, path = SimulatedWorkers(models, optimizers, **settings), [tuple(values)]
    for _ in range(steps):
        for model, optimizer in zip(models, optimizers, strict=True):
            model.w.grad = torch.full_like(model.w, 2.0)
            optimizer.step()
        workers.step()
        path.append(tuple(models[0].w.tolist()))
    return path


def test_rounds_without_overlap_follow_the_history_of_torchft():
    """The second fragment of its first case, whose rounds begin at the start."""
    path = history([1.0], 15, schedule=6, outer=SGD(2.0))
    assert [v for (v,) in path] == [1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53]


def test_two_replicas_follow_the_computation_by_hand_in_maxtext():
    """Linear regression of two replicas, three local steps, then Nesterov at 1.0 with momentum 0.9."""
    x = torch.tensor([[[0.0, 1], [1, 0]], [[1, 0], [0, 1]]])
    y = torch.tensor([[[1.0], [2]], [[2], [3]]])
    models = [torch.nn.Linear(2, 1) for _ in range(2)]
    for model in models:
        model.load_state_dict({"weight": torch.tensor([[2.0, 1.0]]), "bias": torch.ones(1)})
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    workers, losses = SimulatedWorkers(models, optimizers, schedule=3, outer=Nesterov(1.0, 0.9)), []
    for step in range(4):
        for model, optimizer, inputs, labels in zip(models, optimizers, x, y, strict=True):
            optimizer.zero_grad()
            loss = ((model(inputs) - labels) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        workers.step()
        if step == 2:
            assert models[1].weight[0].tolist() == pytest.approx([1.5345, 1.0494], abs=1e-4)
            assert models[1].bias.item() == pytest.approx(0.5839, abs=1e-4)
    assert losses == pytest.approx([1, 1, 0.49, 0.81, 0.2401, 0.6561, 0.2075, 0.9409], abs=1e-4)
