"""The error of a mean that is formed in two shots: compressed shards to their owners, compressed means to all.

Setting.  Worker i cuts x_i into m shards and sends C1(x_i[j]) to worker j, the owner of shard j; the owner decodes all
m of them, takes their mean y[j] and sends C2(y[j]) to all.  Everybody, the owner too, uses the decoded C2(y[j]).  All
messages are independent given what they encode; the constants are those for vectors as long as a shard.
``mean_square`` is the mean over the workers of ``|x_i|^2``, ``square_of_mean`` is ``|xbar|^2``.  A worker sends (1 -
1/m)(b1 + b2) bits a coordinate, which does not grow with m.

Derivation, shard by shard; squares add over shards.  ``E|y - xbar|^2 <= omega1 mean_square/m`` as in ``gather_error``,
and y is unbiased, so that ``E|y|^2 <= square_of_mean + omega1 mean_square/m``.  Given y the second error is centred
and at most ``omega2 |y|^2`` in mean square; so the two errors are orthogonal and:

``E|C2(y) - xbar|^2 <= omega1 mean_square/m + omega2 (square_of_mean + omega1 mean_square/m)``.

Equality holds step by step where the claims are equalities: ``two_shot_exact_error``.

An owner that uses its own shard as it is, instead of C1 of it, still leaves all workers with the same bits, and loses
the part of its own shard: ``(omega1/m^2) sum_i |x_i[i]|^2``, a share 1/m of the first error if the shards weigh
alike.  With g nodes of p workers and exact sums inside each node, the same holds with g for m and the nodes' means for
the x_i.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import m, mean_square, omega1, omega2, square_of_mean

two_shot_error = Bound(
    name="two_shot_error",
    quantity="E|result - mean|^2, the mean formed in two shots",
    side=Side.UPPER,
    value=omega1 * mean_square / m + omega2 * (square_of_mean + omega1 * mean_square / m),
    assuming=(sp.Le(square_of_mean, mean_square),),
    reference=Reference("ratedist", "two unbiased stages have orthogonal errors"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNBIASED_STAGES, Property.INDEPENDENT_MESSAGES, Property.TWO_SHOT_MEAN}),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 3, "omega2": "0.5", "mean_square": 10, "square_of_mean": 4, "m": 4},
            "13.2500",
            "by hand: 7.5 + (4 + 7.5)/2",
        ),
        Example(
            {"omega1": "0.1", "omega2": "0.1", "mean_square": 8, "square_of_mean": 1, "m": 8},
            "0.21000",
            "independent vectors of TCDQ(.1): .1 + .1 * 1.1, by hand",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
