"""One number for the learning rate of an optimizer, whatever its groups hold."""

import math
from types import SimpleNamespace

import pytest
import torch

from gpu_validation.processes.learning_rates import INVALID, RoundRates, learning_rate, require_rates


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ([0.0], 0.0),
        ([0.0, 0.1, 0.01], 0.1),  # a frozen first group
        ([None, 0.1], 0.1),
        ([torch.tensor(0.5)], 0.5),
        ([torch.tensor([0.25], requires_grad=True)], 0.25),
        ([-0.1, 0.1], -0.1),
        ([math.nan, 0.1], INVALID),
        ([torch.ones(2)], INVALID),
        (["fast"], INVALID),
    ],
    ids=repr,
)
def test_the_largest_rate_counts_and_what_is_invalid_comes_first(given, rate):
    assert learning_rate([{"lr": lr} for lr in given]) == rate


def test_a_rate_of_none_is_unknown():
    assert math.isnan(learning_rate([{"lr": None}, {}]))
    assert require_rates([math.nan, 0.0, 0.1]) == [None, 0.0, 0.1]


@pytest.mark.parametrize("rate", [-0.1, math.inf, INVALID])
def test_an_invalid_rate_is_refused_with_its_rank(rate):
    with pytest.raises(ValueError, match=r"None or one finite number >= 0; rank 1 has .* correct lr"):
        require_rates([0.1, rate])


def test_a_step_counts_with_the_larger_rate_before_and_after_it():
    optimizer = SimpleNamespace(param_groups=[{"lr": torch.tensor(0.0)}])
    rates = RoundRates(optimizer)
    for rate in (0.5, 0.25, 0.0):
        optimizer.param_groups[0]["lr"].fill_(rate)  # a capturable optimizer's rate changes in place
        rates.record()

    kept = rates.state_dict()
    assert kept == [0.0, 0.5, 0.25, 0.0]
    assert rates.end_round() == (0.5 + 0.5 + 0.25) / 3
    assert rates.end_round() == 0.0  # no step since
    rates.load_state_dict(kept)
    assert rates.end_round() == (0.5 + 0.5 + 0.25) / 3
