"""A state that is refused leaves the averaging as it was, whichever of its entries is damaged."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager
from gpu_validation.averaging.outer import BlockMomentum, Nesterov
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import QSGD, ErrorFeedback, Key, TopK

M, D = 2, 5
SETTINGS = {
    "whole": {},
    "block momentum": {"outer": BlockMomentum(0.5)},
    "feedback, two shots": {"exchange": TwoShot(ErrorFeedback(TopK(fraction=0.5))), "key": Key(1)},
    "Nesterov": {"outer": Nesterov(0.7, 0.5), "operator": QSGD(levels=4), "key": Key(2)},
    "Adam": {"outer": lambda theta: torch.optim.Adam(theta, lr=0.1)},
    "fragments": {"merge": Corrected(delay=1, fragments=2), "schedule": 4, "outer": Nesterov(0.7, 0.5)},
    "delayed": {"merge": Delayed(), "operator": ErrorFeedback(TopK(fraction=0.5)), "key": Key(3)},
    "eager": {"merge": Eager()},
}


def made(settings):
    models = [torch.nn.Linear(D, 1) for _ in range(M)]
    for model in models:
        torch.nn.init.constant_(model.weight, 0.25)
        torch.nn.init.constant_(model.bias, 0.0)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    return models, optimizers, SimulatedWorkers(models, optimizers, **{"schedule": 3, **settings})


def train(run, steps):
    models, optimizers, workers = run
    for step in steps:
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            x = torch.linspace(-1, 1 + rank, 3 * D).view(3, D) * (1 + step % 5)
            optimizer.zero_grad()
            (model(x) - rank).square().mean().backward()
            optimizer.step()
        workers.step()


def leaves(state, path=()):
    """Return the paths of all values of a state."""
    if isinstance(state, dict):
        parts = state.items()
    elif isinstance(state, list | tuple):
        parts = enumerate(state)
    else:
        return [path]
    return [leaf for key, part in parts for leaf in leaves(part, (*path, key))] or [path]


def changed(state, path, value):
    """Return a copy of the state with another value at a path."""
    if not path:
        return value
    copied = dict(state) if isinstance(state, dict) else list(state)
    copied[path[0]] = changed(copied[path[0]], path[1:], value)
    return copied


def value_at(state, path):
    for key in path:
        state = state[key]
    return state


def digest(models):
    return [p.detach().clone() for model in models for p in model.parameters()]


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@given(data=st.data())
def test_a_refused_state_changes_nothing(settings, data):
    steps = data.draw(st.integers(1, 9), label="steps")
    undisturbed, disturbed = made(settings), made(settings)
    train(undisturbed, range(steps))
    train(disturbed, range(steps))
    other = made(settings)
    train(other, range(7, 7 + data.draw(st.integers(1, 9), label="other steps")))
    state = copy.deepcopy(other[2].state_dict())

    path = data.draw(st.sampled_from(leaves(state)), label="path")
    value = value_at(state, path)
    damages = ["removed"]
    if isinstance(value, torch.Tensor) and value.numel() > 1:
        damages = ["longer", "nan"]
    damage = data.draw(st.sampled_from(damages))
    if damage == "longer":
        damaged = changed(state, path, torch.cat([value, value]))
    elif damage == "nan":
        damaged = changed(state, path, torch.full_like(value, torch.nan) if value.is_floating_point() else None)
    else:
        damaged = changed(state, path[:-1], "damaged")
    try:
        disturbed[2].load_state_dict(damaged)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        pass
    else:
        assert damage == "removed", (path, damage)
        return  # an entry that is not needed
    train(undisturbed, range(steps, 12))
    train(disturbed, range(steps, 12))
    for one, two in zip(digest(undisturbed[0]), digest(disturbed[0]), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)
