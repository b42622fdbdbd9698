"""The third-order theorems against rounds of exactly enumerated noise, and the recursion of E V^2 in fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from bounds import Property, all_bounds, theorems

NOISES = {  # kurtosis -> values and probabilities of a symmetric noise of variance 1
    1.0: ((-1.0, 1.0), (0.5, 0.5)),
    3.0: ((-math.sqrt(3), 0.0, math.sqrt(3)), (1 / 6, 2 / 3, 1 / 6)),
    8.0: ((-math.sqrt(8), 0.0, math.sqrt(8)), (1 / 16, 7 / 8, 1 / 16)),
}
ROUNDING = 1e-50  # of E V^2: the float mean of three equal numbers may differ from them
SIZES = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3))  # m, tau


def piecewise_cubic(rng, low):
    """F, F' and the Lipschitz constant Q of F'', which is 1/2 + Q x between ``low`` and 1 and constant outside."""
    Q, c = 10 ** rng.uniform(-1, 1.5), rng.normal() * 10 ** rng.uniform(-4, 0)
    a, b = (low - 0.5) / Q, 0.5 / Q

    def gradient(x):
        y = np.clip(x, a, b)
        return y / 2 + Q * y * y / 2 + low * (np.minimum(x, a) - a) + (np.maximum(x, b) - b) + c

    def value(x):
        y, left, right = np.clip(x, a, b), np.minimum(x, a) - a, np.maximum(x, b) - b
        at_a, at_b = a / 2 + Q * a * a / 2, b / 2 + Q * b * b / 2
        return y * y / 4 + Q * y**3 / 6 + at_a * left + low * left**2 / 2 + at_b * right + right**2 / 2 + c * x

    return value, gradient, Q


def softplus(rng, _low):
    s, c = 10 ** rng.uniform(-0.5, 1.5), rng.normal() * 10 ** rng.uniform(-4, 0)
    third = s * 4 * math.sqrt(3) / 18
    return (lambda x: 4 / s**2 * np.logaddexp(0, s * x) + c * x), (lambda x: 4 / s / (1 + np.exp(-s * x)) + c), third


def log_cosh(rng, _low):
    s, c = 10 ** rng.uniform(-0.5, 1.5), rng.normal() * 10 ** rng.uniform(-4, 0)
    third = s * 4 / (3 * math.sqrt(3))
    return (
        (lambda x: (np.logaddexp(s * x, -s * x) - math.log(2)) / s**2 + c * x),
        (lambda x: np.tanh(s * x) / s + c),
        third,
    )


def enumerated(problem, start, m, tau, eta, noise, *, flipped=False):
    """(2/(eta tau)) E[F(mean at the end) - F(start)] + average of E F'(mean)^2, and E V^2 after every step.

    All outcomes of the noise of one round are followed.  ``flipped``: the noise of a worker above the start has the
    opposite sign, so that third moments depend on the state.
    """
    value, gradient, _ = problem
    outcomes = np.array(list(itertools.product(range(len(noise[0])), repeat=m)))
    drawn, weights = np.array(noise[0])[outcomes], np.array(noise[1])[outcomes].prod(axis=1)
    x, p, squares, spreads = np.full((1, m), start), np.ones(1), [], []
    for _ in range(tau):
        mean = x.mean(axis=1)
        squares.append(p @ gradient(mean) ** 2)
        spreads.append(p @ ((x - mean[:, None]) ** 2).mean(axis=1) ** 2)
        sign = np.where(x > start, -1.0, 1.0) if flipped else np.ones_like(x)
        x = ((x - eta * gradient(x))[:, None, :] - eta * sign[:, None, :] * drawn[None]).reshape(-1, m)
        p = (p[:, None] * weights[None]).ravel()
    fall = p @ value(x.mean(axis=1)) - value(np.array(start))
    return 2 / (eta * tau) * fall + np.mean(squares), spreads


def rounds_of(rng, count, low, kinds=(piecewise_cubic,)):
    """Random rounds: arguments of a bound at gap 0, the exact value, and E V^2 by step."""
    for i in range(count):
        kurtosis = (1.0, 3.0, 8.0)[i % 3]
        m, tau = SIZES[rng.integers(len(SIZES))]
        if kurtosis > 1 and m * tau > 8:
            m, tau = 2, 3
        eta, start = 10 ** rng.uniform(-2, 0), rng.normal() * 10 ** rng.uniform(-3, 0.5)
        bend = low(rng)
        problem = kinds[rng.integers(len(kinds))](rng, bend)
        value, spreads = enumerated(problem, start, m, tau, eta, NOISES[kurtosis])
        at = {"gap": 0, "eta": eta, "L": 1.0, "sigma2": 1.0, "m": m, "K": tau, "kurtosis": kurtosis}
        yield at | {"hessian_lipschitz": problem[2], "tau": tau}, bend, value, spreads


def recursion(k, m, kurtosis, factor, *, pairs=Fraction(0), once=Fraction(0)):
    """E V^2 after k steps over eta^4 sigma2^2 by the recursion of the proof, with what asymmetric noise adds."""
    u, ev, ev2 = Fraction(1, m), Fraction(0), Fraction(0)
    a = (1 - u**2) + (1 - u) ** 2 * (kurtosis - 3) * u + once
    for _ in range(k):
        ev2 = factor**2 * ev2 + (2 * (1 + u) + pairs) * factor * ev + a
        ev = factor * ev + 1 - u
    return ev2


def convex_violations(rng, count):
    """Number of rounds, and those above the bound, on convex functions of three families."""
    kinds, bad, n = (piecewise_cubic, softplus, log_cosh), 0, 0
    for at, _, value, spreads in rounds_of(rng, count, lambda rng: 0.0, kinds):
        n += 1
        bad += value > theorems.pasgd_third_order_convex(**at) * (1 + 1e-12)
        for k, spread in enumerate(spreads):
            law = float(recursion(k, at["m"], Fraction(at["kurtosis"]), 1)) * at["eta"] ** 4
            bad += spread > law * (1 + 1e-9) + ROUNDING
    return n, bad


def saddle_violations(rng, count, bound):
    bad = n = 0
    for at, low, value, _ in rounds_of(rng, count, lambda rng: -rng.uniform(0, 1)):
        n += 1
        bad += value > bound(**at, rho=-low) * (1 + 1e-12)
    return n, bad


def strong_violations(rng, count):
    bad = n = 0
    for at, low, value, _ in rounds_of(rng, count, lambda rng: rng.uniform(0.01, 0.9)):
        n += 1
        del at["tau"]
        bad += value > theorems.pasgd_third_order_strongly_convex(**at, mu=low) * (1 + 1e-12)
    return n, bad


def asymmetric_violations(rng, count):
    """The same with two-valued noise of any skewness whose sign depends on the state."""
    bad = n = 0
    for _ in range(count):
        q = rng.uniform(0.03, 0.97)
        noise = ((math.sqrt((1 - q) / q), -math.sqrt(q / (1 - q))), (q, 1 - q))
        kurtosis = (1 - q) ** 2 / q + q**2 / (1 - q)
        m, tau = ((2, 3), (2, 4), (3, 3))[rng.integers(3)]
        low, eta = -rng.uniform(0, 1) * (n % 2), 10 ** rng.uniform(-2, 0)
        problem = piecewise_cubic(rng, low)
        start = rng.normal() * 10 ** rng.uniform(-3, 0.5)
        value, spreads = enumerated(problem, start, m, tau, eta, noise, flipped=True)
        at = {"gap": 0, "eta": eta, "L": 1.0, "sigma2": 1.0, "m": m, "K": tau, "kurtosis": kurtosis, "tau": tau}
        bound = theorems.pasgd_third_order_any_noise(**at, rho=-low, hessian_lipschitz=problem[2])
        n += 1
        bad += value > bound * (1 + 1e-12)
        u, factor = Fraction(1, m), Fraction((1 - eta * low) ** 2)
        more = {"pairs": 2 * u * (1 - u), "once": 2 * Fraction(kurtosis) * u * (1 - u)}
        for k, spread in enumerate(spreads):
            bad += spread > float(recursion(k, m, Fraction(kurtosis), factor, **more)) * eta**4 * (1 + 1e-9) + ROUNDING
    return n, bad


def test_pasgd_third_order_convex_lies_above_enumerated_rounds():
    assert convex_violations(np.random.default_rng(0), 150) == (150, 0)


def test_pasgd_third_order_lies_above_enumerated_rounds_with_saddles():
    assert saddle_violations(np.random.default_rng(1), 100, theorems.pasgd_third_order) == (100, 0)


def test_pasgd_third_order_any_noise_lies_above_enumerated_rounds_of_asymmetric_noise():
    assert asymmetric_violations(np.random.default_rng(2), 100) == (100, 0)


def test_pasgd_third_order_strongly_convex_lies_above_enumerated_rounds():
    assert strong_violations(np.random.default_rng(3), 100) == (100, 0)


@pytest.mark.slow  # 14 000 rounds
def test_no_bound_is_violated_in_fourteen_thousand_rounds():
    rng = np.random.default_rng(4)
    assert convex_violations(rng, 5000) == (5000, 0)
    assert saddle_violations(rng, 3000, theorems.pasgd_third_order) == (3000, 0)
    assert strong_violations(rng, 3000) == (3000, 0)
    assert asymmetric_violations(rng, 3000) == (3000, 0)


@pytest.mark.parametrize("kurtosis", NOISES)
@pytest.mark.parametrize(("m", "tau"), [(2, 4), (3, 3), (4, 2)])
def test_the_recursion_is_exact_on_linear_functions(m, tau, kurtosis):
    linear = (lambda x: x, np.ones_like, 0.0)
    _, spreads = enumerated(linear, 0.0, m, tau, 0.3, NOISES[kurtosis])
    laws = [float(recursion(k, m, Fraction(kurtosis), 1)) * 0.3**4 for k in range(tau)]
    assert spreads == pytest.approx(laws, rel=1e-12, abs=1e-18)


# -- check values ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tau", "m", "kurtosis", "eta", "Q", "price"),
    [
        (16, 4, 3, 0.05, 0.5, 2.83813477e-5),
        (8, 16, 3, 0.2, 1, 0.00697265625),
        (5, 2, 1, 0.1, 2, 0.0004),
        (64, 4, 9, 0.05, 0.5, 4.98724365e-4),
        (5, 4, 3, 0.1, 1, 1.40625e-4),
    ],
)
def test_prices_of_convex_functions_have_their_published_digits(tau, m, kurtosis, eta, Q, price):
    at = {"gap": 0, "eta": eta, "L": 1e-30, "sigma2": 1, "tau": tau, "m": m, "K": 1}
    at |= {"hessian_lipschitz": Q, "kurtosis": kurtosis}
    assert theorems.pasgd_third_order_convex(**at) == pytest.approx(price, rel=1e-8)
    exact = sum(recursion(k, m, kurtosis, 1) for k in range(tau)) / tau * Fraction(Q) ** 2 / 4
    assert float(exact) * eta**4 == pytest.approx(price, rel=1e-8)


@pytest.mark.parametrize(("rho", "price"), [(0, 3.59252930e-4), (0.1, 5.45947850e-4), (-0.1, 2.45742558e-4)])
def test_prices_at_three_curvatures_have_their_published_digits(rho, price):
    factor = (1 + Fraction(rho) / 20) ** 2
    exact = sum(recursion(k, 4, 3, factor) for k in range(55)) / 55 / 16
    assert float(exact) * 0.05**4 == pytest.approx(price, rel=1e-8)
    if rho >= 0:
        at = {"gap": 0, "eta": 0.05, "L": 1, "sigma2": 1, "tau": 55, "m": 4, "K": 1, "rho": rho}
        value = theorems.pasgd_third_order(**at, hessian_lipschitz=0.5, kurtosis=3) - 0.0125
        assert value == pytest.approx(price, rel=1e-8)


def test_the_price_of_a_strongly_convex_function_stops():
    at = {"gap": 0, "eta": 0.05, "L": 1, "sigma2": 1, "m": 4, "K": 1, "hessian_lipschitz": 0.5, "kurtosis": 3}
    limit = theorems.pasgd_third_order_strongly_convex(**at, mu=0.1) - 0.0125
    assert limit == pytest.approx(0.00368048882, rel=1e-8)
    ev, ev2, factor = 0.0, 0.0, 0.995**2
    for _ in range(3000):
        assert 0.0625 * ev2 <= limit * (1 + 1e-12)
        ev2 = factor**2 * ev2 + 2.5 * 0.0025 * factor * ev + (15 / 16) * 0.0025**2
        ev = factor * ev + 0.75 * 0.0025
    assert 0.0625 * ev2 == pytest.approx(limit, rel=1e-9)


# -- in seconds ------------------------------------------------------------------------------------------------------
def two_rounds(m, tau, eta, chance):
    """(gap, E of the average of F'(mean)^2, E of its sum over the steps) of F = log cosh from 1.

    There is one round, or there are two with probability 1 - chance.

    The number of rounds is independent of the noise, as times are.
    """
    outcomes = np.array(list(itertools.product((-1.0, 1.0), repeat=m)))
    x, p, squares = np.ones((1, m)), np.ones(1), []
    for step in range(2 * tau):
        if step == tau:
            x = np.repeat(x.mean(axis=1)[:, None], m, axis=1)
        squares.append(p @ np.tanh(x.mean(axis=1)) ** 2)
        x = ((x - eta * np.tanh(x))[:, None, :] - eta * outcomes[None]).reshape(-1, m)
        p = np.repeat(p, len(outcomes)) / len(outcomes)
    one, two = np.mean(squares[:tau]), np.mean(squares)
    return math.log(math.cosh(1)), chance * one + (1 - chance) * two, tau * (chance * one + (1 - chance) * 2 * two)


SECONDS = {
    "pasgd_third_order": {"rho": 0},
    "pasgd_third_order_convex": {},
    "pasgd_third_order_strongly_convex": {"mu": 1e-3},  # log cosh on a bounded set
}


def lies_above(name, *, runtime):
    m, tau, eta, chance = 2, 2, 0.3, 0.4
    gap, average, total = two_rounds(m, tau, eta, chance)
    at = {"gap": gap, "eta": eta, "L": 1, "sigma2": 1, "m": m, "tau": tau, "kurtosis": 1} | SECONDS[name]
    at |= {"hessian_lipschitz": 4 / (3 * math.sqrt(3))}
    if runtime:  # rounds of 3 s, the last the first that ends at or after the time, which is 3 s or 6 s
        steps = tau * (chance + 2 * (1 - chance))
        bound = all_bounds()[f"{name}_runtime"](**at, step_s=1, delay_s=1, time_s=3 * (2 - chance))
        assert bound == pytest.approx(all_bounds()[name](**at, K=steps), rel=1e-12)
        return total / steps, bound
    bound = all_bounds()[f"{name}_wall_clock"](**at, inverse_rounds=chance + (1 - chance) / 2)
    return average, bound


def test_pasgd_third_order_wall_clock_lies_above_a_random_number_of_rounds():
    value, bound = lies_above("pasgd_third_order", runtime=False)
    assert value <= bound <= 5 * value


def test_pasgd_third_order_convex_wall_clock_lies_above_a_random_number_of_rounds():
    value, bound = lies_above("pasgd_third_order_convex", runtime=False)
    assert value <= bound <= 5 * value


def test_pasgd_third_order_strongly_convex_wall_clock_lies_above_a_random_number_of_rounds():
    value, bound = lies_above("pasgd_third_order_strongly_convex", runtime=False)
    assert value <= bound


def test_pasgd_third_order_runtime_lies_above_a_random_number_of_rounds():
    value, bound = lies_above("pasgd_third_order", runtime=True)
    assert value <= bound <= 5 * value


def test_pasgd_third_order_convex_runtime_lies_above_a_random_number_of_rounds():
    value, bound = lies_above("pasgd_third_order_convex", runtime=True)
    assert value <= bound <= 5 * value


@pytest.mark.parametrize("name", ["pasgd_iterations", "pasgd_two_shot", "pasgd_third_order_convex", "pasgd_compressed"])
def test_a_form_at_a_time_is_the_step_form_at_the_steps_that_the_time_holds(name):
    """30 rounds of tau steps of 2 s and an averaging of 3 s."""
    steps = getattr(theorems, name)
    at = {key: float(Fraction(value)) for key, value in steps.examples[0].at.items()}
    tau = at["tau"]
    expected = steps(**{**at, "K": 30 * tau})
    del at["K"]

    in_time = theorems.in_seconds(steps)(**at, time_s=30 * (2 * tau + 3), step_s=2.0, delay_s=3.0)
    in_rounds = theorems.wall_clock(steps)(**at, inverse_rounds=1 / 30)
    assert in_time == pytest.approx(expected, rel=1e-12)
    assert in_rounds == pytest.approx(expected, rel=1e-12)
    assert {Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED} <= theorems.in_seconds(steps).setting.needs
    assert {Property.TIMES_APART, Property.ENDED_ROUNDS} <= theorems.wall_clock(steps).setting.needs
