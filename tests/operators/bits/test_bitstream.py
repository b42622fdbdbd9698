"""Bit strings against texts of zeros and ones."""

import random

import numpy as np
import pytest

from operators import CorruptMessage
from operators.bits.bitstream import BitReader, flush, pack, padded, peek, read_field, write_bits


def fields(seed, widest):
    rng = random.Random(seed)
    widths = [rng.randint(0, widest) for _ in range(200)]
    return [rng.getrandbits(w) if w else 0 for w in widths], widths


def text_of(values, widths):
    return "".join(f"{v:0{w}b}" if w else "" for v, w in zip(values, widths, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_pack_and_read_equal_a_text_of_bits(seed):
    values, widths = fields(seed, 64)
    out, bits = pack(np.array(values, np.uint64), np.array(widths))
    text = text_of(values, widths)
    assert bits == len(text)
    assert "".join(f"{b:08b}" for b in out) == text.ljust(8 * out.size, "0")
    reader = BitReader(out, bits)
    assert [reader.read(w) for w in widths] == values
    reader.finish()


@pytest.mark.parametrize("seed", range(5))
def test_streamed_fields_equal_packed_ones(seed):
    values, widths = fields(seed, 32)
    want, _ = pack(np.array(values, np.uint64), np.array(widths))
    out, state = np.zeros(want.size, np.uint8), (np.uint64(0), 0, 0)
    for value, width in zip(values, widths, strict=True):
        state = write_bits(out, state, value, width)
    flush(out, state)
    assert (out == want).all()


def test_window_and_field_show_the_bits_at_every_position():
    payload = np.random.default_rng(0).integers(0, 256, 30).astype(np.uint8)
    text = "".join(f"{b:08b}" for b in payload) + "0" * 64
    for position in range(240):
        assert f"{int(peek(padded(payload), position)):064b}"[:57] == text[position : position + 57]
        assert int(read_field(payload, position, 240 - position if position > 176 else 64)) == int(
            text[position : min(position + 64, 240)], 2
        )


def test_reading_past_the_end_and_leaving_bits_are_corrupt():
    reader = BitReader(np.zeros(2, np.uint8), 12)
    reader.read(5)
    with pytest.raises(CorruptMessage, match="7 bits are left over"):
        reader.finish()
    with pytest.raises(CorruptMessage, match="7 bits remain"):
        reader.read(8)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -0.0])
def test_a_scale_must_be_finite_and_not_negative(value):
    out, bits = pack(np.array([np.float32(value).view(np.uint32)]), np.array([32]))
    with pytest.raises(CorruptMessage, match="scale"):
        BitReader(out, bits).read_float()


def test_a_scale_comes_back():
    out, bits = pack(np.array([np.float32(1.5).view(np.uint32)]), np.array([32]))
    assert BitReader(out, bits).read_float() == 1.5
