"""Bytes of averages in flight: P fragments send a P-th at a time and as much in all; what is frozen does not travel."""

import numpy as np
import pytest
import torch

from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
TAU, ROUNDS, FROZEN, TRAINED = 8, 3, 5000, 4000
COUNT = 17  # values behind a message that say after how many steps it was sent, at most


def sent_by(place, fragments):
    """Bytes that this rank has handed over for every averaging, in their order."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FROZEN // 10, 10, bias=False), torch.nn.Linear(TRAINED, 1, bias=False))
    model[0].requires_grad_(False)
    averaging = PeriodicAveraging(model, schedule=TAU, merge=Corrected(delay=1, fragments=fragments))
    transport, means, events = averaging.transport, averaging.transport.means, []

    def counted(owns, members):
        before = transport.payload_bytes
        try:
            return means(owns, members)
        finally:
            events.append(transport.payload_bytes - before)

    transport.means = counted
    for _ in range(ROUNDS * TAU):
        with torch.no_grad():
            model[1].weight += 1.0
        averaging.step()
    averaging.engine.overlapped.drain(averaging.total_steps)
    return events


@pytest.mark.parametrize("fragments", [1, 4])
def test_a_message_is_a_share_of_the_parameters_that_require_a_gradient(fragments):
    for events in in_ranks(lambda place: sent_by(place, fragments), processes=2):
        share = 4 * TRAINED // fragments  # to the one other rank

        assert len(events) in (ROUNDS * fragments, ROUNDS * fragments + 1)  # and one that is under way at the end
        assert max(events) <= share + 4 * COUNT
        assert min(events) >= share
        assert np.sum(events[: ROUNDS * fragments]) >= ROUNDS * 4 * TRAINED
