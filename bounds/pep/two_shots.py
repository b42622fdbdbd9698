"""One round of local-update SGD whose changes are averaged in two shots with unbiased compressors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from .one_round import GRADIENT, ONE, Case, Round
from .program import Entries, Limit, Point, Program, Vector, add_entries, inner_product


def two_shots(
    *, x: Fraction, m: int, tau: int, rho: Fraction, omega1: Fraction, omega2: Fraction = Fraction(0)
) -> Program:
    """Return the program of one compressed round with L = sigma2 = 1 and eta = x; its optimum is the round's floor.

    The next round starts at y = xbar_tau + zeta.  The floor is the largest value of ``(2/(eta tau)) E[F(y) - F(x_0)] +
    (1/tau) sum_{k<tau} E|grad F(xbar_k)|^2``, as in ``one_round``.  Of zeta it is asked what ``pasgd_two_shot`` asks:
    mean zero given all that precedes it, and ``E|zeta|^2 <= (1 + omega2)(omega1/m) E|Delta_i|^2 + omega2 E|mean
    Delta_i|^2`` for the changes Delta_i of the round.

    Parameters
    ----------
    x : Fraction
        eta L, > 0.
    m : int
        Number of workers, >= 1.
    tau : int
        Local steps, >= 1.
    rho : Fraction
        Every Hessian is >= -rho L, 0 <= rho <= 1.
    omega1 : Fraction
        Variance constant of the workers' compressor, >= 0.
    omega2 : Fraction, optional
        Of the owners' compressor, >= 0; 0 where the mean is not compressed again (``pasgd_compressed``).

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    case = Case(GRADIENT, x, m, tau, rho)
    if not (omega1 >= 0 and omega2 >= 0):
        raise ValueError(f"variance constants must be >= 0; got omega1 = {omega1}, omega2 = {omega2}")
    plain = Round(case, num_more=2)
    error, after = tau + 1, tau + 2  # indices of zeta and of grad F(y), after b_0 .. b_tau
    program = plain.program()
    y = Point(plain.position(0, tau).plus(Vector({error: ONE}), ONE), Vector({after: ONE}), program.num_values)
    new = len(program.points)
    workers_two = range(tau, 2 * tau - 1)  # points of worker 2, which only worker 1 is compared with
    others = [i for i in range(new) if i not in workers_two]
    values = {program.num_values: 2 / (x * tau), 0: -2 / (x * tau)}
    return replace(
        program,
        num_values=program.num_values + 1,
        points=[*program.points, y],
        pairs=[*program.pairs, *((new, i) for i in others), *((i, new) for i in others)],
        objective_values=values,
        limits=[*program.limits, _compression(plain, error, omega1, omega2)],
        zero_common=[
            *program.zero_common,
            *((k, error) for k in range(error)),
            *((error, plain.num_shared + i) for i in range(plain.num_local)),
        ],
    )


def _compression(plain: Round, error: int, omega1: Fraction, omega2: Fraction) -> Limit:
    """Return what bounds the error of the average."""
    common: Entries = {(error, error): ONE}
    spread: Entries = {}
    of_one, of_all = plain.position(1, plain.tau), plain.position(0, plain.tau)
    for change, factor in ((of_one, (1 + omega2) * omega1 * plain.share), (of_all, omega2)):
        on_common, on_spread = inner_product(change, change, -factor, plain.share)
        add_entries(common, on_common)
        add_entries(spread, on_spread)
    return Limit(common, spread, Fraction(0))
