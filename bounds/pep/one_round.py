"""One round of local-update SGD from any point: the most that it can lose against the gradient, or the gap."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .program import Entries, Limit, Point, Program, Vector, add_entries, inner_product

GRADIENT, GAP = "gradient", "gap"
ONE = Fraction(1)


def one_round(*, about: str, x: Fraction, m: int, tau: int, rho: Fraction) -> Program:
    """Return the program of one round with L = sigma2 = 1 and eta = x; its optimum is the round's floor.

    The floor is the largest value of ``(2/(eta tau)) E[F(xbar_tau) - F(x_0)] + (1/tau) sum_{k<tau} E|grad
    F(xbar_k)|^2``; summed over rounds, ``avg E|grad F|^2 <= 2 gap/(eta K) + floor``.  For the gap it is that of
    ``(E|xbar_tau - x*|^2 - |x_0 - x*|^2)/(2 eta tau) + (1/tau) sum_{k<tau} E F(xbar_k) - F*``, and the average gap is
    at most R0^2/(2 eta K) + floor.  In general the floors are sigma2 times the first and sigma2/L times the second.

    Of the gap x_0 - x* is eliminated.  Only ``F* >= F(x_k^i) + <g, x* - x_k^i> + |g|^2/2`` knows x*; F may be flat up
    to a far x*, so that its weight must be 1/tau at every local point for the objective to be bounded, and then x* is
    gone.

    Parameters
    ----------
    about : str
        "gradient" or "gap".
    x : Fraction
        eta L, > 0.
    m : int
        Number of workers, >= 1.
    tau : int
        Local steps, >= 1.
    rho : Fraction
        Every Hessian is >= -rho L, 0 <= rho <= 1; the gap needs 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    return Case(about, x, m, tau, rho).program()


@dataclass(frozen=True)
class Case:
    """One round that is bounded, with L = sigma2 = 1.

    Parameters
    ----------
    about : str
        "gradient" or "gap".
    x : Fraction
        eta L, > 0.
    m : int
        Number of workers, >= 1.
    tau : int
        Local steps, >= 1.
    rho : Fraction
        Every Hessian is >= -rho L, 0 <= rho <= 1; 0 for the gap.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    about: str
    x: Fraction
    m: int
    tau: int
    rho: Fraction

    def __post_init__(self) -> None:
        about, x, m, tau, rho = self.about, self.x, self.m, self.tau, self.rho
        if about not in (GRADIENT, GAP):
            raise ValueError(f'about must be "gradient" or "gap"; got {about!r}')
        if not (x > 0 and m >= 1 and tau >= 1 and 0 <= rho <= 1):
            raise ValueError(f"one round needs x > 0, m >= 1, tau >= 1, 0 <= rho <= 1; got {x}, {m}, {tau}, {rho}")
        if about == GAP and rho != 0:
            raise ValueError(f"the gap is bounded for convex F only: rho must be 0; got rho = {rho}")

    def program(self) -> Program:
        """Return the program whose optimum is the floor."""
        return Round(self).program()


class Round:
    """The vectors of one round: b_k = grad F(xbar_k); of a worker its gradients g^1 .. and its noise n^0 ..

    Parameters
    ----------
    case : Case
        What is bounded, for which numbers.
    num_more : int, optional
        Further shared vectors, after the b_k.
    """

    def __init__(self, case: Case, num_more: int = 0) -> None:
        self.gap, self.x, self.tau, self.rho = case.about == GAP, case.x, case.tau, case.rho
        self.share = Fraction(1, case.m)
        self.num_means = self.tau if self.gap else self.tau + 1  # of the points xbar_k that are looked at
        self.num_shared = self.num_means + num_more
        self.num_local = 2 * self.tau - 1

    def mean_gradient(self, k: int) -> Vector:
        """Return the gradient at the mean of the models."""
        return Vector({k: ONE})

    def noise_index(self, k: int) -> int:
        """Return the place of the noise of a step among a worker's vectors."""
        return self.tau - 1 + k

    def of_worker(self, worker: int, index: int) -> Vector:
        """Return a vector of worker 1 or 2, or the workers' mean (0)."""
        beyond = {index: ONE}
        common = {self.num_shared + index: ONE}
        return Vector(common, beyond if worker == 1 else {}, beyond if worker == 2 else {})

    def gradient(self, worker: int, k: int) -> Vector:
        """Return the gradient at a worker's model."""
        return self.mean_gradient(0) if k == 0 else self.of_worker(worker, k - 1)

    def position(self, worker: int, k: int) -> Vector:
        """Return the point after k steps, relative to x_0."""
        point = Vector({})
        for j in range(k):
            point = point.plus(self.gradient(worker, j), -self.x)
            point = point.plus(self.of_worker(worker, self.noise_index(j)), -self.x)
        return point

    def points(self) -> tuple[list[Point], list[tuple[int, int]]]:
        """Return the points, and between which of them interpolation inequalities are asked."""
        tau = self.tau
        named = [("mean", Point(self.position(0, 0), self.mean_gradient(0), 0))]
        for name, worker in (("one", 1), ("two", 2)):
            named += [(name, Point(self.position(worker, k), self.gradient(worker, k), k)) for k in range(1, tau)]
        for k in range(1, self.num_means):
            named.append(("mean", Point(self.position(0, k), self.mean_gradient(k), tau - 1 + k)))
        pairs = [  # by symmetry worker 1 comes first, and worker 2 only against worker 1
            (i, j)
            for i, (left, _) in enumerate(named)
            for j, (right, _) in enumerate(named)
            if i != j and left != "two" and (right != "two" or left == "one")
        ]
        return [point for _, point in named], pairs

    def objective(self) -> tuple[Limit, dict[int, Fraction]]:
        """Return what is maximised: of the matrices, and of the values."""
        tau, x = self.tau, self.x
        if not self.gap:
            steps: Entries = {(k, k): Fraction(1, tau) for k in range(tau)}
            return Limit(steps, {}, Fraction(0)), {2 * tau - 1: 2 / (x * tau), 0: -2 / (x * tau)}
        common: Entries = {}
        spread: Entries = {}
        walk = self.position(0, tau)  # -x times the sum of the mean gradients and noises
        terms = [(walk, walk, 1 / (2 * x * tau))]
        for k in range(tau):
            gradient, position = self.gradient(1, k), self.position(1, k)
            terms += [(gradient, position, Fraction(1, tau)), (gradient, gradient, Fraction(-1, 2 * tau))]
        for left, right, factor in terms:
            on_common, on_spread = inner_product(left, right, factor, self.share)
            add_entries(common, on_common)
            add_entries(spread, on_spread)
        values = {tau - 1 + k: Fraction(1, tau) for k in range(1, tau)}
        return Limit(common, spread, Fraction(0)), values | {k: Fraction(-1, tau) for k in range(1, tau)}

    def program(self) -> Program:
        """Return the program."""
        tau, shared, noise = self.tau, self.num_shared, self.noise_index
        points, pairs = self.points()
        objective, values = self.objective()
        steps = range(tau)
        earlier = [(k, j) for k in steps for j in range(k + 1)]  # noise of step k is drawn after the gradients of j
        unseen = [(j, shared + noise(k)) for k, j in earlier if j < self.num_means]
        unseen_locally = [(j - 1, noise(k)) for k, j in earlier if j >= 1] + [
            (noise(j), noise(k)) for k, j in earlier if j < k
        ]
        noisy = [(i, noise(k)) for k in steps for i in range(noise(k) + 1)]
        share = self.share
        variance = [
            Limit({(shared + noise(k), shared + noise(k)): ONE}, {(noise(k), noise(k)): 1 - share}, ONE) for k in steps
        ]
        return Program(
            num_common=shared + self.num_local,
            num_spread=self.num_local,
            num_values=tau + self.num_means - 1,
            share=share,
            mu=-self.rho,
            points=points,
            pairs=pairs,
            objective=objective,
            objective_values=values,
            limits=variance,
            num_shared=shared,
            zero_common=unseen,
            zero_spread=unseen_locally,
            tied=noisy,
            start=(0,),
            drawn=range(tau - 1),
        )
