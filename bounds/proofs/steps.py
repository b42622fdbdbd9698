"""The steps behind the theorems on local SGD, compression, two shots, error feedback, DIANA and the third order."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from .proof import Form, Premise, Proof, Square, Vectors, product

L, Q, eta, omega, omega1, omega2, m, mu, t = sp.symbols("L Q eta omega omega1 omega2 m mu t", positive=True)
sigma2, kurtosis_factor, growth, mean_square, shift_rate = sp.symbols("sigma2 a G M a_shift", positive=True)
rho = sp.Symbol("rho", positive=True)
root_alpha = sp.Symbol("share_s", positive=True)  # sqrt(alpha)
share = sp.Symbol("share_x", nonnegative=True)

WORKERS = Vectors((("b", "gbar", "x"), ("d", "u")))  # gradients and places common to all; deviations of the workers
_V = product("d", "d")


def _form(**coefficients: sp.Expr | int) -> Form:
    return {name: sp.sympify(value) for name, value in coefficients.items()}


_GRADIENT_GAP = _form(b=1, gbar=-1, u=-1)  # b - g_i
_MEAN_GAP = _form(b=1, gbar=-1)

_ITERATIONS = ("pasgd_iterations", "pasgd_overlap", "pasgd_compressed", "pasgd_two_shot", "pasgd_multiplicative")
_CONVEX = ("pasgd_convex_sharp", "pasgd_third_order_convex", "pasgd_compressed_convex")


def _local_sgd() -> tuple[Proof, ...]:
    inner, square = WORKERS.inner, WORKERS.square
    cocoercive = inner(_GRADIENT_GAP, _form(d=-1)) - square(_GRADIENT_GAP) / L
    curved_gap = {**_GRADIENT_GAP, "d": -rho}  # the same for F + rho |x|^2/2
    curved = inner(curved_gap, _form(d=-1)) - square(curved_gap) / (L + rho)
    apart = _form(u=1, d=rho)
    f_i, f_star, f_bar = sp.symbols("f_i f_star f_bar", real=True)
    local = _form(gbar=1, u=1)
    at_minimiser = f_star - f_i - inner(local, _form(x=-1, d=-1)) - square(local) / (2 * L)
    at_mean = f_i - f_bar - inner(_form(b=1), _form(d=1)) - square(_GRADIENT_GAP) / (2 * L)
    smooth_at_mean = f_i - f_bar - inner(local, _form(d=1)) + L / 2 * _V
    advance = inner(_form(gbar=1), _form(x=1)) - (f_bar - f_star)
    return (
        Proof(
            "mean_of_gradients_convex",
            "|grad F(xbar) - mean grad F(x_i)|^2 <= (L^2/4) V for a convex L-smooth F",
            ("pasgd_convex_sharp",),
            WORKERS,
            L**2 / 4,
            _V,
            -square(_MEAN_GAP),
            (Premise(L, cocoercive, "cocoercivity of the gradient, averaged over the workers"),),
            (Square(sp.S.One, _form(u=1, d=-L / 2)),),
        ),
        Proof(
            "mean_of_gradients_curved",
            "|grad F(xbar) - mean grad F(x_i)|^2 <= ((L + rho)/2)^2 V for Hessians >= -rho",
            ("pasgd_smooth_sharp",),
            WORKERS,
            ((L + rho) / 2) ** 2,
            _V,
            -square(_MEAN_GAP),
            (Premise(L + rho, curved, "cocoercivity of the gradient of F + rho |x|^2/2"),),
            (Square(sp.S.One, _form(u=1, d=rho - (L + rho) / 2)),),
        ),
        Proof(
            "no_further_apart",
            "a gradient step of a convex L-smooth F brings workers no further apart, eta L <= 2",
            ("pasgd_convex", *_CONVEX),
            WORKERS,
            sp.S.One,
            _V,
            -square(_form(d=1, u=-eta)),
            (Premise(2 * eta, inner(_form(u=1), _form(d=1)) - square(_form(u=1)) / L, "cocoercivity by pairs"),),
            (Square(eta * (2 / L - eta), _form(u=1)),),
            {eta: 2 * share / L},
        ),
        Proof(
            "little_further_apart",
            "a gradient step multiplies V by (1 + eta rho)^2 at most, Hessians >= -rho, eta L <= 1",
            ("pasgd_smooth", "pasgd_smooth_sharp", "pasgd_third_order"),
            WORKERS,
            (1 + eta * rho) ** 2,
            _V,
            -square(_form(d=1, u=-eta)),
            (
                Premise(
                    2 * eta * (1 + eta * rho),
                    inner(apart, _form(d=1)) - square(apart) / (L + rho),
                    "cocoercivity of the gradient of F + rho |x|^2/2 by pairs",
                ),
            ),
            (Square(eta * (2 - eta * L + eta * rho) / (L + rho), apart),),
            {eta: share / L},  # then 2 - share + share rho/L
        ),
        Proof(
            "descent_by_workers",
            "2 <b, gbar> >= |b|^2 + mean |g_i|^2 - mean |b - g_i|^2, an equality",
            _ITERATIONS,
            WORKERS,
            sp.S.One,
            square(_GRADIENT_GAP),
            2 * inner(_form(b=1), _form(gbar=1)) - square(_form(b=1)) - square(local),
            (),
        ),
        Proof(
            "descent_by_the_mean",
            "2 <b, gbar> - eta L |gbar|^2 >= |b|^2 - |b - gbar|^2 for eta L <= 1",
            ("pasgd_convex", *_CONVEX, "pasgd_smooth", "pasgd_smooth_sharp", "pasgd_third_order"),
            WORKERS,
            sp.S.One,
            square(_MEAN_GAP),
            2 * inner(_form(b=1), _form(gbar=1)) - square(_form(b=1)) - eta * L * square(_form(gbar=1)),
            (),
            (Square(1 - eta * L, _form(gbar=1)),),
            {eta: share / L},
        ),
        Proof(
            "gap_by_workers",
            "<gbar, xbar - x*> >= F(xbar) - F* + mean |g_i|^2/(2 L) - (L/2) V for a convex L-smooth F",
            ("pasgd_gap",),
            WORKERS,
            L / 2,
            _V,
            advance - square(local) / (2 * L),
            (
                Premise(sp.S.One, at_minimiser, "convexity and smoothness between x_i and the minimiser"),
                Premise(sp.S.One, smooth_at_mean, "smoothness between x_i and the mean"),
            ),
        ),
        Proof(
            "gap_by_the_mean",
            "<gbar, xbar - x*> >= F(xbar) - F* + (|gbar|^2 + |b - gbar|^2)/(2 L) - (L/4) V for a convex L-smooth F",
            ("pasgd_gap_sharp",),
            WORKERS,
            L / 4,
            _V,
            advance - square(_form(gbar=1)) / (2 * L) - square(_MEAN_GAP) / (2 * L),
            (
                Premise(sp.S.One, at_minimiser, "convexity and smoothness between x_i and the minimiser"),
                Premise(sp.S.One, at_mean, "convexity and smoothness between the mean and x_i"),
            ),
            (Square(1 / L, _form(u=1, d=-L / 2)),),
        ),
    )


def _compression() -> tuple[Proof, ...]:
    pair = Vectors((("p", "q"),))
    shots = Vectors((("x",), ("e1",), ("e2",)))
    shrunk = Vectors((("x",), ("n",)))
    memory = Vectors((("e", "g"), ("n",)))
    smooth = Vectors((("p", "b", "e"),))
    changes, errors = sp.symbols("D2 Z2", nonnegative=True)
    mean_error = product("z", "z")
    s = root_alpha
    return (
        Proof(
            "noise_and_gradients_apart",
            "|p + q|^2 <= 2 |p|^2 + 2 |q|^2",
            _ITERATIONS,
            pair,
            sp.Integer(2),
            product("p", "p") + product("q", "q"),
            -pair.square(_form(p=1, q=1)),
            (),
            (Square(sp.S.One, _form(p=1, q=-1)),),
        ),
        Proof(
            "mean_of_messages",
            "E|mean of m independent errors|^2 <= (omega/m) mean |x_i|^2",
            ("gather_error", "pasgd_compressed", "pasgd_compressed_convex"),
            Vectors((("z",),)),
            omega / m,
            changes,
            -mean_error,
            (
                Premise(1 / m, omega * changes - errors, "the operator's constant, averaged over the workers"),
                Premise(sp.S.One, errors / m - mean_error, "independent centred errors"),
            ),
        ),
        Proof(
            "two_shots",
            "E|result - mean|^2 <= (1 + omega2)(omega1/m) mean_square + omega2 |mean|^2",
            ("two_shot_error", "pasgd_two_shot"),
            shots,
            (1 + omega2) * omega1 / m,
            mean_square,
            omega2 * product("x", "x") - shots.square(_form(e1=1, e2=1)),
            (
                Premise(1 + omega2, omega1 * mean_square / m - product("e1", "e1"), "the first stage"),
                Premise(
                    sp.S.One,
                    omega2 * shots.square(_form(x=1, e1=1)) - product("e2", "e2"),
                    "the second stage, given the first",
                ),
            ),
        ),
        Proof(
            "shrunk_unbiased",
            "E|C(x)/(1 + omega) - x|^2 <= omega/(1 + omega) |x|^2 for an unbiased C",
            ("gaussian_unbiased_bits", "sphere_unbiased_bits"),
            shrunk,
            omega / (1 + omega),
            product("x", "x"),
            -shrunk.square(_form(x=1 / (1 + omega) - 1, n=1 / (1 + omega))),
            (Premise((1 + omega) ** -2, omega * product("x", "x") - product("n", "n"), "the operator's constant"),),
        ),
        Proof(
            "memory_of_error_feedback",
            "E|e+|^2 <= s |e|^2 + s^2/(1 - s) eta^2 |g|^2 with s = sqrt(alpha)",
            ("ef_memory", "ef_sgd", "pasgd_memory"),
            memory,
            s**2 / (1 - s),
            eta**2 * product("g", "g"),
            s * product("e", "e") - product("n", "n"),
            (Premise(sp.S.One, s**2 * memory.square(_form(e=1, g=eta)) - product("n", "n"), "contraction by alpha"),),
            (Square(s * (1 - s), _form(e=1, g=-eta * s / (1 - s))),),
        ),
        Proof(
            "descent_at_a_virtual_point",
            "2 <grad F(y), grad F(x)> >= |grad F(x)|^2 - L^2 |y - x|^2",
            ("ef_sgd", "pasgd_memory", "qsparse"),
            smooth,
            L**2,
            product("e", "e"),
            2 * product("b", "p") - product("b", "b"),
            (Premise(sp.S.One, L**2 * product("e", "e") - smooth.square(_form(p=1, b=-1)), "smoothness"),),
            (Square(sp.S.One, _form(p=1)),),
        ),
    )


def _diana() -> tuple[Proof, ...]:
    a = shift_rate
    shifts = Vectors((("h", "r"), ("n",)))  # h_i - g*_i and grad F_i - g*_i; the message's noise
    difference = shifts.square(_form(r=1, h=-1))
    gap, square_x, advance, square_g, noise, new_shift = sp.symbols("delta X2 gX g2 N H_next", real=True)
    spread, shift = product("r", "r"), product("h", "h")
    c = 4 * omega * eta**2 / (m * a)
    new_distance = square_x - 2 * eta * advance + eta**2 * (square_g + noise)
    return (
        Proof(
            "shift_of_diana",
            "E|h+ - g*|^2 <= (1 - a) |h - g*|^2 + a |g - g*|^2 for a (1 + omega) <= 1",
            ("diana", "diana_distance"),
            shifts,
            a,
            spread,
            (1 - a) * shift - shifts.square(_form(h=1 - a, r=a, n=a)),
            (Premise(a**2, omega * difference - product("n", "n"), "the operator's constant"),),
            (Square(a * (1 - a * (1 + omega)), _form(r=1, h=-1)),),
            {a: share / (1 + omega)},
        ),
        Proof(
            "lyapunov_of_diana",
            "E Psi+ <= (1 - eta mu)|x - x*|^2 + (1 - a/2) c H - 2 eta delta (1 - eta L (1 + 6 omega/m)), c = 4 omega "
            "eta^2/(m a)",
            ("diana", "diana_distance"),
            shifts,
            sp.Integer(6),
            2 * eta**2 * L * omega * gap / m,
            (1 - eta * mu) * square_x
            + (1 - a / 2) * c * shift
            - 2 * eta * gap * (1 - eta * L)
            - new_distance
            - c * new_shift,
            (
                Premise(2 * eta, advance - gap - mu / 2 * square_x, "strong convexity"),
                Premise(eta**2, 2 * L * gap - square_g, "smoothness of F"),
                Premise(eta**2, omega * difference / m - noise, "independent messages"),
                Premise(6 * omega * eta**2 / m, 2 * L * gap - spread, "smoothness and convexity of every F_i"),
                Premise(c, (1 - a) * shift + a * spread - new_shift, "shift_of_diana"),
            ),
            (Square(eta**2 * omega / m, _form(r=1, h=1)),),
        ),
    )


def _third_order() -> tuple[Proof, ...]:
    V, P, ZA = sp.symbols("V P ZA", nonnegative=True)
    u, V2, P2, Z2, A2, PA, q = sp.symbols("share_u V2 P2 Z2 A2 PA q", nonnegative=True)
    a, G = kurtosis_factor, growth
    square = P2 + 4 * eta**2 * Z2 + eta**4 * A2 + 2 * eta**2 * PA - 4 * eta**3 * ZA
    return (
        Proof(
            "mean_of_gradients_third_order",
            "|grad F(xbar) - mean grad F(x_i)|^2 <= (Q^2/4) V^2 for a Q-Lipschitz Hessian",
            ("pasgd_third_order", "pasgd_third_order_convex", "pasgd_third_order_any_noise"),
            Vectors(()),
            Q**2 / 4,
            V**2,
            -(q**2),
            (Premise(Q * V / 2 + q, Q * V / 2 - q, "remainders of at most (Q/2)|d_i|^2"),),
        ),
        Proof(
            "square_of_the_spread",
            "E V+^2 <= G^2 V^2 + 2 (1 + u) eta^2 sigma2 G V + a eta^4 sigma2^2, u = 1/m, for equal third moments",
            ("pasgd_third_order", "pasgd_third_order_convex", "pasgd_third_order_strongly_convex"),
            Vectors(()),
            2 * (1 + u),
            eta**2 * sigma2 * G * V,
            G**2 * V2 + a * eta**4 * sigma2**2 - square,
            (
                Premise(sp.S.One, G**2 * V2 - P2, "P <= G V, squared"),
                Premise(2 * (1 + u) * eta**2 * sigma2, G * V - P, "P <= G V"),
                Premise(4 * eta**2, u * sigma2 * P - Z2, "E Z^2 of independent noises"),
                Premise(eta**4, a * sigma2**2 - A2, "the kurtosis"),
                Premise(2 * eta**2, (1 - u) * sigma2 * P - PA, "E A given the past"),
                Premise(4 * eta**3, ZA, "E Z A = 0"),
            ),
        ),
    )


@lru_cache(maxsize=1)
def all_proofs() -> dict[str, Proof]:
    """Name -> Proof, in the order of the chapters."""
    proofs = (*_local_sgd(), *_compression(), *_diana(), *_third_order())
    return {proof.name: proof for proof in proofs}


def proofs_of(bound: str) -> tuple[Proof, ...]:
    """Return the steps that the derivation of a bound uses.

    Parameters
    ----------
    bound : str
        Its name.
    """
    return tuple(proof for proof in all_proofs().values() if bound in proof.bounds)
