"""Fixed-width fields against text, at every width and at lengths around whole words."""

import numpy as np
import pytest

from operators.coding.fixed_width import pack_fixed, unpack_fixed


@pytest.mark.parametrize("width", range(1, 33))
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 33])
def test_fields_are_written_as_text_and_read_back(width, n):
    values = np.random.default_rng(n).integers(0, 2**width, n, dtype=np.uint64).astype(np.uint32)
    values[: n // 2] = 2**width - 1
    text = "".join(f"{v:0{width}b}" for v in values)
    text += "0" * (-len(text) % 8)
    payload = pack_fixed(values, width)
    assert payload.tobytes() == bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
    assert unpack_fixed(payload, width, n).tolist() == values.tolist()
