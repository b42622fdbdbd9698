"""The coder of levels: equal bits everywhere, a text of zeros and ones, every form back, damage refused alike."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import CorruptMessage
from operators.bits import elias as numbers

from . import elias_oracle
from .equality import FEW, OTHERS, SIZES, assert_equal, elias, run


def word(n):
    text = "0"
    while n > 1:
        text = f"{n:b}" + text
        n = n.bit_length() - 1
    return text


def oracle(levels, norms, step, code):
    """The message as a text of zeros and ones."""
    text = ""
    for b, norm in enumerate(norms):
        part, last = levels[b * step : (b + 1) * step], -1
        text += f"{np.float32(norm).view(np.uint32):032b}"
        if norm == 0:
            continue
        for i, n in enumerate(part):
            sign = "1" if n < 0 else "0"
            if code == "dense":
                text += word(abs(n) + 1) + (sign if n else "")
            elif code == "flag":
                text += "1" + sign + word(abs(n)) if n else "0"
            elif n:
                text, last = text + word(i - last) + sign + word(abs(n)), i
        text += word(len(part) - last) if code == "sparse" else ""
    return text


@st.composite
def levelled(draw):
    """(levels, norms, step, most): mostly small levels, some large, some buckets of norm 0."""
    d, most = draw(st.sampled_from(SIZES)), draw(st.sampled_from([1, 2, 7, 15, 16, 127, 32768]))
    step = d if draw(st.booleans()) else max(d // 5, 1 if d < 100 else 50)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    size = np.minimum(rng.geometric(draw(st.sampled_from([0.9, 0.5, 0.01])), d) - 1, most)
    norms = rng.standard_normal(-(-d // step)).astype(np.float32) ** 2 * (rng.random(-(-d // step)) < 0.8)
    levels = np.where(np.repeat(norms, step)[:d] > 0, size * rng.choice([-1, 1], d), 0).astype(np.int32)
    return torch.from_numpy(levels), torch.from_numpy(norms.astype(np.float32)), step, most


@pytest.mark.parametrize("code", elias.CODES)
@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(levelled())
def test_back_ends_agree_and_the_levels_come_back(other, code, drawn):
    levels, norms, step, most = drawn
    payload, bits = run("cpu", elias.encode, levels, norms, step, code, most)
    text = oracle(levels.tolist(), norms.tolist(), step, code)
    assert bits == len(text)
    assert "".join(f"{b:08b}" for b in payload.tolist()) == text.ljust(8 * payload.numel(), "0")
    assert_equal((payload, bits), run(other, elias.encode, levels, norms, step, code, most))
    spacings = (norms.double() / most).repeat_interleave(step)[: levels.numel()]
    want = (spacings * levels).float()
    for backend in ("cpu", other):
        out = run(backend, elias.decode, payload, bits, levels.numel(), step, code, most, False)
        assert torch.equal(out, want)


@pytest.mark.parametrize("code", elias.CODES)
@FEW
@given(st.binary(min_size=4, max_size=14), st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_both_decoders_take_the_same_messages(code, body, d, step, full):
    payload = torch.tensor(list(np.float32(1.5).tobytes()[::-1] + body), dtype=torch.uint8)
    for bits in range(8 * payload.numel() - 7, 8 * payload.numel() + 1):
        results = []
        for decode in (elias.decode, elias_oracle.decode):
            try:
                results.append(decode(payload, bits, d, step, code, 5, full).tolist())
            except CorruptMessage:
                results.append(None)
        assert results[0] == results[1]


@pytest.mark.parametrize("n", [1, 2, 3, 100, 2**32 + 5, 2**40])
def test_vectorised_words_are_those_of_the_code(n):
    from operators.kernels.elias.reference import omega

    code, length = omega(torch.tensor([n]))
    assert (code.item(), length.item()) == numbers.build(n)
