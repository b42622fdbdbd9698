"""Total communication: steps to an accuracy times bits a step, for every method and any compressor.

A compressor costs steps and saves bits; only the product counts.  ``methods()`` finds every theorem that states steps
as a function of omega or alpha; the compressor enters through its claim and the bits of one message.  Bits are those
that one worker sends, a message once however many receive it; the m workers send m times as many, and what they
receive is not counted.  In two shots one operator serves both stages, and an owner sends its shard of the mean too.

Any unbiased compressor has a family of lower rates: send a random fraction p of the coordinates, chosen by a shared
seed and scaled by 1/p.  Its constant becomes (1 + omega)/p - 1 at p times the bits, so that (1 + omega) times bits
stays the same: that product is the compressor's figure of merit for one worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .bound import Bound, Side, Status
from .catalogue import all_bounds
from .claims import Claim, Contractive, NoClaim, Unbiased
from .properties import Property
from .runtime.checks import nonnegative, positive_integer

SMALLEST = sys.float_info.min  # stands for omega = 0 and alpha = 0, where the rates are continuous
GRID_POINTS = 1000
STAGES = ("omega1", "omega2")
LEVELS = (("omega",), ("alpha",), STAGES)


@dataclass(frozen=True)
class Total:
    """What one method costs with one compressor.

    Parameters
    ----------
    method : str
        Name of the optimization method.
    level : float
        omega or alpha that was used.
    steps
        Until the accuracy.
    bits_per_step
        Sent by one worker in a step.
    bits : number, bits
        Sent by one worker over all steps.
    status : Status
        Of the theorem behind ``steps``.
    """

    method: str
    level: float
    steps: Any
    bits_per_step: Any
    bits: Any
    status: Status


@lru_cache(maxsize=1)
def methods() -> dict[str, Bound]:
    """Name -> theorem, for every upper bound on steps that depends on omega, alpha, or omega1 and omega2.

    Every step of these methods exchanges a message.
    """
    return {
        name: bound
        for name, bound in all_bounds().items()
        if bound.unit == "step"
        and bound.side is Side.UPPER
        and level_names(bound)
        and Property.LOCODL not in bound.setting.needs
    }


def level_names(bound: Bound) -> tuple[str, ...]:
    """Return the letters of a theorem that hold a compressor's constant: ("omega1", "omega2") of two stages.

    Parameters
    ----------
    bound : Bound
        The theorem; without such letters the result is empty.
    """
    names = {symbol.name for symbol in bound.parameters}
    return next((letters for letters in LEVELS if names.issuperset(letters)), ())


def level_of(bound: Bound, claim: Claim) -> float:
    """Return the constant, omega or alpha, that a claim gives to a theorem.

    An unbiased operator divided by 1 + omega contracts with alpha = omega/(1 + omega).  Of two stages the constant is
    that of both.

    Parameters
    ----------
    bound : Bound
        The bound whose letter is sought.
    claim : Claim
        What the operator promises.

    Raises
    ------
    ValueError
        If the claim does not support the theorem.
    """
    if isinstance(claim, NoClaim):
        raise ValueError(f"{bound.name} needs a claim; the operator makes none: {claim.reason}")
    if level_names(bound) != ("alpha",):
        if not isinstance(claim, Unbiased):
            raise ValueError(
                f"{bound.name} needs an unbiased operator; this one contracts with alpha = {claim.alpha:.6g}: use a "
                "method with error feedback"
            )
        return max(claim.omega, SMALLEST)
    alpha = claim.alpha if isinstance(claim, Contractive) else claim.omega / (1 + claim.omega)
    return max(alpha, SMALLEST)


def total_bits(
    method: str,
    claim: Claim,
    bits: float,
    *,
    dense_bits: float | None = None,
    allow_recalled: bool = False,
    **problem: Any,
) -> Total:
    """Return bits that one worker sends until the accuracy is reached.

    Parameters
    ----------
    method : str
        A name in ``methods()``.
    claim : Claim
        What the operator promises.
    bits : float, bits
        Of one message of the compressor.
    dense_bits : float or None, bits, optional
        Of an uncompressed message, for methods that send one with probability ``sync_probability``; unless given that
        probability is bits/dense_bits, at which both kinds of message cost alike.
    allow_recalled : bool, optional
        Whether theorems that were not verified count too.
    **problem
        The other arguments of the theorem (kappa, m, epsilon, L, gap ...), which broadcast.

    Raises
    ------
    ValueError
        For an unknown method, an unsuited claim, negative bits, or a recalled theorem without ``allow_recalled``.
    """
    bound = _theorem(method, allow_recalled)
    return _total(bound, level_of(bound, claim), nonnegative("bits", bits), dense_bits, problem)


def subsampled(claim: Unbiased, bits: float, fraction: float, *, overhead_bits: float = 0) -> tuple[Unbiased, float]:
    """Return claim and expected bits of an unbiased operator that sends a random fraction of its coordinates.

    0 < fraction <= 1;

    Parameters
    ----------
    claim : Unbiased
        What the operator promises.
    bits : float, bits
        Length of one message with all coordinates.
    fraction : float
        Share of coordinates that are sent, 0 < fraction <= 1.
    overhead_bits : float, bits, optional
        The part of a message (norms, headers) that does not shrink.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    if not 0 < fraction <= 1 or not 0 <= overhead_bits <= bits:
        raise ValueError(
            f"need 0 < fraction <= 1 and 0 <= overhead_bits <= bits = {bits}; got {fraction}, {overhead_bits}"
        )
    return Unbiased((1 + claim.omega) / fraction - 1), overhead_bits + fraction * (bits - overhead_bits)


def merit(claim: Unbiased, bits: float, d: int, *, m: int = 1) -> float:
    """Return (1 + omega/m) bits/d: bits per coordinate, relative to steps, where the condition number dominates.

    No unbiased operator is below 1/(2 m ln 2), the limit of the information bound for large omega.

    Parameters
    ----------
    claim : Unbiased
        What the operator promises.
    bits : float, bits
        Length of one message; 0 <= bits.
    d : int
        Dimension: number of coordinates; 1 <= d, an integer.
    m : int, optional
        Number of workers; 1 <= m, an integer.

    Raises
    ------
    ValueError
        For negative bits or unless d and m are integers >= 1.
    """
    return (1 + claim.omega / positive_integer("m", m)) * nonnegative("bits", bits) / positive_integer("d", d)


def best_merit(claim: Unbiased, bits: float, d: int, *, m: int, overhead_bits: float = 0) -> tuple[float, float]:
    """Return (omega, merit) of the best member of the family ``subsampled``: how much more m workers may compress.

    With u = 1 + omega and A = (1 + claim.omega)(bits - overhead), the merit is (1 - 1/m + u/m)(overhead + A/u)/d:
    convex in u, smallest at u = sqrt(A (m - 1)/overhead), or at the operator itself if that is smaller.  So the best
    omega grows as sqrt(m) and the total falls as 1/m, until the overhead dominates.  Without overhead the infimum
    A/(m d) is reached only as omega grows without bound: (inf, A/(m d)), or the operator itself for m = 1.

    Parameters
    ----------
    claim : Unbiased
        What the operator promises.
    bits : float, bits
        Length of one message; 0 <= bits.
    d : int
        Dimension: number of coordinates; 1 <= d, an integer.
    m : int
        Number of workers; 1 <= m, an integer.
    overhead_bits : float, bits, optional
        Bits of one message besides the coordinates'.
    """
    m, d = positive_integer("m", m), positive_integer("d", d)
    spread = (1 + claim.omega) * (bits - overhead_bits)
    if m > 1 and overhead_bits == 0:
        return float("inf"), spread / (m * d)
    u = max(1 + claim.omega, (spread * (m - 1) / overhead_bits) ** 0.5 if overhead_bits else 0.0)
    return u - 1, (1 - 1 / m + u / m) * (overhead_bits + spread / u) / d


def best_level(
    method: str,
    bits_at: Callable[[Any], Any],
    *,
    lower: float,
    upper: float,
    dense_bits: float | None = None,
    allow_recalled: bool = False,
    **problem: Any,
) -> Total:
    """Return the omega (or alpha) in [lower, upper] at which the total number of bits is smallest.

    Parameters
    ----------
    method : str
        Name of the optimization method.
    bits_at : callable
        Bits of one message as a function of omega or alpha, elementwise on arrays.
    lower : float
        The smallest level to try.
    upper : float
        The largest level to try.
    dense_bits : float or None, bits, optional
        Length of an uncompressed gradient.
    allow_recalled : bool, optional
        Whether theorems that were not verified count too.
    **problem
        Scalars.

    Raises
    ------
    ValueError
        Unless 0 < lower < upper.

    Notes
    -----
    Searches a logarithmic grid and refines around its best point; the total may have its minimum at an end.
    """
    from scipy.optimize import minimize_scalar

    if not 0 < lower < upper:
        raise ValueError(f"need 0 < lower < upper; got lower = {lower}, upper = {upper}")
    bound = _theorem(method, allow_recalled)

    def at(level: Any) -> Total:
        return _total(bound, level, bits_at(level), dense_bits, problem)

    grid = np.geomspace(lower, upper, GRID_POINTS)
    i = int(np.argmin(at(grid).bits))
    bracket = (np.log(grid[max(i - 1, 0)]), np.log(grid[min(i + 1, GRID_POINTS - 1)]))
    minimum = minimize_scalar(lambda log: at(np.exp(log)).bits, bounds=bracket, method="bounded")
    return min(at(float(np.exp(minimum.x))), at(float(grid[i])), key=lambda total: total.bits)


def best_levels(
    method: str,
    bits_at: Callable[[Any], Any],
    *,
    workers: Sequence[int],
    condition_numbers: Sequence[float],
    **rest: Any,
) -> dict[tuple[int, float], Total]:
    """Return ``best_level`` at every pair (m, kappa): how the cheapest compression and its cost change with both.

    Parameters
    ----------
    method : str
        Name of the optimization method.
    bits_at : callable
        Bits of one message at a level, by the length that the operator states.
    workers : sequence of int
        Number of workers.
    condition_numbers : sequence of float
        The condition numbers L/mu of the problems.
    **rest
        The other keywords of ``best_level``.
    """
    return {
        (m, kappa): best_level(method, bits_at, m=m, kappa=kappa, **rest)
        for m in workers
        for kappa in condition_numbers
    }


def best_subsampling(
    method: str,
    claim: Unbiased,
    bits: float,
    *,
    overhead_bits: float = 0,
    smallest_fraction: float = 1e-9,
    allow_recalled: bool = False,
    dense_bits: float | None = None,
    **problem: Any,
) -> Total:
    """Return the cheapest member of the family ``subsampled`` of one unbiased operator; the result's level is its
    omega.

    Parameters
    ----------
    method : str
        Name of the optimization method.
    claim : Unbiased
        What the operator promises.
    bits : float, bits
        Length of one message; 0 <= bits.
    overhead_bits : float, bits, optional
        Bits of one message besides the coordinates'.
    smallest_fraction : float, optional
        The smallest share of coordinates that may be sent.
    allow_recalled : bool, optional
        Whether theorems that were not verified count too.
    dense_bits : float or None, bits, optional
        Length of an uncompressed gradient.
    **problem
        The problem whose total communication counts.
    """

    def bits_at(level: Any) -> Any:
        return overhead_bits + (1 + claim.omega) / (1 + level) * (bits - overhead_bits)

    base = max(claim.omega, SMALLEST)
    return best_level(
        method,
        bits_at,
        lower=base,
        upper=(1 + claim.omega) / smallest_fraction - 1,
        dense_bits=dense_bits,
        allow_recalled=allow_recalled,
        **problem,
    )


def _theorem(method: str, allow_recalled: bool) -> Bound:
    if method not in methods():
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(methods())}")
    bound = methods()[method]
    if bound.status is Status.RECALLED and not allow_recalled:
        raise ValueError(f"{method} is recalled, not proved; pass allow_recalled=True to use it")
    return bound


def _total(bound: Bound, level: Any, bits: Any, dense_bits: float | None, problem: dict[str, Any]) -> Total:
    arguments = {**problem, **dict.fromkeys(level_names(bound), level)}
    if level_names(bound) == STAGES:
        bits = bits * (1 + 1 / np.asarray(problem["m"], float))  # one message, and an owner's shard of the mean
    if "sync_probability" in {symbol.name for symbol in bound.parameters}:
        if dense_bits is None:
            raise ValueError(f"{bound.name} sometimes sends an uncompressed message; give its dense_bits")
        p = arguments.setdefault("sync_probability", np.minimum(bits / dense_bits, 1.0))
        bits = p * dense_bits + (1 - p) * bits
    steps = bound(**arguments)
    return Total(bound.name, level, steps, bits, steps * bits, bound.status)
