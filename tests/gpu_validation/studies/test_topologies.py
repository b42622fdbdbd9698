"""Every topology brings every message to every rank and sends exactly the bytes that it predicts."""

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.processes.launch import run_ranks
from gpu_validation.studies.topologies import TOPOLOGIES
from operators import Message

pytestmark = pytest.mark.timeout(90)

LENGTHS = ((0, 3, 1000, 17), (8, 8, 8, 8), (0, 0, 0, 0), (100_000, 0, 1, 0))  # bits, one a rank


def message_of(rank, bits):
    return Message(torch.full(((bits + 7) // 8,), 0x80 + rank, dtype=torch.uint8), bits)


class CountingTransport:
    """Counts what is given to torch.distributed for other ranks, whichever call is used."""

    def __init__(self, patch):
        self.bytes = 0
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        for name in ("send", "isend"):
            patch.setattr(dist, name, self.wrapped(getattr(dist, name), lambda tensor, *_, **__: tensor.nbytes))
        patch.setattr(dist, "all_gather", self.wrapped(dist.all_gather, self.gathered))
        patch.setattr(dist, "all_to_all_single", self.wrapped(dist.all_to_all_single, self.scattered))

    def wrapped(self, function, measure):
        def call(*arguments, **named):
            self.bytes += measure(*arguments, **named)
            return function(*arguments, **named)

        return call

    def gathered(self, _, tensor, **__):
        return (self.size - 1) * tensor.nbytes

    def scattered(self, _, outgoing, __, sizes, **___):
        return sum(size for rank, size in enumerate(sizes) if rank != self.rank) * outgoing.element_size()


@pytest.mark.parametrize("size", [2, 4])
def test_messages_arrive_everywhere_and_the_bytes_are_the_predicted_ones(size):
    def work(place, emit):
        for topology in TOPOLOGIES:
            for lengths in LENGTHS:
                with pytest.MonkeyPatch.context() as patch:
                    transport = CountingTransport(patch)
                    messages, sent = topology.all_gather(message_of(place.rank, lengths[place.rank]))
                received = [(m.bits, m.payload.tolist()) for m in messages]
                emit((topology.name, lengths, place.rank, received, sent, transport.bytes))

    reports = list(run_ranks(work, processes=size, hang_timeout_s=30))

    assert len(reports) == size * len(TOPOLOGIES) * len(LENGTHS)
    known = {topology.name: topology for topology in TOPOLOGIES}
    for name, lengths, rank, received, sent, transported in reports:
        bits = list(lengths[:size])
        expected = [message_of(r, b) for r, b in enumerate(bits)]
        assert received == [(m.bits, m.payload.tolist()) for m in expected], (name, lengths, rank)
        assert sent == transported == known[name].payload_bytes(bits, rank), (name, lengths, rank)


def test_predictions_by_hand():
    direct, ring, hub = (topology.total_payload_bytes([9, 16, 0]) for topology in TOPOLOGIES)
    assert direct == ring == 2 * (10 + 10 + 8)
    assert hub == (10 + 8) + 2 * (3 * 8 + 4)  # two messages to the hub; a table and four bytes to each of two


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=9))
def test_ring_and_direct_send_the_same_bytes_in_total(bits):
    direct, ring, hub = (topology.total_payload_bytes(bits) for topology in TOPOLOGIES)
    assert direct == ring
    assert hub >= sum(8 + (b + 7) // 8 for b in bits[1:])
