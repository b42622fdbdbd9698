"""Local gradient descent on different data, several rounds, without noise: the largest gap that it can leave.

F_i convex and 1-smooth, ``(1/m) sum_i |grad F_i(x*)|^2 <= zeta2``, ``|x_0 - x*| <= 1``; the worst case is the same for
every m >= 2, and the interpolation inequalities are asked of every F_i among its own points, which is exact: a value of
the program is attained by functions.
"""

from __future__ import annotations

from fractions import Fraction

from .program import Limit, Point, Program, Vector

ONE = Fraction(1)


def different_data(*, x: Fraction, tau: int, rounds: int, zeta2: Fraction) -> Program:
    """Return the program whose optimum is the largest F(xbar_last) - F* with L = R0 = 1 and eta = x.

    In general the gap is L R0^2 times it, at zeta2/(L R0)^2.

    Parameters
    ----------
    x : Fraction
        eta L, > 0.
    tau : int
        Local steps in a round, >= 1.
    rounds : int
        Number of rounds, >= 1.
    zeta2 : Fraction
        Mean over the workers of the squared gradient at the minimiser of F, >= 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    if not (x > 0 and tau >= 1 and rounds >= 1 and zeta2 >= 0):
        raise ValueError(f"different data needs x > 0, tau, rounds >= 1, zeta2 >= 0; got {x}, {tau}, {rounds}, {zeta2}")
    steps = tau * rounds
    optimum, last = 0, steps + 1  # indices of the workers' gradients: at x*, at the steps 1 .. steps, at the last mean

    def gradient(worker: int, index: int) -> Vector:
        common = {} if index == optimum else {index: ONE}  # the mean gradient at x* is zero
        return Vector(common, {index: ONE} if worker else {})

    def position(worker: int, step: int) -> Vector:
        """Return where a worker is before this step (counted from 0); a round starts at the mean of the last one."""
        start = step - step % tau
        point = Vector({0: ONE})
        for j in range(step):
            point = point.plus(gradient(worker if j >= start else 0, j + 1), -x)
        return point

    points = [Point(Vector({}), gradient(1, optimum), None)]
    points += [Point(position(1, step), gradient(1, step + 1), step) for step in range(steps)]
    points.append(Point(position(0, steps), gradient(1, last), steps))
    return Program(
        num_common=1 + last,
        num_spread=1 + last,
        num_values=steps + 1,
        share=Fraction(0),
        mu=Fraction(0),
        points=points,
        pairs=[(i, j) for i in range(len(points)) for j in range(len(points)) if i != j],
        objective=Limit({}, {}, Fraction(0)),
        objective_values={steps: ONE},
        limits=[Limit({(0, 0): ONE}, {}, ONE), Limit({}, {(optimum, optimum): ONE}, zeta2)],
        num_shared=1,
    )
