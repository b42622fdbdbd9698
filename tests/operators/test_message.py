"""Messages: bits fit bytes, frames round-trip, and every damage of a frame is noticed."""

import pytest
import torch

from operators import CorruptMessage, Key, Message, TopK


def message(n_bytes, bits):
    return Message(torch.arange(n_bytes, dtype=torch.uint8), bits)


@pytest.mark.parametrize(("n_bytes", "bits"), [(0, 0), (1, 1), (1, 8), (2, 9), (2, 16)])
def test_payload_holds_exactly_its_bits(n_bytes, bits):
    assert message(n_bytes, bits).nbytes == n_bytes


@pytest.mark.parametrize(("n_bytes", "bits"), [(0, 1), (1, 0), (1, 9), (2, 8), (0, -1)])
def test_other_lengths_are_refused(n_bytes, bits):
    with pytest.raises(ValueError, match="payload bytes cannot hold"):
        message(n_bytes, bits)


@pytest.mark.parametrize("payload", [torch.zeros(2), torch.zeros(1, 1, dtype=torch.uint8)])
def test_other_payloads_are_refused(payload):
    with pytest.raises(ValueError, match="1-d uint8"):
        Message(payload, 8)


@pytest.mark.parametrize("sent", [message(0, 0), message(3, 17)])
def test_frame_round_trip(sent):
    back = Message.from_bytes(sent.to_bytes(d=5), d=5)
    assert back.payload.tolist() == sent.payload.tolist()
    assert back.bits == sent.bits


def test_every_single_bit_flip_of_a_frame_is_noticed():
    frame = TopK(k=3).encode(torch.randn(40, generator=torch.Generator().manual_seed(0)), key=Key(0)).to_bytes(d=40)
    for i in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[i >> 3] ^= 1 << (i & 7)
        with pytest.raises(CorruptMessage):
            Message.from_bytes(bytes(damaged), d=40)


def test_every_truncation_and_extension_of_a_frame_is_noticed():
    frame = message(5, 40).to_bytes(d=1)
    for damaged in [frame[:n] for n in range(len(frame))] + [frame + b"\0", frame + frame]:
        with pytest.raises(CorruptMessage):
            Message.from_bytes(damaged)


def test_frame_for_another_dimension_is_refused():
    with pytest.raises(CorruptMessage, match="d = 5"):
        Message.from_bytes(message(1, 8).to_bytes(d=5), d=6)


@pytest.mark.parametrize(("at", "value"), [(0, 0), (3, 2), (19, 99)])
def test_another_format_with_a_valid_checksum_is_refused(at, value):
    import zlib

    body = bytearray(message(1, 8).to_bytes()[:-4])
    body[at] = value
    with pytest.raises(CorruptMessage):
        Message.from_bytes(bytes(body) + zlib.crc32(body).to_bytes(4, "big"))
