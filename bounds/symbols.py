"""The one notation table: every symbol of every formula, with its meaning, unit and domain.

A symbol's name is the keyword under which ``bound(**at)`` takes it.  Names follow the papers; words replace
letters where one letter means several things in the literature (``gap`` for Delta F, ``delay_s`` for D).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp


@dataclass(frozen=True)
class Domain:
    """An interval of the real line, possibly of integers only; infinite ends are always open.

    Parameters
    ----------
    lower : float, optional
        The lower end.
    upper : float, optional
        The upper end.
    open_below : bool, optional
        Whether the lower end is left out.
    open_above : bool, optional
        Whether the upper end is left out.
    integer : bool, optional
        Of integers only.
    """

    lower: float = 0
    upper: float = float("inf")
    open_below: bool = True
    open_above: bool = True
    integer: bool = False

    def mask(self, value: Any) -> Any:
        """Return elementwise: is the value inside?  nan and infinities are outside.

        Parameters
        ----------
        value
            Numbers, any shape.
        """
        value = np.asarray(value)
        inside = np.isfinite(value) if value.dtype.kind == "f" else np.ones(value.shape, bool)
        inside &= value > self.lower if self.open_below else value >= self.lower
        inside &= value < self.upper if self.open_above else value <= self.upper
        if self.integer:
            inside &= value == np.floor(value)
        return inside

    def contains(self, value: Any) -> bool:
        """Return membership of one exact number (int or Fraction), decided exactly.

        Parameters
        ----------
        value
            An exact number.
        """
        above = value > self.lower if self.open_below else value >= self.lower
        below = value < self.upper if self.open_above else value <= self.upper
        return bool(above and below and (not self.integer or value == int(value)))

    def text(self, name: str) -> str:
        """Return the rule in words, such as ``0 < alpha < 1``.

        Parameters
        ----------
        name : str
            Name of the variable in the rule.
        """
        kind = "an integer" if self.integer else "finite"
        left = "" if self.lower == -np.inf else f"{self.lower:g} {'<' if self.open_below else '<='} "
        right = "" if self.upper == np.inf else f" {'<' if self.open_above else '<='} {self.upper:g}"
        return f"{left}{name}{right}" + ("" if right and not self.integer else f", {kind}")


@dataclass(frozen=True)
class Notation:
    """One row of the notation table.

    Parameters
    ----------
    symbol : Symbol
        The sympy symbol.
    latex : str
        How it is printed.
    meaning : str
        What it stands for, in words.
    unit : str
        "1" for none.
    domain : Domain
        Where it may lie.
    """

    symbol: sp.Symbol
    latex: str
    meaning: str
    unit: str
    domain: Domain


POSITIVE = Domain()
NONNEGATIVE = Domain(open_below=False)
FRACTION = Domain(0, 1)  # the open unit interval
UNIT_FROM_ZERO = Domain(0, 1, open_below=False)  # [0, 1)
COUNT = Domain(1, open_below=False, integer=True)
AT_LEAST_ONE = Domain(1, open_below=False)
REAL = Domain(lower=-float("inf"))

TABLE: dict[str, Notation] = {}


def _row(name: str, latex: str, meaning: str, unit: str = "1", domain: Domain = POSITIVE) -> sp.Symbol:
    if name in TABLE:
        raise ValueError(f"a symbol has one meaning; {name!r} is already in the table")
    zero_allowed = domain.lower == 0 and not domain.open_below
    if domain.lower == -float("inf"):
        symbol = sp.Symbol(name, real=True)
    else:
        symbol = sp.Symbol(name, nonnegative=True) if zero_allowed else sp.Symbol(name, positive=True)
    TABLE[name] = Notation(symbol, latex, meaning, unit, domain)
    return symbol


def notation(symbol: sp.Symbol) -> Notation:
    """Return the table's row of a symbol.

    Parameters
    ----------
    symbol : Symbol
        A symbol of the table.

    Raises
    ------
    KeyError
        For a symbol that is not in the table.
    """
    row = TABLE[symbol.name]
    if row.symbol != symbol:
        raise KeyError(f"symbol {symbol.name!r} was not made by bounds.symbols")
    return row


def latex_names(symbols: Iterable[sp.Symbol]) -> dict[sp.Symbol, str]:
    """Return the mapping that sympy's LaTeX printer needs.

    Parameters
    ----------
    symbols : iterable of Symbol
        The symbols to print.
    """
    return {symbol: notation(symbol).latex for symbol in symbols}


# Compression
d = _row("d", "d", "dimension: number of coordinates", "1", COUNT)
alpha = _row("alpha", r"\alpha", "contraction constant: E|C(x)-x|^2 <= alpha |x|^2", "1", FRACTION)
omega = _row("omega", r"\omega", "variance constant of an unbiased operator", "1")
nu = _row("nu", r"\nu", "distortion parameter of deterministic Sparse Dithering", "1", FRACTION)
bits = _row("bits", "b", "length of one message", "bit", NONNEGATIVE)
bits_per_coordinate = _row(
    "bits_per_coordinate",
    r"\bar b",
    "bits of one coordinate's code, norms not counted",
    "bit",
    Domain(1, 8, open_below=False, open_above=False, integer=True),
)

# Local-update SGD
L = _row("L", "L", "smoothness constant of F", "1")
sigma2 = _row("sigma2", r"\sigma^2", "variance of one worker's mini-batch gradient", "1", NONNEGATIVE)
eta = _row("eta", r"\eta", "learning rate", "1")
gap = _row("gap", r"\Delta F", "F(x_1) - inf F", "1", NONNEGATIVE)
tau = _row("tau", r"\tau", "local steps between two averagings", "step", AT_LEAST_ONE)
m = _row("m", "m", "number of workers", "1", COUNT)
in_flight = _row(
    "in_flight",
    r"\delta",
    "local steps made while an average is under way",
    "step",
    Domain(open_below=False, integer=True),
)
staleness = _row(
    "staleness",
    r"\delta_s",
    "steps by which a gradient is late at most",
    "step",
    Domain(open_below=False, integer=True),
)
K = _row("K", "K", "number of local steps in the whole run", "step", AT_LEAST_ONE)
time_s = _row("time_s", "T", "wall-clock budget", "s")
step_s = _row("step_s", "Y", "time of one local step", "s", NONNEGATIVE)
inverse_rounds = _row(
    "inverse_rounds",
    r"E\big[\tfrac1N\big]",
    "mean of 1/max(N, 1) over the number N of rounds that end within the budget",
    "1",
    Domain(0, 1, open_above=False),
)
delay_s = _row("delay_s", "D", "time of one averaging", "s", NONNEGATIVE)

# Convergence theorems: problem class
mu = _row("mu", r"\mu", "strong convexity constant of F", "1")
kappa = _row("kappa", r"\kappa", "condition number L/mu", "1", AT_LEAST_ONE)
rho = _row("rho", r"\rho", "non-convexity: every Hessian is >= -rho", "1", NONNEGATIVE)
R0 = _row("R0", "R_0", "distance from the start to a minimiser", "1", NONNEGATIVE)
G = _row("G", "G", "root of the largest second moment of one worker's stochastic gradient", "1", NONNEGATIVE)
hessian_lipschitz = _row("hessian_lipschitz", r"\mathcal Q", "Lipschitz constant of the Hessian of F", "1")
kurtosis = _row(
    "kurtosis", r"\kappa_4", "E|n|^4 <= kurtosis sigma2^2 for one worker's gradient noise n", "1", AT_LEAST_ONE
)
noise_growth = _row("noise_growth", r"\beta", "variance of one worker's gradient per |grad F|^2", "1", NONNEGATIVE)
zeta = _row("zeta", r"\zeta", "second largest modulus of the eigenvalues of the mixing matrix", "1", UNIT_FROM_ZERO)
heterogeneity = _row(
    "heterogeneity", r"\hat\zeta", "root mean square of grad F_i - grad F over workers", "1", NONNEGATIVE
)
sigma2_opt = _row("sigma2_opt", r"\sigma_*^2", "mean over workers of E|g_i|^2 at the minimiser", "1", NONNEGATIVE)
epsilon = _row("epsilon", r"\epsilon", "target accuracy, in the unit of the bounded quantity", "1")
psi0 = _row("psi0", r"\Psi_0", "initial value of the method's Lyapunov function", "1", NONNEGATIVE)

# Convergence theorems: schedules and methods
sum_eta = _row("sum_eta", r"\Sigma_1", "sum over rounds of eta tau", "1")
sum_eta2 = _row("sum_eta2", r"\Sigma_2", "sum over rounds of eta^2 tau", "1", NONNEGATIVE)
sum_eta3 = _row("sum_eta3", r"\Sigma_3", "sum over rounds of eta^3 tau (tau - 1)", "1", NONNEGATIVE)
worst_load = _row(
    "worst_load", r"\Lambda", "largest load of a round: eta L + eta^2 L^2 tau (tau - 1), and what compression adds", "1"
)
block_momentum_factor = _row("block_momentum_factor", r"\beta_{glob}", "momentum between rounds", "1", UNIT_FROM_ZERO)
server_eta = _row("server_eta", r"\eta_s", "step size of the optimizer at the server", "1")
server_decay = _row("server_decay", r"\beta_2", "decay of the running mean square at the server", "1", FRACTION)
adaptivity = _row("adaptivity", r"\varepsilon_a", "constant that the server adds to the root of its mean square", "1")
gradient_max = _row(
    "gradient_max", r"G_\infty", "largest absolute coordinate of a stochastic gradient", "1", NONNEGATIVE
)
sync_probability = _row(
    "sync_probability", "p", "probability of communicating at a step", "1", Domain(0, 1, open_above=False)
)
shift = _row("shift", "a", "offset of the step size 4/(mu (a + t))", "step")
rounds = _row("rounds", "R", "number of communication rounds", "round", COUNT)
levels = _row("levels", "s", "positive levels of a quantiser", "1", COUNT)
kept = _row("kept", "k", "coordinates kept by a sparsifier", "1", COUNT)
topk_gap = _row("topk_gap", r"\xi", "top-k of a mean against the mean of the top-k, per |gradient|", "1", NONNEGATIVE)
max_norm_floor = _row("max_norm_floor", "A", "constant part of E[|g|_inf |g|_1]", "1", NONNEGATIVE)
max_norm_growth = _row(
    "max_norm_growth", "B", "part of E[|g|_inf |g|_1] per squared distance to the minimiser", "1", NONNEGATIVE
)
layer_noise = _row("layer_noise", r"\Omega_\sigma", "sum over layers of amplification times variance", "1", NONNEGATIVE)
layer_load = _row("layer_load", r"\Omega", "largest amplification of the mean gradient over layers", "1", AT_LEAST_ONE)
L_1 = _row("L_1", r"\|L\|_1", "sum over coordinates of the smoothness constants", "1")
sigma_1 = _row("sigma_1", r"\|\sigma\|_1", "sum over coordinates of the standard deviations", "1", NONNEGATIVE)
snr = _row("snr", "S", "|gradient| over standard deviation of one coordinate", "1")
local_error = _row(
    "local_error",
    r"\varepsilon_l",
    "probability that an honest vote is wrong, averaged over the workers",
    "1",
    Domain(0, 0.5, open_below=False),
)
faulty_fraction = _row("faulty_fraction", "f", "fraction of workers that negate", "1", Domain(0, 0.5, open_below=False))

# Choice of tau
order_mean = _row("order_mean", "e_m", "mean of the largest of m standard normal variables", "1", NONNEGATIVE)
step_sd_s = _row("step_sd_s", r"\mathrm{sd}(Y)", "standard deviation of the time of one local step", "s", NONNEGATIVE)
third_derivative = _row("third_derivative", "Q", "size of the third derivative of F along the noise", "1")
latency_s = _row("latency_s", "D_{lat}", "part of one averaging that does not depend on the message", "s", NONNEGATIVE)
message_s = _row("message_s", "t_b", "time to send one uncompressed message", "s")
amplification = _row("amplification", "u", "1 + omega, second moment added by compression", "1", AT_LEAST_ONE)

# Means of vectors that the workers hold
omega1 = _row("omega1", r"\omega_1", "variance constant of the first stage, or of every hop", "1", NONNEGATIVE)
omega2 = _row("omega2", r"\omega_2", "variance constant of the second stage: the mean to all workers", "1", NONNEGATIVE)
mean_square = _row("mean_square", r"\mathcal S", "mean over the workers of |x_i|^2", "1", NONNEGATIVE)
square_of_mean = _row("square_of_mean", r"\mathcal M", "|mean over the workers of x_i|^2", "1", NONNEGATIVE)
stage_bits = _row(
    "stage_bits", r"b_{12}", "bits per coordinate of both stages together", "bit", Domain(0, 64, open_above=False)
)
tree_depth = _row(
    "tree_depth",
    r"\ell",
    "levels of a binary tree with 2^l leaves",
    "1",
    Domain(1, 64, open_below=False, open_above=False, integer=True),
)
word_bits = _row(
    "word_bits",
    r"k_b",
    "bits of one integer that is summed modulo 2^k",
    "bit",
    Domain(2, 64, open_below=False, open_above=False, integer=True),
)
participants = _row("participants", "s_p", "workers that take part in a round, drawn uniformly", "1", COUNT)
distance = _row("distance", r"\Delta_\infty", "largest absolute coordinate of a vector less the receiver's", "1")
value_range = _row("value_range", "r - l", "length of the interval that holds the numbers of all workers", "1")
mean_deviation = _row(
    "mean_deviation", r"\sigma_{md}", "mean over the workers of |x_i - mean| of one coordinate", "1", NONNEGATIVE
)
peak_ratio = _row(
    "peak_ratio",
    r"c_\infty",
    "bound on |coordinate of the mean| from which the scale is set, over the mean's root mean square",
    "1",
    AT_LEAST_ONE,
)

# Rate-distortion limits
nmse = _row("nmse", r"\Delta", "mean square error over the variance of the source", "1", FRACTION)
mse = _row("mse", r"\mathrm{MSE}", "mean square error of an estimated mean", "1")
angle = _row("angle", r"\theta", "angular slack of a covering", "rad", Domain(0, 1.5707963267948966))
tilt = _row("tilt", r"\lambda", "exponent of a static law of quantisation levels", "1")
miss = _row("miss", r"\varepsilon", "probability that the distortion exceeds its target", "1", FRACTION)
radius = _row("radius", "r_0", "radius of a random codebook over sigma sqrt(d)", "1")
shape = _row("shape", "b_s", "exponent of a generalised Gaussian density exp(-|x/s|^p)", "1")
dof = _row("dof", r"\eta_t", "degrees of freedom of a Student law", "1", Domain(2))
zero_share = _row("zero_share", "p_0", "probability that a coordinate is exactly zero", "1", FRACTION)
mixture_weight = _row("mixture_weight", "w", "weight of the first of two Gaussian components", "1", FRACTION)
variance_ratio = _row("variance_ratio", "r", "variance of the first component over that of the second", "1")
quantiser_step = _row("quantiser_step", "h", "step of a uniform quantiser over the source's standard deviation", "1")
lattice_moment = _row("lattice_moment", r"G_\Lambda", "normalised second moment of a lattice cell", "1")
layer_variance = _row("layer_variance", r"\sigma_l^2", "variance of one coordinate of a layer", "1")
water_level = _row("water_level", r"\theta_w", "distortion of one coordinate in reverse water-filling", "1")
