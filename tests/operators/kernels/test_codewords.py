"""Fields of varying width: equal bits everywhere, and against a text of zeros and ones."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from .equality import FEW, OTHERS, SIZES, assert_equal, codewords, run


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(st.sampled_from((0, *SIZES)), st.integers(0, 32), st.integers(0, 99))
def test_back_ends_agree_and_equal_a_text_of_bits(other, n, widest, seed):
    rng = np.random.default_rng(seed)
    widths = rng.integers(0, widest + 1, n)
    values = rng.integers(0, 1 << widths)
    packed, bits = run("cpu", codewords.pack, torch.from_numpy(values), torch.from_numpy(widths))
    text = "".join(f"{v:0{w}b}" if w else "" for v, w in zip(values.tolist(), widths.tolist(), strict=True))
    assert bits == len(text)
    assert "".join(f"{b:08b}" for b in packed.tolist()) == text.ljust(8 * packed.numel(), "0")
    assert_equal((packed, bits), run(other, codewords.pack, torch.from_numpy(values), torch.from_numpy(widths)))
