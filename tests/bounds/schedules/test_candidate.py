"""Delays of what was not tried, and the noise of a mean, against exact means over independent errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds.schedules import Candidate
from bounds.schedules.candidate import predicted_delays

lengths = st.floats(1.0, 1e9)


@given(st.floats(0, 10), st.floats(0, 1e-6), st.lists(lengths, min_size=2, max_size=5), st.lists(st.floats(0, 1)))
def test_two_lengths_tell_the_seconds_of_all(latency_s, s_per_byte, sizes, codings):
    codings = [*codings, *[0.0] * len(sizes)][: len(sizes)]
    candidates = [Candidate(str(i), b, coding_s=c) for i, (b, c) in enumerate(zip(sizes, codings, strict=True))]
    exact = [latency_s + s_per_byte * c.link_bytes + c.coding_s for c in candidates]
    if abs(sizes[0] - sizes[1]) <= 1e-3 * max(sizes):
        return
    seen = predicted_delays(candidates, [(s,) if i < 2 and s > 0 else () for i, s in enumerate(exact)])
    if min(exact[:2]) > 0:
        assert seen == pytest.approx(exact, rel=1e-6, abs=1e-9 * max(exact))


def test_what_was_measured_stands_and_one_length_tells_nothing_of_others():
    candidates = [Candidate("a", 10.0), Candidate("b", 20.0), Candidate("c", 40.0)]
    assert predicted_delays(candidates, [(3.0, 1.0, 2.0), (), ()]) == [2.0, None, None]
    assert predicted_delays(candidates, [(2.0,), (3.0,), (99.0,)])[2] == 99.0


def test_neither_latency_nor_bandwidth_is_below_zero():
    sizes = [Candidate("a", 10.0), Candidate("b", 20.0), Candidate("c", 40.0)]
    assert predicted_delays(sizes, [(3.0,), (1.0,), ()]) == [3.0, 1.0, 2.0]  # a longer message was quicker: latency
    falling = predicted_delays(sizes, [(1.0,), (5.0,), ()])[2]
    assert falling == pytest.approx(40 * (10 * 1 + 20 * 5) / (10**2 + 20**2))  # through the origin


def means_by_enumeration(movements, omega, *, twice):
    """The mean squared error of the decoded mean over its square, every sign of every error once."""
    m = len(movements)
    mean = movements.mean(axis=0)
    total, count = 0.0, 0
    errors = np.sqrt(omega) * np.linalg.norm(movements, axis=1)  # along the first axis, of either sign
    for signs in itertools.product((-1, 1), repeat=m):
        decoded = mean.copy()
        decoded[0] += (signs * errors).mean()
        for last in (-1, 1) if twice else (0,):
            again = decoded.copy()
            again[0] += last * np.sqrt(omega) * np.linalg.norm(decoded)
            total, count = total + ((again - mean) ** 2).sum(), count + 1
    return total / count / (mean @ mean)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("omega", [0.0, 0.1, 3.0])
def test_noise_is_the_mean_squared_error_of_the_decoded_mean(omega, twice):
    movements = np.random.default_rng(0).standard_normal((4, 5)) + 0.7
    spread = (movements**2).sum() / 4 / (movements.mean(axis=0) ** 2).sum()
    noise = Candidate("", 1.0, twice=twice).noise(omega, spread=spread, senders=4)
    assert noise == pytest.approx(means_by_enumeration(movements, omega, twice=twice), rel=1e-12, abs=1e-15)


def test_what_is_no_number_of_a_candidate_is_refused():
    with pytest.raises(ValueError, match="link_bytes must be finite and >= 0; got link_bytes = -1"):
        Candidate("", -1.0)
    with pytest.raises(ValueError, match="error must be finite and >= 0; got error = -2"):
        Candidate("", 1.0).noise(-2.0, spread=1.0, senders=1)
