"""Rotations by signs and Hadamard transforms: a scalar oracle, equal back ends, orthonormality, inverse."""

import itertools
import math

import numpy as np
import pytest
import torch

from operators import Key
from operators.kernels.hadamard import cpu, reference, word_count
from operators.random import bits32

from ..rotations import hadamard as oracle
from .equality import INTERPRETED, OTHERS, hadamard, run

BACK_ENDS = ("cpu", *OTHERS)
SMALL = (*range(1, 20), 31, 32, 33, 63, 64, 65, 100, 129, 300)
# later passes of 0, 3, 6 and 9 stages, then two of them
LARGE = (4096, 20_000, (1 << 16) + 3, (1 << 19) + 5, 1 << 22, pytest.param((1 << 25) + 1, marks=pytest.mark.slow))
LARGE_HERE = LARGE[:2] if INTERPRETED else LARGE
TWO_PASSES = (1 << 19) + 5


def words(d, rounds, seed=0):
    return torch.from_numpy(bits32(Key(seed), word_count(d, rounds)).view(np.int32))


def gauss(d):
    return torch.randn(d, generator=torch.Generator().manual_seed(d))


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_both_directions_equal_the_oracle_bit_for_bit(back_end, rounds):
    for d in SMALL:
        x, w = gauss(d), words(d, rounds)
        forth, back = run(back_end, hadamard.rotate, x, w, rounds), run(back_end, hadamard.unrotate, x, w, rounds)
        assert forth.tolist() == oracle(x.tolist(), w.tolist(), rounds, True), d
        assert back.tolist() == oracle(x.tolist(), w.tolist(), rounds, False), d


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("d", LARGE_HERE)
def test_back_ends_are_equal_bit_for_bit_at_large_d(d, other):
    x, w = gauss(d), words(d, 1)
    z, other_z = run("cpu", hadamard.rotate, x, w, 1), run(other, hadamard.rotate, x, w, 1)
    back, other_back = run("cpu", hadamard.unrotate, z, w, 1), run(other, hadamard.unrotate, z, w, 1)
    assert torch.equal(z, other_z)
    assert torch.equal(back, other_back)
    assert float(z.double().norm() / x.double().norm()) == pytest.approx(1, abs=2e-7 * math.log2(d))
    assert float((back - x).abs().max()) < 1e-7 * math.log2(d) * float(x.abs().max())


def test_the_two_later_passes_of_2_to_the_25_equal_the_reference_with_blocks_64_times_as_short(monkeypatch):
    far = [rows for _, rows in cpu._far_passes(1 << 25)]
    monkeypatch.setattr(cpu, "BLOCK_LOG2", cpu.BLOCK_LOG2 - 6)
    x, w = gauss(TWO_PASSES), words(TWO_PASSES, 1)

    assert [rows for _, rows in cpu._far_passes(1 << 19)] == far == [64, 64]
    for turn in ("rotate", "unrotate"):
        assert torch.equal(getattr(cpu, turn)(x, w, 1), getattr(reference, turn)(x, w, 1)), turn


def test_a_round_is_an_orthogonal_matrix_with_the_known_entries():
    """At d = 6, rows of the first part have four entries +-1/2, and coordinates 2 and 3 are mixed twice."""
    w = words(6, 1)
    matrix = torch.stack([hadamard.rotate(column, w, 1) for column in torch.eye(6)], dim=1)
    assert torch.allclose(matrix @ matrix.T, torch.eye(6), atol=1e-7)
    assert set(matrix[:2].abs().flatten().tolist()) == {0.0, 0.5}
    assert torch.equal(matrix[:2, 4:], torch.zeros(2, 2))


def test_all_signs_of_d_2_give_the_four_rotations():
    """(1, 1/2) goes to (+-1 +- 1/2)/sqrt 2 and back exactly, whatever the signs."""
    seen = set()
    for first, second in itertools.product((0, 1), (0, 1)):
        w = torch.tensor([first + 2 * second + 4], dtype=torch.int32)  # bit 2 is no sign of d = 2
        z = hadamard.rotate(torch.tensor([1.0, 0.5]), w, 1)
        seen.add(tuple(round(v * math.sqrt(2), 6) for v in z.tolist()))
        assert hadamard.unrotate(z, w, 1).tolist() == pytest.approx([1.0, 0.5], abs=1e-7)
    assert seen == {(1.5, 0.5), (0.5, 1.5), (-0.5, -1.5), (-1.5, -0.5)}


def test_input_stays_as_it_was():
    for turn in (hadamard.rotate, hadamard.unrotate):
        x = gauss(50)
        before = x.clone()
        turn(x, words(50, 2), 2)
        assert torch.equal(x, before)


def test_no_rounds_change_nothing():
    x = gauss(9)
    assert torch.equal(hadamard.rotate(x, words(9, 0), 0), x)
    assert torch.equal(hadamard.unrotate(x, words(9, 0), 0), x)


@pytest.mark.parametrize(("d", "parts", "each"), [(1, 1, 1), (2, 1, 1), (3, 2, 1), (64, 1, 2), (65, 2, 2), (96, 2, 2)])
def test_a_round_takes_one_bit_for_each_coordinate_of_its_parts(d, parts, each):
    assert word_count(d, 5) == 5 * parts * each
