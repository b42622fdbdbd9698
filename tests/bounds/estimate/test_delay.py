import numpy as np
import pytest

from bounds.estimate import delay_by_fenced_regression

SIZES = np.repeat([1e4, 1e5, 1e6, 4e6, 1.6e7], 8)


def timings(rng, latency_s=0.002, bytes_per_s=1e8, error=0.05):
    return (latency_s + SIZES / bytes_per_s) * (1 + error * rng.standard_normal(SIZES.size))


def test_noiseless_timings_are_fitted_exactly():
    fit = delay_by_fenced_regression(SIZES, timings(np.random.default_rng(0), error=0.0))
    assert fit.latency_s.value == pytest.approx(0.002, rel=1e-9)
    assert 1 / fit.seconds_per_byte.value == pytest.approx(1e8, rel=1e-9)
    assert fit.delay(2e6).value == pytest.approx(0.022, rel=1e-9)


def test_intervals_cover_at_their_level():
    rng, hits = np.random.default_rng(1), []
    for _ in range(600):
        fit = delay_by_fenced_regression(SIZES, timings(rng))
        truth = (
            0.002 in fit.latency_s.interval,
            1e-8 in fit.seconds_per_byte.interval,
            0.012 in fit.delay(1e6).interval,
        )
        hits.append(truth)
    assert np.mean(hits, axis=0) == pytest.approx([0.95] * 3, abs=0.04)  # n = 600, standard error .009


def test_latency_is_not_drowned_by_the_longest_messages():
    rng = np.random.default_rng(2)
    weighted = [delay_by_fenced_regression(SIZES, timings(rng)).latency_s.value for _ in range(100)]
    plain = [np.polyfit(SIZES, timings(rng), 1)[1] for _ in range(100)]
    assert np.std(weighted) < 0.2 * np.std(plain)


@pytest.mark.parametrize(
    ("sizes", "seconds", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0], "needs >= 3 pairs"),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], r"got 3 lengths \(1 different\)"),
        ([1.0, 2.0, 3.0], [1.0, 0.0, 2.0], "needs seconds > 0"),
    ],
)
def test_bad_input_is_refused(sizes, seconds, message):
    with pytest.raises(ValueError, match=message):
        delay_by_fenced_regression(sizes, seconds)
