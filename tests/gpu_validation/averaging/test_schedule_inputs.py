"""Numbers that travel with the models: a rule sees what it sees without, for one collective a round instead of two."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bounds.schedules import Observation, Schedule, State
from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.processes.collectives import ProcessTransport
from operators import Key, TopK
from tests.gpu_validation.ranks import in_ranks

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


class Counting(ProcessTransport):
    """Counts the collectives that tell a rule something."""

    told = 0

    def all_gather_floats(self, rows):
        self.told += 1
        return super().all_gather_floats(rows)


def run(place, transport, *, piggyback=False, **settings):
    spy = Spy([])
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    averaging = PeriodicAveraging(
        model, optimizer, schedule=Pacing(spy, piggyback=piggyback), process_group=transport, **settings
    )
    for k in range(STEPS):
        with torch.no_grad():
            model.weight += 0.25 * place.rank + k
        averaging.step(2.0**-k * (1 + place.rank))
    losses = [o.loss for o in spy.seen]
    return losses, [o.time_s for o in spy.seen], transport.told, model.weight


def test_the_rule_sees_the_same_losses_and_the_models_are_the_same():
    def work(place):
        torch.manual_seed(0)
        plain = run(place, Counting())
        torch.manual_seed(0)
        return plain, run(place, Counting(), piggyback=True)

    for plain, piggybacked in in_ranks(work, processes=3):
        np.testing.assert_allclose(piggybacked[0], plain[0], rtol=1e-6)
        np.testing.assert_array_equal(piggybacked[3], plain[3])
        assert piggybacked[1] == sorted(piggybacked[1])
        assert len(plain[0]) == plain[2] == 5  # before the first step, and after rounds of 1, 2, 3 and 4
        assert piggybacked[2] == 1  # before the first step there is no averaging to travel with


def test_all_ranks_see_the_same():
    reports = in_ranks(lambda place: run(place, Counting(), piggyback=True)[:2], processes=3)

    assert reports[0] == reports[1] == reports[2]


def test_with_compressed_rounds_they_travel_before_the_messages():
    def work(place):
        torch.manual_seed(0)
        plain = run(place, Counting(), operator=TopK(k=2))
        torch.manual_seed(0)
        return plain, run(place, Counting(), operator=TopK(k=2), piggyback=True)

    for plain, piggybacked in in_ranks(work, processes=2):
        np.testing.assert_allclose(piggybacked[0], plain[0], rtol=1e-6)
        np.testing.assert_array_equal(piggybacked[3], plain[3])
        assert (plain[2], piggybacked[2]) == (5, 1)


def test_modes_that_leave_ranks_out_are_refused():
    def work(place):
        with pytest.raises(ValueError, match="piggyback does not work with mixing = Sampled"):
            run(place, Counting(), piggyback=True, mixing=Sampled(clients=1, key=Key(0)))
        return True

    assert all(in_ranks(work, processes=2))
