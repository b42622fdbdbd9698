"""At small rates and many workers the floor of one round is known: a kink attains it, with noise that knows the side.

floor/(eta L)^2 -> ((1 + rho)/2)^2 (mean over k < tau of sqrt k)^2; the proof of the other side is in the docs.
"""

import numpy as np
import pytest

from bounds import theorems

X = 1e-5


def attained(tau, rho):
    """The objective of one round over X^2, exactly: 2^k paths of a worker, the mean of infinitely many workers."""
    steepness = (1 + rho) / 2
    pull = X * steepness * np.sqrt(np.arange(tau)).mean()

    def derivative(z):
        return pull + np.where(z < 0, z, -rho * z)

    def value(z):
        return pull * z + np.where(z < 0, z**2, -rho * z**2) / 2

    place, side, weight = np.zeros(1), np.ones(1), np.ones(1)
    squares = 0.0
    for k in range(tau):
        squares += float(derivative(place @ weight)) ** 2 / tau
        here, after = side * np.sqrt(k), np.sqrt(k + 1)
        up = (
            1 + here / after
        ) / 2  # the sum of the noise moves to +-sqrt(k + 1): mean 0 and variance 1, given the past
        noise = np.concatenate((after - here, -after - here))
        chance = np.concatenate((up, 1 - up))
        assert np.allclose(up * (after - here) + (1 - up) * (-after - here), 0)
        assert np.allclose(up * (after - here) ** 2 + (1 - up) * (after + here) ** 2, 1)
        place = np.tile(place - X * derivative(place), 2) + X * noise
        weight, side = np.tile(weight, 2) * chance, np.repeat([1.0, -1.0], len(side))
    end = float(value(place @ weight))
    return (2 * end / (X * tau) + squares) / X**2


@pytest.mark.parametrize("rho", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("tau", [2, 3, 4, 8, 12])
def test_the_limit_is_attained(tau, rho):
    limit = ((1 + rho) / 2 * np.sqrt(np.arange(tau)).mean()) ** 2
    assert attained(tau, rho) == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_no_one_round_proof_can_gain_more_than_the_rest(rho):
    """A factor of two at tau = 2, 9/8 at most for long rounds."""
    at = {"gap": 0.0, "eta": X, "L": 1.0, "sigma2": 1.0, "m": 10**12, "K": 10**30, "rho": rho}
    rest = [theorems.pasgd_smooth_sharp(**at, tau=tau) / X**2 / attained(tau, rho) for tau in (2, 8, 12)]
    assert rest[0] == pytest.approx(2, rel=2e-3)
    assert rest == sorted(rest, reverse=True)
    long = 10**6
    assert (long - 1) / 2 / np.sqrt(np.arange(long)).mean() ** 2 == pytest.approx(9 / 8, rel=1e-4)
