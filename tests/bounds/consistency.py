"""Pairs of statements that may meet, and random points of both: no lower bound may exceed an upper one.

``python -m tests.bounds.consistency --points 20000 --seed 1`` (from the root) counts many more than the test does.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import sympy as sp

from bounds import (
    Bound,
    Conclusion,
    Example,
    NotCertifiable,
    Property,
    Reference,
    Setting,
    Side,
    Status,
    all_bounds,
    symbols,
)
from bounds.setting import implied, never_above
from bounds.symbols import R0, L, epsilon, gap, m, nmse, word_bits

P, C = Property, Conclusion
ROUNDING = 1e-9  # of float64 values, relative and absolute
ABSOLUTE_CONSTANT = 32  # how far "up to an absolute constant" may reach
RATES = 240  # learning rates tried where one statement speaks of the best

# What a property says about numbers, where one statement is a case of another.
MEANS = {
    P.SPARSE_DITHERING: lambda at: {"nu": at["alpha"]},
    P.WHOLE_SPARSE_DITHERING: lambda at: {"nu": at["alpha"]},
    P.CODED_SPARSE_DITHERING: lambda at: {"nu": at["alpha"], "tilt": at["tilt"] * at["alpha"]},
    P.TENTH_SPARSE_DITHERING: lambda at: {"alpha": np.full_like(at["alpha"], 0.1)},
    P.UNIFORM_EDEN: lambda at: {"bits": at["bits_per_coordinate"] * at["d"] + 32},
    P.ONE_BIT_RABITQ: lambda at: {"bits": at["d"] + 32},
    P.TURBOQUANT_PROD: lambda at: {"bits": at["bits_per_coordinate"] * at["d"] + 64},
    P.FULL_GRADIENTS: lambda at: {"sigma2": np.zeros_like(at["sigma2"])},
    P.LOCAL_SGD: lambda at: {"K": at["tau"] * at["rounds"]},
}


def _obvious(name: str, value: sp.Expr, needs: set[Property], about: Conclusion, *assuming: sp.Basic) -> Bound:
    """An upper bound that needs no proof beyond one line; it has to be above every lower one too."""
    at = dict.fromkeys((s.name for s in value.free_symbols.union(*(r.free_symbols for r in assuming))), 1)
    return Bound(
        name=name,
        quantity=about.words,
        side=Side.UPPER,
        value=value,
        assuming=assuming,
        reference=Reference("obvious"),
        status=Status.PROVED,
        setting=Setting(frozenset(needs), about),
        examples=(Example(at, "0", "not compared"),),
    )


OBVIOUS = (
    _obvious("gap_at_start", L * R0**2 / 2, {P.SMOOTH, P.CONVEX, P.MINIMISER}, Conclusion.GAP_OF_OUTPUT),
    _obvious(
        "no_step", sp.Integer(0), {P.SMOOTH, P.BOUNDED_BELOW}, Conclusion.STEPS_TO_GRADIENT, sp.Ge(epsilon, 2 * L * gap)
    ),  # |grad F|^2 <= 2 L gap everywhere below the start
    _obvious(
        "ring_of_words", 2 * (m - 1) * word_bits / m, {P.UNIFORM_WORDS, P.SELF_DELIMITING, P.EXACT_SUM}, C.RECEIVED_RATE
    ),  # m - 1 shards to be summed and m - 1 sums are received
    _obvious("gaussian_is_worst", -sp.log(nmse, 2) / 2, {P.FINITE_VARIANCE_SOURCE}, Conclusion.INFORMATION_RATE),
)


def pairs() -> list[tuple[Bound, Bound]]:
    """(at least, at most): statements that some situation meets both, the first about the smaller quantity."""
    every = [*all_bounds().values(), *OBVIOUS]
    return [
        (low, high)
        for low in every
        for high in every
        if low is not high
        and low.side is not Side.UPPER
        and high.side is not Side.LOWER
        and never_above(low.setting.concludes, high.setting.concludes)
        and low.setting.meets(high.setting)
        and "O(" not in low.setting.known_up_to + high.setting.known_up_to
    ]


def fraction(rng: np.random.Generator, n: int) -> np.ndarray:
    """Numbers in (0, 1), dense at both ends and in between."""
    near = 10.0 ** rng.uniform(-9, 0, n)
    return np.choose(rng.integers(0, 3, n), [rng.uniform(1e-6, 1 - 1e-6, n), near * 0.999, 1 - near * 0.999])


def count(rng: np.random.Generator, n: int, top: float) -> np.ndarray:
    """Integers from 1, each tenth a 1 and each tenth a 2, the others log-uniform."""
    drawn = np.floor(10.0 ** rng.uniform(0, top, n))
    return np.where(rng.random(n) < 0.1, 1.0, np.where(rng.random(n) < 0.1, 2.0, drawn))


def sample(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Points of one symbol's domain, its ends well represented."""
    domain = symbols.TABLE[name].domain
    if name == "angle":
        return np.pi / 2 * 10.0 ** rng.uniform(-5, 0, n)
    if name in ("d", "kept", "m", "rounds", "levels"):
        return count(rng, n, 9 if name in ("d", "kept") else 6)
    if name == "bits_per_coordinate":
        return rng.integers(1, 9, n).astype(float)
    if name == "word_bits":
        return rng.integers(2, 65, n).astype(float)
    if name == "tau":
        return count(rng, n, 6)
    if (domain.lower, domain.upper) == (0, 1):
        return fraction(rng, n)
    return domain.lower + 10.0 ** rng.uniform(-6, 6, n)


def points(low: Bound, high: Bound, rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """n points of every symbol, one situation each: what the settings say about numbers is put in."""
    at = {name: sample(name, rng, n) for name in symbols.TABLE}
    for one, means in MEANS.items():
        if one in implied(low.setting.needs | high.setting.needs):
            at |= means(at)
    return at


def violations(low: Bound, high: Bound, *, seed: int, n: int) -> tuple[int, list[str]]:
    """How many points were compared, and those at which the lower bound exceeds the upper one."""
    at = points(low, high, np.random.default_rng(seed), n)
    takes = {symbol.name for symbol in high.parameters}
    tuned = "eta" in takes
    if tuned:
        at = {name: value[:, None] for name, value in at.items()}
        at["eta"] = np.geomspace(1e-14, 1, RATES) / at["L"]
    allowed = ABSOLUTE_CONSTANT if low.setting.known_up_to or high.setting.known_up_to else 1.0
    below = _value(low, at)
    above = _value(high, at)
    if tuned:
        above = np.nanmin(np.where(np.isnan(above), np.inf, above), axis=1)
        below = below[:, 0]
    inside = np.isfinite(below) & np.isfinite(above)
    bad = inside & (below > allowed * above + ROUNDING * (1 + np.abs(above)))
    if not tuned:
        bad[bad] = [_certain(low, high, {k: v[i] for k, v in at.items()}, allowed) for i in np.flatnonzero(bad)]
    names = sorted({s.name for b in (low, high) for s in b.parameters} - {"eta"})
    told = [
        f"{low.name} = {below[i]:.6g} > {high.name} = {above[i]:.6g} at "
        + ", ".join(f"{name} = {np.ravel(at[name])[i]:.17g}" for name in names)
        for i in np.flatnonzero(bad)
    ]
    return int(inside.sum()), told


def _certain(low: Bound, high: Bound, at: dict[str, np.float64], allowed: float) -> bool:
    """Whether certified values disagree too: cancellation in float64 is another matter."""
    try:
        below, above = (b.enclose(**{s.name: float(at[s.name]) for s in b.parameters}) for b in (low, high))
    except NotCertifiable:
        return True
    return bool(below.lo > allowed * above.hi)


def _value(bound: Bound, at: dict[str, np.ndarray]) -> np.ndarray:
    """The bound at every point, nan outside its assumptions."""
    given = {symbol.name: at[symbol.name] for symbol in bound.parameters}
    shape = np.broadcast_shapes(*(np.shape(value) for value in at.values())) if "eta" in given else at["d"].shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = np.broadcast_to(bound.holds_at(**given), shape)
        values = np.full(shape, np.nan)
        if inside.any():
            chosen = {name: np.broadcast_to(value, shape)[inside] for name, value in given.items()}
            values[inside] = bound(**chosen)
    return values


def main() -> None:
    """Compare many points of every pair and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20_000, help="of each pair")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    total, wrong = 0, 0
    for low, high in pairs():
        compared, told = violations(low, high, seed=options.seed, n=options.points)
        total, wrong = total + compared, wrong + len(told)
        print(f"{low.name} <= {high.name}: {compared} points, {len(told)} wrong", *told[:3], sep="\n    ", flush=True)  # noqa: T201
    print(f"{len(pairs())} pairs, {total} points, {wrong} wrong")  # noqa: T201


if __name__ == "__main__":
    main()
