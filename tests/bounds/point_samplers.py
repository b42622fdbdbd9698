"""Random points inside a bound's assumptions, log-spread to the ends of what float64 and the theory allow.

A point is drawn symbol by symbol, then the assumptions decide: draws are repeated until enough points are inside.
"""

from collections.abc import Callable

import numpy as np

from bounds import Bound, symbols

Draw = Callable[[np.random.Generator, int], np.ndarray]
TRIES = 200  # batches of draws before a bound counts as having no more points to offer


def log_spread(low: float, high: float) -> Draw:
    """10**u, u uniform between the exponents."""
    return lambda rng, n: 10 ** rng.uniform(low, high, n)


def from_zero(draw: Draw) -> Draw:
    """The same with one value in twenty replaced by 0."""
    return lambda rng, n: np.where(rng.random(n) < 0.05, 0.0, draw(rng, n))


def whole(high: float) -> Draw:
    """Integers from 1, log-spread; one in five is 1 or 2."""
    return lambda rng, n: np.where(
        rng.random(n) < 0.2, rng.integers(1, 3, n), np.floor(10 ** rng.uniform(0, high, n))
    ).astype(float)


def fraction(rng: np.random.Generator, n: int) -> np.ndarray:
    """Inside (0, 1), close to either end: down to 1e-15 from it."""
    small = 10 ** rng.uniform(-15, -0.3, n)
    return np.where(rng.random(n) < 0.5, small, 1 - small)


def above(one: float, spread: Draw) -> Draw:
    """``one`` plus something log-spread."""
    return lambda rng, n: one + spread(rng, n)


DRAWS: dict[str, Draw] = {
    "d": whole(12),
    "m": whole(5),
    "rounds": whole(9),
    "levels": whole(4),
    "kept": whole(12),
    "participants": whole(5),
    "staleness": lambda rng, n: np.floor(10 ** rng.uniform(-1, 4, n)),
    "K": above(1, from_zero(log_spread(-3, 15))),
    "tau": above(1, from_zero(log_spread(-9, 6))),
    "kurtosis": above(1, from_zero(log_spread(-15, 6))),
    "kappa": above(1, from_zero(log_spread(-15, 12))),
    "amplification": above(1, from_zero(log_spread(-15, 12))),
    "layer_load": above(1, from_zero(log_spread(-12, 6))),
    "omega": log_spread(-15, 12),
    "eta": log_spread(-15, 1),
    "bits": log_spread(-9, 13),
    "bits_per_coordinate": lambda rng, n: rng.integers(1, 9, n).astype(float),
    "zeta": from_zero(fraction),
    "block_momentum_factor": from_zero(fraction),
    "omega1": from_zero(log_spread(-15, 12)),
    "omega2": from_zero(log_spread(-15, 12)),
    "peak_ratio": above(1, from_zero(log_spread(-9, 6))),
    "stage_bits": lambda rng, n: 64 * 10 ** rng.uniform(-12, 0, n),
    "tree_depth": lambda rng, n: rng.integers(1, 65, n).astype(float),
    "word_bits": lambda rng, n: rng.integers(2, 65, n).astype(float),
    "sync_probability": fraction,
    "faulty_fraction": lambda rng, n: fraction(rng, n) / 2,
    "dof": above(2, log_spread(-9, 12)),
    "shape": log_spread(-2, 4),
    "quantiser_step": log_spread(-2, 3),
    "lattice_moment": log_spread(-1.24, 1),
    "tilt": log_spread(-6, 2),
    "radius": log_spread(-3, 0.3),
    "shift": log_spread(0, 12),
    "worst_load": fraction,
}


def draw_symbol(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """n values of one symbol of the notation table."""
    if name in DRAWS:
        return DRAWS[name](rng, n)
    domain = symbols.TABLE[name].domain
    draw = fraction if domain.upper == 1 else log_spread(-8, 8)
    return (draw if domain.open_below else from_zero(draw))(rng, n)


def related(at: dict[str, np.ndarray], rng: np.random.Generator, n: int) -> None:
    """Tie symbols that only make sense together, in half of the points or wherever chance would never do it."""
    near = 1 + 10 ** rng.uniform(-15, 0, n)
    half = rng.random(n) < 0.5
    if {"bits", "d"} <= set(at):
        at["bits"] = at["d"] * 10 ** rng.uniform(-17, np.log10(64), n)
    if {"kept", "d"} <= set(at):
        at["kept"] = np.minimum(at["kept"], at["d"])
    if {"participants", "m"} <= set(at):
        at["participants"] = np.minimum(at["participants"], at["m"])
    if {"mean_deviation", "value_range"} <= set(at):
        at["mean_deviation"] = np.where(half, at["value_range"] / 2 / near, at["mean_deviation"])
    if {"gap", "epsilon"} <= set(at):
        at["gap"] = np.where(half, at["epsilon"] * near, at["gap"])
    if {"layer_variance", "water_level"} <= set(at):
        at["layer_variance"] = np.where(half, at["water_level"] * near, at["layer_variance"])
    if {"angle", "alpha"} <= set(at):
        at["angle"] = np.arcsin(np.sqrt(at["alpha"])) * 10 ** rng.uniform(-6, 0, n) * 0.999  # no code at its end
    if {"mean_square", "square_of_mean"} <= set(at):
        at["square_of_mean"] = np.where(half, at["mean_square"] / at["m"] * near, at["square_of_mean"])
    if {"mse", "m"} <= set(at):
        at["mse"] = fraction(rng, n) / at["m"]
    if {"eta", "L"} <= set(at):
        at["eta"] = np.where(half, 10 ** rng.uniform(-6, 0, n) / at["L"], at["eta"])
    if {"mu", "L"} <= set(at):
        at["mu"] = np.where(half, at["L"] / near, at["mu"])
    if {"rho", "L"} <= set(at):
        at["rho"] = np.where(half, at["L"] / near, at["rho"])
    if {"shift", "L", "mu"} <= set(at):
        at["mu"] = at["L"] * fraction(rng, n)
        at["shift"] = np.maximum(16 * at["L"] / at["mu"], at["tau"]) * near
    if {"max_norm_growth", "mu"} <= set(at):
        at["max_norm_growth"] = np.maximum(at["mu"] ** 2, at["max_norm_growth"])
        at["eta"] = np.where(half, 2 * at["mu"] / at["max_norm_growth"] / near, at["eta"])
    if {"omega", "alpha"} <= set(at):
        at["omega"] = np.maximum(at["omega"], at["alpha"] / (1 - at["alpha"]) * 10 ** rng.uniform(-2, 1, n))


def points(bound: Bound, rng: np.random.Generator, n: int) -> list[dict[str, float]]:
    """At most n points inside the assumptions; fewer if they are too rare, none never (asserted)."""
    names = [symbol.name for symbol in bound.parameters]
    found: list[dict[str, float]] = []
    for _ in range(TRIES):
        batch = max(64, 4 * n)
        at = {name: draw_symbol(name, rng, batch) for name in names}
        related(at, rng, batch)
        mask = np.broadcast_to(bound.holds_at(**at), (batch,)) if names else np.ones(1, bool)
        found += [{name: float(at[name][i]) for name in names} for i in np.flatnonzero(mask)]
        if len(found) >= n or not names:
            break
    assert found, f"no point inside the assumptions of {bound.name}"
    return found[:n]
