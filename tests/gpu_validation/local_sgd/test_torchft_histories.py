"""Parameters after every step as torchft 7eb7087 records them (``streaming_diloco``): equal, step by step.

Two replicas, two scalar parameters that start at 1, one fragment each; inner gradient 2 at rate 1; outer SGD at rate 2;
6 local steps a round.  ``delay`` is torchft's ``fragment_sync_delay``, ``alpha`` its ``fragment_update_alpha``.
"""

import pickle

import pytest
import torch

from gpu_validation import SGD, Nesterov, SimulatedWorkers
from operators import QSGD

TAU = 6
RECORDED = {  # (delay, alpha) -> first and second parameter
    (0, 0): (
        [1.0, -1.0, -3.0, -11.0, -13.0, -15.0, -17.0, -19.0, -21.0, -35.0, -37.0, -39.0, -41.0, -43.0, -45.0, -59.0],
        [1.0, -1.0, -3.0, -5.0, -7.0, -9.0, -23.0, -25.0, -27.0, -29.0, -31.0, -33.0, -47.0, -49.0, -51.0, -53.0],
    ),
    (1, 0): (
        [1.0, -1.0, -3.0, -7.0, -9.0, -11.0, -13.0, -15.0, -17.0, -27.0, -29.0, -31.0, -33.0, -35.0, -37.0, -47.0],
        [1.0, -1.0, -3.0, -5.0, -7.0, -9.0, -19.0, -21.0, -23.0, -25.0, -27.0, -29.0, -39.0, -41.0, -43.0, -45.0],
    ),
    (1, 0.5): (
        [1.0, -1.0, -3.0, -6.0, -8.0, -10.0, -12.0, -14.0, -16.0, -21.5, -23.5, -25.5, -27.5, -29.5, -31.5, -35.75],
        [1.0, -1.0, -3.0, -5.0, -7.0, -9.0, -15.0, -17.0, -19.0, -21.0, -23.0, -25.0, -29.0, -31.0, -33.0, -35.0],
    ),
}


class Scalars(torch.nn.Module):
    """Two scalar parameters."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Parameter(torch.ones(())) for _ in range(2))


def histories(steps, *, replicas=2, **settings):
    """The parameters of the first replica at the start and after every step."""
    models = [Scalars() for _ in range(replicas)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in models]
    averaging = SimulatedWorkers(models, optimizers, schedule=TAU, outer=SGD(2.0, 0.0), fragments=2, **settings)
    found = [[p.item() for p in models[0].parameters()]]
    for _ in range(steps):
        for model, optimizer in zip(models, optimizers, strict=True):
            for parameter in model.parameters():
                parameter.grad = torch.tensor(2.0)
            optimizer.step()
        averaging.step()
        found.append([p.item() for p in models[0].parameters()])
    return tuple(map(list, zip(*found, strict=True)))


@pytest.mark.parametrize(("delay", "alpha"), RECORDED)
def test_every_step_is_that_of_the_recorded_history(delay, alpha):
    recorded = RECORDED[delay, alpha]
    found = histories(len(recorded[0]) - 1, overlap="overwrite", delay=delay, local_weight=alpha)
    assert found == recorded


@pytest.mark.parametrize("wrong", [{"delay": 2}, {"local_weight": 0.25}])
def test_another_delay_or_weight_gives_another_history(wrong):
    settings = {"overlap": "overwrite", "delay": 1, "local_weight": 0.5}
    assert histories(15, **settings) == RECORDED[1, 0.5]
    assert histories(15, **settings | wrong) != RECORDED[1, 0.5]


RESUMED = (
    {"delay": 0, "fragments": 3},
    {"delay": 2, "local_weight": 0.25},
    {"delay": 0, "fragments": 2, "local_weight": 0.5},
    {"delay": 1, "fragments": 2, "local_weight": 0.5, "operator": QSGD(4)},
)


def trained(steps, settings, stops_after=None):
    """Parameters of three replicas, which may be saved and restored in a new averaging after a step."""
    torch.manual_seed(0)
    models = [torch.nn.Linear(5, 3) for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]

    def made():
        return SimulatedWorkers(
            models, optimizers, schedule=TAU, outer=Nesterov(0.7, 0.5), overlap="overwrite", **settings
        )

    averaging, draws = made(), torch.Generator().manual_seed(1)
    for step in range(steps):
        if step == stops_after:
            saved = pickle.dumps([averaging.state_dict(), [model.state_dict() for model in models]])
            averaging, (state, states) = made(), pickle.loads(saved)
            for model, of_model in zip(models, states, strict=True):
                model.load_state_dict(of_model)
            averaging.load_state_dict(state)
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            model(torch.randn(4, 5, generator=draws)).square().mean().backward()
            optimizer.step()
        averaging.step()
    return torch.cat([parameter.flatten() for model in models for parameter in model.parameters()])


@pytest.mark.parametrize("settings", RESUMED, ids=str)
def test_a_restored_averaging_goes_on_bit_for_bit(settings):
    undisturbed = trained(16, settings)
    for stops_after in (1, 5, 6, 7, 11):
        assert torch.equal(trained(16, settings, stops_after), undisturbed)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"overlap": "corrected", "local_weight": 0.5}, 'local_weight needs overlap="overwrite"'),
        ({"overlap": "overwrite", "local_weight": 1.0}, "0 <= local_weight < 1; got 1.0"),
        ({"overlap": "overwrite", "local_weight": True}, "local_weight must be a number"),
        ({"overlap": "overwrite", "delay": -1}, "0 <= delay <= tau; got delay = -1"),
    ],
)
def test_what_cannot_be_merged_is_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        histories(1, **settings)
