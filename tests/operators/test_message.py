"""Messages: bits fit bytes, frames round-trip, and every damage of a frame is noticed."""

import dataclasses
import struct
import zlib

import pytest
import torch

from operators import QSGD, CorruptMessage, Key, Message, Operator, ScaledSign, TopK
from operators.catalogue import all_operators


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


def with_checksum(body):
    return bytes(body) + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize(("at", "value"), [(0, 0), (3, 0), (3, 3), (19, 99)])
def test_another_format_with_a_valid_checksum_is_refused(at, value):
    body = bytearray(message(1, 8).to_bytes()[:-4])
    body[at] = value
    with pytest.raises(CorruptMessage):
        Message.from_bytes(with_checksum(body))


def test_a_head_without_format_id_is_refused():
    with pytest.raises(CorruptMessage, match="not a message frame of version 1 or 2"):
        Message.from_bytes(with_checksum(struct.pack(">3sBQQ", b"RDm", 2, 5, 0)))


@pytest.mark.parametrize("format_id", [0, 77])
def test_frames_of_version_1_are_read(format_id):
    back = Message.from_bytes(
        with_checksum(struct.pack(">3sBQQ", b"RDm", 1, 5, 9) + b"\xa5\x80"), d=5, format_id=format_id
    )
    assert (back.bits, back.payload.tolist()) == (9, [0xA5, 0x80])


def test_a_frame_of_another_operator_is_refused():
    x, sender, receiver = torch.linspace(-1, 1, 40), QSGD(levels=16), QSGD(levels=15)
    frame = sender.encode(x, key=Key(0)).to_bytes(d=40, format_id=sender.format_id)
    Message.from_bytes(frame, d=40, format_id=sender.format_id)
    Message.from_bytes(frame, d=40)
    with pytest.raises(
        CorruptMessage, match=r"0x[0-9a-f]{8}; expected 0x[0-9a-f]{8}: decode it with the operator that"
    ):
        Message.from_bytes(frame, d=40, format_id=receiver.format_id)
    Message.from_bytes(sender.encode(x, key=Key(0)).to_bytes(d=40), d=40, format_id=receiver.format_id)  # states none


def test_format_ids_differ_between_operators_and_settings():
    examples = [one for cls in all_operators().values() for one in cls.examples()]
    different = {(type(one), dataclasses.astuple(one)): one.format_id for one in examples}
    assert len(set(different.values())) == len(different)
    assert all(0 < number < 2**32 for number in different.values())


def test_a_new_field_with_a_default_keeps_the_format_id():
    @dataclasses.dataclass(frozen=True)
    class Wider(QSGD):
        speed: int = 3

    assert Wider(levels=4).format_id == QSGD(levels=4).format_id
    assert Wider(levels=4, speed=2).format_id != QSGD(levels=4).format_id


def test_a_new_version_of_a_format_has_a_new_id(monkeypatch):
    before = ScaledSign().format_id
    monkeypatch.setattr(ScaledSign, "format_version", Operator.format_version + 1)
    assert ScaledSign().format_id != before


def test_format_ids_stay():
    assert (QSGD(16).format_id, QSGD(levels=4, norm="max").format_id, TopK(k=3).format_id) == (
        1471983011,
        2606226001,
        3591406226,
    )
