"""Numbers that ride along: a rule sees what it would see without them, for one collective a round instead of two."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bounds.schedules import Observation, Schedule, State
from gpu_validation.averaging import PeriodicAveraging
from gpu_validation.exchange import Exchange
from gpu_validation.riding import Riding
from operators import TopK

from .ranks import in_ranks

pytestmark = pytest.mark.timeout(60)
STEPS = 10


@dataclass(frozen=True)
class Spy(Schedule):
    """Rounds of 1, 2, 3, ... steps; remembers what it was shown."""

    seen: Sequence[Observation]

    def init(self):
        return State()

    def __call__(self, state, observation):
        self.seen.append(observation)
        return state, len(self.seen)


class Counting(Exchange):
    """Counts the collectives that tell a rule something."""

    told = 0

    def numbers(self, rows):
        self.told += 1
        return super().numbers(rows)


class CountingRiding(Riding, Counting):
    """The same, for those that do not ride along."""


def run(place, exchange, **settings):
    spy = Spy([])
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    averaging = PeriodicAveraging(model, optimizer, schedule=spy, exchange=exchange, **settings)
    if isinstance(exchange, Riding):
        exchange.observe(averaging)
    for k in range(STEPS):
        with torch.no_grad():
            model.weight += 0.25 * place.rank + k
        averaging.step(2.0**-k * (1 + place.rank))
    losses = [o.loss for o in spy.seen]
    return losses, [o.time_s for o in spy.seen], exchange.told, model.weight


def test_the_rule_sees_the_same_losses_and_the_models_are_the_same():
    def work(place):
        torch.manual_seed(0)
        plain = run(place, Counting())
        torch.manual_seed(0)
        return plain, run(place, CountingRiding())

    for plain, riding in in_ranks(work, processes=3):
        np.testing.assert_allclose(riding[0], plain[0], rtol=1e-6)
        np.testing.assert_array_equal(riding[3], plain[3])
        assert riding[1] == sorted(riding[1])
        assert len(plain[0]) == plain[2] == 5  # before the first step, and after rounds of 1, 2, 3 and 4
        assert riding[2] == 1  # before the first step there is no averaging to ride on


def test_all_ranks_see_the_same():
    reports = in_ranks(lambda place: run(place, CountingRiding())[:2], processes=3)

    assert reports[0] == reports[1] == reports[2]


def test_compressed_rounds_take_the_second_collective():
    reports = in_ranks(lambda place: run(place, CountingRiding(), operator=TopK(k=2))[2], processes=2)

    assert reports == [5, 5]
