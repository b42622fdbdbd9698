"""Errors of the mean of m vectors, by the exchange that computes it."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import Log2OnePlus, OneMinusPowerOfTwo, PowerQuotient
from ..special.growth import MeanGrowth, SquareGrowth
from ..symbols import (
    d,
    distance,
    m,
    mean_deviation,
    mean_square,
    omega,
    omega1,
    omega2,
    participants,
    peak_ratio,
    square_of_mean,
    stage_bits,
    tree_depth,
    value_range,
    word_bits,
)

gather_error = Bound(
    name="gather_error",
    quantity="E|mean of the decoded vectors - mean|^2, compressed vectors gathered",
    side=Side.UPPER,
    value=omega * mean_square / m,
    reference=Reference("ratedist", "errors of independent unbiased messages add"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNBIASED, Property.INDEPENDENT_MESSAGES, Property.GATHERED_MEAN}), Conclusion.MEAN_ERROR
    ),
    examples=(Example({"omega": 3, "mean_square": 10, "m": 4}, "7.5000", "by hand: 3 * 10/4"),),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""The error of a mean whose summands are compressed and sent to all.

Setting.  Worker i sends C(x_i) to all, independently of the others; everybody takes the mean of what it decodes.
``mean_square`` is the mean over the workers of ``|x_i|^2``.  A worker sends (m - 1) b bits per coordinate.

Derivation.  The errors C(x_i) - x_i are centred and independent, so that the mean of them has
``E|.|^2 = (1/m^2) sum E|C(x_i) - x_i|^2 <= (omega/m^2) sum |x_i|^2``; with equality where the claim is one.
"""

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
"""The error of a mean that is formed in two shots: compressed shards to their owners, compressed means to all.

Setting.  Worker i cuts x_i into m shards and sends C1(x_i[j]) to worker j, the owner of shard j; the owner decodes all
m of them, takes their mean y[j] and sends C2(y[j]) to all.  Everybody, the owner too, uses the decoded C2(y[j]).  All
messages are independent given what they encode; the constants are those for vectors as long as a shard.
``mean_square`` is the mean over the workers of ``|x_i|^2``, ``square_of_mean`` is ``|xbar|^2``.  A worker sends (1 -
1/m)(b1 + b2) bits per coordinate, which does not grow with m.

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

two_shot_exact_error = Bound(
    name="two_shot_exact_error",
    quantity="E|result - mean|^2, the mean formed in two shots by operators whose claims are equalities",
    side=Side.TIGHT,
    value=two_shot_error.value,
    assuming=two_shot_error.assuming,
    reference=Reference("ratedist", "two unbiased stages have orthogonal errors"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.EXACT_STAGES, Property.INDEPENDENT_MESSAGES, Property.TWO_SHOT_MEAN}),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 1, "omega2": 1, "mean_square": "0.5", "square_of_mean": "0.25", "m": 2},
            "0.7500",
            "x = (1, 0), both stages keep with probability 1/2: result 0 or 2 (with 1/4), by enumeration",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""The error of a mean in two shots, exactly, for operators whose claims are equalities.

Setting and derivation.  ``two_shot_error``, where every inequality is then an equality: for every vector, at every m.
"""

_growth = 4**stage_bits * OneMinusPowerOfTwo(2 * stage_bits)  # 4^B - 1
_square_root = sp.sqrt(1 + _growth * m * square_of_mean / mean_square)

two_shot_split = Bound(
    name="two_shot_split",
    quantity="bits per coordinate of the first of two ideal unbiased stages at which their error is least",
    side=Side.TIGHT,
    value=Log2OnePlus(_growth / (1 + _square_root)) / 2,
    assuming=(sp.Gt(mean_square, 0), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "least error of two ideal stages"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.IDEAL_STAGES, Property.INDEPENDENT_MESSAGES, Property.TWO_SHOT_MEAN, Property.BEST_SPLIT}),
        Conclusion.FIRST_STAGE_BITS,
    ),
    examples=(
        Example(
            {"mean_square": 64, "square_of_mean": 1, "m": 64, "stage_bits": 5}, "2.500000", "independent: half, by hand"
        ),
        Example(
            {"mean_square": 1, "square_of_mean": 1, "m": 16, "stage_bits": 2},
            "0.46594019172964162067829820",
            "equal vectors: a root of the derivative of the error, by mpmath with 40 digits",
        ),
    ),
    unit="bit",
    latex_name="b_1",
)
"""How many of its bits a mean in two shots should spend on the first shot.

Setting.  Stage k has omega_k = 1/(4^(b_k) - 1), the rate of an ideal unbiased operator; b1 + b2 = ``stage_bits`` = B
is given, b1, b2 >= 0 are real.  The error is that of ``two_shot_exact_error``.

Derivation.  With u = 4^b1, P = 4^B and a = mean_square/m, M = square_of_mean, the error is:

``a/(u - 1) + M/(P/u - 1) + a/((u - 1)(P/u - 1)) = (a P + M u^2 - M u)/((u - 1)(P - u))``.

Its derivative vanishes where M u^2 - 2 (M - a) u + M - a (P + 1) = 0 (the factor P divides out); the root in (1, P)
is:

``u = 1 + (P - 1)/(1 + sqrt(1 + (P - 1) M/a))``,

and the error is infinite at both ends, so this is the minimum.  As B grows b2 - b1 tends to log2(M/a)/2: 0 for
independent vectors (for which b1 = b2 = B/2 at every B), log2(m)/2 for equal ones.  At few bits this difference is
smaller than its limit, which may even exceed B.
"""

two_shot_best_error = Bound(
    name="two_shot_best_error",
    quantity="E|result - mean|^2 of two shots, ideal unbiased stages, at the best split of their bits",
    side=Side.TIGHT,
    value=mean_square / m * (1 + _square_root) * (1 + _square_root + 2 * _growth) / _growth**2,
    assuming=two_shot_split.assuming,
    reference=Reference("ratedist", "least error of two ideal stages"),
    status=Status.PROVED,
    setting=Setting(two_shot_split.setting.needs, Conclusion.MEAN_ERROR),
    examples=(
        Example(
            {"mean_square": 4, "square_of_mean": 1, "m": 4, "stage_bits": 2},
            "0.7777777778",
            "by hand: one bit a stage, w = 1/3, 2 w + w^2 = 7/9",
        ),
        Example(
            {"mean_square": 1, "square_of_mean": 1, "m": 16, "stage_bits": 2},
            "0.21354821952231132203343299",
            "equal vectors: the error at the least point, by mpmath with 40 digits",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""The least error of a mean in two shots of ideal unbiased operators with a given number of bits.

Setting.  As in ``two_shot_split``.

Derivation.  At the minimum of a quotient the quotient of the derivatives is its value: with u of ``two_shot_split``,
(2 M u - M)/(P + 1 - 2 u).  Put x = P - 1 and s = sqrt(1 + x M/a): u - 1 = x/(1 + s) and s^2 - 1 = x M/a give:

``a (1 + s)(1 + s + 2 x)/x^2, a = mean_square/m``.

For independent vectors (M = a) this is M (2 w + w^2) with w = 1/(2^B - 1), both stages having B/2 bits.
"""

_ring_apart = mean_square * m * MeanGrowth(omega1, m)
_ring_together = (m * square_of_mean - mean_square) / (m - 1) * SquareGrowth(omega1, m)

ring_error = Bound(
    name="ring_error",
    quantity="E|result - mean|^2, partial sums compressed at every hop of a ring in random order",
    side=Side.UPPER,
    value=omega2 * square_of_mean + (1 + omega2) * omega1 / m**2 * (_ring_apart + _ring_together),
    assuming=(sp.Ge(m, 2), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "recursion of the error over the hops, solved"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {Property.UNBIASED_STAGES, Property.INDEPENDENT_MESSAGES, Property.RING_MEAN, Property.RANDOM_PLACES}
        ),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 1, "omega2": 1, "mean_square": 3, "square_of_mean": 1, "m": 3},
            "3.6667",
            "by hand, orthogonal vectors of square 3: e_2 = 3, e_3 = 2 * 3 + 6 = 12, (2 * 12 + 9)/9",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""The error of a mean whose partial sums are compressed anew at every hop of a ring.

Setting.  Shard by shard, the first worker sends C1(x_1), the next decodes it, adds x_2, compresses the sum, and so on;
the last worker adds x_m to what it decodes and sends C2 of the sum to all, who divide by m.  The workers take their
places in a uniformly random order.  A worker sends (1 - 1/m)(b1 + b2) bits per coordinate, as in two shots.

Derivation.  Let s_k be the sum of the first k vectors and e_k the mean square error of what its holder has. e_1 = 0;
compressing adds ``omega1 E|held|^2 = omega1 (|s_k|^2 + e_k)``, as what is held is unbiased, so that:

``e_{k+1} <= (1 + omega1) e_k + omega1 |s_k|^2, m^2 E|result - mean|^2 <= (1 + omega2) e_m + omega2 |s_m|^2``.

In a uniformly random order two given workers are both among the first k with probability k (k-1)/(m (m-1)), and sum_{i
!= j} <x_i, x_j> = m^2 square_of_mean - m mean_square, so:

``E|s_k|^2 = k mean_square + k (k-1) (m square_of_mean - mean_square)/(m - 1)``.

The recursion is linear: ``e_m <= omega1 sum_{k<m} (1 + omega1)^(m-1-k) E|s_k|^2``.  The sum over k (1 +
omega1)^(m-1-k) is m MeanGrowth(omega1, m), that over k (k-1) (1 + omega1)^(m-1-k) is SquareGrowth(omega1, m).

For independent vectors and omega1 = omega2 = omega the error over square_of_mean = mean_square/m tends to omega (m +
1)/2 as omega m falls, and grows exponentially in m where omega m is not small.
"""

_N = 2**tree_depth
_tree_together = (m * square_of_mean - mean_square) / (_N - 1)  # times m/N, as is the mean square of a leaf

_tree_error = (mean_square - _tree_together) * PowerQuotient(2 + omega1, 2, tree_depth)
_tree_error += _tree_together * PowerQuotient(4, 2 + omega1, tree_depth)

tree_error = Bound(
    name="tree_error",
    quantity="E|result - mean|^2, partial sums compressed at every edge of a binary tree in random order",
    side=Side.UPPER,
    value=omega2 * square_of_mean + (1 + omega2) * omega1 / (m * _N) * _tree_error,
    assuming=(sp.Lt(m, _N + sp.Rational(1, 2)), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "recursion of the error over the levels, solved"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {Property.UNBIASED_STAGES, Property.INDEPENDENT_MESSAGES, Property.TREE_MEAN, Property.RANDOM_PLACES}
        ),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 1, "omega2": 1, "mean_square": 4, "square_of_mean": 1, "m": 4, "tree_depth": 2},
            "3.5000",
            "by hand, orthogonal vectors: e_1 = 4, e_2 = 4 + 8 + 8 = 20, (2 * 20 + 16)/16",
        ),
        Example(
            {"omega1": 2, "omega2": 0, "mean_square": 1, "square_of_mean": 1, "m": 4, "tree_depth": 2},
            "1.0000",
            "by hand, equal vectors, where two growth factors coincide: e_1 = 2, e_2 = 2 + 6 + 8 = 16, 16/16",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""The error of a mean whose partial sums are compressed anew at every edge of a binary tree.

Setting.  The workers are leaves of a binary tree of depth l = ``tree_depth``, in a uniformly random order; the other
2^l - m leaves are empty.  At every level one of two neighbours sends C1 of its partial sum, the other adds it; the
root sends C2 of the sum to all, who divide by m.

Derivation.  With N = 2^l leaves, ``E|sum of k neighbours|^2 = (a - b) k + b k^2``, a = m mean_square/N, b = (m^2
square_of_mean - m mean_square)/(N (N-1)), as in ``ring_error``.  If e_j is the mean square error of a sum of 2^j
leaves, the receiver's and the sender's errors and the new one are centred and orthogonal:

``e_{j+1} <= e_j + (1 + omega1) e_j + omega1 ((a - b) 2^j + b 4^j), e_0 = 0``,

so that e_l <= omega1 sum_j (2 + omega1)^(l-1-j) ((a - b) 2^j + b 4^j), two geometric sums.  As for the ring:

``m^2 E|result - mean|^2 <= (1 + omega2) e_l + omega2 m^2 square_of_mean``.

For independent vectors, m = 2^l and omega1 = omega2 = omega, the error over square_of_mean is (1 + omega) ((1 +
omega/2)^l - 1) + omega: about (omega/2) log2 m + omega.
"""

_room = 2 ** (word_bits - 1) - m

shared_scale_error = Bound(
    name="shared_scale_error",
    quantity="E|result - mean|^2, integers of one scale summed modulo 2^word_bits",
    side=Side.UPPER,
    value=peak_ratio**2 * m * square_of_mean / (4 * _room**2),
    assuming=(sp.Gt(_room, sp.Rational(1, 2)),),
    reference=Reference("ratedist", "unbiased rounding to one grid"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.SHARED_SCALE, Property.INDEPENDENT_MESSAGES, Property.WORD_MEAN}), Conclusion.MEAN_ERROR
    ),
    examples=(
        Example(
            {"peak_ratio": 4, "m": 8, "square_of_mean": 3, "word_bits": 8},
            "0.00666667",
            "by hand: 16 * 8 * 3/(4 * 120^2)",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""The error of a mean of integers that share one scale and are summed on the way, modulo 2^k.

Setting.  All workers know a number ``A >= |sum of the x_i|`` in every coordinate; k = ``word_bits``, h = A/(2^(k-1) -
m).  Worker i rounds every coordinate of x_i/h to one of the two integers around it, at random and without bias; the
words of k bits are summed modulo 2^k on any route and the sum is multiplied by h/m.  ``peak_ratio`` is A/m over the
root mean square of a coordinate of xbar, so that A^2 d = peak_ratio^2 m^2 square_of_mean.

Derivation.  Each integer is less than 1 away from x_i/h, so their sum is less than A/h + m = 2^(k-1) in size: the word
holds it, and nothing wraps.  One rounding has variance f (1 - f) h^2 <= h^2/4, with f the fractional part; they are
independent over workers, so that ``E|result - xbar|^2 <= d h^2/(4 m)``.  With subtractive dither it is d h^2/(12 m).

The sum needs the words of the sum: for independent vectors, log2(m)/2 bits more than a summand whose error is as
large, and the peak of the sum instead of its entropy; see ``shared_scale_rate`` for what a coder can save.
"""

partial_participation_error = Bound(
    name="partial_participation_error",
    quantity="E|mean of the participants - mean of all|^2, participants drawn uniformly without replacement",
    side=Side.TIGHT,
    value=(m - participants) / (participants * (m - 1)) * (mean_square - square_of_mean),
    assuming=(sp.Ge(m, 2), sp.Le(participants, m), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "variance of a sample without replacement"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.PARTICIPANTS_MEAN}), Conclusion.MEAN_ERROR),
    examples=(
        Example(
            {"m": 3, "participants": 1, "mean_square": 3, "square_of_mean": 1},
            "2.000000",
            "orthogonal vectors of square 3: |x_1 - mean|^2 = 3 - 2 + 1, by hand",
        ),
        Example({"m": 4, "participants": 2, "mean_square": 4, "square_of_mean": 1}, "1.000000", "by hand: 2/6 of 3"),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""Partial participation: the mean of some workers stands for that of all.

Derivation.  Let I_i be 1 if worker i is among the s participants, else 0: E I_i = s/m, E I_i I_j = s (s-1)/(m (m-1)).
With y_i = x_i - xbar, which sum to zero, ``E|sum I_i y_i|^2 = (s/m) (1 - (s-1)/(m-1)) sum |y_i|^2``; divide by s^2, and
``sum |y_i|^2 = m (mean_square - square_of_mean)``.
"""

close_inputs_error = Bound(
    name="close_inputs_error",
    quantity="E|result - mean|^2, integers of word_bits bits modulo the word, inputs close to the receiver's vector",
    side=Side.TIGHT,
    value=d * distance**2 / (3 * m * (2**word_bits - 1) ** 2),
    reference=Reference("davies2021", "cubic lattice with dither; constants derived here", arxiv="2002.09268"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.MODULO_LATTICE, Property.INDEPENDENT_MESSAGES, Property.GATHERED_MEAN}),
        Conclusion.MEAN_ERROR,
    ),
    examples=(Example({"d": 12, "distance": 3, "m": 4, "word_bits": 2}, "1.000000", "12 * 9/(3 * 4 * 9) by hand"),),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
"""Davies et al. 2021: the error depends on the distance between the inputs, not on their length.

Setting.  All know a vector y with ``|x_i - y| <= distance`` in every coordinate of every worker's x_i.  With q =
2^word_bits and h = 2 distance/(q - 1), worker i sends k = round(x/h + u) modulo q, u uniform and shared; the receiver
takes the integer of that class that is nearest to y/h + u and decodes (k - u) h.

Derivation.  ``|k - (y/h + u)| <= 1/2 + distance/h = q/2``, so k is the nearest one but for ties of probability zero.
Its error is uniform in (-h/2, h/2) and independent of x: h^2/12 a coordinate, d h^2/12 = d distance^2/(3 (q - 1)^2) a
vector.  Dithers of different workers are independent, so the mean has this over m.
"""

correlated_bit_error = Bound(
    name="correlated_bit_error",
    quantity="E(result - mean)^2 of one number a worker, one bit each, roundings correlated over the workers",
    side=Side.UPPER,
    value=3 * value_range * mean_deviation / m + 12 * value_range**2 / m**2,
    assuming=(sp.Le(2 * mean_deviation, value_range),),
    reference=Reference("suresh2022", "one dimension, one bit", arxiv="2203.04925"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.CORRELATED_BIT, Property.GATHERED_MEAN}),
        Conclusion.MEAN_ERROR,
        known_up_to="constants that were recalled",
    ),
    examples=(Example({"value_range": 1, "mean_deviation": "0.1", "m": 10}, "0.1500000", "by hand: .03 + .12"),),
    note="Recalled.  Independent roundings have up to value_range^2/(4 m), whatever the deviation.",
    latex_name=r"E(\hat x - \bar x)^2",
)
"""Correlated quantisation: the workers' roundings are stratified, so that they cancel where the numbers are close.

Recalled: worker i rounds up if its number exceeds (pi_i + gamma_i)/m of the range, pi a shared random permutation of
0, .., m - 1 and gamma_i uniform.  If all numbers are equal, the count of roundings up is their sum but for one.
"""
