"""One round of local-update SGD whose averages arrive while the workers go on: a floor with a potential.

A round begins where an average has just arrived and the workers have been corrected: worker i stands at xbar + d_i.
After tau - delta steps it sends y_i, makes delta more, and goes on from mean y + (x_i - y_i).  So the next round begins
with deviations that are the centred sums of the last delta steps, and xbar makes plain steps throughout.

From any d_i the round would have no finite floor.  But any c >= 0 may be charged for them.  Let V = mean ``|d_i|^2``.
When the first round starts together, the sum over rounds of ``c (V_end - V_start)`` is not negative.  So the floor is
at most the largest value of the objective plus c (V_end - V_start).  The best c is the weight of the constraint V_start
<= V_end, which is all that the program asks of the deviations besides their mean of zero.

Workers that start apart need not be independent given xbar; only their noise is, so that this program asks less of
two workers than ``one_round`` does.
"""

from __future__ import annotations

from fractions import Fraction

from .one_round import GRADIENT, ONE, Case
from .program import Entries, Limit, Point, Program, Vector, add_entries, inner_product


def overlapped(*, x: Fraction, m: int, tau: int, in_flight: int, rho: Fraction) -> Program:
    """Return the program of one round with an average in flight, L = sigma2 = 1, eta = x; its optimum is a floor.

    The floor bounds ``(2/(eta tau)) E[F(xbar_tau) - F(xbar_0)] + (1/tau) sum_{k<tau} E|grad F(xbar_k)|^2`` on the
    average of rounds, the first from a common start; so ``avg E|grad F|^2 <= 2 gap/(eta K) + floor``.

    Parameters
    ----------
    x : Fraction
        eta L, > 0.
    m : int
        Number of workers, >= 1.
    tau : int
        Local steps of a round, >= 1.
    in_flight : int
        Of them, those made while an average is under way, 0 to tau.
    rho : Fraction
        Every Hessian is >= -rho L, 0 <= rho <= 1.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    case = Case(GRADIENT, x, m, tau, rho)
    if not 0 <= in_flight <= tau:
        raise ValueError(f"steps in flight must satisfy 0 <= in_flight <= tau = {tau}; got {in_flight}")
    return _Overlapped(case, in_flight).program()


class _Overlapped:
    """The vectors: b_k = grad F(xbar_k); of a worker its gradients g^0 .., its noise n^0 .. and, last, its d."""

    def __init__(self, case: Case, in_flight: int) -> None:
        self.x, self.tau, self.in_flight, self.rho = case.x, case.tau, in_flight, case.rho
        self.share = Fraction(1, case.m)
        self.num_shared, self.start = case.tau + 1, 2 * case.tau

    def of_worker(self, worker: int, index: int) -> Vector:
        """Return a vector of worker 1 or 2, or the workers' mean (0)."""
        beyond = {index: ONE}
        common = {} if index == self.start else {self.num_shared + index: ONE}
        return Vector(common, beyond if worker == 1 else {}, beyond if worker == 2 else {})

    def walk(self, worker: int, first: int, last: int) -> Vector:
        """Return what the steps from ``first`` up to ``last`` add to a model."""
        way = Vector({})
        for k in range(first, last):
            way = way.plus(self.of_worker(worker, k), -self.x).plus(self.of_worker(worker, self.tau + k), -self.x)
        return way

    def points(self) -> tuple[list[Point], list[tuple[int, int]]]:
        tau = self.tau
        points = [Point(Vector({}), Vector({0: ONE}), tau)]
        for worker in (1, 2):
            for k in range(tau):
                position = self.of_worker(worker, self.start).plus(self.walk(worker, 0, k), ONE)
                points.append(Point(position, self.of_worker(worker, k), k))
        points += [Point(self.walk(0, 0, k), Vector({k: ONE}), tau + k) for k in range(1, tau + 1)]
        second = range(1 + tau, 1 + 2 * tau)  # by symmetry worker 2 is only looked at from worker 1
        pairs = [
            (i, j)
            for i in range(len(points))
            for j in range(len(points))
            if i != j and i not in second and (j not in second or 1 <= i <= tau)
        ]
        return points, pairs

    def potential(self) -> Limit:
        """Return V_start - V_end <= 0."""
        common: Entries = {}
        spread: Entries = {}
        start, end = self.of_worker(1, self.start), self.walk(1, self.tau - self.in_flight, self.tau)
        for deviation, factor in ((start, ONE), (Vector({}, end.first), -ONE)):
            on_common, on_spread = inner_product(deviation, deviation, factor, self.share)
            add_entries(common, on_common)
            add_entries(spread, on_spread)
        return Limit(common, spread, Fraction(0))

    def program(self) -> Program:
        tau, shared = self.tau, self.num_shared
        points, pairs = self.points()
        steps = range(tau)
        earlier = [(j, k) for k in steps for j in range(k + 1)]  # noise of step k is drawn after the gradients of j
        noise = [Limit({(shared + tau + k,) * 2: ONE}, {(tau + k, tau + k): 1 - self.share}, ONE) for k in steps]
        return Program(
            num_common=shared + 2 * tau,
            num_spread=2 * tau + 1,
            num_values=2 * tau + 1,
            share=self.share,
            mu=-self.rho,
            points=points,
            pairs=pairs,
            objective=Limit({(k, k): Fraction(1, tau) for k in steps}, {}, Fraction(0)),
            objective_values={2 * tau: 2 / (self.x * tau), tau: -2 / (self.x * tau)},
            limits=[*noise, self.potential()],
            num_shared=shared,
            zero_common=[(j, shared + tau + k) for j, k in earlier],
            zero_spread=[(j, tau + k) for j, k in earlier]
            + [(tau + j, tau + k) for j, k in earlier if j < k]
            + [(tau + k, self.start) for k in steps],
            tied=[(i, tau + k) for k in steps for i in range(tau + k + 1)],
        )
