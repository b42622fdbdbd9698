"""Fixed-width fields against text, at every width and at lengths around whole words; pieces of them."""

import numpy as np
import pytest

from operators import FloatCast, Key, KLevel, NaturalCompression, RotatedKLevel
from operators.coding import fixed_width
from operators.coding.fixed_width import pack_fixed, pieces, unpack_fixed
from tests.pooled import pooled


@pooled("width", range(1, 33))
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 33])
def test_fields_are_written_as_text_and_read_back(width, n):
    values = np.random.default_rng(n).integers(0, 2**width, n, dtype=np.uint64).astype(np.uint32)
    values[: n // 2] = 2**width - 1
    text = "".join(f"{v:0{width}b}" for v in values)
    text += "0" * (-len(text) % 8)
    payload = pack_fixed(values, width)
    assert payload.tobytes() == bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
    assert unpack_fixed(payload, width, n).tolist() == values.tolist()


@pytest.mark.parametrize("width", [1, 3, 9, 16])
@pytest.mark.parametrize("n", [1, 16, 17, 40])
def test_pieces_cover_all_numbers_and_all_bytes_once(width, n, monkeypatch):
    monkeypatch.setattr(fixed_width, "PIECE", 16)
    values = np.random.default_rng(n).integers(0, 2**width, n).astype(np.uint32)
    payload, read = np.zeros((n * width + 7) // 8, np.uint8), np.zeros(n, np.uint32)
    for numbers, filled in pieces(n, width):
        payload[filled] += pack_fixed(values[numbers], width)
        read[numbers] += unpack_fixed(payload[filled], width, numbers.stop - numbers.start)
    assert payload.tolist() == pack_fixed(values, width).tolist()
    assert read.tolist() == values.tolist()


@pytest.mark.parametrize(
    "operator",
    [
        *KLevel.examples(),
        *RotatedKLevel.examples(),
        *NaturalCompression.examples(),
        *FloatCast.examples(),
    ],
    ids=repr,
)
def test_a_message_made_in_pieces_is_that_made_at_once(operator, monkeypatch):
    d = 1001
    x = np.random.default_rng(0).standard_normal(d).astype(np.float32)
    message = operator.encode(x, key=Key(0))
    y = operator.decode(message, d=d, key=Key(0))
    monkeypatch.setattr(fixed_width, "PIECE", 64)
    in_pieces = operator.encode(x, key=Key(0))
    assert in_pieces.payload.tolist() == message.payload.tolist()
    assert operator.decode(message, d=d, key=Key(0)).tolist() == y.tolist()
