import pytest
import torch

from gpu_validation.exchange import Exchange
from gpu_validation.launch import run_ranks
from operators import Message
from operators.gather import HEADER_BYTES, predicted_payload_bytes

LENGTHS = (0, 3, 1000, 17)  # bits, one a rank

pytestmark = pytest.mark.timeout(90)


def message_of(rank):
    bits = LENGTHS[rank]
    payload = torch.full(((bits + 7) // 8,), 0x80 + rank, dtype=torch.uint8)
    return Message(payload, bits)


def test_unequal_messages_arrive_in_rank_order_and_every_byte_is_counted():
    def work(place, emit):
        exchange = Exchange()
        received = exchange.all_gather(message_of(place.rank))
        emit((place.rank, [(m.bits, m.payload.tolist()) for m in received], exchange.payload_bytes))

    reports = sorted(run_ranks(work, processes=4, silence_s=30))

    expected = [(message_of(r).bits, message_of(r).payload.tolist()) for r in range(4)]
    assert all(received == expected for _, received, _ in reports)
    assert sum(sent for _, _, sent in reports) == predicted_payload_bytes(list(LENGTHS), 4)
    for rank, _, sent in reports:
        assert sent == 3 * (HEADER_BYTES + message_of(rank).nbytes)
