"""How often to synchronise: the best number of local steps between two averagings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bounds import Interval
from bounds.estimate import Estimate, through
from bounds.runtime import count_rounds, no_round
from bounds.tau import TauStar, tau_curved, tau_smooth, tau_straggler, tau_third_order
from bounds.tau import tau_star as published_tau_star

from .. import numbers
from ..cluster.cluster import Cluster, checked_cluster
from ..numbers import read, real
from ..plans.problem import Curvature, Uncertain, between, read_constants, rho_of, uncertain_statement
from ..plans.tau_result import (
    ONE_WORKER,
    TauResult,
    curved_statement,
    late_round,
    published_statement,
    third_order_statement,
)
from ..records import Statement
from .arguments import Control
from .call import Call, Command, Route
from .shared import PROBLEM_EXAMPLE, message_bits, parameters_not_said


def tau_star(
    *,
    eta: numbers.Number,
    time_s: numbers.Number,
    cluster: Cluster,
    L: Uncertain | None = None,
    sigma2: Uncertain | None = None,
    gap: Uncertain | None = None,
    bits: numbers.Number | None = None,
    d: numbers.Number | None = None,
    third_derivative: numbers.Number | None = None,
    curvature: Curvature | None = None,
    hessian_lipschitz: numbers.Number | None = None,
    kurtosis: numbers.Number | None = None,
) -> TauResult:
    """Return how many local steps between two averagings minimise the error bound at this learning rate.

    Arguments as in ``error_bound``, scalars.

    Parameters
    ----------
    eta : array_like
        Learning rate.
    time_s : array_like, seconds
        Wall-clock budget in seconds.
    cluster : Cluster
        Workers and links.
    L : array_like, optional
        Smoothness constant of F: a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then assumed to
        be 1.
    sigma2 : array_like, optional
        Variance of one worker's gradient: a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then
        assumed to be 1.
    gap : array_like, optional
        F(x_1) - inf F: a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then assumed to be 1.
    bits : array_like, bits, optional
        Bits of one message; 0 counts latency alone.  Either this or d, unless there is one worker.  Theorem 2 of Wang &
        Joshi (2018): tau* = sqrt(2 gap D/(eta^3 L^2 sigma2 T)) with D the seconds of one averaging.
    d : array_like, optional
        Number of parameters, sent in binary32, instead of bits.
    third_derivative : array_like, optional
        Size of the third derivative of F along the noise.  If known, it adds ``smooth``.  Claimed is the minimiser of
        ``pasgd_runtime`` with a step time that does not depend on tau; ``sharp`` minimises it with the seconds c(tau)
        of the cluster.  That bound is on ``E sum |grad F|^2`` over E steps of a run that ends with the first averaging
        at or after T.  ``error_bound`` counts the rounds that have ended by T: there E 1/N takes the place of tau
        c(tau)/T, which is larger by about one round in N (for constant times by less), and so the best tau of that may
        differ while rounds are few.  Estimated or assumed constants: about that many, from ``lo`` to ``hi`` over their
        intervals, never certified.
    curvature : array_like or str, optional
        What is assumed of F beyond smoothness: convex, or rho with every Hessian >= -rho; longer periods are then safe.
        Then the sharper bound of that class takes the place of Theorem 1, eta L <= 1 is its only condition, and tau*
        grows by sqrt(8/(1 - 1/m)) on a convex F, less the larger rho.  Left out, nothing is assumed.
    hessian_lipschitz : array_like, optional
        Q, where the Hessian changes by at most Q per unit of distance: ``|H(x) - H(y)| <= Q |x - y|``.  Then the
        third-order bound takes the place of that of the class, rho = L without a ``curvature``, and steps take their
        mean time.
    kurtosis : array_like, optional
        ``E|n|^4/(E|n|^2)^2`` of the noise n of one worker, at most; 3 if left out, as of Gaussian noise (with
        hessian_lipschitz).

    Raises
    ------
    ValueError
        For arguments outside the ranges, without the length of a message, for a budget without a whole round, for
        sigma2 = 0, where every tau is as good as the cap, or for a kurtosis without ``hessian_lipschitz``.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    >>> best = rd.tau_star(L=1, sigma2=1, eta=0.01, gap=1, time_s=600, cluster=cluster, bits=32 * 25_600_000)
    >>> best.tau, round(best.tau_real, 3), best.safe, best.sharp
    (23, 22.738, 23, 49)
    >>> guess = rd.tau_star(eta=0.01, time_s=600, cluster=cluster, bits=32 * 25_600_000)
    >>> guess.tau, guess.lo, guess.hi, guess.certified
    (23, 1.0, 2274.0, False)
    """
    cluster = checked_cluster(cluster)
    constants, uncertain = read_constants({"L": L, "sigma2": sigma2, "gap": gap})
    names = {"eta": eta, "time_s": time_s, "bits": message_bits(cluster, bits, d)}
    given = {name: _scalar(name, value) for name, value in (constants | names).items()}
    delay_s = cluster.model().seconds_per_averaging(bits=real("bits", given["bits"]))
    problem = {name: given[name] for name in ("gap", "eta", "time_s", "L", "sigma2")}
    rho = rho_of(curvature)
    third_order = _third_order(hessian_lipschitz, kurtosis)
    round_s = cluster.step_seconds(1, real("bits", given["bits"])).lo
    if count_rounds(Fraction(given["time_s"]), Fraction(round_s)) < 1:
        raise ValueError(no_round(Fraction(given["time_s"]), 1, Fraction(round_s)))
    best = _best(problem, delay_s, cluster.workers, rho, third_order)
    assert best.integer is not None
    real_numbers = {name: float(Fraction(text)) for name, text in problem.items()}
    curved = None if rho is None and not third_order else float(Fraction(given["L"]) if rho is None else rho)
    sharp: int | None = best.integer
    straggling = None
    if not third_order:
        runtime, length = cluster.model(), real("bits", given["bits"])
        straggling = tau_straggler(runtime=runtime, bits=length, rho=curved, **real_numbers)
        sharp = straggling.capped if rho is None else straggling.integer
    smooth = None
    if third_derivative is not None:
        third = _scalar("third_derivative", third_derivative)
        rest = {name: given[name] for name in ("gap", "eta", "time_s", "sigma2")}
        smooth = tau_smooth(**rest, delay_s=delay_s, third_derivative=third).integer
    interval = Interval(best.integer, best.integer)
    if uncertain:
        interval = _tau_interval(problem, delay_s, cluster.workers, rho, third_order, uncertain)

    def state() -> Statement:
        assert best.integer is not None
        again = partial(tau_star, cluster=cluster)
        waiting = None if sharp is None or late_round(cluster, sharp, given) else sharp
        statement = published_statement(cluster, given, delay_s, best, waiting, again)
        statement = replace(statement, assumed=(*statement.assumed, *parameters_not_said(d)))
        if third_order:
            again = partial(again, curvature=curvature, **third_order)
            statement = third_order_statement(statement, curved, best.integer, third_order, again)
            if kurtosis is None:
                statement = replace(statement, assumed=(*statement.assumed, "kurtosis = 3"))
        elif rho is not None:
            again = partial(again, curvature=curvature)
            statement = curved_statement(statement, rho, best.integer, waiting, again)
        if best.capped is not None and cluster.workers == 1:
            statement = replace(statement, advice=ONE_WORKER)
        elif best.capped is not None and (late := late_round(cluster, best.capped, given)):
            statement = replace(statement, advice=late)
        if not uncertain:
            return statement
        advice = f"{between(interval, uncertain)}: measure them.  With the values taken: {statement.advice}"
        return replace(uncertain_statement(statement, uncertain), advice=advice)

    result = TauResult(best.integer, statement=state, interval=interval, certified=not uncertain)
    assert isinstance(result, TauResult)
    result.__dict__.update(
        tau=best.integer,
        tau_real=best.real,
        cap=best.cap,
        safe=best.capped,
        sharp=sharp,
        smooth=smooth,
        rho=curved,
        third_order=third_order,
        straggling=straggling,
    )
    return result


def _third_order(hessian_lipschitz: Any, kurtosis: Any) -> dict[str, str]:
    """Return the constants of the third-order bound; empty without a Lipschitz constant of the Hessian."""
    if hessian_lipschitz is None:
        if kurtosis is not None:
            raise ValueError(
                f"kurtosis must come with hessian_lipschitz; got kurtosis = {kurtosis} alone: give both, or neither"
            )
        return {}
    return {
        "hessian_lipschitz": _scalar("hessian_lipschitz", hessian_lipschitz),
        "kurtosis": _scalar("kurtosis", 3 if kurtosis is None else kurtosis),
    }


def _best(
    problem: dict[str, str], delay_s: float, workers: int, rho: Fraction | None, third_order: dict[str, str]
) -> TauStar:
    """Return Theorem 2, or the minimiser for the curvature or the third order, which has no cap.

    Raises
    ------
    ValueError
        Without noise.
    """
    if third_order:
        least = Fraction(problem["L"]) if rho is None else rho
        third = tau_third_order(**problem, delay_s=delay_s, m=workers, rho=least, **third_order)
        best = TauStar(third.real, third.integer, None, third.integer)
    elif rho is None:
        best = published_tau_star(**problem, delay_s=delay_s)
    else:
        curved = tau_curved(**problem, delay_s=delay_s, m=workers, rho=rho)
        best = TauStar(curved.real, curved.integer, None, curved.integer)
    if best.integer is None:
        without = "without noise" if rho is None or workers > 1 else "with one worker or no noise"
        raise ValueError(
            f"sigma2 must be > 0 for a best tau; got sigma2 = {problem['sigma2']}: {without} take the largest tau "
            f"that the learning rate allows, {best.cap if rho is None else 'any'}"
        )
    return best


def _tau_interval(
    problem: dict[str, str],
    delay_s: float,
    workers: int,
    rho: Fraction | None,
    third_order: dict[str, str],
    uncertain: dict[str, Estimate],
) -> Interval:
    """Of the integer tau* over the intervals of the constants: it grows with gap and falls with L and sigma2."""

    def at(corner: Mapping[str, float]) -> Interval:
        at_corner = problem | {name: repr(value) for name, value in corner.items()}
        integer = _best(at_corner, delay_s, workers, rho, third_order).integer
        assert integer is not None
        return Interval(integer, integer)

    return through(at, uncertain, rising=("gap",), lowest=1.0).interval


def _scalar(name: str, value: Any) -> str:
    text = read(name, value)
    if not isinstance(text, str):
        raise ValueError(f"{name} must be one number here; got {np.size(value)}: call tau_star once for each")
    return text


CONTROLS = {
    "L": Control("Smoothness", "L", decades=(-3, 3), assumed=True),
    "sigma2": Control("Gradient variance", "σ²", decades=(-4, 4), assumed=True),
    "gap": Control("Loss above its infimum", "ΔF", decades=(-4, 4), assumed=True),
    "eta": Control("Learning rate", "η", decades=(-5, 0)),
    "time_s": Control("Time budget", "T", "s", decades=(0, 7)),
}
CALL = Call(
    name="tau",
    summary="how many local steps between two averagings",
    place=5,
    function=tau_star,
    command=Command(
        examples=(
            "--workers 16 --step-s 0.08 --bits 8.192e8 --L 1 --sigma2 1 --eta 0.01 --gap 1 --time-s 600",
            "--workers 4 --step-s 1 --latency-s 1 --bits 0 --L 1 --sigma2 1 --eta 0.05 --gap 1 --time-s 1e4 "
            "--curvature convex",
            "--workers 4 --step-s 1 --latency-s 1 --bits 0 --L 1 --sigma2 1 --eta 0.05 --gap 1 --time-s 1e4 "
            "--curvature convex --hessian-lipschitz 0.5",
        ),
        ok=lambda result: result.safe is not None,
    ),
    route=Route(
        about="A problem, a cluster and a budget; "
        'L, sigma2 and gap may be texts "value:low:high" or left out (assumed 1).',
        example=PROBLEM_EXAMPLE,
    ),
    controls=CONTROLS,
)
