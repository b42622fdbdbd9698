"""The notation table: one meaning a symbol, domains that decide exactly and say their rule."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from bounds import symbols
from bounds.symbols import COUNT, FRACTION, NONNEGATIVE, POSITIVE, REAL, Domain
from tests.pooled import pooled

# unit, domain, and words that only this meaning has: a second table, so that a wrong row is seen
EXPECTED = {
    "d": ("1", "1 <= d, an integer", "dimension"),
    "alpha": ("1", "0 < alpha < 1", "contraction"),
    "omega": ("1", "0 < omega, finite", "variance unbiased"),
    "nu": ("1", "0 < nu < 1", "distortion Sparse"),
    "bits": ("bit", "0 <= bits, finite", "length message"),
    "bits_per_coordinate": ("bit", "1 <= bits_per_coordinate <= 8, an integer", "bits code norms"),
    "L": ("1", "0 < L, finite", "smoothness constant"),
    "sigma2": ("1", "0 <= sigma2, finite", "variance mini-batch"),
    "eta": ("1", "0 < eta, finite", "learning rate"),
    "gap": ("1", "0 <= gap, finite", "F(x_1) inf"),
    "tau": ("step", "1 <= tau, finite", "local steps averagings"),
    "m": ("1", "1 <= m, an integer", "number workers"),
    "in_flight": ("step", "0 <= in_flight, an integer", "steps average under way"),
    "staleness": ("step", "0 <= staleness, an integer", "late"),
    "K": ("step", "1 <= K, finite", "local steps whole run"),
    "time_s": ("s", "0 < time_s, finite", "wall-clock budget"),
    "step_s": ("s", "0 <= step_s, finite", "time one local step"),
    "inverse_rounds": ("1", "0 < inverse_rounds <= 1", "1/max(N rounds"),
    "delay_s": ("s", "0 <= delay_s, finite", "time averaging"),
    "mu": ("1", "0 < mu, finite", "strong convexity"),
    "kappa": ("1", "1 <= kappa, finite", "condition number"),
    "rho": ("1", "0 <= rho, finite", "non-convexity"),
    "R0": ("1", "0 <= R0, finite", "distance start minimiser"),
    "G": ("1", "0 <= G, finite", "root second moment stochastic gradient"),
    "hessian_lipschitz": ("1", "0 < hessian_lipschitz, finite", "Lipschitz Hessian"),
    "kurtosis": ("1", "1 <= kurtosis, finite", "E|n|^4 noise"),
    "noise_growth": ("1", "0 <= noise_growth, finite", "variance |grad F|^2"),
    "zeta": ("1", "0 <= zeta < 1", "second largest modulus"),
    "heterogeneity": ("1", "0 <= heterogeneity, finite", "root mean square grad F_i"),
    "sigma2_opt": ("1", "0 <= sigma2_opt, finite", "E|g_i|^2"),
    "epsilon": ("1", "0 < epsilon, finite", "accuracy"),
    "psi0": ("1", "0 <= psi0, finite", "initial"),
    "sum_eta": ("1", "0 < sum_eta, finite", "sum rounds eta tau"),
    "sum_eta2": ("1", "0 <= sum_eta2, finite", "sum eta^2"),
    "sum_eta3": ("1", "0 <= sum_eta3, finite", "eta^3 tau"),
    "worst_load": ("1", "0 < worst_load, finite", "load"),
    "block_momentum_factor": ("1", "0 <= block_momentum_factor < 1", "momentum"),
    "server_eta": ("1", "0 < server_eta, finite", "step size server"),
    "server_decay": ("1", "0 < server_decay < 1", "decay running mean square"),
    "adaptivity": ("1", "0 < adaptivity, finite", "constant adds root"),
    "gradient_max": ("1", "0 <= gradient_max, finite", "largest absolute coordinate gradient"),
    "sync_probability": ("1", "0 < sync_probability <= 1", "probability communicating"),
    "shift": ("step", "0 < shift, finite", "offset step size"),
    "rounds": ("round", "1 <= rounds, an integer", "communication"),
    "levels": ("1", "1 <= levels, an integer", "positive levels"),
    "kept": ("1", "1 <= kept, an integer", "coordinates kept"),
    "topk_gap": ("1", "0 <= topk_gap, finite", "top-k mean"),
    "max_norm_floor": ("1", "0 <= max_norm_floor, finite", "constant part"),
    "max_norm_growth": ("1", "0 <= max_norm_growth, finite", "squared"),
    "layer_noise": ("1", "0 <= layer_noise, finite", "amplification times variance"),
    "layer_load": ("1", "1 <= layer_load, finite", "largest amplification"),
    "L_1": ("1", "0 < L_1, finite", "constants"),
    "sigma_1": ("1", "0 <= sigma_1, finite", "deviations"),
    "snr": ("1", "0 < snr, finite", "|gradient| standard"),
    "local_error": ("1", "0 <= local_error < 0.5", "probability honest vote wrong"),
    "faulty_fraction": ("1", "0 <= faulty_fraction < 0.5", "workers negate"),
    "order_mean": ("1", "0 <= order_mean, finite", "largest normal"),
    "step_sd_s": ("s", "0 <= step_sd_s, finite", "standard time"),
    "third_derivative": ("1", "0 < third_derivative, finite", "third derivative"),
    "latency_s": ("s", "0 <= latency_s, finite", "part averaging not depend"),
    "message_s": ("s", "0 < message_s, finite", "time send message"),
    "amplification": ("1", "1 <= amplification, finite", "1 + omega"),
    "omega1": ("1", "0 <= omega1, finite", "hop"),
    "omega2": ("1", "0 <= omega2, finite", "variance all"),
    "mean_square": ("1", "0 <= mean_square, finite", "|x_i|^2"),
    "square_of_mean": ("1", "0 <= square_of_mean, finite", "|mean"),
    "stage_bits": ("bit", "0 < stage_bits <= 64", "both stages"),
    "tree_depth": ("1", "1 <= tree_depth <= 64, an integer", "binary"),
    "word_bits": ("bit", "2 <= word_bits <= 64, an integer", "integer modulo"),
    "participants": ("1", "1 <= participants, an integer", "workers take part round"),
    "distance": ("1", "0 < distance, finite", "largest absolute receiver's"),
    "value_range": ("1", "0 < value_range, finite", "interval numbers"),
    "mean_deviation": ("1", "0 <= mean_deviation, finite", "mean |x_i - mean|"),
    "peak_ratio": ("1", "1 <= peak_ratio, finite", "|coordinate"),
    "nmse": ("1", "0 < nmse < 1", "mean source"),
    "mse": ("1", "0 < mse, finite", "square error estimated"),
    "angle": ("rad", "0 < angle < 1.5708", "angular"),
    "tilt": ("1", "0 < tilt, finite", "static"),
    "miss": ("1", "0 < miss < 1", "probability exceeds"),
    "radius": ("1", "0 < radius, finite", "radius"),
    "shape": ("1", "0 < shape, finite", "generalised"),
    "dof": ("1", "2 < dof, finite", "degrees"),
    "zero_share": ("1", "0 < zero_share < 1", "exactly"),
    "mixture_weight": ("1", "0 < mixture_weight < 1", "weight first Gaussian"),
    "variance_ratio": ("1", "0 < variance_ratio, finite", "variance component"),
    "quantiser_step": ("1", "0 < quantiser_step, finite", "uniform"),
    "lattice_moment": ("1", "0 < lattice_moment, finite", "normalised"),
    "layer_variance": ("1", "0 < layer_variance, finite", "variance coordinate"),
    "water_level": ("1", "0 < water_level, finite", "reverse"),
}


def words_of(meaning):
    return {word.strip(",:;") for word in meaning.split()}


@pooled("name", symbols.TABLE)
def test_a_row_has_the_right_unit_domain_and_meaning(name):
    row, (unit, domain, words) = symbols.TABLE[name], EXPECTED[name]
    assert row.unit == unit
    assert row.domain.text(name) == domain
    assert set(words.split()) <= words_of(row.meaning)


@pooled("name", symbols.TABLE)
def test_the_meaning_of_every_other_symbol_would_be_seen(name):
    words = set(EXPECTED[name][2].split())
    found = [other for other, row in symbols.TABLE.items() if words <= words_of(row.meaning)]
    assert found == [name] or (name == "step_s" and found == ["step_s", "step_sd_s"])  # its standard deviation


def test_no_symbol_is_expected_that_the_table_lacks():
    assert list(EXPECTED) == list(symbols.TABLE)
    assert symbols.TABLE["angle"].domain.upper == np.pi / 2


@pytest.mark.parametrize("name", [name for name in symbols.TABLE if name.endswith("_s")])
def test_a_name_that_ends_with_seconds_has_that_unit(name):
    assert symbols.TABLE[name].unit == "s"


@pooled("name", symbols.TABLE)
def test_a_row_explains_its_symbol(name):
    row = symbols.TABLE[name]
    assert row.symbol.name == name
    assert row.latex.isascii()
    assert row.latex.isprintable()  # an escape such as backslash-t, eaten on the way, leaves a control character
    assert row.meaning
    assert row.unit
    assert symbols.notation(row.symbol) is row


def test_latex_names_are_unique():
    names = [row.latex for row in symbols.TABLE.values()]
    doubles = {name for name in names if names.count(name) > 1}
    assert not doubles


def test_a_foreign_symbol_of_the_same_name_is_refused():
    with pytest.raises(KeyError, match="alpha"):
        symbols.notation(sp.Symbol("alpha"))


def test_a_second_meaning_is_refused():
    with pytest.raises(ValueError, match="one meaning"):
        symbols._row("alpha", "a", "something else")


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (POSITIVE, [1e-300, 1, 1e300], [0, -1, np.nan, np.inf]),
        (NONNEGATIVE, [0, 1], [-1e-300, np.nan]),
        (FRACTION, [1e-300, 1 - 2**-53], [0, 1]),
        (COUNT, [1, 10**12], [0, 1.5, -3]),
        (REAL, [-1e300, 0, 5], [np.nan, -np.inf]),
        (Domain(0, 0.5, open_below=False, open_above=False), [0, 0.5], [0.5000001]),
    ],
)
def test_domain_masks_and_exact_membership_agree(domain, inside, outside):
    assert domain.mask(np.array(inside, float)).all()
    assert not domain.mask(np.array(outside, float)).any()
    assert all(domain.contains(Fraction(value)) for value in inside)
    assert not any(domain.contains(Fraction(value)) for value in outside if np.isfinite(value))


def test_membership_is_decided_exactly_beside_an_open_end():
    assert FRACTION.contains(1 - Fraction(1, 10**40))
    assert not FRACTION.contains(Fraction(1))


def test_rules_are_readable():
    assert FRACTION.text("alpha") == "0 < alpha < 1"
    assert COUNT.text("d") == "1 <= d, an integer"
    assert REAL.text("x") == "x, finite"
