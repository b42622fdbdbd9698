"""The errata: every piece of evidence exists, and the numbers that no other test holds are computed here."""

import re
from pathlib import Path

import numpy as np
import pytest

from bounds import limits, theorems

ROOT = Path(__file__).parents[2]
ERRATA = (ROOT / "docs" / "errata.md").read_text()
ENTRY = re.compile(r"^(.+)\n: (.+)\n: Evidence: (.+)$", re.MULTILINE)
STATEMENTS = [match.group() for match in ENTRY.finditer(ERRATA)]
ONE_RUN = {"gap": 0, "eta": 0.1, "L": 1, "sigma2": 1, "K": 10**6}


@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: row[:58])
def test_every_entry_names_tests_that_exist(row):
    named = re.findall(r"`([^`]+)`", ENTRY.match(row)[3])
    assert named
    for path in named:
        assert re.fullmatch(r"tests/[\w/]+\.py", path)
        assert "\ndef test_" in (ROOT / path).read_text()


def test_every_entry_is_stated_answered_and_shown():
    blocks = [block for block in ERRATA.split("\n\n") if "\n: " in block]
    assert len(blocks) >= 30
    assert [block.strip() for block in blocks] == STATEMENTS


def test_bounds_named_in_the_errata_exist():
    named = set(re.findall(r"`(\w+_\w+)`", "\n".join(STATEMENTS)))
    assert named
    for name in named:
        assert hasattr(limits, name) or hasattr(theorems, name), name


def saving(omega, d):
    return 32 * d / limits.sparse_dithering_random_bits(omega=omega, d=d)


def test_saving_of_nine_point_nine_is_one_of_a_few_hundred_coordinates():
    assert f"{saving(0.1, 600):.2f}" == "9.90"
    rounded = [d for d in range(2, 2000) if f"{saving(0.1, d):.1f}" == "9.9"]
    assert (rounded[0], rounded[-1]) == (471, 792)
    assert saving(0.1, 10**12) == pytest.approx(10.11, abs=0.005)
    assert saving(0.0921, 10**12) == pytest.approx(9.90, abs=0.005)


def test_spherical_compression_is_within_the_entropy_of_its_code():
    assert np.log2(np.e) + 1 == pytest.approx(2.443, abs=5e-4)


def test_usual_bound_on_the_memory_is_up_to_four_times_too_large():
    alpha = np.concatenate([np.geomspace(1e-9, 0.5, 200), 1 - np.geomspace(1e-9, 0.5, 200)])
    ratio = 4 * alpha / (1 - alpha) ** 2 / theorems.ef_memory(alpha=alpha, eta=1, G=1)
    assert ratio.min() >= 1
    assert ratio.max() == pytest.approx(4, abs=1e-3)


def test_memory_term_of_qsparse_is_about_eight_times_that_of_pasgd_memory():
    alpha = np.linspace(1e-6, 1 - 1e-6, 1001)
    at = {"gap": 0, "eta": 1e-6, "L": 1, "sigma2": 0, "G": 1, "tau": 1, "m": 1, "K": 1, "alpha": alpha}
    ratio = theorems.qsparse(**at) / theorems.pasgd_memory(**at)
    assert (round(float(ratio.min()), 1), round(float(ratio.max()), 1)) == (6.8, 8.9)


@pytest.mark.parametrize(("m", "share"), [(1, 0.0), (2, 0.5), (16, 15 / 16)])
def test_last_term_of_theorem_1_may_carry_the_free_factor(m, share):
    term = lambda bound, **more: bound(**ONE_RUN, m=m, tau=5, **more) - bound(**ONE_RUN, m=m, tau=1, **more)  # noqa: E731
    assert term(theorems.pasgd_multiplicative, noise_growth=0) == pytest.approx(
        share * term(theorems.pasgd_iterations), rel=1e-12, abs=1e-16
    )
