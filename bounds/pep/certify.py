"""From the solver's weights to a certificate: rounded, the values of F made to cancel, the slacks kept definite."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import fmpq_mat

from ..interval import Interval
from .certificate import (
    UNIT,
    Certificate,
    NotProved,
    conditional_size,
    free_entries,
    pair_unit,
    remaining_values,
    slacks,
    verify,
)
from .program import Program
from .solve import Solution, attempts

MARGINS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)  # of the slacks, tried one after the other


def certify(program: Program) -> tuple[Certificate, Interval]:
    """Return a certificate of the program's optimum, and the interval of the value that it proves.

    Parameters
    ----------
    program : Program
        What is bounded; needs Clarabel (extra ``pep``), checking the certificate afterwards does not.

    Raises
    ------
    NotProved
        If no margin gives a proof.
    ImportError
        Without Clarabel.
    """
    last = NotProved("the solver found no finite weights")
    for margin in MARGINS:
        proofs = []
        for attempt in attempts(program, margin=margin):
            try:
                certificate = rounded(program, attempt.solution)
                proofs.append((certificate, verify(program, certificate)))
            except NotProved as failure:
                last = failure
        if proofs:
            return min(proofs, key=lambda proof: proof[1].hi)
    raise NotProved(f"the solver's weights give no proof, at no margin up to {MARGINS[-1]}: {last}")


def rounded(program: Program, solution: Solution) -> Certificate:
    """Return the weights as integers, with the values of F cancelling and the free weights that match the slacks.

    Raises
    ------
    NotProved
        If the solver's weights are not finite.
    """
    weights = (solution.pairs, solution.limits, solution.slack_common, solution.slack_spread, solution.conditional)
    if not all(np.isfinite(part).all() for part in weights):
        raise NotProved("the solver found no finite weights")
    unit = pair_unit(program)
    pairs = [max(0, round(float(weight) / float(unit))) for weight in solution.pairs]
    _cancel_values(program, pairs)
    limits = [max(0, -(-int(float(weight) * UNIT * 2**10) // 2**10)) for weight in solution.limits]
    order = conditional_size(program)
    given = [round(float(solution.conditional[i, j]) * UNIT) for j in range(order) for i in range(j + 1)]
    for j in range(order):
        given[j * (j + 1) // 2 + j] += 1 + order  # above the rounding of the other entries
    return Certificate(
        pairs,
        limits,
        _free(program, Certificate(pairs, limits, [0] * len(free_entries(program)), given), solution),
        given,
    )


def _cancel_values(program: Program, pairs: list[int]) -> None:
    """Raise weights between a base point and the others until no value is left over; in place."""
    base = 0  # the index of a point
    first: dict[int, int] = {}
    for i, point in enumerate(program.points):
        if point.value is not None:
            first.setdefault(point.value, i)
    where = {pair: i for i, pair in enumerate(program.pairs)}
    for value, left in enumerate(remaining_values(program, pairs)):
        other = first[value]
        if left and other != base:
            pair = (base, other) if left > 0 else (other, base)
            pairs[where[pair]] += abs(int(left))


def _free(program: Program, certificate: Certificate, solution: Solution) -> list[int]:
    """Return the free weights that make the slacks those of the solver at the entries that are zero or tied."""
    common, spread, _ = slacks(program, certificate)
    n, share = program.num_shared, program.share

    def missing(matrix: fmpq_mat, solved: np.ndarray, i: int, j: int) -> Fraction:
        entry = Fraction(int(matrix[i, j].p), int(matrix[i, j].q)) - Fraction(float(solved[i, j]))
        return entry * (1 if i == j else 2)

    weights = [missing(common, solution.slack_common, i, j) for i, j in program.zero_common]
    tied = {(i, j): missing(common, solution.slack_common, n + i, n + j) for i, j in program.tied}
    weights += list(tied.values())
    weights += [
        missing(spread, solution.slack_spread, i, j) + share * tied.get((i, j), Fraction(0))
        for i, j in program.zero_spread
    ]
    return [round(weight * UNIT) for weight in weights]
